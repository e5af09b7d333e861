/** A bounded cache of handshakers, one for each policy and certificate of a listener, created on first use. */
import type { TLSSocket } from 'node:tls';
import type { HandshakePolicy } from '../../compiler/codegen/plan/site-tls.ts';
import { clientVerifier } from '../sockets/client-verifier.ts';
import { DirectSocket } from '../sockets/direct-socket.ts';
import { handshakeSettings, offeredProtocols } from './handshake-settings.ts';
import { type Handshaker, type HandshakerCallbacks, PlainHandshaker, ServerHandshaker } from './handshaker.ts';
import { logSecret } from './secrets-log.ts';
import type { TableCertificate } from './table-certificate.ts';
import type { ThreadTls } from './thread-tls.ts';
import { ticketKeyIndex } from './ticket-keys.ts';

/** Maximum number of certificates with cached handshakers, per listener and thread. The oldest is evicted. */
const MAX_CACHED_CERTIFICATES = 2000;

export class HandshakerCache {
	readonly #tls: ThreadTls;
	readonly #policies: readonly HandshakePolicy[];
	readonly #protocols: readonly string[];
	readonly #callbacks: HandshakerCallbacks;
	/**
	 * Handshakers by {@link TableCertificate.serial}, in the order of insertion. An array has one element for each combination of
	 * ticket key and policy; see `get`.
	 */
	readonly #handshakersBySerial = new Map<number, (Handshaker | undefined)[]>();
	readonly #challengeHandshakers = new Map<string, Handshaker>();

	constructor(
		tls: ThreadTls,
		policies: readonly HandshakePolicy[],
		protocols: readonly string[],
		callbacks: HandshakerCallbacks,
	) {
		this.#tls = tls;
		this.#policies = policies;
		this.#protocols = protocols;
		this.#callbacks = callbacks;
	}

	/** Number of certificates with cached handshakers. */
	get size(): number {
		return this.#handshakersBySerial.size;
	}

	/**
	 * Returns the handshaker for a policy and a certificate. It can decrypt the client's session ticket if the key of the ticket is
	 * known. Returns undefined if the policy's trusted client certificates are not known; the handshake must then fail.
	 * @throws If OpenSSL rejects the certificate or its key.
	 */
	get(policyIndex: number, certificate: TableCertificate, ticket?: Buffer): Handshaker | undefined {
		const { ticketKeys } = this.#tls;
		const keyIndex = ticketKeyIndex(ticketKeys, ticket);
		const cacheIndex = keyIndex === 0 ? policyIndex : policyIndex + keyIndex * this.#policies.length;
		let handshakersByPolicy = this.#handshakersBySerial.get(certificate.serial);
		const cached = handshakersByPolicy?.[cacheIndex];
		if (cached) return cached;
		const newestKey = keyIndex === 0 ? undefined : ticketKeys[0];
		const handshaker = this.#createHandshaker(
			this.#policies[policyIndex]!,
			certificate,
			ticketKeys[keyIndex],
			newestKey,
		);
		if (!handshaker) return undefined;
		if (!handshakersByPolicy) {
			if (this.#handshakersBySerial.size >= MAX_CACHED_CERTIFICATES)
				this.#dropHandshakers(this.#handshakersBySerial.keys().next().value!);
			handshakersByPolicy = [];
			this.#handshakersBySerial.set(certificate.serial, handshakersByPolicy);
		}
		handshakersByPolicy[cacheIndex] = handshaker;
		return handshaker;
	}

	/** Returns the handshaker that answers the TLS-ALPN-01 challenge for a name (RFC 8737) with a certificate. */
	challengeHandshaker(name: string, certificate: { readonly chain: string; readonly key: string }): Handshaker {
		const key = `${name}\n${certificate.chain}`;
		let handshaker = this.#challengeHandshakers.get(key);
		if (!handshaker) {
			if (this.#challengeHandshakers.size >= 100) this.#dropChallenges();
			const options = { ...handshakeSettings({}), ca: [], cert: certificate.chain, key: certificate.key };
			const closeSocket = (socket: TLSSocket | DirectSocket): void => {
				if (!(socket instanceof DirectSocket)) socket.on('error', () => {});
				socket.resume();
				socket.end();
			};
			const callbacks = { onSecured: closeSocket, onError: this.#callbacks.onError };
			handshaker = new PlainHandshaker({ ...options, ALPNProtocols: ['acme-tls/1'] }, callbacks);
			this.#challengeHandshakers.set(key, handshaker);
		}
		return handshaker;
	}

	/** Drops the handshakers of a certificate. Handshakes in progress continue. */
	forget(certificate: TableCertificate): void {
		this.#dropHandshakers(certificate.serial);
	}

	/** Drops all handshakers, so that they are created again with the current settings. */
	clear(): void {
		for (const serial of [...this.#handshakersBySerial.keys()]) this.#dropHandshakers(serial);
		this.#dropChallenges();
	}

	#dropHandshakers(serial: number): void {
		for (const handshaker of this.#handshakersBySerial.get(serial) ?? []) handshaker?.close();
		this.#handshakersBySerial.delete(serial);
	}

	#dropChallenges(): void {
		for (const handshaker of this.#challengeHandshakers.values()) handshaker.close();
		this.#challengeHandshakers.clear();
	}

	/**
	 * @param newestKey The key that encrypts new tickets, while `ticketKeys` only decrypts. If undefined, `ticketKeys` does both.
	 */
	#createHandshaker(
		policy: HandshakePolicy,
		{ published }: TableCertificate,
		ticketKeys: Buffer | undefined,
		newestKey: Buffer | undefined,
	): Handshaker | undefined {
		const clientAuth = this.#clientAuth(policy);
		if (!clientAuth) return undefined;
		const { chain, key, ocsp } = published;
		const options = {
			...handshakeSettings(policy),
			...clientAuth.options,
			cert: chain,
			key,
			ALPNProtocols: offeredProtocols(policy, this.#protocols),
			...(ticketKeys ? { ticketKeys, newestKey } : {}),
			sessionIdContext: clientAuth.context,
		};
		const { client_auth: clientAuthPolicy, insecure_secrets_log: secretsLogFile } = policy;
		if (clientAuthPolicy === undefined && secretsLogFile === undefined && ocsp === undefined) {
			return new PlainHandshaker(options, this.#callbacks);
		}
		const duties = {
			ocspResponse: ocsp && Buffer.from(ocsp),
			clientTerms: clientAuth.terms,
			onSecret: secretsLogFile === undefined ? undefined : (line: string) => logSecret(secretsLogFile, line),
		};
		return new ServerHandshaker(options, duties, this.#callbacks);
	}

	/** Returns the settings of client authentication, or undefined if the trusted certificates are not known. */
	#clientAuth({ client_auth: auth }: HandshakePolicy) {
		if (!auth) return { options: { ca: [] }, context: 'anyone', terms: undefined };
		const terms = this.#tls.clientAuthTerms(auth);
		if (!terms) return undefined;
		// If OpenSSL's verification is not accessible, Node verifies the chain, and `rejectUnauthorized` makes it reject clients
		// whose chain does not verify. So it is set only if the policy demands a verified chain; everything else is checked after the
		// handshake (see client-verification.ts).
		const rejectUnauthorized = clientVerifier()
			? terms.required
			: auth.mode === 'require_and_verify' && auth.trust_pool !== undefined;
		const options = { ca: [...terms.authorities], requestCert: true, rejectUnauthorized };
		return { options, context: terms.context, terms: { required: rejectUnauthorized, criteria: terms.criteria } };
	}
}
