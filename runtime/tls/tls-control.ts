/** TLS on the main thread: certificates from files and from the manager, challenges, ticket keys and trust, told to every thread. */
import type {
	AcmeServerAnswer,
	AcmeServerRequest,
	AcmeServerSettings,
} from '../../compiler/directives/acme-server/acme-server-handler.ts';
import type { Settings } from '../../compiler/document/document.ts';
import type { IssuerSettings } from '../../compiler/tls/certificate-plan.ts';
import type { PlannedCertificates } from '../../compiler/tls/plan-tls.ts';
import { addedUp, type CertificateReadings, MOST_EXPIRY_SERIES } from '../certificates/certificate-metrics.ts';
import type { SharedChallenges } from '../certificates/shared-challenges.ts';
import type { StoreSelection } from '../storage/open-store.ts';
import type { Store } from '../storage/store.ts';
import type { LogLevel } from '../threads/messages.ts';
import type { TlsProvided, TlsWanted } from '../upstreams/transports/tls-provision.ts';
import type {
	CertificateManager,
	CertificateQuestion,
	CertificateSink,
	ChallengeAnswer,
	ChallengeAnswers,
	ChallengeQuestion,
	PublishedCertificate,
} from './certificate-feed.ts';
import { CertificateFiles } from './certificate-files.ts';
import { poolCertificates, type TrustSurroundings } from './client-trust.ts';
import { SESSION_LIFE } from './handshake-settings.ts';
import { TicketKeys } from './ticket-keys.ts';
import type { TlsUpdate } from './tls-update.ts';
import { TrustWatch } from './trust-watch.ts';

/** What TLS finds around it. */
export interface TlsControlSurroundings {
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
	/** Tells every thread; gives the threads that were told. */
	tell(update: TlsUpdate): readonly number[];
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
}

/** What a document wants of TLS cannot be had; the message is a sentence. */
export class TlsRefused extends Error {
	readonly code: string;

	constructor(cause: unknown) {
		super(cause instanceof Error ? cause.message : String(cause), { cause });
		this.name = 'TlsRefused';
		const { code } = cause as { readonly code?: unknown };
		this.code = typeof code === 'string' && code.includes('/') ? code : 'tls/unavailable';
	}
}

const NO_READINGS: CertificateReadings = { attempts: [], expiry: [], ocsp: [], missing: 0 };

/** Certificates of one message to a thread: more would hold it up. */
const MOST_TOLD = 200;

/** Milliseconds that threads may take to have the answers to challenges. */
const CHALLENGE_LIMIT = 10_000;

/** The state of TLS of the process. */
export class TlsControl implements CertificateSink {
	readonly #around: TlsControlSurroundings;
	readonly #files: CertificateFiles;
	readonly #certificates = new Map<string, PublishedCertificate>();
	readonly #waiting = new Map<number, { readonly threads: Set<number>; readonly resolve: () => void }>();
	#answers: ChallengeAnswers = { http01: {}, alpn: {} };
	#challenges = 0;
	readonly #trust: TrustWatch;
	/** JSON of what threads have been told of it. */
	#toldTrust = '[]';
	/** The server's own store, as the document says. */
	#storage: StoreSelection | undefined;
	/** Stores that were opened, by their settings. */
	readonly #stores = new Map<string, Promise<Store>>();
	readonly #ticketKeys = new TicketKeys();
	#rotation: NodeJS.Timeout | undefined;
	#manager: Promise<CertificateManager> | undefined;
	#sharedChallenges: Promise<SharedChallenges> | undefined;
	#made: CertificateManager | undefined;
	#managing = false;
	#onDemand = false;
	#nextOnDemand = false;
	#sharing = false;
	#nextSharing = false;

