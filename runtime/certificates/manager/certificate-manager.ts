/** The certificate manager, which obtains and renews the certificates for every name of the active configuration. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AutomationPolicy, CertificatePlan } from '../../../compiler/codegen/plan/certificate-plan.ts';
import { canonicalJson } from '../../../compiler/document/canonical-json.ts';
import type { Settings } from '../../../compiler/document/document.ts';
import type { IssuerSettings } from '../../../compiler/document/tls-settings.ts';
import type {
	AcmeServerAnswer,
	AcmeServerRequest,
	AcmeServerSettings,
} from '../../../compiler/modules/directives/acme-server/acme-server-handler.ts';
import type { PkiSettings } from '../../../compiler/modules/options/pki.ts';
import { openStore, type StoreSelection } from '../../storage/open-store.ts';
import { type Store, StoreError } from '../../storage/store.ts';
import type { AcmeResponder } from '../acme-server/acme-responder.ts';
import type { ValidationPorts } from '../acme-server/name-validation.ts';
import { Authorities } from '../authorities.ts';
import { AuthorityError } from '../authority.ts';
import type { CertificateManager, CertificateManagerDeps, CertificateRequestedByClient } from '../certificate-feed.ts';
import { CertificateKeeper } from '../certificate-keeper.ts';
import { type CertificateReadings, MAX_EXPIRY_SERIES } from '../certificate-metrics.ts';
import { CertificatePublisher } from '../certificate-publisher.ts';
import { ChallengeRegistry } from '../challenge-registry.ts';
import type { Issuer } from '../issuer.ts';
import { ManagedCertificate, type ReadyPolicy } from '../managed-certificate.ts';
import { OnDemandCertificates } from '../on-demand.ts';
import { SharedChallenges } from '../shared-challenges.ts';
import { StatusStapler } from '../status-stapler.ts';
import { StoreCleaner } from '../store-cleaner.ts';
import { createIssuer, issuerKey } from './issuers.ts';

/** Maximum milliseconds that loading a configuration waits for certificates from the store and internal CAs. */
const PREPARE_TIMEOUT_MS = 5000;
/** Default milliseconds between two checks of all certificates. */
const DEFAULT_CHECK_INTERVAL_MS = 600_000;
/** Maximum milliseconds that a handshake waits for an order in progress. */
const HANDSHAKE_TIMEOUT_MS = 20_000;
/** Milliseconds between a check that failed and the next check. */
const CHECK_RETRY_MS = 60_000;
/** Minimum milliseconds between two checks. */
const MIN_CHECK_DELAY_MS = 20;
/** Maximum milliseconds for which the stopping process waits for canceled orders to end. */
const CLOSE_TIMEOUT_MS = 2000;

/** Options for tests. */
export interface ManagerOptions {
	/** The clock, in milliseconds since the epoch. */
	readonly now?: () => number;
	/** Ports to which this server's own ACME servers connect to validate names, instead of 80 and 443. */
	readonly validationPorts?: ValidationPorts;
}

/** A configuration that has been prepared, with its policies and its names. */
interface PreparedDocument {
	readonly plan: CertificatePlan;
	readonly settings: Settings;
	readonly policies: readonly ReadyPolicy[];
	/** The certificates by name. */
	readonly entries: ReadonlyMap<string, ManagedCertificate>;
}

export function createCertificateManager(
	deps: CertificateManagerDeps,
	options: ManagerOptions = {},
): CertificateManager {
	return new Manager(deps, options);
}

class Manager implements CertificateManager {
	readonly #deps: CertificateManagerDeps;
	readonly #now: () => number;
	readonly #authorities: Authorities;
	readonly #challenges: ChallengeRegistry;
	readonly #publisher: CertificatePublisher;
	readonly #keeper: CertificateKeeper;
	readonly #onDemand: OnDemandCertificates;
	readonly #stapler: StatusStapler<ManagedCertificate>;
	readonly #cleaner: StoreCleaner;
	readonly #sharedChallenges: SharedChallenges;
	/** Issuers by {@link issuerKey}. */
	readonly #issuersByKey = new Map<string, Issuer>();
	/** ACME servers by the ID of their CA. */
	readonly #respondersById = new Map<string, AcmeResponder>();
	readonly #validationPorts: ValidationPorts;
	#store: Store | undefined;
	#storeRecovery: Promise<void> | undefined;
	#isStoreChecked = false;
	#activeDocument: PreparedDocument | undefined;
	#preparedDocument: PreparedDocument | undefined;
	#checkTimer: NodeJS.Timeout | undefined;
	/** Time at which the timer fires, from `performance.now()`; infinite if no timer is set. */
	#timerFiresAt = Number.POSITIVE_INFINITY;
	#isClosed = false;

