/** TLS on the main thread: distributes certificates, challenges, ticket keys and client trust to all threads. */

import type { PlannedCertificates } from '../../compiler/codegen/plan/plan-tls.ts';
import type { Settings } from '../../compiler/document/document.ts';
import type { IssuerSettings } from '../../compiler/document/tls-settings.ts';
import type {
	AcmeServerAnswer,
	AcmeServerRequest,
	AcmeServerSettings,
} from '../../compiler/modules/directives/acme-server/acme-server-handler.ts';
import type {
	CertificateManager,
	CertificateRequestedByClient,
	CertificateSink,
	ChallengeAnswer,
	ChallengeAnswers,
	ChallengeQuestion,
	PublishedCertificate,
} from '../certificates/certificate-feed.ts';
import { type CertificateReadings, MAX_EXPIRY_SERIES, sumByLabels } from '../certificates/certificate-metrics.ts';
import type { SharedChallenges } from '../certificates/shared-challenges.ts';
import type { LogLevel } from '../logs/log-entry.ts';
import type { StoreDeps, StoreSelection } from '../storage/open-store.ts';
import type { Store } from '../storage/store.ts';
import type { TlsMaterial, TlsMaterialRequest } from '../upstreams/transports/tls-provision.ts';
import { CertificateFiles } from './certificate-files.ts';
import { loadPoolCertificates, type TrustDeps } from './client-trust.ts';
import { SESSION_LIFETIME_SECONDS } from './handshake-settings.ts';
import type { SharedTicketKeys } from './shared-ticket-keys.ts';
import { TicketKeys } from './ticket-keys.ts';
import type { TlsUpdate } from './tls-update.ts';
import { TrustWatch } from './trust-watch.ts';

export interface TlsControlDeps extends StoreDeps {
	/** The ticket keys of the process that this one replaces in a handover. */
	readonly ticketKeys?: readonly Uint8Array[] | undefined;
	/** Sends an update to every thread. Returns the indexes of the threads. */
	broadcast(update: TlsUpdate): readonly number[];
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
}

/** Thrown if certificates that a configuration document needs cannot be provided. The message is a full sentence. */
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

/** Maximum certificates per message; larger messages would block the receiving thread for too long. */
const MAX_MESSAGE_CERTIFICATES = 200;

/** Maximum milliseconds to wait until all threads have acknowledged the answers to challenges. */
const CHALLENGE_TIMEOUT_MS = 10_000;

/** The TLS state of the process, which it sends to all threads. */
export class TlsControl implements CertificateSink {
	readonly #deps: TlsControlDeps;
	readonly #certificateFiles: CertificateFiles;
	readonly #certificatesById = new Map<string, PublishedCertificate>();
	readonly #pendingChallenges = new Map<number, { readonly threads: Set<number>; readonly resolve: () => void }>();
	#challengeAnswers: ChallengeAnswers = { http01: {}, alpn: {} };
	#challengeCount = 0;
	readonly #trustWatch: TrustWatch;
	/** The trusted client certificates that were last sent to the threads, as JSON. */
	#sentTrustJson = '[]';
	/** Settings of the server's own store, from the document. */
	#storeSelection: StoreSelection | undefined;
	/** Open stores, by their settings. */
	readonly #storesBySettings = new Map<string, Promise<Store>>();
	readonly #ticketKeys: TicketKeys;
	/**
	 * The ticket keys that the cluster shares, used instead of this process's own; undefined without a cluster with encryption
	 * keys.
	 */
	#sharedTicketKeys: SharedTicketKeys | undefined;
	#rotationTimer: NodeJS.Timeout | undefined;
	#managerPromise: Promise<CertificateManager> | undefined;
	#sharedChallenges: Promise<SharedChallenges> | undefined;
	#startedManager: CertificateManager | undefined;
	#isManaging = false;
	#obtainsOnDemand = false;
	#nextObtainsOnDemand = false;
	#sharesChallenges = false;
	#nextSharesChallenges = false;

