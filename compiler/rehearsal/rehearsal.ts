/** A plan that answers requests without a network: the graph that is served, with stand-ins for what surrounds it. */
import { type BuildEnvironment, buildSite } from '../codegen/build-site.ts';
import type { BuiltSite } from '../codegen/built-site.ts';
import type { HostFacts } from '../codegen/placeholders/placeholder.ts';
import type { ListenerSpec, Plan } from '../codegen/plan.ts';
import type { BuildTracer } from '../codegen/site-compiler.ts';
import { redirectPort, SiteTable } from '../codegen/site-table.ts';
import { standInLeases } from '../codegen/stand-in-leases.ts';
import { canonicalJson } from '../document/canonical-json.ts';
import { failResponse } from '../exchange/failed-response.ts';
import type { LeaseKinds, Leases, UpstreamSettings } from '../exchange/leases.ts';
import type { PageWork } from '../exchange/page-work.ts';
import { redirectToHttps } from '../tls/https-redirect.ts';
import { DeliveredResponse } from './delivered-response.ts';
import { listenerFor } from './listener-choice.ts';
import { type RehearsedExchange, rehearsedExchange, type UpstreamAnswer } from './rehearsed-exchange.ts';
import type { RehearsedRequest } from './rehearsed-request.ts';
import { StandInCache } from './stand-in-cache.ts';
import { StandInPool } from './stand-in-upstreams.ts';

/** What is real in a rehearsal; handed in, because the compiler does no input or output. */
export interface RehearsalSurroundings {
	readonly facts: HostFacts;
	/** A resource that needs no network, such as the file reader; undefined where a stand-in serves. */
	lease<K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']): LeaseKinds[K]['lease'] | undefined;
	/** Does work for pages, without a network. */
	readonly pageWork?: PageWork | undefined;
}

/** What became of a request. */
export interface Rehearsed {
	readonly listener: ListenerSpec;
	/** Index in `document.sites`; −1 where no site of the listener takes the request: it is redirected to HTTPS, or answered 200 with nothing. */
	readonly site: number;
	readonly exchange: RehearsedExchange;
	/** Undefined when the connection was dropped (`abort`). */
	readonly response: DeliveredResponse | undefined;
	/** What no error route has answered. */
	readonly failure: unknown;
}

/** Sees a rehearsal as it goes: the graph's tracer, and the exchange and site before the graph runs. */
export interface RehearsalTracer extends BuildTracer {
	begins(x: RehearsedExchange, listener: ListenerSpec, site: number): void;
}

/** Rehearses the requests of one plan. Sites are built when a request first reaches them; pools go on from request to request. */
export class Rehearsal {
	readonly plan: Plan;
	readonly #pools = new Map<string, StandInPool>();
	readonly #cache = new StandInCache();
	readonly #environment: BuildEnvironment;
	readonly #tracer: RehearsalTracer | undefined;
	readonly #tables = new Map<ListenerSpec, SiteTable>();
	readonly #sites = new Map<number, BuiltSite>();

	constructor(plan: Plan, surroundings: RehearsalSurroundings, tracer?: RehearsalTracer) {
		this.plan = plan;
		this.#tracer = tracer;
		const { document } = plan;
		this.#environment = {
			settings: document.settings ?? {},
			upstreams: document.upstreams ?? {},
			routes: document.routes ?? {},
			leases: rehearsalLeases(surroundings, this.#pools, this.#cache),
			facts: surroundings.facts,
			tracer,
		};
	}

	/** Lets every pool begin anew, as after a start, with an empty cache. */
	reset(): void {
		this.#cache.reset();
		for (const pool of this.#pools.values()) pool.reset();
	}

	/** Answers a request, as serving does from the first byte after its head on; undefined where nothing listens. */
	async run(request: RehearsedRequest, upstream?: UpstreamAnswer): Promise<Rehearsed | undefined> {
		const listener = listenerFor(this.plan, request.url);
		if (!listener) return undefined;
		const x = rehearsedExchange(request, listener, upstream);
		let site = -1;
		let failure: unknown;
		try {
			const found = this.#tableOf(listener).find(x.request);
			site = Math.max(found, -1);
			this.#tracer?.begins(x, listener, site);
			const redirect = redirectPort(found);
			if (redirect !== undefined) redirectToHttps(x, redirect);
			else if (site !== -1) await this.#siteAt(site).handle(x);
		} catch (error) {
			failure = error;
			failResponse(x, error);
		}
		const response = x.aborted ? undefined : new DeliveredResponse(x);
		return { listener, site, exchange: x, response, failure };
	}

	#tableOf(listener: ListenerSpec): SiteTable {
		let table = this.#tables.get(listener);
		if (!table) {
			table = new SiteTable(listener.sites);
			this.#tables.set(listener, table);
		}
		return table;
	}

	#siteAt(index: number): BuiltSite {
		let built = this.#sites.get(index);
		if (!built) {
			built = buildSite(this.plan.document.sites![index]!, index, this.#environment);
			this.#sites.set(index, built);
		}
		return built;
	}
}

/** Upstreams and logs are stand-ins always; the rest is real where the surroundings have it. */
function rehearsalLeases(
	surroundings: RehearsalSurroundings,
	pools: Map<string, StandInPool>,
	cache: StandInCache,
): Leases {
	const poolOf = (settings: UpstreamSettings): StandInPool => {
		const key = canonicalJson(settings);
		let pool = pools.get(key);
		if (!pool) {
			pool = new StandInPool(settings);
			pools.set(key, pool);
		}
		return pool;
	};
	return {
		lease<K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']): LeaseKinds[K]['lease'] {
			if (kind === 'upstreams') return poolOf(settings as UpstreamSettings) as unknown as LeaseKinds[K]['lease'];
			if (kind === 'cache') return cache as unknown as LeaseKinds[K]['lease'];
			if (kind === 'access_log') return standInLeases.lease(kind, settings);
			return surroundings.lease(kind, settings) ?? standInLeases.lease(kind, settings);
		},
		pageWork: surroundings.pageWork,
	};
}
