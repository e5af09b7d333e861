/** TLS for connections to upstreams: offered protocols, verification, session resumption. */
import { isIP } from 'node:net';
import { type ConnectionOptions, checkServerIdentity, type SecureContext, type TLSSocket } from 'node:tls';
import type { ClientTlsSettings } from '../../../compiler/modules/directives/reverse-proxy/transports/transport-settings.ts';
import type { ClientTlsContext } from './tls-context.ts';

/** Default handshake timeout, in milliseconds. */
const DEFAULT_HANDSHAKE_TIMEOUT_MS = 10_000;

/** The TLS settings for connections to one upstream under one server name. */
export class TlsClient {
	/** Timeout of the handshake in milliseconds; 0 for no limit. */
	readonly handshakeTimeoutMs: number;
	readonly #settings: ClientTlsSettings;
	readonly #tlsContext: ClientTlsContext;
	readonly #serverName: string;
	readonly #protocols: readonly string[];
	/** The session of the last handshake, which the next one resumes. */
	#session: Buffer | undefined = undefined;
	/**
	 * The context in the result of the last call of {@link options}. A session is resumed only in the same context, because
	 * resumption verifies no certificate.
	 */
	context: SecureContext | undefined = undefined;

	/**
	 * @param name Name or address for which the certificate must be valid.
	 * @param protocols ALPN protocols, in order of preference.
	 */
	constructor(settings: ClientTlsSettings, context: ClientTlsContext, name: string, protocols: readonly string[]) {
		this.#settings = settings;
		this.#tlsContext = context;
		this.#serverName = name;
		this.#protocols = protocols;
		this.handshakeTimeoutMs = settings.handshake_timeout ?? DEFAULT_HANDSHAKE_TIMEOUT_MS;
	}

	/**
	 * Returns the reason why no connection can be made, such as an unusable certificate or key. Must be called before
	 * {@link options}.
	 */
	findProblem(): Error | undefined {
		try {
			this.#tlsContext.getContext();
			return undefined;
		} catch (error) {
			return error as Error;
		}
	}

	/** Returns options for `tls.connect`. */
	options(): ConnectionOptions {
		const name = this.#serverName;
		const context = this.#tlsContext.getContext();
		if (context !== this.context) {
			this.context = context;
			this.#session = undefined;
		}
		return {
			secureContext: context,
			ALPNProtocols: [...this.#protocols],
			rejectUnauthorized: this.#settings.insecure_skip_verify !== true,
			checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
			// SNI does not allow addresses (RFC 6066 §3).
			...(isIP(name) === 0 && name !== '' ? { servername: name } : { servername: '' }),
			...(this.#session === undefined ? {} : { session: this.#session }),
			...(this.#settings.curves === undefined ? {} : { ecdhCurve: groupsOf(this.#settings.curves) }),
		};
	}

	/** True if the upstream may start a renegotiation. */
	get allowsRenegotiation(): boolean {
		return this.#settings.renegotiation === 'freely';
	}

	/** Keeps the session of a connection for the next one, unless the context has been replaced since. */
	keepSession(session: Buffer, context: SecureContext | undefined): void {
		if (context === this.context) this.#session = session;
	}

	/** Checks a finished handshake. Returns why the connection cannot be used; undefined if it can. */
	checkHandshake(socket: TLSSocket): string | undefined {
		if (!this.allowsRenegotiation) socket.disableRenegotiation();
		if (!this.#protocols.includes('http/1.1') && socket.alpnProtocol !== 'h2') {
			return 'the upstream does not speak HTTP/2 over TLS';
		}
		return undefined;
	}
}

/** Converts the names of curves in the configuration to the names that OpenSSL gives to the groups. */
function groupsOf(curves: readonly string[]): string {
	return curves.map(curve => OPENSSL_GROUPS[curve] ?? curve).join(':');
}

const OPENSSL_GROUPS: { readonly [curve: string]: string } = {
	x25519mlkem768: 'X25519MLKEM768',
	x25519: 'X25519',
	secp256r1: 'P-256',
	secp384r1: 'P-384',
	secp521r1: 'P-521',
};