	constructor(deps: TlsControlDeps) {
		this.#deps = deps;
		this.#ticketKeys = new TicketKeys(deps.ticketKeys);
		this.#certificateFiles = new CertificateFiles({
			publish: certificates => this.publish(certificates),
			drop: ids => this.drop(ids),
			store: () => this.#openStore(this.#storeSelection),
			log: (...entry) => deps.log(...entry),
		});
		this.#trustWatch = new TrustWatch({
			trustDeps: this.#trustDeps,
			onChanged: () => this.#sendTrust(),
			log: (...entry) => deps.log(...entry),
		});
	}

	/** Returns the updates that bring a new thread up to date. */
	initialUpdates(): TlsUpdate[] {
		return [
			{ kind: 'tickets', keys: this.ticketKeys },
			{ kind: 'trust', trust: this.#trustWatch.trust },
			{ kind: 'on_demand', asked: this.#obtainsOnDemand },
			{ kind: 'shared_challenges', asked: this.#sharesChallenges },
			...certificateChunks([...this.#certificatesById.values()]).map(set => ({
				kind: 'certificates' as const,
				set,
				dropped: [],
			})),
			{ kind: 'challenges', number: 0, answers: this.#challengeAnswers },
		];
	}

	/** The keys of session tickets. The first one encrypts, all of them decrypt. */
	get ticketKeys(): readonly Uint8Array[] {
		return (this.#sharedTicketKeys ?? this.#ticketKeys).current;
	}

	/** The certificate manager, if it has been started. */
	get manager(): CertificateManager | undefined {
		return this.#startedManager;
	}

	/** Returns the current values of the certificate metrics, also for certificates from files. */
	readings(): CertificateReadings {
		const managedReadings = this.#startedManager?.readings?.() ?? NO_READINGS;
		const fileExpiries = this.#certificateFiles.expiry.slice(0, MAX_EXPIRY_SERIES).map(({ subject, notAfter }) => ({
			labels: { subject, issuer: 'file' },
			value: notAfter / 1000,
		}));
		const ocsp = sumByLabels([...managedReadings.ocsp, ...this.#certificateFiles.statuses]);
		return { ...managedReadings, ocsp, expiry: [...managedReadings.expiry, ...fileExpiries] };
	}

	/**
	 * Provides the certificates and other TLS state that a document needs, before any thread builds it. Rejects with TlsRefused;
	 * the caller then calls {@link discard} to restore the previous state.
	 */
	async prepare(planned: PlannedCertificates | undefined, settings: Settings): Promise<void> {
		try {
			await this.#prepare(planned, settings);
		} catch (error) {
			throw new TlsRefused(error);
		}
	}

	/** Does the work of {@link prepare}. Rejects with CertificateFileError, TrustError, or the error of the manager. */
	async #prepare(planned: PlannedCertificates | undefined, settings: Settings): Promise<void> {
		this.#storeSelection = settings.storage as StoreSelection | undefined;
		await this.#shareTicketKeys();
		await this.#certificateFiles.prepare(planned?.loaded ?? [], settings);
		const managed = planned?.managed;
		const needsManager = managed && managed.policies.length + managed.authorities.length > 0;
		if (needsManager || this.#isManaging) {
			const manager = await this.#startManager();
			const { http_port = 80, https_port = 443 } = settings;
			await manager.prepare(managed ?? { policies: [], authorities: [], http_port, https_port }, settings);
		}
		this.#isManaging ||= needsManager === true;
		this.#nextObtainsOnDemand = managed?.policies.some(({ on_demand: asked, managers }) => asked || managers) ?? false;
		// The update is sent before activation, because the first client may arrive as soon as the document is active.
		if (this.#nextObtainsOnDemand) this.#deps.broadcast({ kind: 'on_demand', asked: true });
		this.#nextSharesChallenges = sharesChallenges(managed?.policies.flatMap(({ issuers }) => issuers) ?? []);
		await this.#trustWatch.prepare(planned?.client_auth ?? []);
		// Until the load is committed or discarded, threads need the trusted certificates of the active and of the new document.
		this.#sendTrust();
	}

	/** Checks immediately, in addition to the periodic checks, whether trusted client certificates have changed. */
	checkTrust(): Promise<void> {
		return this.#trustWatch.checkNow();
	}

	/**
	 * Sends the trusted client certificates to the threads, but only if they have changed, because every update makes the threads
	 * recreate their contexts.
	 */
	#sendTrust(): void {
		const { trust } = this.#trustWatch;
		const trustJson = JSON.stringify(trust);
		if (trustJson === this.#sentTrustJson) return;
		this.#sentTrustJson = trustJson;
		this.#deps.broadcast({ kind: 'trust', trust });
	}

	get #trustDeps(): TrustDeps {
		return {
			workingDirectory: this.#deps.workingDirectory,
			manager: () => this.#startManager(),
			store: selection => this.#openStore(selection ?? this.#storeSelection),
		};
	}

	#openStore(selection: StoreSelection | undefined): Promise<Store> {
		const key = JSON.stringify(selection ?? {});
		const existingStore = this.#storesBySettings.get(key);
		if (existingStore) return existingStore;
		const newStore = import('../storage/open-store.ts').then(({ openStore }) => openStore(selection, this.#deps));
		this.#storesBySettings.set(key, newStore);
		return newStore;
	}

	/**
	 * For TLS to upstreams, provides the CA certificates and client certificates that are not in files. Never rejects: the result's
	 * `problem` says what is missing.
	 */
	async provideUpstreams({ pools, certificate: name }: TlsMaterialRequest): Promise<TlsMaterial> {
		const deps = this.#trustDeps;
		try {
			const authorities = (await Promise.all(pools.map(pool => loadPoolCertificates(pool, deps)))).flat();
			const certificate = name === undefined ? undefined : ((await this.#certificateFor(name)) ?? null);
			const problem = certificate === null ? `this server has no certificate for ${name}` : undefined;
			return {
				authorities,
				certificate: certificate ? { chain: certificate.chain, key: certificate.key } : undefined,
				problem,
			};
		} catch (error) {
			const problem = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
			return { authorities: [], certificate: undefined, problem };
		}
	}

	/**
	 * Returns a certificate for a name, from files or from the manager. If there is none, asks the manager to obtain one, and waits
	 * for it.
	 */
	async #certificateFor(name: string): Promise<PublishedCertificate | undefined> {
		const findCertificate = () => {
			const wildcard = name.replace(/^[^.]+/, '*');
			const certificates = [...this.#certificatesById.values()];
			return (
				certificates.find(({ names }) => names.includes(name)) ??
				certificates.find(({ names }) => names.includes(wildcard))
			);
		};
		const existingCertificate = findCertificate();
		if (existingCertificate) return existingCertificate;
		await this.obtain({ name, signatureSchemes: [], cipherSuites: [], localIp: '', remoteIp: '' });
		return findCertificate();
	}

	/** Makes the TLS state of the last prepared document the active one. */
	activate(): void {
		this.#certificateFiles.activate();
		this.#startedManager?.activate();
		this.#trustWatch.activate();
		this.#sendTrust();
		if (this.#obtainsOnDemand && !this.#nextObtainsOnDemand) this.#deps.broadcast({ kind: 'on_demand', asked: false });
		this.#obtainsOnDemand = this.#nextObtainsOnDemand;
		if (this.#sharesChallenges !== this.#nextSharesChallenges) {
			this.#deps.broadcast({ kind: 'shared_challenges', asked: this.#nextSharesChallenges });
		}
		this.#sharesChallenges = this.#nextSharesChallenges;
		this.#rotationTimer ??= setInterval(() => this.#rotateTicketKeys(), SESSION_LIFETIME_SECONDS * 1000).unref();
	}

	/** Discards the TLS state that was prepared for the last document. */
	discard(): void {
		this.#certificateFiles.discard();
		this.#startedManager?.discard();
		this.#trustWatch.discard();
		this.#sendTrust();
		if (this.#nextObtainsOnDemand && !this.#obtainsOnDemand) this.#deps.broadcast({ kind: 'on_demand', asked: false });
		this.#nextObtainsOnDemand = this.#obtainsOnDemand;
		this.#nextSharesChallenges = this.#sharesChallenges;
	}

	publish(certificates: readonly PublishedCertificate[]): void {
		for (const certificate of certificates) this.#certificatesById.set(certificate.id, certificate);
		for (const set of certificateChunks(certificates)) this.#deps.broadcast({ kind: 'certificates', set, dropped: [] });
	}

	drop(ids: readonly string[]): void {
		for (const id of ids) this.#certificatesById.delete(id);
		this.#deps.broadcast({ kind: 'certificates', set: [], dropped: ids });
	}

	setChallenges(answers: ChallengeAnswers): Promise<void> {
		this.#challengeAnswers = answers;
		const number = ++this.#challengeCount;
		const threads = new Set(this.#deps.broadcast({ kind: 'challenges', number, answers }));
		if (threads.size === 0) return Promise.resolve();
		return new Promise(resolve => {
			const timer = setTimeout(() => this.#resolveChallenge(number), CHALLENGE_TIMEOUT_MS).unref();
			this.#pendingChallenges.set(number, {
				threads,
				resolve: () => {
					clearTimeout(timer);
					resolve();
				},
			});
		});
	}

	/** Records that a thread has applied the `challenges` update with this number. */
	onChallengesApplied(thread: number, number: number): void {
		const pendingChallenge = this.#pendingChallenges.get(number);
		pendingChallenge?.threads.delete(thread);
		if (pendingChallenge?.threads.size === 0) this.#resolveChallenge(number);
	}

	/** Stops waiting for a dead thread. Its replacement gets the current state when it starts. */
	onThreadEnded(thread: number): void {
		for (const number of [...this.#pendingChallenges.keys()]) this.onChallengesApplied(thread, number);
	}

	/** Obtains a certificate for a waiting client. Returns true once one has been published. Never rejects. */
	async obtain(question: CertificateRequestedByClient): Promise<boolean> {
		try {
			return (await this.#startedManager?.obtain(question)) ?? false;
		} catch (error) {
			this.#deps.log('error', 'tls', 'a certificate could not be obtained', { cause: (error as Error).message });
			return false;
		}
	}

	/** Looks up a challenge that this process has not published. Never rejects. */
	async answerChallenge(question: ChallengeQuestion): Promise<ChallengeAnswer | undefined> {
		try {
			this.#sharedChallenges ??= import('../certificates/shared-challenges.ts').then(
				({ SharedChallenges }) => new SharedChallenges(() => this.#openStore(this.#storeSelection)),
			);
			return await (await this.#sharedChallenges).answer(question);
		} catch (error) {
			this.#deps.log('error', 'tls', 'a challenge could not be looked up', { cause: (error as Error).message });
			return undefined;
		}
	}

	/** Answers a request to a site's ACME server, with status 500 on failure. Never rejects. */
	async answerAcme(
		request: AcmeServerRequest,
		settings: AcmeServerSettings,
		processSettings: Settings,
	): Promise<AcmeServerAnswer> {
		try {
			const manager = await this.#startManager();
			if (manager.answerAcme) return await manager.answerAcme(request, settings, processSettings);
		} catch (error) {
			this.#deps.log('error', 'pki.acme', 'an ACME request failed', { cause: (error as Error).message });
		}
		return { status: 500, headers: [], body: '' };
	}

	async close(): Promise<void> {
		this.#certificateFiles.close();
		this.#trustWatch.close();
		clearInterval(this.#rotationTimer);
		this.#sharedTicketKeys?.close();
		for (const number of [...this.#pendingChallenges.keys()]) this.#resolveChallenge(number);
		await this.#startedManager?.close();
	}

	#resolveChallenge(number: number): void {
		const pendingChallenge = this.#pendingChallenges.get(number);
		this.#pendingChallenges.delete(number);
		pendingChallenge?.resolve();
	}

	/**
	 * Starts the certificate manager. Its modules are imported only here, because configurations without managed certificates do
	 * not need them.
	 */
	#startManager(): Promise<CertificateManager> {
		const { workingDirectory, environment, log, cluster } = this.#deps;
		this.#managerPromise ??= import('../certificates/manager/certificate-manager.ts').then(
			({ createCertificateManager }) => {
				this.#startedManager = createCertificateManager({
					...{ sink: this, workingDirectory, environment, log },
					...(cluster ? { cluster } : {}),
				});
				return this.#startedManager;
			},
		);
		return this.#managerPromise;
	}

	/**
	 * Switches to the ticket keys that the cluster shares, if the process is in a cluster with encryption keys. Waits for Redis no
	 * longer than a request would.
	 */
	async #shareTicketKeys(): Promise<void> {
		const cluster = this.#deps.cluster?.();
		const sealedValues = cluster?.sealedValues;
		if (!cluster || !sealedValues || this.#sharedTicketKeys) return;
		const { SharedTicketKeys } = await import('./shared-ticket-keys.ts');
		this.#sharedTicketKeys = new SharedTicketKeys(cluster, sealedValues, this.#ticketKeys.current, {
			onChanged: keys => this.#deps.broadcast({ kind: 'tickets', keys }),
			log: (...entry) => this.#deps.log(...entry),
		});
		await this.#sharedTicketKeys.start(cluster.timeoutMs);
	}

	#rotateTicketKeys(): void {
		if (this.#sharedTicketKeys) return;
		this.#deps.broadcast({ kind: 'tickets', keys: this.#ticketKeys.rotate() });
	}
}

/**
 * Reports whether this process answers the challenges of other processes that share the store. It must do so even for names that
 * it does not know, so the result is false only if all ACME issuers of the document set `distributed` to false.
 */
function sharesChallenges(issuers: readonly IssuerSettings[]): boolean {
	const acmeIssuers = issuers.filter(({ issuer }) => issuer === 'acme');
	return acmeIssuers.length === 0 || acmeIssuers.some(({ distributed }) => distributed !== false);
}

function certificateChunks(certificates: readonly PublishedCertificate[]): PublishedCertificate[][] {
	const chunks: PublishedCertificate[][] = [];
	for (let at = 0; at < certificates.length; at += MAX_MESSAGE_CERTIFICATES) {
		chunks.push(certificates.slice(at, at + MAX_MESSAGE_CERTIFICATES));
	}
	return chunks;
}
