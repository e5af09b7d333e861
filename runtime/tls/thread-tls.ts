/** The TLS state that all listeners of a data-plane thread share: certificates, challenges, ticket keys and client trust. */
import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import type { ClientAuth } from '../../compiler/document/tls-settings.ts';
import type { ChallengeAnswer, ChallengeAnswers, ChallengeQuestion } from '../certificates/certificate-feed.ts';
import { clientKey } from '../threads/client-counts.ts';
import { CertificateTable } from './certificate-table.ts';
import { type ClientAuthTerms, clientAuthTerms } from './client-auth-terms.ts';
import { LookupLimiter } from './lookup-limiter.ts';
import type { TableCertificate } from './table-certificate.ts';
import type { ClientTrust, TlsUpdate } from './tls-update.ts';

/**
 * Maximum concurrent lookups of other processes' challenges. They are limited because any client can cause them, and the store
 * may be slow.
 */
const MAX_PENDING_LOOKUPS = 256;

const NO_ANSWERS: ChallengeAnswers = { http01: {}, alpn: {} };

/** Callbacks for changes that invalidate cached handshakers or established connections. */
export interface ThreadTlsListener {
	/** Called when a certificate was replaced or removed. */
	onCertificateGone(certificate: TableCertificate): void;
	/** Called when ticket keys or trusted client certificates have changed. */
	onSettingsChanged(): void;
	/**
	 * Called when certificates are no longer trusted, with the {@link ClientTrust.key}s whose lists have lost them. Clients that
	 * these certificates have verified may no longer be trusted.
	 */
	onTrustLost(keys: ReadonlySet<string>): void;
}

/** The TLS state of one thread, as the main thread has sent it. */
export class ThreadTls {
	readonly certificates = new CertificateTable();
	/**
	 * Session ticket keys, of which the first encrypts. Empty until the main thread has sent the keys; until then, no session is
	 * resumed.
	 */
	ticketKeys: readonly Buffer[] = [];
	/**
	 * Number of times that trusted certificates were removed. If it has changed since a handshake began, the client may have been
	 * verified by a removed certificate.
	 */
	trustLosses = 0;
	/** True if the main thread can obtain certificates that this thread does not have. */
	obtainsOnDemand = false;
	/** True if another process with the same store may have published a challenge that this process does not know. */
	sharesChallenges = false;
	#trustByKey: ReadonlyMap<string, ClientTrust> = new Map();
	/** Keys may be long, because they contain certificates. None is computed for each handshake. */
	readonly #trustKeyByAuth = new WeakMap<ClientAuth, string>();
	/** The terms with the current trusted certificates. */
	#termsByAuth = new WeakMap<ClientAuth, ClientAuthTerms>();
	readonly #listeners = new Set<ThreadTlsListener>();
	#challengeAnswers = NO_ANSWERS;
	#tokenCount = 0;
	#pendingLookupCount = 0;
	readonly #lookupLimiter = new LookupLimiter();
	readonly #acknowledge: (number: number) => void;
	readonly #askMainThread: (question: ChallengeQuestion) => Promise<ChallengeAnswer | undefined>;

	/**
	 * @param acknowledge Called with the number of a `challenges` update once its answers are in effect.
	 * @param ask Asks the main thread for the answer to a challenge that another process may have published.
	 */
	constructor(
		acknowledge: (number: number) => void,
		ask: (question: ChallengeQuestion) => Promise<ChallengeAnswer | undefined> = async () => undefined,
	) {
		this.#acknowledge = acknowledge;
		this.#askMainThread = ask;
	}

