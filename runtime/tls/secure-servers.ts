/**
 * What shakes hands: for each policy and certificate of a listener a `tls.Server` that never listens itself and is handed
 * sockets. Made when first asked for; the number kept is bounded, and one whose certificate is gone goes with it.
 */
import { createHash } from 'node:crypto';
import { appendFile } from 'node:fs';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import type { HandshakePolicy } from '../../compiler/tls/site-tls.ts';
import { handshakeSettings, offeredProtocols } from './handshake-settings.ts';
import type { TableCertificate } from './table-certificate.ts';
import type { ThreadTls } from './thread-tls.ts';
import { keyOfTicket } from './ticket-keys.ts';

/** Servers that one listener keeps on one thread. */
const MOST_SERVERS = 2000;

/** Where handshakes end. */
export interface HandshakeOutcome {
	secured(socket: TLSSocket): void;
	failed(error: Error & { readonly code?: string }, socket: TLSSocket): void;
}

/** Servers of one listener. */
export class SecureServers {
	readonly #tls: ThreadTls;
	readonly #policies: readonly HandshakePolicy[];
	readonly #protocols: readonly string[];
	readonly #outcome: HandshakeOutcome;
	/** By the certificate's serial, oldest first; then by policy and ticket key. */
	readonly #servers = new Map<number, (Server | undefined)[]>();
	readonly #challenges = new Map<string, Server>();

	constructor(
		tls: ThreadTls,
		policies: readonly HandshakePolicy[],
		protocols: readonly string[],
		outcome: HandshakeOutcome,
	) {
		this.#tls = tls;
		this.#policies = policies;
		this.#protocols = protocols;
		this.#outcome = outcome;
	}

	/** Certificates that servers are kept for. */
	get size(): number {
		return this.#servers.size;
	}

	/**
	 * The server of a policy and a certificate, with the key that the client's ticket was sealed with; undefined when it
	 * cannot be made, and then the handshake must fail.
	 */
	get(policy: number, certificate: TableCertificate, ticket?: Buffer): Server | undefined {
		const { ticketKeys } = this.#tls;
		const key = keyOfTicket(ticketKeys, ticket);
		const place = key === 0 ? policy : policy + key * this.#policies.length;
		let byPolicy = this.#servers.get(certificate.serial);
		const known = byPolicy?.[place];
		if (known) return known;
		const made = this.#make(this.#policies[policy]!, certificate, ticketKeys[key]);
		if (!made) return undefined;
		if (!byPolicy) {
			if (this.#servers.size >= MOST_SERVERS) this.#servers.delete(this.#servers.keys().next().value!);
			byPolicy = [];
			this.#servers.set(certificate.serial, byPolicy);
		}
		byPolicy[place] = made;
		return made;
	}

	/** The server that answers the TLS-ALPN-01 challenge of a name (RFC 8737) with a certificate. */
	challenge(name: string, certificate: { readonly chain: string; readonly key: string }): Server {
		const key = `${name}\n${certificate.chain}`;
		let server = this.#challenges.get(key);
		if (!server) {
			if (this.#challenges.size >= 100) this.#challenges.clear();
			server = createServer({
				...handshakeSettings({}),
				ca: [],
				cert: certificate.chain,
				key: certificate.key,
				ALPNProtocols: ['acme-tls/1'],
			});
			server.on('secureConnection', socket => socket.end());
			server.on('tlsClientError', (_error, socket) => socket.destroy());
			this.#challenges.set(key, server);
		}
		return server;
	}

	/** The certificate is gone. Handshakes that it has begun go on. */
	forget(certificate: TableCertificate): void {
		this.#servers.delete(certificate.serial);
	}

	/** Everything has to be made anew. */
	clear(): void {
		this.#servers.clear();
		this.#challenges.clear();
	}

	#make(policy: HandshakePolicy, { published }: TableCertificate, ticketKeys: Buffer | undefined): Server | undefined {
		const clientAuth = this.#clientAuth(policy);
		if (!clientAuth) return undefined;
		const { chain, key, ocsp } = published;
		const server = createServer({
			...handshakeSettings(policy),
			...clientAuth.options,
			cert: chain,
			key,
			ALPNProtocols: offeredProtocols(policy, this.#protocols),
			...(ticketKeys ? { ticketKeys } : {}),
			sessionIdContext: clientAuth.context,
		});
		server.on('secureConnection', socket => this.#outcome.secured(socket));
		server.on('tlsClientError', (error, socket) => this.#outcome.failed(error, socket));
		if (policy.insecure_secrets_log !== undefined) {
			const file = policy.insecure_secrets_log;
			server.on('keylog', line => appendFile(file, line, { mode: 0o600 }, () => {}));
		}
		if (ocsp) {
			const response = Buffer.from(ocsp);
			server.on('OCSPRequest', (_certificate, _issuer, answer: (error: null, response: Buffer) => void) =>
				answer(null, response),
			);
		}
		return server;
	}

	/** What is asked of clients; undefined when it is not known by what they are verified. A session is resumed only under the same. */
	#clientAuth({ client_auth: auth }: HandshakePolicy) {
		if (!auth) return { options: { ca: [] }, context: 'anyone' };
		const key = canonicalJson(auth);
		const trust = this.#tls.trust(key);
		if (!trust) return undefined;
		const ca = [...trust.authorities];
		// With other trust no session of before is resumed: what it has shown was judged by the old.
		const context = createHash('sha256')
			.update(JSON.stringify([key, ca, trust.leaves]))
			.digest('hex')
			.slice(0, 32);
		// The rest is judged after the handshake (see client-verification.ts): leaves are known without an authority.
		const rejectUnauthorized = auth.mode === 'require_and_verify' && auth.trust_pool !== undefined;
		return { options: { ca, requestCert: true, rejectUnauthorized }, context };
	}
}
