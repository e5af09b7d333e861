/** The certificate manager: keeps every name of the active document supplied with a valid certificate. */
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
import { ChallengeRegistry } from '../challenge-registry.ts';
import type { Issuer } from '../issuer.ts';
import { ManagedCertificate, type ReadyPolicy } from '../managed-certificate.ts';
import { OnDemandCertificates } from '../on-demand.ts';
import { SharedChallenges } from '../shared-challenges.ts';
import { StatusStapler } from '../status-stapler.ts';
import { StoreCleaner } from '../store-cleaner.ts';
import { createIssuer, issuerKey } from './issuers.ts';

/** Milliseconds that a start or a load waits for certificates from the store and internal CAs. */
const PREPARE_LIMIT = 5000;
/** Default milliseconds between two checks of all certificates. */
const RENEW_INTERVAL = 600_000;
/** Milliseconds that a handshake waits for an order in progress. */
const HANDSHAKE_LIMIT = 20_000;
/** Milliseconds until the next check after one that failed. */
const CHECK_RETRY = 60_000;
/** Minimum milliseconds between two checks. */
const MIN_CHECK_DELAY = 20;
/** Milliseconds for which a stop of the process waits until canceled orders have ended. */
const CLOSING_LIMIT = 2000;

/** Options for tests. */
export interface ManagerOptions {
	/** The clock, in milliseconds since the epoch. */
	readonly now?: () => number;
	/** Ports at which our ACME servers validate names, instead of 80 and 443. */
	readonly validationPorts?: ValidationPorts;
}

/** The policies and names of a document. */
interface Prepared {
	readonly plan: CertificatePlan;
	readonly settings: Settings;
	readonly policies: readonly ReadyPolicy[];
	readonly entries: ReadonlyMap<string, ManagedCertificate>;
}