	constructor(around: TlsControlSurroundings) {
		this.#around = around;
		this.#files = new CertificateFiles({
			publish: certificates => this.publish(certificates),
			drop: ids => this.drop(ids),
			store: () => this.#openStore(this.#storage),
			log: (...entry) => around.log(...entry),
		});
		this.#trust = new TrustWatch({
			surroundings: this.#trustSurroundings,
			changed: () => this.#tellTrust(),
			log: (...entry) => around.log(...entry),
		});
	}

	/** What a thread that starts is told. */
	introduction(): TlsUpdate[] {
		return [
			{ kind: 'tickets', keys: this.#ticketKeys.current },
			{ kind: 'trust', trust: this.#trust.trust },
			{ kind: 'on_demand', asked: this.#onDemand },
			{ kind: 'shared_challenges', asked: this.#sharing },
			...pieces([...this.#certificates.values()]).map(set => ({ kind: 'certificates' as const, set, dropped: [] })),
			{ kind: 'challenges', number: 0, answers: this.#answers },
		];
	}

	/** The manager, when there is one. */
	get manager(): CertificateManager | undefined {
		return this.#made;
	}

	/** What a scrape shows of certificates, those from files included. */
	readings(): CertificateReadings {
		const managed = this.#made?.readings?.() ?? NO_READINGS;
		const files = this.#files.expiry.slice(0, MOST_EXPIRY_SERIES).map(({ subject, notAfter }) => ({
			labels: { subject, issuer: 'file' },
			value: notAfter / 1000,
		}));
		const ocsp = addedUp([...managed.ocsp, ...this.#files.statuses]);
		return { ...managed, ocsp, expiry: [...managed.expiry, ...files] };
	}

	/**
	 * Makes ready what a document wants, before any thread builds it. Rejects with TlsRefused; then {@link discard} puts
	 * everything back.
	 */
	async prepare(planned: PlannedCertificates | undefined, settings: Settings): Promise<void> {
		try {
			await this.#prepare(planned, settings);
		} catch (error) {
			throw new TlsRefused(error);
		}
	}

	/** Rejects with CertificateFileError, TrustError, or what the manager rejects with. */
	async #prepare(planned: PlannedCertificates | undefined, settings: Settings): Promise<void> {
		this.#storage = settings.storage as StoreSelection | undefined;
		await this.#files.prepare(planned?.loaded ?? [], settings);
		const managed = planned?.managed;
		const wanted = managed && managed.policies.length + managed.authorities.length > 0;
		if (wanted || this.#managing) {
			const manager = await this.#startManager();
			const { http_port = 80, https_port = 443 } = settings;
			await manager.prepare(managed ?? { policies: [], authorities: [], http_port, https_port }, settings);
		}
		this.#managing ||= wanted === true;
		this.#nextOnDemand = managed?.policies.some(({ on_demand: asked, managers }) => asked || managers) ?? false;
		// Too early rather than too late: the first client may come with the flip.
		if (this.#nextOnDemand) this.#around.tell({ kind: 'on_demand', asked: true });
		this.#nextSharing = sharesChallenges(managed?.policies.flatMap(({ issuers }) => issuers) ?? []);
		await this.#trust.prepare(planned?.client_auth ?? []);
		// What is served and what will be, until it is one or the other.
		this.#tellTrust();
	}

	/** Looks whether what clients are verified with has changed, as is done from time to time. */
	look(): Promise<void> {
		return this.#trust.look();
	}

	/** Threads make their contexts anew for every change that they are told of. */
	#tellTrust(): void {
		const { trust } = this.#trust;
		const text = JSON.stringify(trust);
		if (text === this.#toldTrust) return;
		this.#toldTrust = text;
		this.#around.tell({ kind: 'trust', trust });
	}

	get #trustSurroundings(): TrustSurroundings {
		return {
			workingDirectory: this.#around.workingDirectory,
			manager: () => this.#startManager(),
			store: selection => this.#openStore(selection ?? this.#storage),
		};
	}

	#openStore(selection: StoreSelection | undefined): Promise<Store> {
		const key = JSON.stringify(selection ?? {});
		const open = this.#stores.get(key);
		if (open) return open;
		const opening = import('../storage/open-store.ts').then(({ openStore }) => openStore(selection, this.#around));
		this.#stores.set(key, opening);
		return opening;
	}

	/** What TLS to upstreams needs and no file holds. Never rejects. */
	async provideUpstreams({ pools, certificate: name }: TlsWanted): Promise<TlsProvided> {
		const around = this.#trustSurroundings;
		try {
			const authorities = (await Promise.all(pools.map(pool => poolCertificates(pool, around)))).flat();
			const own = name === undefined ? undefined : ((await this.#certificateFor(name)) ?? null);
			const problem = own === null ? `this server has no certificate for ${name}` : undefined;
			return { authorities, certificate: own ? { chain: own.chain, key: own.key } : undefined, problem };
		} catch (error) {
			const problem = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
			return { authorities: [], certificate: undefined, problem };
		}
	}

	/** A certificate that is served for a name, of files or of the manager; one that is being ordered is waited for. */
	async #certificateFor(name: string): Promise<PublishedCertificate | undefined> {
		const find = () => {
			const wildcard = name.replace(/^[^.]+/, '*');
			const all = [...this.#certificates.values()];
			return all.find(one => one.names.includes(name)) ?? all.find(one => one.names.includes(wildcard));
		};
		const found = find();
		if (found) return found;
		await this.obtain({ name, signatureSchemes: [], cipherSuites: [], localIp: '', remoteIp: '' });
		return find();
	}

	/** The document prepared last is served. */
	activate(): void {
		this.#files.activate();
		this.#made?.activate();
		this.#trust.activate();
		this.#tellTrust();
		if (this.#onDemand && !this.#nextOnDemand) this.#around.tell({ kind: 'on_demand', asked: false });
		this.#onDemand = this.#nextOnDemand;
		if (this.#sharing !== this.#nextSharing) {
			this.#around.tell({ kind: 'shared_challenges', asked: this.#nextSharing });
		}
		this.#sharing = this.#nextSharing;
		this.#rotation ??= setInterval(() => this.#rotate(), SESSION_LIFE * 1000).unref();
	}

	/** The document prepared last is not served. */
	discard(): void {
		this.#files.discard();
		this.#made?.discard();
		this.#trust.discard();
		this.#tellTrust();
		if (this.#nextOnDemand && !this.#onDemand) this.#around.tell({ kind: 'on_demand', asked: false });
		this.#nextOnDemand = this.#onDemand;
		this.#nextSharing = this.#sharing;
	}

	publish(certificates: readonly PublishedCertificate[]): void {
		for (const certificate of certificates) this.#certificates.set(certificate.id, certificate);
		for (const set of pieces(certificates)) this.#around.tell({ kind: 'certificates', set, dropped: [] });
	}

	drop(ids: readonly string[]): void {
		for (const id of ids) this.#certificates.delete(id);
		this.#around.tell({ kind: 'certificates', set: [], dropped: ids });
	}

	challenges(answers: ChallengeAnswers): Promise<void> {
		this.#answers = answers;
		const number = ++this.#challenges;
		const threads = new Set(this.#around.tell({ kind: 'challenges', number, answers }));
		if (threads.size === 0) return Promise.resolve();
		return new Promise(resolve => {
			const timer = setTimeout(() => this.#settle(number), CHALLENGE_LIMIT).unref();
			this.#waiting.set(number, {
				threads,
				resolve: () => {
					clearTimeout(timer);
					resolve();
				},
			});
		});
	}

	/** A thread has the answers of that number. */
	challengesTaken(thread: number, number: number): void {
		const waiting = this.#waiting.get(number);
		waiting?.threads.delete(thread);
		if (waiting?.threads.size === 0) this.#settle(number);
	}

	/** A thread has died: its successor gets everything when it starts. */
	ended(thread: number): void {
		for (const number of [...this.#waiting.keys()]) this.challengesTaken(thread, number);
	}

	/** Answers a thread whose client waits. Never rejects. */
	async obtain(question: CertificateQuestion): Promise<boolean> {
		try {
			return (await this.#made?.obtain(question)) ?? false;
		} catch (error) {
			this.#around.log('error', 'tls', 'a certificate could not be obtained', { cause: (error as Error).message });
			return false;
		}
	}

	/** Answers a thread that is asked about a challenge that it has not. Never rejects. */
	async answerChallenge(question: ChallengeQuestion): Promise<ChallengeAnswer | undefined> {
		try {
			this.#sharedChallenges ??= import('../certificates/shared-challenges.ts').then(
				({ SharedChallenges }) => new SharedChallenges(() => this.#openStore(this.#storage)),
			);
			return await (await this.#sharedChallenges).answer(question);
		} catch (error) {
			this.#around.log('error', 'tls', 'a challenge could not be looked for', { cause: (error as Error).message });
			return undefined;
		}
	}

	/** Answers a request to an ACME server that a site serves. Never rejects. */
	async answerAcme(
		request: AcmeServerRequest,
		settings: AcmeServerSettings,
		process: Settings,
	): Promise<AcmeServerAnswer> {
		try {
			const manager = await this.#startManager();
			if (manager.answerAcme) return await manager.answerAcme(request, settings, process);
		} catch (error) {
			this.#around.log('error', 'pki.acme', 'a request could not be answered', { cause: (error as Error).message });
		}
		return { status: 500, headers: [], body: '' };
	}

	async close(): Promise<void> {
		this.#files.close();
		this.#trust.close();
		clearInterval(this.#rotation);
		for (const number of [...this.#waiting.keys()]) this.#settle(number);
		await this.#made?.close();
	}

	#settle(number: number): void {
		const waiting = this.#waiting.get(number);
		this.#waiting.delete(number);
		waiting?.resolve();
	}

	/** Loaded when something is to be managed: most of what it needs is needed by nothing else. */
	#startManager(): Promise<CertificateManager> {
		const { workingDirectory, environment, log } = this.#around;
		this.#manager ??= import('../certificates/certificate-manager.ts').then(({ createCertificateManager }) => {
			this.#made = createCertificateManager({ sink: this, workingDirectory, environment, log });
			return this.#made;
		});
		return this.#manager;
	}

	#rotate(): void {
		this.#around.tell({ kind: 'tickets', keys: this.#ticketKeys.rotate() });
	}
}

/**
 * Whether to answer challenges of other processes that share the store. They may be for names of which this process knows
 * nothing, so only a document whose own orders are all not distributed keeps to itself.
 */
function sharesChallenges(issuers: readonly IssuerSettings[]): boolean {
	const acme = issuers.filter(({ issuer }) => issuer === 'acme');
	return acme.length === 0 || acme.some(({ distributed }) => distributed !== false);
}

function pieces(certificates: readonly PublishedCertificate[]): PublishedCertificate[][] {
	const cut: PublishedCertificate[][] = [];
	for (let at = 0; at < certificates.length; at += MOST_TOLD) cut.push(certificates.slice(at, at + MOST_TOLD));
	return cut;
}
