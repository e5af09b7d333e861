/** Answers requests without a network: runs the handler graph that a server would use, with fakes for its dependencies. */
import { type BuildEnvironment, buildSite } from '../codegen/build-site.ts';
import type { BuiltSite } from '../codegen/built-site.ts';
import { fakeLeases } from '../codegen/context/fake-leases.ts';
import type { HostFacts } from '../codegen/placeholders/placeholder.ts';
import { redirectToHttps } from '../codegen/plan/https-redirect.ts';
import type { ListenerSpec, Plan } from '../codegen/plan/plan.ts';
import type { BuildTracer } from '../codegen/site-compiler.ts';
import { redirectPort, SiteTable } from '../codegen/site-table.ts';
import { canonicalJson } from '../document/canonical-json.ts';
import type { Settings } from '../document/document.ts';
import type { AccessLogSettings } from '../document/log-namespaces.ts';
import { serverSettingsFor } from '../document/server-settings.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { failResponse } from '../exchange/failed-response.ts';
import type { AccessLog, LeaseKinds, Leases } from '../exchange/leases.ts';
import type { PageWork } from '../exchange/page-work.ts';
import type { ConcurrencyLimiterSettings } from '../modules/directives/limit-concurrent/concurrency-limiter.ts';
import type { RateLimiterSettings } from '../modules/directives/rate-limit/rate-limiter.ts';
import type { UpstreamSettings } from '../modules/directives/reverse-proxy/upstream-pool.ts';
import { DeliveredResponse } from './delivered-response.ts';
import type { DryRunRequest } from './dry-run-request.ts';
import { FakeCache } from './fake-cache.ts';
import { FakeConcurrencyLimiter } from './fake-concurrency-limiter.ts';
import { type FakeExchange, fakeExchange, type UpstreamAnswer, type UpstreamScript } from './fake-exchange.ts';
import { FakeRateLimiter } from './fake-rate-limiter.ts';
import { FakePool } from './fake-upstreams.ts';
import { listenerFor } from './listener-choice.ts';

/** The real dependencies of a dry run. They are injected, because the compiler does no I/O. */
export interface DryRunEnvironment {
	readonly facts: HostFacts;
	/** Returns a real resource that needs no network, such as the file reader; undefined if the dry run should use a fake. */
	lease<K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']): LeaseKinds[K]['lease'] | undefined;
	/** Runs expensive tasks for page templates, such as hashing a password. Needs no network. */
	readonly pageWork?: PageWork | undefined;
	/**
	 * Resolves to the entry that an access log would write for a request, as parsed JSON whatever the log's format; undefined if the
	 * log omits the request. Absent if logs are not examined.
	 */
	readonly logEntry?: (exchange: LoggedExchange) => Promise<LogEntryFields | undefined>;
}

/** The fields of an access log entry. */
export type LogEntryFields = { readonly [name: string]: unknown };

/** The information about a request that an access log receives. */
export interface LoggedExchange {
	readonly x: Exchange;
	readonly logSettings: AccessLogSettings;
	readonly settings: Settings;
	/** True if the log shows the values of fields that contain credentials. */
	readonly logsCredentials: boolean;
}

/** The outcome of one request in a dry run. */
export interface DryRunResult {
	readonly listener: ListenerSpec;
	/**
	 * Index in `document.sites`. −1 if no site of the listener serves the request. The request is then redirected to HTTPS, or
	 * answered with 200 and an empty body.
	 */
	readonly site: number;
	/** True if rate limits are in use. They keep state between requests, so the response may depend on earlier requests. */
	readonly usesRateLimits: boolean;
	readonly exchange: FakeExchange;
	/** The response; undefined if the connection was closed (`abort`). */
	readonly response: DeliveredResponse | undefined;
	/** The error that no error route handled; undefined if there was none. */
	readonly failure: unknown;
	/** Resolves to the entries that all access logs would write for this request. Reads the body of the response. */
	readonly logEntries: () => Promise<readonly LogEntryFields[]>;
}

/** Observes a dry run: receives the exchange and its site before the handler graph runs, and then the events of the graph. */
export interface DryRunTracer extends BuildTracer {
	onRequestStart(x: FakeExchange, listener: ListenerSpec, site: number): void;
}

/**
 * Runs requests against one plan. Sites are built when a request first reaches them, and pools keep their state between requests.
 */
export class DryRun {
	readonly plan: Plan;
	readonly #poolsBySettings: Map<string, FakePool>;
	readonly #cache: FakeCache;
	readonly #limitersBySettings: Map<string, FakeRateLimiter>;
	readonly #settingsByLog = new Map<AccessLog, AccessLogSettings>();
	readonly #logEntry: DryRunEnvironment['logEntry'];
	readonly #environment: BuildEnvironment;
	readonly #tracer: DryRunTracer | undefined;
	readonly #tablesByListener = new Map<ListenerSpec, SiteTable>();
	readonly #builtSitesByIndex = new Map<number, BuiltSite>();

