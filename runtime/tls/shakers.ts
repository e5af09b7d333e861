/**
 * What shakes hands: for each policy and certificate of a listener a shaker. Made when first asked for; the number kept is
 * bounded, and one whose certificate is gone goes with it.
 */
import { createHash } from 'node:crypto';
import { appendFile } from 'node:fs';
import type { TLSSocket } from 'node:tls';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import type { HandshakePolicy } from '../../compiler/tls/site-tls.ts';
import { DirectSocket } from '../protocols/direct-socket.ts';
import { type ClientTerms, clientVerifier } from '../sockets/client-verifier.ts';
import { handshakeSettings, offeredProtocols } from './handshake-settings.ts';
import { type HandshakeOutcome, PlainShaker, ServerShaker, type Shaker, StaplingShaker } from './shaker.ts';
import type { TableCertificate } from './table-certificate.ts';
import type { ThreadTls } from './thread-tls.ts';
import { keyOfTicket } from './ticket-keys.ts';

/** Certificates that one listener keeps shakers for on one thread. */
const MOST_SHAKERS = 2000;

/** Shakers of one listener. */
export class Shakers {
	readonly #tls: ThreadTls;
	readonly #policies: readonly HandshakePolicy[];
	readonly #protocols: readonly string[];
	readonly #outcome: HandshakeOutcome;
	/** By the certificate's serial, oldest first; then by policy and ticket key. */
	readonly #shakers = new Map<number, (Shaker | undefined)[]>();
	readonly #challenges = new Map<string, Shaker>();

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

	/** Certificates that shakers are kept for. */
	get size(): number {
		return this.#shakers.size;
	}

	/**
	 * The shaker of a policy and a certificate, with the key that the client's ticket was sealed with; undefined when it
	 * cannot be made, and then the handshake must fail.
	 */
	get(policy: number, certificate: TableCertificate, ticket?: Buffer): Shaker | undefined {
		const { ticketKeys } = this.#tls;
		const key = keyOfTicket(ticketKeys, ticket);
		const place = key === 0 ? policy : policy + key * this.#policies.length;
		let byPolicy = this.#shakers.get(certificate.serial);
		const known = byPolicy?.[place];
		if (known) return known;
		const newest = key === 0 ? undefined : ticketKeys[0];
		const made = this.#make(this.#policies[policy]!, certificate, ticketKeys[key], newest);
		if (!made) return undefined;
		if (!byPolicy) {
			if (this.#shakers.size >= MOST_SHAKERS) this.#drop(this.#shakers.keys().next().value!);
			byPolicy = [];
			this.#shakers.set(certificate.serial, byPolicy);
		}
		byPolicy[place] = made;
		return made;
	}

	/** The shaker that answers the TLS-ALPN-01 challenge of a name (RFC 8737) with a certificate. */
	challenge(name: string, certificate: { readonly chain: string; readonly key: string }): Shaker {
		const key = `${name}\n${certificate.chain}`;
		let shaker = this.#challenges.get(key);
		if (!shaker) {
			if (this.#challenges.size >= 100) this.#dropChallenges();
			const options = { ...handshakeSettings({}), ca: [], cert: certificate.chain, key: certificate.key };
			const ended = (socket: TLSSocket | DirectSocket): void => {
				if (!(socket instanceof DirectSocket)) socket.on('error', () => {});
				socket.resume();
				socket.end();
			};
			const outcome = { secured: ended, failed: this.#outcome.failed };
			shaker = new PlainShaker({ ...options, ALPNProtocols: ['acme-tls/1'] }, outcome);
			this.#challenges.set(key, shaker);
		}
		return shaker;
	}

	/** The certificate is gone. Handshakes that it has begun go on. */
	forget(certificate: TableCertificate): void {
		this.#drop(certificate.serial);
	}

	/** Everything has to be made anew. */
	clear(): void {
		for (const serial of [...this.#shakers.keys()]) this.#drop(serial);
		this.#dropChallenges();
	}

	#drop(serial: number): void {
		for (const shaker of this.#shakers.get(serial) ?? []) shaker?.close();
		this.#shakers.delete(serial);
	}

	#dropChallenges(): void {
		for (const shaker of this.#challenges.values()) shaker.close();
		this.#challenges.clear();
	}

	/** `newestKey`: the key that seals, where `ticketKeys` is the one before it. */
	#make(
		policy: HandshakePolicy,
		{ published }: TableCertificate,
		ticketKeys: Buffer | undefined,
		newestKey: Buffer | undefined,
	): Shaker | undefined {
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
		const { client_auth: asks, insecure_secrets_log: file } = policy;
		if (asks === undefined && file === undefined) {
			if (ocsp === undefined) return new PlainShaker(options, this.#outcome);
			return new StaplingShaker(options, Buffer.from(ocsp), this.#outcome);
		}
		const shaker = new ServerShaker(options, this.#outcome, clientAuth.terms);
		if (file !== undefined) {
			shaker.server.on('keylog', line => appendFile(file, line, { mode: 0o600 }, () => {}));
		}
		if (ocsp) {
			const response = Buffer.from(ocsp);
			shaker.server.on('OCSPRequest', (_certificate, _issuer, answer: (error: null, response: Buffer) => void) =>
				answer(null, response),
			);
		}
		return shaker;
	}

	/** What is asked of clients; undefined when it is not known by what they are verified. A session is resumed only under the same. */
	#clientAuth({ client_auth: auth }: HandshakePolicy) {
		if (!auth) return { options: { ca: [] }, context: 'anyone', terms: undefined };
		const key = canonicalJson(auth);
		const trust = this.#tls.trust(key);
		if (!trust) return undefined;
		const ca = [...trust.authorities];
		// With other trust no session of before is resumed: what it has shown was judged by the old.
		const context = createHash('sha256')
			.update(JSON.stringify([key, ca, trust.leaves]))
			.digest('hex')
			.slice(0, 32);
		const verifies = auth.mode === 'verify_if_given' || auth.mode === 'require_and_verify';
		const chain = verifies && (auth.trust_pool !== undefined || trust.leaves === undefined);
		const terms: ClientTerms = { chain, leaves: auth.mode === 'request' ? undefined : trust.leaves };
		// Where OpenSSL cannot be had to judge, Node takes this for more than the certificate's being there, and the rest is
		// judged after the handshake (see client-verification.ts).
		const rejectUnauthorized = clientVerifier()
			? auth.mode === 'require' || auth.mode === 'require_and_verify'
			: auth.mode === 'require_and_verify' && auth.trust_pool !== undefined;
		return { options: { ca, requestCert: true, rejectUnauthorized }, context, terms };
	}
}
