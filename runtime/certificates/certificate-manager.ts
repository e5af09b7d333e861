/** The certificate manager: which names of the document being served have which certificates, now and next. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type {
	AcmeServerAnswer,
	AcmeServerRequest,
	AcmeServerSettings,
} from '../../compiler/directives/acme-server/acme-server-handler.ts';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import type { Settings } from '../../compiler/document/document.ts';
import type { PkiSettings } from '../../compiler/options/pki.ts';
import type { AutomationPolicy, CertificatePlan, IssuerSettings } from '../../compiler/tls/certificate-plan.ts';
import { openStore, type StoreSelection } from '../storage/open-store.ts';
import { type Store, StoreError } from '../storage/store.ts';
import type { CertificateManager, CertificateManagerDeps, CertificateQuestion } from '../tls/certificate-feed.ts';
import type { AcmeResponder } from './acme-server/acme-responder.ts';
import type { ValidationPorts } from './acme-server/name-validation.ts';
import { Authorities } from './authorities.ts';
import { AuthorityError } from './authority.ts';
import { CertificateKeeper } from './certificate-keeper.ts';
import { type CertificateReadings, MOST_EXPIRY_SERIES } from './certificate-metrics.ts';
import { ChallengeBoard } from './challenge-board.ts';
import type { Issuer } from './issuer.ts';
import { createIssuer, issuerKey } from './issuers.ts';
import { ManagedCertificate, type ReadyPolicy } from './managed-certificate.ts';
import { OnDemandCertificates } from './on-demand.ts';
import { SharedChallenges } from './shared-challenges.ts';
import { StatusStapler } from './status-stapler.ts';
import { StoreCleaner } from './store-cleaner.ts';

/** Milliseconds for which a start or a load waits for what the store and internal authorities have. */
const PREPARE_LIMIT = 5000;
/** Milliseconds between two looks at all certificates, if nothing is said. */
const RENEW_INTERVAL = 600_000;
/** Milliseconds that a client's handshake waits for an order that is under way. */
const HANDSHAKE_PATIENCE = 20_000;
/** Milliseconds before the next look after one that failed. */
const LOOK_RETRY = 60_000;
/** Milliseconds between two looks at least. */
const WAKE = 20;
/** Milliseconds that orders under way may take to end when the process stops. */
const CLOSING_LIMIT = 2000;

/** What tests may set; the product leaves it out. */
export interface ManagerOptions {
	/** Milliseconds since the epoch. */
	readonly now?: () => number;
	/** Ports that ACME servers of ours validate names at, instead of 80 and 443. */
	readonly validationPorts?: ValidationPorts;
}

/** A document's policies with their names. */
interface Prepared {
	readonly plan: CertificatePlan;
	readonly settings: Settings;
	readonly policies: readonly ReadyPolicy[];
	readonly entries: ReadonlyMap<string, ManagedCertificate>;
}

/** Makes the certificate manager of a process. */
export function createCertificateManager(
	surroundings: CertificateManagerDeps,
	options: ManagerOptions = {},
): CertificateManager {
	return new Manager(surroundings, options);
}

class Manager implements CertificateManager {
	readonly #around: CertificateManagerDeps;
	readonly #now: () => number;
	readonly #authorities: Authorities;
	readonly #board: ChallengeBoard;
	readonly #keeper: CertificateKeeper;
	readonly #onDemand: OnDemandCertificates;
	readonly #stapler: StatusStapler<ManagedCertificate>;
	readonly #cleaner: StoreCleaner;
	readonly #sharedChallenges: SharedChallenges;
	readonly #issuers = new Map<string, Issuer>();
	/** ACME servers by authority. */
	readonly #responders = new Map<string, AcmeResponder>();
	readonly #validationPorts: ValidationPorts;
	#store: Store | undefined;
	#recovered: Promise<void> | undefined;
	#storeChecked = false;
	#served: Prepared | undefined;
	#prepared: Prepared | undefined;
	#timer: NodeJS.Timeout | undefined;
	/** When the timer ends, in milliseconds of the monotonic clock. */
	#timerEnd = Number.POSITIVE_INFINITY;
	#closed = false;