/** Creates the certificate manager of a process. */
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
	readonly #keeper: CertificateKeeper;
	readonly #onDemand: OnDemandCertificates;
	readonly #stapler: StatusStapler<ManagedCertificate>;
	readonly #cleaner: StoreCleaner;
	readonly #sharedChallenges: SharedChallenges;
	readonly #issuers = new Map<string, Issuer>();
	/** ACME servers by CA. */
	readonly #responders = new Map<string, AcmeResponder>();
	readonly #validationPorts: ValidationPorts;
	#store: Store | undefined;
	#recovered: Promise<void> | undefined;
	#storeChecked = false;
	#served: Prepared | undefined;
	#prepared: Prepared | undefined;
	#timer: NodeJS.Timeout | undefined;
	/** Time at which the timer fires, by `performance.now()`. */
	#timerEnd = Number.POSITIVE_INFINITY;
	#closed = false;

	constructor(deps: CertificateManagerDeps, { now = Date.now, validationPorts }: ManagerOptions) {
		this.#deps = deps;
		this.#now = now;
		this.#validationPorts = validationPorts ?? { http: 80, tls: 443 };
		const log = deps.log.bind(deps);
		this.#authorities = new Authorities(log, now);
		this.#challenges = new ChallengeRegistry(deps.sink);
		const store = (): Store => this.#store!;
		this.#keeper = new CertificateKeeper({
			sink: deps.sink,
			log,
			now,
			store,
			checkStore: () => this.#checkStore(),
			renewalRatio: () => this.#served?.settings.renewal_window_ratio as number | undefined,
			wake: () => this.#scheduleCheck(MIN_CHECK_DELAY),
		});
		this.#onDemand = new OnDemandCertificates({ sink: deps.sink, log, now, keeper: this.#keeper });
		this.#stapler = new StatusStapler({
			...{ log, now, store },
			publish: entry => this.#keeper.publish(entry),
			wake: () => this.#scheduleCheck(MIN_CHECK_DELAY),
		});
		this.#sharedChallenges = new SharedChallenges(store);
		this.#cleaner = new StoreCleaner({ log, now, store });
	}

	async prepare(plan: CertificatePlan, settings: Settings): Promise<void> {
		const store = this.#openStore(settings);
		this.#recovered ??= this.#recover(store);
		await this.#recovered;
		await this.#authorities.use(plan.authorities, (settings.pki ?? {}) as PkiSettings, store);
		const policies = await Promise.all(plan.policies.map(policy => this.#readyPolicy(policy)));
		const entries = new Map<string, ManagedCertificate>();
		const fresh: ManagedCertificate[] = [];
		for (const policy of policies) {
			// Certificates for these names are obtained during handshakes.
			if (policy.settings.on_demand || (policy.settings.managers?.length ?? 0) > 0) continue;
			for (const name of policy.settings.subjects) {
				const before = this.#served?.entries.get(name);
				const kept = before?.policy.key === policy.key ? before : undefined;
				const entry = kept ?? new ManagedCertificate(name, policy);
				entries.set(name, entry);
				if (!entry.loaded) fresh.push(entry);
			}
		}
		this.#prepared = { plan, settings, policies, entries };
		const loading = this.#keeper.load(fresh).then(() => this.#scheduleCheck(0));
		await Promise.race([loading, sleep(PREPARE_LIMIT, undefined, { ref: false })]);
	}

	activate(): void {
		const next = this.#prepared;
		if (!next || this.#closed) return;
		const before = this.#served;
		this.#served = next;
		this.#prepared = undefined;
		if (before) this.#dropUnused(before, next);
		this.#onDemand.serve(next.policies, next.settings.on_demand_tls);
		this.#stapler.configure(next.settings);
		this.#cleaner.configure(next.settings);
		this.#scheduleCheck(0);
	}

	discard(): void {
		const given = this.#prepared;
		this.#prepared = undefined;
		if (given) this.#dropUnused(given, this.#served);
	}

	async obtain(question: CertificateRequestedByClient): Promise<boolean> {
		const served = this.#served;
		if (!served || this.#closed) return false;
		const managed = managedFor(served.entries, question.name);
		if (managed) {
			// The first client of a new site may arrive while its certificate is being ordered, so the handshake waits for the
			// order.
			if (!managed.record && managed.work) await within(managed.work.done, HANDSHAKE_LIMIT);
			return managed.published;
		}
		return within(this.#onDemand.obtain(question), HANDSHAKE_LIMIT).then(result => result === true);
	}

	readings(): CertificateReadings {
		const entries = [...(this.#served?.entries.values() ?? []), ...this.#onDemand.entries()];
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
			ocsp: this.#stapler.fetched.samples(),
			missing: entries.filter(entry => entry.loaded && !entry.record).length,
		};
	}

	async authority(id: string): Promise<{ readonly root: string; readonly intermediate: string }> {
		const authority = await this.#authorities.get(id);
		if (!authority) throw new AuthorityError(`The authority \`${id}\` cannot be opened.`);
		return { root: authority.rootPem, intermediate: authority.intermediatePem };
	}

	async answerAcme(
		request: AcmeServerRequest,
		settings: AcmeServerSettings,
		process: Settings,
	): Promise<AcmeServerAnswer> {
		const id = settings.ca ?? 'local';
		let responder = this.#responders.get(id);
		if (!responder) {
			const store = this.#openStore(process);
			await this.#authorities.use([id], (process.pki ?? {}) as PkiSettings, store);
			const { AcmeResponder } = await import('../acme-server/acme-responder.ts');
			responder =
				this.#responders.get(id) ??
				new AcmeResponder(id, {
					log: this.#deps.log.bind(this.#deps),
					store,
					authority: wanted => this.#authorities.get(wanted),
					ports: this.#validationPorts,
				});
			this.#responders.set(id, responder);
		}
		return responder.answer(request, settings);
	}

	async close(): Promise<void> {
		this.#closed = true;
		clearTimeout(this.#timer);
		this.#cleaner.close();
		const entries = [...(this.#served?.entries.values() ?? []), ...this.#onDemand.entries()];
		const reason = new Error('The server is stopping.');
		const work = entries.map(entry => {
			entry.work?.abort.abort(reason);
			return entry.work?.done;
		});
		await within(Promise.all(work), CLOSING_LIMIT);
		for (const issuer of this.#issuers.values()) issuer.close?.();
	}

	#openStore(settings: Settings): Store {
		this.#store ??= openStore(settings.storage as StoreSelection | undefined, this.#deps);
		return this.#store;
	}

	/** Rolls back an interrupted import before anything is read from the store. */
	async #recover(store: Store): Promise<void> {
		try {
			await store.recover?.();
		} catch (error) {
			if (!(error instanceof StoreError)) throw error;
			this.#deps.log('error', 'tls.cache', 'the store could not be recovered', { cause: error.message });
		}
	}

	async #readyPolicy(settings: AutomationPolicy): Promise<ReadyPolicy> {
		const keyedIssuers = await Promise.all(settings.issuers.map(issuer => this.#issuerFor(issuer)));
		const key = canonicalJson([{ ...settings, subjects: [] }, keyedIssuers.map(({ key }) => key)]);
		return { settings, key, issuers: keyedIssuers.map(({ issuer }) => issuer) };
	}

	/** Returns the issuer for some settings. Sites with equal settings share its account, connections and limits. */
	async #issuerFor(settings: IssuerSettings): Promise<{ readonly key: string; readonly issuer: Issuer }> {
		const key = await issuerKey(settings, this.#deps);
		let issuer = this.#issuers.get(key);
		if (!issuer) {
			issuer = await createIssuer(settings, {
				log: this.#deps.log.bind(this.#deps),
				now: this.#now,
				store: this.#store!,
				challenges: this.#challenges,
				sharedChallenges: this.#sharedChallenges,
				authority: id => this.#authorities.get(id),
				ports: () => this.#served?.plan ?? this.#prepared?.plan ?? { http_port: 80, https_port: 443 },
				environment: this.#deps.environment,
				workingDirectory: this.#deps.workingDirectory,
			});
			this.#issuers.set(key, issuer);
		}
		return { key, issuer };
	}

	/** Drops the certificates that `given` needs and `kept` does not, and cancels their orders. */
	#dropUnused(given: Prepared, kept: Prepared | undefined): void {
		const ids = new Set<string>();
		for (const entry of kept?.entries.values() ?? []) if (entry.id) ids.add(entry.id);
		const droppedIds: string[] = [];
		for (const [name, entry] of given.entries) {
			if (kept?.entries.get(name) === entry) continue;
			entry.gone = true;
			entry.work?.abort.abort(new Error('The configuration no longer needs the certificate.'));
			if (entry.published && entry.id && !ids.has(entry.id)) droppedIds.push(entry.id);
		}
		if (droppedIds.length > 0) this.#deps.sink.drop(droppedIds);
	}

	/**
	 * Checks that the store works before the first order. Certificates that cannot be stored would be ordered again at every
	 * start, until the issuer's rate limits are exceeded.
	 */
	async #checkStore(): Promise<void> {
		if (this.#storeChecked || this.#served?.settings.storage_check === false) return;
		const key = `check/${randomBytes(8).toString('hex')}`;
		const value = randomBytes(16);
		const store = this.#store!;
		await store.write(key, value);
		const read = await store.read(key);
		await store.remove(key);
		if (!read?.equals(value)) {
			throw new StoreError('store/unwritable', 'The store does not return what was written to it.');
		}
		this.#storeChecked = true;
	}

	/** Schedules a check in `wait` milliseconds, unless an earlier one is scheduled. */
	#scheduleCheck(wait: number): void {
		const end = performance.now() + wait;
		if (this.#closed || this.#timerEnd <= end) return;
		clearTimeout(this.#timer);
		this.#timerEnd = end;
		this.#timer = setTimeout(() => {
			this.#timerEnd = Number.POSITIVE_INFINITY;
			this.#check().catch(error => {
				const cause = error instanceof Error ? error.message : String(error);
				this.#deps.log('error', 'tls', 'checking certificates failed unexpectedly', { cause });
				this.#scheduleCheck(CHECK_RETRY);
			});
		}, wait);
		this.#timer.unref();
	}

	/** Checks every certificate and starts the orders that are due. */
	async #check(): Promise<void> {
		const served = this.#served;
		if (!served || this.#closed) return;
		const now = this.#now();
		const interval = (served.settings.renew_interval as number | undefined) ?? RENEW_INTERVAL;
		let next = Math.min(interval, await this.#authorities.maintain());
		for (const entry of [...served.entries.values(), ...this.#onDemand.entries()]) {
			if (entry.gone || !entry.loaded) continue;
			if (entry.isDue(now)) void this.#begin(entry);
			else if (!entry.work) {
				const due = Math.max(entry.attemptAt, entry.record ? entry.renewAt : 0);
				next = Math.min(next, due - now);
			}
			if (!entry.record) continue;
			if (entry.issuer?.advise && now >= entry.adviseAt) {
				// Requests are spread over an hour. If they were not, a start with many certificates would send all requests at once.
				if (entry.adviseAt === 0 && served.entries.size > 100) entry.adviseAt = now + Math.random() * 3_600_000;
				else void this.#keeper.advise(entry).then(() => this.#scheduleCheck(MIN_CHECK_DELAY));
			}
			next = Math.min(next, this.#stapler.check(entry) - now);
		}
		this.#onDemand.sweep();
		this.#cleaner.check(new Set(served.entries.keys()));
		this.#scheduleCheck(Math.max(next, MIN_CHECK_DELAY));
	}

	#begin(entry: ManagedCertificate): Promise<void> {
		return this.#served?.entries.get(entry.name) === entry ? this.#keeper.begin(entry) : this.#onDemand.renew(entry);
	}
}

/** Returns the entry for a name, or else the entry for the wildcard that covers it. */
function managedFor(entries: ReadonlyMap<string, ManagedCertificate>, name: string): ManagedCertificate | undefined {
	const own = entries.get(name);
	if (own) return own;
	const dot = name.indexOf('.');
	return dot === -1 ? undefined : entries.get(`*${name.slice(dot)}`);
}

/** Resolves to the promise's result, or to undefined after `limit` milliseconds. */
async function within<T>(promise: Promise<T>, limit: number): Promise<T | undefined> {
	const ended = new AbortController();
	try {
		return await Promise.race([
			promise,
			sleep(limit, undefined, { signal: ended.signal, ref: false }).catch(() => undefined),
		]);
	} finally {
		ended.abort();
	}
}