	/**
	 * `previousDryRun` is an earlier dry run without a tracer. If this one has none either, and the two documents differ only in
	 * their sites, it shares the state of the pools, the cache and the rate limits with `previousDryRun`. A site that is the
	 * same object in both documents, as in successive results of a compiler session, is then not built again.
	 */
	constructor(plan: Plan, deps: DryRunEnvironment, tracer?: DryRunTracer, previousDryRun?: DryRun) {
		this.plan = plan;
		this.#tracer = tracer;
		this.#logEntry = deps.logEntry;
		const { document } = plan;
		const reusableDryRun =
			previousDryRun && !tracer && sharedPartsText(previousDryRun.plan) === sharedPartsText(plan)
				? previousDryRun
				: undefined;
		this.#poolsBySettings = reusableDryRun ? reusableDryRun.#poolsBySettings : new Map();
		this.#cache = reusableDryRun ? reusableDryRun.#cache : new FakeCache();
		this.#limitersBySettings = reusableDryRun ? reusableDryRun.#limitersBySettings : new Map();
		if (reusableDryRun) {
			const previousSites = reusableDryRun.plan.document.sites!;
			for (const [index, site] of reusableDryRun.#builtSitesByIndex)
				if (previousSites[index] === document.sites![index]) this.#builtSitesByIndex.set(index, site);
		}
		this.#environment = {
			settings: document.settings ?? {},
			upstreams: document.upstreams ?? {},
			routes: document.routes ?? {},
			leases: this.#leases(deps),
			facts: deps.facts,
			tracer,
		};
	}

	/** Resets every pool, the cache and all rate limits to their initial state. */
	reset(): void {
		this.#cache.reset();
		for (const pool of this.#poolsBySettings.values()) pool.reset();
		for (const limiter of this.#limitersBySettings.values()) limiter.reset();
	}

	/**
	 * Answers a request as the server would after the request head has arrived; undefined if nothing listens at the URL's address.
	 */
	async run(request: DryRunRequest, upstream?: UpstreamAnswer | UpstreamScript): Promise<DryRunResult | undefined> {
		const listener = listenerFor(this.plan, request.url);
		if (!listener) return undefined;
		const x = fakeExchange(request, listener, upstream);
		let site = -1;
		let failure: unknown;
		try {
			const siteIndex = this.#siteTable(listener).findSiteIndex(x.request);
			site = Math.max(siteIndex, -1);
			this.#tracer?.onRequestStart(x, listener, site);
			const httpsPort = redirectPort(siteIndex);
			if (httpsPort !== undefined) redirectToHttps(x, httpsPort);
			else if (site !== -1) await this.#builtSite(site).runSite(x);
		} catch (error) {
			failure = error;
			failResponse(x, error);
		}
		for (const onFinish of x.finishListeners ?? []) onFinish(x);
		const response = x.isAborted ? undefined : new DeliveredResponse(x);
		const logEntries = () => this.#logEntries(x, listener, response);
		const usesRateLimits = this.#limitersBySettings.size > 0;
		return { listener, site, usesRateLimits, exchange: x, response, failure, logEntries };
	}

	async #logEntries(
		x: FakeExchange,
		listener: ListenerSpec,
		response: DeliveredResponse | undefined,
	): Promise<readonly LogEntryFields[]> {
		if (this.#logEntry === undefined || x.log?.skip === true) return [];
		x.response.bytesSent = (await response?.bytes())?.byteLength ?? 0;
		for (const beforeEntry of x.log?.beforeEntry ?? []) beforeEntry(x);
		const settings = this.plan.document.settings ?? {};
		const logsCredentials = serverSettingsFor(settings, listener).log_credentials === true;
		const entries: LogEntryFields[] = [];
		for (const lease of x.accessLogs) {
			const logSettings = this.#settingsByLog.get(lease);
			const entry = logSettings && (await this.#logEntry({ x, logSettings, settings, logsCredentials }));
			if (entry) entries.push(entry);
		}
		return entries;
	}

	#leases(deps: DryRunEnvironment): Leases {
		return {
			lease: <K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']): LeaseKinds[K]['lease'] =>
				(this.#statefulFake(kind, settings) ??
					deps.lease(kind, settings) ??
					fakeLeases.lease(kind, settings)) as LeaseKinds[K]['lease'],
			pageWork: deps.pageWork,
		};
	}

	/** Returns the fake of a resource that keeps state or records its use; undefined for other kinds of resources. */
	#statefulFake(kind: keyof LeaseKinds, settings: unknown): unknown {
		switch (kind) {
			case 'upstreams':
				return getOrCreate(
					this.#poolsBySettings,
					canonicalJson(settings),
					() => new FakePool(settings as UpstreamSettings),
				);
			case 'rate_limiter':
				return getOrCreate(
					this.#limitersBySettings,
					canonicalJson(settings),
					() => new FakeRateLimiter((settings as RateLimiterSettings).zone),
				);
			case 'concurrency_limiter':
				return new FakeConcurrencyLimiter((settings as ConcurrencyLimiterSettings).zone);
			case 'cache':
				return this.#cache;
			case 'access_log': {
				const log: AccessLog = { record: () => {} };
				this.#settingsByLog.set(log, settings as AccessLogSettings);
				return log;
			}
			default:
				return undefined;
		}
	}

	#siteTable(listener: ListenerSpec): SiteTable {
		let table = this.#tablesByListener.get(listener);
		if (!table) {
			table = new SiteTable(listener.sites);
			this.#tablesByListener.set(listener, table);
		}
		return table;
	}

	#builtSite(index: number): BuiltSite {
		let site = this.#builtSitesByIndex.get(index);
		if (!site) {
			site = buildSite(this.plan.document.sites![index]!, index, this.#environment);
			this.#builtSitesByIndex.set(index, site);
		}
		return site;
	}
}

/** Returns as JSON everything in a document except its sites: the parts on which each site may depend. */
function sharedPartsText({ document: { sites: _, ...sharedParts } }: Plan): string {
	return JSON.stringify(sharedParts);
}

/** Returns the value of a key. Creates the value on first use. */
function getOrCreate<T>(map: Map<string, T>, key: string, create: () => T): T {
	let value = map.get(key);
	if (value === undefined) {
		value = create();
		map.set(key, value);
	}
	return value;
}