	constructor(surroundings: CertificateManagerDeps, { now = Date.now, validationPorts }: ManagerOptions) {
		this.#around = surroundings;
		this.#now = now;
		this.#validationPorts = validationPorts ?? { http: 80, tls: 443 };
		const log = surroundings.log.bind(surroundings);
		this.#authorities = new Authorities(log, now);
		this.#board = new ChallengeBoard(surroundings.sink);
		const store = (): Store => this.#store!;
		this.#keeper = new CertificateKeeper({
			sink: surroundings.sink,
			log,
			now,
			store,
			checkStore: () => this.#checkStore(),
			renewalRatio: () => this.#served?.settings.renewal_window_ratio as number | undefined,
			wake: () => this.#lookSoon(WAKE),
		});
		this.#onDemand = new OnDemandCertificates({ sink: surroundings.sink, log, now, keeper: this.#keeper });
		this.#stapler = new StatusStapler({
			...{ log, now, store },
			publish: entry => this.#keeper.publish(entry),
			wake: () => this.#lookSoon(WAKE),
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
			// Whoever is asked at handshake time has the certificates of these names.
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
		const loading = this.#keeper.load(fresh).then(() => this.#lookSoon(0));
		await Promise.race([loading, sleep(PREPARE_LIMIT, undefined, { ref: false })]);
	}

	activate(): void {
		const next = this.#prepared;
		if (!next || this.#closed) return;
		const before = this.#served;
		this.#served = next;
		this.#prepared = undefined;
		if (before) this.#giveUp(before, next);
		this.#onDemand.serve(next.policies, next.settings.on_demand_tls);
		this.#stapler.configure(next.settings);
		this.#cleaner.configure(next.settings);
		this.#lookSoon(0);
	}

	discard(): void {
		const given = this.#prepared;
		this.#prepared = undefined;
		if (given) this.#giveUp(given, this.#served);
	}

	async obtain(question: CertificateQuestion): Promise<boolean> {
		const served = this.#served;
		if (!served || this.#closed) return false;
		const managed = managedFor(served.entries, question.name);
		if (managed) {
			// The first client of a new site comes while its certificate is being ordered.
			if (!managed.record && managed.work) await within(managed.work.done, HANDSHAKE_PATIENCE);
			return managed.published;
		}
		return within(this.#onDemand.obtain(question), HANDSHAKE_PATIENCE).then(result => result === true);
	}

	/** What a scrape shows. */
	readings(): CertificateReadings {
		const entries = [...(this.#served?.entries.values() ?? []), ...this.#onDemand.entries()];
		const expiry = entries
			.filter(entry => entry.record)
			.sort((a, b) => a.record!.notAfter - b.record!.notAfter)
			.slice(0, MOST_EXPIRY_SERIES)
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
			const { AcmeResponder } = await import('./acme-server/acme-responder.ts');
			responder =
				this.#responders.get(id) ??
				new AcmeResponder(id, {
					log: this.#around.log.bind(this.#around),
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
		this.#store ??= openStore(settings.storage as StoreSelection | undefined, this.#around);
		return this.#store;
	}

	/** What an import that was cut short has left is taken back before anything is read. */
	async #recover(store: Store): Promise<void> {
		try {
			await store.recover?.();
		} catch (error) {
			if (!(error instanceof StoreError)) throw error;
			this.#around.log('error', 'tls.cache', 'the store could not be recovered', { cause: error.message });
		}
	}

	async #readyPolicy(settings: AutomationPolicy): Promise<ReadyPolicy> {
		const made = await Promise.all(settings.issuers.map(issuer => this.#issuerFor(issuer)));
		const key = canonicalJson([{ ...settings, subjects: [] }, made.map(({ key }) => key)]);
		return { settings, key, issuers: made.map(({ issuer }) => issuer) };
	}

	/** Sites with the same issuer share its account, its connections and its limits. */
	async #issuerFor(settings: IssuerSettings): Promise<{ readonly key: string; readonly issuer: Issuer }> {
		const key = await issuerKey(settings, this.#around);
		let issuer = this.#issuers.get(key);
		if (!issuer) {
			issuer = await createIssuer(settings, {
				log: this.#around.log.bind(this.#around),
				now: this.#now,
				store: this.#store!,
				board: this.#board,
				sharedChallenges: this.#sharedChallenges,
				authority: id => this.#authorities.get(id),
				ports: () => this.#served?.plan ?? this.#prepared?.plan ?? { http_port: 80, https_port: 443 },
				environment: this.#around.environment,
				workingDirectory: this.#around.workingDirectory,
			});
			this.#issuers.set(key, issuer);
		}
		return { key, issuer };
	}

	/** Ends what only the first of two documents wants. */
	#giveUp(given: Prepared, kept: Prepared | undefined): void {
		const ids = new Set<string>();
		for (const entry of kept?.entries.values() ?? []) if (entry.id) ids.add(entry.id);
		const dropped: string[] = [];
		for (const [name, entry] of given.entries) {
			if (kept?.entries.get(name) === entry) continue;
			entry.gone = true;
			entry.work?.abort.abort(new Error('The configuration no longer wants the certificate.'));
			if (entry.published && entry.id && !ids.has(entry.id)) dropped.push(entry.id);
		}
		if (dropped.length > 0) this.#around.sink.drop(dropped);
	}

	/** What is ordered must be kept, or it is ordered again at every start until the issuer refuses. */
	async #checkStore(): Promise<void> {
		if (this.#storeChecked || this.#served?.settings.storage_check === false) return;
		const key = `check/${randomBytes(8).toString('hex')}`;
		const value = randomBytes(16);
		const store = this.#store!;
		await store.write(key, value);
		const read = await store.read(key);
		await store.remove(key);
		if (!read?.equals(value)) {
			throw new StoreError('store/unwritable', 'The store does not give back what was written to it.');
		}
		this.#storeChecked = true;
	}

	/** Looks in so many milliseconds at the latest. */
	#lookSoon(wait: number): void {
		const end = performance.now() + wait;
		if (this.#closed || this.#timerEnd <= end) return;
		clearTimeout(this.#timer);
		this.#timerEnd = end;
		this.#timer = setTimeout(() => {
			this.#timerEnd = Number.POSITIVE_INFINITY;
			this.#look().catch(error => {
				const cause = error instanceof Error ? error.message : String(error);
				this.#around.log('error', 'tls', 'looking after certificates failed unexpectedly', { cause });
				this.#lookSoon(LOOK_RETRY);
			});
		}, wait);
		this.#timer.unref();
	}

	/** Looks at every certificate and begins what is due. */
	async #look(): Promise<void> {
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
				// Not all at once: at a start with many certificates each would ask.
				if (entry.adviseAt === 0 && served.entries.size > 100) entry.adviseAt = now + Math.random() * 3_600_000;
				else void this.#keeper.advise(entry).then(() => this.#lookSoon(WAKE));
			}
			next = Math.min(next, this.#stapler.look(entry) - now);
		}
		this.#onDemand.sweep();
		this.#cleaner.look(new Set(served.entries.keys()));
		this.#lookSoon(Math.max(next, WAKE));
	}

	#begin(entry: ManagedCertificate): Promise<void> {
		return this.#served?.entries.get(entry.name) === entry ? this.#keeper.begin(entry) : this.#onDemand.renew(entry);
	}
}

/** The entry that covers a name: its own, or that of a wildcard one label up. */
function managedFor(entries: ReadonlyMap<string, ManagedCertificate>, name: string): ManagedCertificate | undefined {
	const own = entries.get(name);
	if (own) return own;
	const dot = name.indexOf('.');
	return dot === -1 ? undefined : entries.get(`*${name.slice(dot)}`);
}

/** What a promise gives within so many milliseconds; undefined after that. */
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