	/** Applies an update from the main thread. */
	applyUpdate(update: TlsUpdate): void {
		switch (update.kind) {
			case 'certificates':
				for (const certificate of update.set) this.#reportGone(this.certificates.set(certificate));
				for (const id of update.dropped) this.#reportGone(this.certificates.delete(id));
				return;
			case 'challenges':
				this.#challengeAnswers = update.answers;
				this.#tokenCount = Object.keys(update.answers.http01).length;
				this.#acknowledge(update.number);
				return;
			case 'on_demand':
				this.obtainsOnDemand = update.asked;
				return;
			case 'shared_challenges':
				this.sharesChallenges = update.asked;
				return;
			case 'tickets':
				this.ticketKeys = update.keys.map(key => Buffer.from(key));
				break;
			case 'trust':
				this.#applyTrust(new Map(update.trust.map(trust => [trust.key, trust])));
				break;
		}
		for (const listener of this.#listeners) listener.onSettingsChanged();
	}

	#applyTrust(trust: ReadonlyMap<string, ClientTrust>): void {
		const lostKeys = findLostKeys(this.#trustByKey, trust);
		this.#trustByKey = trust;
		this.#termsByAuth = new WeakMap();
		if (lostKeys.size === 0) return;
		this.trustLosses++;
		for (const listener of this.#listeners) listener.onTrustLost(lostKeys);
	}

	/** Returns the trusted certificates for a key; undefined if they are not known, in which case no client can be verified. */
	trustFor(key: string): ClientTrust | undefined {
		return this.#trustByKey.get(key);
	}

	/** Returns the {@link ClientTrust.key} of a `client_auth`. */
	trustKeyOf(auth: ClientAuth): string {
		let key = this.#trustKeyByAuth.get(auth);
		if (key === undefined) {
			key = canonicalJson(auth);
			this.#trustKeyByAuth.set(auth, key);
		}
		return key;
	}

	/** Returns the terms of a `client_auth`; undefined if its trusted certificates are not known. */
	clientAuthTerms(auth: ClientAuth): ClientAuthTerms | undefined {
		const knownTerms = this.#termsByAuth.get(auth);
		if (knownTerms !== undefined) return knownTerms;
		const trust = this.trustFor(this.trustKeyOf(auth));
		if (trust === undefined) return undefined;
		const terms = clientAuthTerms(auth, trust);
		this.#termsByAuth.set(auth, terms);
		return terms;
	}

	addListener(listener: ThreadTlsListener): void {
		this.#listeners.add(listener);
	}

	removeListener(listener: ThreadTlsListener): void {
		this.#listeners.delete(listener);
	}

	/** True if an HTTP-01 challenge is pending in this process, or may be pending in another process that shares the store. */
	get mayHaveChallenge(): boolean {
		return this.#tokenCount > 0 || this.sharesChallenges;
	}

	/** Returns the key authorization for an HTTP-01 token; undefined if this process has not published one. */
	keyAuthorization(token: string): string | undefined {
		const { http01 } = this.#challengeAnswers;
		return Object.hasOwn(http01, token) ? http01[token] : undefined;
	}

	/**
	 * Returns the certificate that answers the TLS-ALPN-01 challenge for a name; undefined if this process has not published one.
	 */
	challengeCertificate(name: string): { readonly chain: string; readonly key: string } | undefined {
		const { alpn } = this.#challengeAnswers;
		return Object.hasOwn(alpn, name) ? alpn[name] : undefined;
	}

	/**
	 * Looks up the answer to a challenge of another process. Resolves to undefined if there is none or the client is rate-limited.
	 */
	async lookUpSharedAnswer(question: ChallengeQuestion, client: string): Promise<ChallengeAnswer | undefined> {
		if (
			!this.sharesChallenges ||
			this.#pendingLookupCount >= MAX_PENDING_LOOKUPS ||
			!this.#lookupLimiter.admits(clientKey(client))
		)
			return undefined;
		this.#pendingLookupCount++;
		try {
			return await this.#askMainThread(question);
		} finally {
			this.#pendingLookupCount--;
		}
	}

	#reportGone(certificate: TableCertificate | undefined): void {
		if (certificate) for (const listener of this.#listeners) listener.onCertificateGone(certificate);
	}
}

/**
 * Returns the {@link ClientTrust.key}s whose lists have lost trusted certificates. Clients that these certificates have verified
 * may no longer be trusted.
 */
function findLostKeys(
	oldTrusts: ReadonlyMap<string, ClientTrust>,
	newTrusts: ReadonlyMap<string, ClientTrust>,
): ReadonlySet<string> {
	const lostKeys = new Set<string>();
	for (const [key, oldTrust] of oldTrusts) {
		const newTrust = newTrusts.get(key);
		if (!newTrust || !trustsAllOf(newTrust, oldTrust)) lostKeys.add(key);
	}
	return lostKeys;
}

/** Reports whether `newTrust` contains all certificates that `oldTrust` trusts. */
export function trustsAllOf(newTrust: ClientTrust, oldTrust: ClientTrust): boolean {
	return includesAll(newTrust.authorities, oldTrust.authorities) && trustsLeaves(newTrust, oldTrust);
}

function includesAll(list: readonly string[], members: readonly string[]): boolean {
	const knownItems = new Set(list);
	return members.every(member => knownItems.has(member));
}

function trustsLeaves({ leaves: newLeaves }: ClientTrust, { leaves: oldLeaves }: ClientTrust): boolean {
	return newLeaves === undefined || (oldLeaves !== undefined && includesAll(newLeaves, oldLeaves));
}