	constructor(deps: CertificateManagerDeps, { now = Date.now, validationPorts }: ManagerOptions) {
		this.#deps = deps;
		this.#now = now;
		this.#validationPorts = validationPorts ?? { http: 80, tls: 443 };
		const log = deps.log.bind(deps);
		this.#authorities = new Authorities(log, now);
		this.#challenges = new ChallengeRegistry(deps.sink);
		const store = (): Store => this.#store!;
		this.#publisher = new CertificatePublisher(deps.sink);
		const publisher = this.#publisher;
		this.#keeper = new CertificateKeeper({
			publisher,
			log,
			now,
			store,
			checkStore: () => this.#checkStore(),
			renewalRatio: () => this.#activeDocument?.settings.renewal_window_ratio as number | undefined,
			wake: () => this.#scheduleCheck(MIN_CHECK_DELAY_MS),
		});
		this.#onDemand = new OnDemandCertificates({
			...{ sink: deps.sink, publisher, log, now, keeper: this.#keeper },
			scheduleCheck: waitMs => this.#scheduleCheck(waitMs),
		});
		this.#stapler = new StatusStapler({
			...{ log, now, store },
			publish: entry => this.#keeper.publish(entry),
			wake: () => this.#scheduleCheck(MIN_CHECK_DELAY_MS),
		});
		this.#sharedChallenges = new SharedChallenges(store);
		this.#cleaner = new StoreCleaner({ log, now, store });
	}

	async prepare(plan: CertificatePlan, settings: Settings): Promise<void> {
		const store = this.#openStore(settings);
		this.#storeRecovery ??= this.#recoverStore(store);
		await this.#storeRecovery;
		await this.#authorities.prepare(plan.authorities, pkiOf(settings), store);
		const policies = await Promise.all(plan.policies.map(policy => this.#preparePolicy(policy)));
		const entries = new Map<string, ManagedCertificate>();
		const unloadedEntries: ManagedCertificate[] = [];
		for (const policy of policies) {
			// Certificates for these names are obtained during handshakes.
			if (policy.settings.on_demand || (policy.settings.managers?.length ?? 0) > 0) continue;
			for (const name of policy.settings.subjects) {
				const existingEntry = this.#activeDocument?.entries.get(name);
				const reusableEntry = existingEntry?.policy.key === policy.key ? existingEntry : undefined;
				const entry = reusableEntry ?? new ManagedCertificate(name, policy);
				entries.set(name, entry);
				if (!entry.isLoaded) unloadedEntries.push(entry);
			}
		}
		this.#preparedDocument = { plan, settings, policies, entries };
		const loading = this.#keeper.load(unloadedEntries).then(() => this.#scheduleCheck(0));
		await Promise.race([loading, sleep(PREPARE_TIMEOUT_MS, undefined, { ref: false })]);
	}

	activate(): void {
		const document = this.#preparedDocument;
		if (!document || this.#isClosed) return;
		const previousDocument = this.#activeDocument;
		this.#activeDocument = document;
		this.#preparedDocument = undefined;
		this.#authorities.activate(pkiOf(document.settings));
		if (previousDocument) this.#dropUnused(previousDocument, document);
		this.#onDemand.applyPolicies(document.policies, document.settings.on_demand_tls);
		this.#stapler.configure(document.settings);
		this.#cleaner.configure(document.settings);
		this.#scheduleCheck(0);
	}

	discard(): void {
		const discardedDocument = this.#preparedDocument;
		this.#preparedDocument = undefined;
		this.#authorities.discard();
		if (discardedDocument) this.#dropUnused(discardedDocument, this.#activeDocument);
	}

	async obtain(question: CertificateRequestedByClient): Promise<boolean> {
		const document = this.#activeDocument;
		if (!document || this.#isClosed) return false;
		const entry = findEntry(document.entries, question.name);
		if (entry) {
			// The first client of a new site may arrive while its certificate is being ordered, so the handshake waits for the
			// order.
			if (!entry.record && entry.currentOrder) await resultWithin(entry.currentOrder.done, HANDSHAKE_TIMEOUT_MS);
			return entry.isPublished;
		}
		return resultWithin(this.#onDemand.obtain(question), HANDSHAKE_TIMEOUT_MS).then(result => result === true);
	}

	readings(): CertificateReadings {
		const entries = [...(this.#activeDocument?.entries.values() ?? []), ...this.#onDemand.entries()];
		const expiry = entries
			.filter(entry => entry.record)
			.sort((a, b) => a.record!.notAfter - b.record!.notAfter)
			.slice(0, MAX_EXPIRY_SERIES)
			.map(({ name, record }) => ({
				labels: { subject: name, issuer: record!.issuer },
				value: record!.notAfter / 1000,
			}));
		return {
			attempts: this.#keeper.attempts.samples(),
			expiry,
			ocsp: this.#stapler.fetchCounter.samples(),
			missing: entries.filter(entry => entry.isLoaded && !entry.record).length,
		};
	}

	async authorityCertificates(id: string): Promise<{ readonly root: string; readonly intermediate: string }> {
		const authority = await this.#authorities.get(id);
		if (!authority) throw new AuthorityError(`The authority \`${id}\` cannot be opened.`);
		return { root: authority.rootPem, intermediate: authority.intermediatePem };
	}

	async answerAcme(
		request: AcmeServerRequest,
		settings: AcmeServerSettings,
		processSettings: Settings,
	): Promise<AcmeServerAnswer> {
		const id = settings.ca ?? 'local';
		let responder = this.#respondersById.get(id);
		if (!responder) {
			const store = this.#openStore(processSettings);
			// Without managed certificates, no document is ever active here.
			if (!this.#activeDocument) this.#authorities.activate(pkiOf(processSettings));
			await this.#authorities.openAll([id], store);
			const { AcmeResponder } = await import('../acme-server/acme-responder.ts');
			responder =
				this.#respondersById.get(id) ??
				new AcmeResponder(id, {
					log: this.#deps.log.bind(this.#deps),
					store,
					findAuthority: authorityId => this.#authorities.get(authorityId),
					ports: this.#validationPorts,
				});
			this.#respondersById.set(id, responder);
		}
		return responder.answer(request, settings);
	}

	async close(): Promise<void> {
		this.#isClosed = true;
		clearTimeout(this.#checkTimer);
		this.#cleaner.close();
		const entries = [...(this.#activeDocument?.entries.values() ?? []), ...this.#onDemand.entries()];
		const reason = new Error('The server is stopping.');
		const orderEnds = entries.map(entry => {
			entry.currentOrder?.abort.abort(reason);
			return entry.currentOrder?.done;
		});
		await resultWithin(Promise.all(orderEnds), CLOSE_TIMEOUT_MS);
		for (const issuer of this.#issuersByKey.values()) issuer.close?.();
	}

	#openStore(settings: Settings): Store {
		this.#store ??= openStore(settings.storage as StoreSelection | undefined, this.#deps);
		return this.#store;
	}

	/** Rolls back an import into the store that a crash interrupted, before anything is read from the store. */
	async #recoverStore(store: Store): Promise<void> {
		try {
			await store.recover?.();
		} catch (error) {
			if (!(error instanceof StoreError)) throw error;
			this.#deps.log('error', 'tls.cache', 'the store could not be recovered', { cause: error.message });
		}
	}

	async #preparePolicy(settings: AutomationPolicy): Promise<ReadyPolicy> {
		const keyedIssuers = await Promise.all(settings.issuers.map(issuer => this.#issuerFor(issuer)));
		const key = canonicalJson([{ ...settings, subjects: [] }, keyedIssuers.map(({ key }) => key)]);
		return { settings, key, issuers: keyedIssuers.map(({ issuer }) => issuer) };
	}

	/** Returns the issuer for these settings. Sites with equal settings share its account, connections and limits. */
	async #issuerFor(settings: IssuerSettings): Promise<{ readonly key: string; readonly issuer: Issuer }> {
		const key = await issuerKey(settings, this.#deps);
		let issuer = this.#issuersByKey.get(key);
		if (!issuer) {
			issuer = await createIssuer(settings, {
				log: this.#deps.log.bind(this.#deps),
				now: this.#now,
				store: this.#store!,
				challenges: this.#challenges,
				sharedChallenges: this.#sharedChallenges,
				findAuthority: id => this.#authorities.get(id),
				ports: () => this.#activeDocument?.plan ?? this.#preparedDocument?.plan ?? { http_port: 80, https_port: 443 },
				environment: this.#deps.environment,
				workingDirectory: this.#deps.workingDirectory,
			});
			this.#issuersByKey.set(key, issuer);
		}
		return { key, issuer };
	}

	/** Drops the certificates that `oldDocument` needs and `newDocument` does not, and cancels their orders. */
	#dropUnused(oldDocument: PreparedDocument, newDocument: PreparedDocument | undefined): void {
		const droppedEntries: ManagedCertificate[] = [];
		for (const [name, entry] of oldDocument.entries) {
			if (newDocument?.entries.get(name) === entry) continue;
			entry.isDropped = true;
			entry.currentOrder?.abort.abort(new Error('The configuration no longer needs the certificate.'));
			droppedEntries.push(entry);
		}
		this.#publisher.withdraw(droppedEntries);
	}

	/**
	 * Checks that the store works before the first order. Certificates that cannot be stored would be ordered again at every
	 * start, until the issuer's rate limits are exceeded.
	 */
	async #checkStore(): Promise<void> {
		if (this.#isStoreChecked || this.#activeDocument?.settings.storage_check === false) return;
		const probeKey = `check/${randomBytes(8).toString('hex')}`;
		const probeValue = randomBytes(16);
		const store = this.#store!;
		await store.write(probeKey, probeValue);
		const readValue = await store.read(probeKey);
		await store.remove(probeKey);
		if (!readValue?.equals(probeValue)) {
			throw new StoreError('store/unwritable', 'The store does not return what was written to it.');
		}
		this.#isStoreChecked = true;
	}

	/** Schedules a check in `waitMs` milliseconds, unless an earlier one is scheduled. */
	#scheduleCheck(waitMs: number): void {
		const firesAt = performance.now() + waitMs;
		if (this.#isClosed || this.#timerFiresAt <= firesAt) return;
		clearTimeout(this.#checkTimer);
		this.#timerFiresAt = firesAt;
		this.#checkTimer = setTimeout(() => {
			this.#timerFiresAt = Number.POSITIVE_INFINITY;
			this.#checkCertificates().catch(error => {
				const cause = error instanceof Error ? error.message : String(error);
				this.#deps.log('error', 'tls', 'checking certificates failed unexpectedly', { cause });
				this.#scheduleCheck(CHECK_RETRY_MS);
			});
		}, waitMs);
		this.#checkTimer.unref();
	}

	/** Checks every certificate and starts the orders that are due. */
	async #checkCertificates(): Promise<void> {
		const document = this.#activeDocument;
		if (!document || this.#isClosed) return;
		const now = this.#now();
		const intervalMs = (document.settings.renew_interval as number | undefined) ?? DEFAULT_CHECK_INTERVAL_MS;
		let nextCheckMs = Math.min(intervalMs, await this.#authorities.maintainDue());
		for (const entry of [...document.entries.values(), ...this.#onDemand.entries()]) {
			if (entry.isDropped || !entry.isLoaded) continue;
			if (entry.isDue(now)) void this.#startOrder(entry);
			else if (!entry.currentOrder) {
				const dueAt = Math.max(entry.nextAttemptAt, entry.record ? entry.renewAt : 0);
				nextCheckMs = Math.min(nextCheckMs, dueAt - now);
			}
			if (!entry.record) continue;
			if (entry.issuer?.advise && now >= entry.adviseAt) {
				// Requests for renewal information are spread over an hour, so that a start with many certificates does not send them all
				// at once.
				if (entry.adviseAt === 0 && document.entries.size > 100) entry.adviseAt = now + Math.random() * 3_600_000;
				else void this.#keeper.advise(entry).then(() => this.#scheduleCheck(MIN_CHECK_DELAY_MS));
			}
			nextCheckMs = Math.min(nextCheckMs, this.#stapler.refreshIfDue(entry) - now);
		}
		nextCheckMs = Math.min(nextCheckMs, this.#onDemand.removeExpired());
		this.#cleaner.cleanIfDue(new Set(document.entries.keys()));
		this.#scheduleCheck(Math.max(nextCheckMs, MIN_CHECK_DELAY_MS));
	}

	#startOrder(entry: ManagedCertificate): Promise<void> {
		return this.#activeDocument?.entries.get(entry.name) === entry
			? this.#keeper.startOrder(entry)
			: this.#onDemand.renew(entry);
	}
}

function pkiOf(settings: Settings): PkiSettings {
	return (settings.pki ?? {}) as PkiSettings;
}

/** Returns the entry for a name; if there is none, the entry for the wildcard that covers the name. */
function findEntry(entries: ReadonlyMap<string, ManagedCertificate>, name: string): ManagedCertificate | undefined {
	const exactEntry = entries.get(name);
	if (exactEntry) return exactEntry;
	const firstDot = name.indexOf('.');
	return firstDot === -1 ? undefined : entries.get(`*${name.slice(firstDot)}`);
}

/** Resolves to the promise's result, or to undefined after `limitMs` milliseconds. */
async function resultWithin<T>(promise: Promise<T>, limitMs: number): Promise<T | undefined> {
	const timerAbort = new AbortController();
	try {
		return await Promise.race([
			promise,
			sleep(limitMs, undefined, { signal: timerAbort.signal, ref: false }).catch(() => undefined),
		]);
	} finally {
		timerAbort.abort();
	}
}
