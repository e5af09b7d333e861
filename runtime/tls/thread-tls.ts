/** What one data-plane thread knows of TLS beyond its listeners: certificates, challenges, ticket keys, trust. */
import { clientKey } from '../listeners/client-counts.ts';
import { AskLimits } from './ask-limits.ts';
import type { ChallengeAnswer, ChallengeAnswers, ChallengeQuestion } from './certificate-feed.ts';
import { CertificateTable } from './certificate-table.ts';
import type { TableCertificate } from './table-certificate.ts';
import type { ClientTrust, TlsUpdate } from './tls-update.ts';

/** Challenges of other processes that are asked about at one time: anybody may ask, and a store may be slow. */
const MOST_ASKED = 256;

const NO_ANSWERS: ChallengeAnswers = { http01: {}, alpn: {} };

/** Told of what makes prepared handshakes wrong. */
export interface TlsListening {
	/** A certificate was replaced or taken out. */
	gone(certificate: TableCertificate): void;
	/** Ticket keys or trust have changed. */
	changed(): void;
	/** Clients that were verified under these keys of trust may be trusted no longer. */
	distrusted(keys: ReadonlySet<string>): void;
}

/** The state of TLS on one thread. */
export class ThreadTls {
	readonly certificates = new CertificateTable();
	/** The one that seals tickets first; empty until the main thread has sent them: then no session is resumed. */
	ticketKeys: readonly Buffer[] = [];
	/** Times that some trust was lost: a handshake that began before one of them may have verified a client by it. */
	distrustings = 0;
	/** Whether anybody may have a certificate that this thread has not. */
	onDemand = false;
	/** Whether another process may have put up a challenge that this one has not. */
	sharesChallenges = false;
	#trust: ReadonlyMap<string, ClientTrust> = new Map();
	readonly #listening = new Set<TlsListening>();
	#answers = NO_ANSWERS;
	#tokens = 0;
	#asked = 0;
	readonly #limits = new AskLimits();
	readonly #taken: (number: number) => void;
	readonly #ask: (question: ChallengeQuestion) => Promise<ChallengeAnswer | undefined>;

	/**
	 * `taken` is called once the answers to challenges of that number stand; `ask` asks the main thread about a challenge that
	 * another process may have put up.
	 */
	constructor(
		taken: (number: number) => void,
		ask: (question: ChallengeQuestion) => Promise<ChallengeAnswer | undefined> = async () => undefined,
	) {
		this.#taken = taken;
		this.#ask = ask;
	}

	/** Takes an update. */
	take(update: TlsUpdate): void {
		switch (update.kind) {
			case 'certificates':
				for (const certificate of update.set) this.#gone(this.certificates.set(certificate));
				for (const id of update.dropped) this.#gone(this.certificates.delete(id));
				return;
			case 'challenges':
				this.#answers = update.answers;
				this.#tokens = Object.keys(update.answers.http01).length;
				this.#taken(update.number);
				return;
			case 'on_demand':
				this.onDemand = update.asked;
				return;
			case 'shared_challenges':
				this.sharesChallenges = update.asked;
				return;
			case 'tickets':
				this.ticketKeys = update.keys.map(key => Buffer.from(key));
				break;
			case 'trust':
				this.#takeTrust(new Map(update.trust.map(trust => [trust.key, trust])));
				break;
		}
		for (const listener of this.#listening) listener.changed();
	}

	#takeTrust(trust: ReadonlyMap<string, ClientTrust>): void {
		const lost = lostTrust(this.#trust, trust);
		this.#trust = trust;
		if (lost.size === 0) return;
		this.distrustings++;
		for (const listener of this.#listening) listener.distrusted(lost);
	}

	/** How clients are verified; undefined when nothing is known, and then nobody can be. */
	trust(key: string): ClientTrust | undefined {
		return this.#trust.get(key);
	}

	listen(listener: TlsListening): void {
		this.#listening.add(listener);
	}

	unlisten(listener: TlsListening): void {
		this.#listening.delete(listener);
	}

	/** Whether some HTTP-01 challenge stands, here or perhaps in another process. */
	get challenged(): boolean {
		return this.#tokens > 0 || this.sharesChallenges;
	}

	/** The key authorization of an HTTP-01 token. */
	keyAuthorization(token: string): string | undefined {
		const { http01 } = this.#answers;
		return Object.hasOwn(http01, token) ? http01[token] : undefined;
	}

	/** The certificate that answers the TLS-ALPN-01 challenge of a name. */
	challengeCertificate(name: string): { readonly chain: string; readonly key: string } | undefined {
		const { alpn } = this.#answers;
		return Object.hasOwn(alpn, name) ? alpn[name] : undefined;
	}

	/** The answer to a challenge of another process; undefined when there is none, or when the client asks too often. */
	async sharedAnswer(question: ChallengeQuestion, client: string): Promise<ChallengeAnswer | undefined> {
		if (!this.sharesChallenges || this.#asked >= MOST_ASKED || !this.#limits.take(clientKey(client))) return undefined;
		this.#asked++;
		try {
			return await this.#ask(question);
		} finally {
			this.#asked--;
		}
	}

	#gone(certificate: TableCertificate | undefined): void {
		if (certificate) for (const listener of this.#listening) listener.gone(certificate);
	}
}

/** Keys of trust that verifies less than before, so that clients that were verified by it may be no longer. */
function lostTrust(
	before: ReadonlyMap<string, ClientTrust>,
	after: ReadonlyMap<string, ClientTrust>,
): ReadonlySet<string> {
	const lost = new Set<string>();
	for (const [key, old] of before) {
		const now = after.get(key);
		if (!now || !holdsAll(now.authorities, old.authorities) || !trustsLeaves(now, old)) lost.add(key);
	}
	return lost;
}

function holdsAll(list: readonly string[], members: readonly string[]): boolean {
	const known = new Set(list);
	return members.every(member => known.has(member));
}

function trustsLeaves({ leaves: now }: ClientTrust, { leaves: old }: ClientTrust): boolean {
	return now === undefined || (old !== undefined && holdsAll(now, old));
}
