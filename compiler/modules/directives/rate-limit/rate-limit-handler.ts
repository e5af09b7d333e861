/** The handler of `rate_limit`: counts requests by zone and key, and admits, delays or refuses them. */
import type { Step } from '../../../document/document.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { BuildError, type CompileContext } from '../../contract/compile-context.ts';
import { compileZoneKey, compileZoneScope, type LimitZone } from '../../words/limit-zone.ts';
import {
	EXCESS_ROUNDING_MS,
	type Rate,
	type RateLimiter,
	UNAVAILABLE,
	UNCOUNTED,
	UNDECIDED,
	type UnavailablePolicy,
} from './rate-limiter.ts';

/** A zone of `rate_limit` in the document. Times are in milliseconds. */
export interface RateLimitZone extends LimitZone {
	readonly requests: number;
	readonly window: number;
	/** Number of requests that may arrive at the same time; default `requests`. */
	readonly burst?: number;
	/** Cost of a request: a number, or a template that evaluates to a number; default 1. */
	readonly cost?: number | string;
	/** Additional costs by the status (`401`) or class (`5xx`) of the response. */
	readonly status_cost?: { readonly [status: string]: number };
	/** Maximum milliseconds for which a request is delayed instead of being refused; default 0. */
	readonly delay?: number;
	/** Which responses have the `RateLimit` fields; default `refused`. */
	readonly announce?: AnnouncedResponses;
	/** Present if the machines of the cluster share the counts. */
	readonly shared?: ZoneSharing;
}

/** How the machines of a cluster share the counts of a zone. */
export interface ZoneSharing {
	/** Number of requests of a key that a machine admits before Redis has counted them; see {@link defaultBatchSize}. */
	readonly batch?: number;
	/** Maximum milliseconds for which a request waits for Redis; default {@link DEFAULT_REDIS_WAIT_MS}. */
	readonly wait?: number;
	/** The policy for requests while Redis is unavailable or too slow; default `local`. */
	readonly on_error?: UnavailablePolicy;
}

/** Which responses have the `RateLimit` fields. */
export type AnnouncedResponses = 'refused' | 'always' | 'never';

export interface RateLimitStep extends Step {
	readonly handler: 'rate_limit';
	readonly zones: readonly RateLimitZone[];
}

export const DEFAULT_MAX_KEYS = 65_536;
export const DEFAULT_REDIS_WAIT_MS = 50;
/** Variable that holds the name of the zone that has refused or delayed the request. */
export const EXCEEDED_ZONE_VARIABLE = 'http.rate_limit.exceeded.name';

/** Seconds after which a client may try again if Redis is unavailable. */
const UNAVAILABLE_RETRY_SECONDS = '1';

/**
 * Returns the default of `batch`: a tenth of the limit. Each machine can then exceed the limit by at most a tenth, and a key that
 * uses its whole limit on one machine is reported to Redis about twenty times in a window.
 */
export function defaultBatchSize(requests: number, burst: number): number {
	return Math.ceil(Math.min(requests, burst) / 10);
}

/** The cost that a zone has counted for the current request; 0 if it has let the request pass without counting it. */
interface ZoneCount {
	readonly zone: CompiledZone;
	readonly key: string;
	readonly cost: number;
}

/** What the zones have decided about a request so far. */
interface Verdict {
	delayMs: number;
	delayingZone: CompiledZone | undefined;
	readonly counts: ZoneCount[];
}

export function compileRateLimit(step: RateLimitStep, cx: CompileContext, next: Handler): Handler {
	const { stepNumber } = cx;
	const zones = step.zones.map((zone, index) => new CompiledZone(zone, cx, index));
	// Each zone's count is recorded if it may be needed later: for a refund if another zone refuses the request, or to charge the
	// key for the status of the response.
	const needsCounts = zones.length > 1 || zones.some(zone => zone.statusCosts);
	const refuse = (
		x: Exchange,
		zone: CompiledZone,
		excessMs: number,
		counts: readonly ZoneCount[] | undefined,
	): never => {
		if (counts) for (const { zone, key, cost } of counts) if (cost > 0) zone.limiter.charge(x, key, zone.rate, -cost);
		zone.recordExceeded(x, 'refused');
		x.markAnswered('rate_limit', stepNumber);
		throw zone.createRefusal(excessMs);
	};
	const runOrDelay = (
		x: Exchange,
		delayMs: number,
		delayingZone: CompiledZone | undefined,
		counts: readonly ZoneCount[] | undefined,
	): void | Promise<void> => {
		if (counts) for (const { zone, key } of counts) zone.chargeForStatus(x, key);
		if (!delayingZone) return next(x);
		delayingZone.recordExceeded(x, 'delayed');
		return delayingZone.limiter.delay(x, delayMs).then(isConnected => (isConnected ? next(x) : x.abort()));
	};
	/** Continues at zone `firstIndex`, which cannot decide without an answer from Redis, and then with the zones after it. */
	const continueAfterReport = async (x: Exchange, firstIndex: number, verdict: Verdict): Promise<void> => {
		const { counts } = verdict;
		for (let index = firstIndex; index < zones.length; index++) {
			const zone = zones[index]!;
			if (index > firstIndex && !zone.appliesTo(x)) continue;
			const key = zone.keyOf(x);
			const cost = zone.costOf(x);
			let excessMs = index === firstIndex ? UNDECIDED : zone.limiter.take(x, key, zone.rate, cost);
			if (excessMs === UNDECIDED) excessMs = await zone.limiter.takeAfterReport(x, key, zone.rate, cost);
			if (excessMs > zone.rate.maxDelayMs && !zone.isDryRun) refuse(x, zone, excessMs, counts);
			if (zone.admit(x, excessMs, cost) && excessMs > verdict.delayMs) {
				verdict.delayMs = excessMs;
				verdict.delayingZone = zone;
			}
			if (needsCounts) counts.push({ zone, key, cost: zone.isCounted(excessMs) ? cost : 0 });
		}
		await runOrDelay(x, verdict.delayMs, verdict.delayingZone, counts);
	};
	return x => {
		let delayMs = 0;
		let delayingZone: CompiledZone | undefined;
		let zoneCounts: ZoneCount[] | undefined;
		for (let index = 0; index < zones.length; index++) {
			const zone = zones[index]!;
			if (!zone.appliesTo(x)) continue;
			const key = zone.keyOf(x);
			const cost = zone.costOf(x);
			const excessMs = zone.limiter.take(x, key, zone.rate, cost);
			if (excessMs > zone.rate.maxDelayMs && !zone.isDryRun) {
				if (excessMs !== UNDECIDED) refuse(x, zone, excessMs, zoneCounts);
				return continueAfterReport(x, index, { delayMs, delayingZone, counts: zoneCounts ?? [] });
			}
			if (zone.admit(x, excessMs, cost) && excessMs > delayMs) {
				delayMs = excessMs;
				delayingZone = zone;
			}
			if (needsCounts) {
				zoneCounts ??= [];
				zoneCounts.push({ zone, key, cost: zone.isCounted(excessMs) ? cost : 0 });
			}
		}
		return runOrDelay(x, delayMs, delayingZone, zoneCounts);
	};
}

/** A compiled zone of one step. */
class CompiledZone {
	readonly limiter: RateLimiter;
	readonly rate: Rate;
	readonly isDryRun: boolean;
	readonly announcedResponses: AnnouncedResponses;
	readonly appliesTo: (x: Exchange) => boolean;
	readonly keyOf: (x: Exchange) => string;
	readonly costOf: (x: Exchange) => number;
	readonly statusCosts: ReadonlyMap<number, number> | undefined;
	readonly #name: string;
	readonly #policyField: string;

	constructor(zone: RateLimitZone, cx: CompileContext, index: number) {
		const { name, requests, window, burst = requests, shared } = zone;
		const intervalMs = window / requests;
		if (shared) requireCluster(cx, index);
		this.#name = name;
		this.rate = {
			intervalMs,
			capacityMs: burst * intervalMs,
			maxDelayMs: zone.dry_run ? 0 : (zone.delay ?? 0),
			...(shared && {
				shared: {
					batchMs: (shared.batch ?? defaultBatchSize(requests, burst)) * intervalMs,
					// A dry run must not delay requests, either.
					waitMs: zone.dry_run ? 0 : (shared.wait ?? DEFAULT_REDIS_WAIT_MS),
					onError: zone.dry_run ? 'local' : (shared.on_error ?? 'local'),
				},
			}),
		};
		this.isDryRun = zone.dry_run === true;
		this.announcedResponses = zone.announce ?? 'refused';
		const maxKeys = zone.max_keys ?? DEFAULT_MAX_KEYS;
		this.limiter = cx.lease('rate_limiter', { zone: name, maxKeys, ...(shared && { isShared: true }) });
		this.appliesTo = compileZoneScope(zone, `/zones/${index}/when`, cx);
		this.keyOf = compileZoneKey(zone, cx);
		this.costOf = compileCost(zone.cost ?? 1, cx);
		this.statusCosts = zone.status_cost && expandStatusCosts(zone.status_cost);
		this.#policyField = `"${name}";q=${requests};w=${Math.ceil(window / 1000)}`;
	}

	/**
	 * Reports whether the limiter has counted a request. A dry run, and a zone that admits all requests while Redis is unavailable,
	 * also admit requests that were not counted.
	 */
	isCounted(excessMs: number): boolean {
		return excessMs <= this.rate.maxDelayMs && excessMs !== UNCOUNTED;
	}

	/** Counts an admitted request for metrics, and announces the limit if configured. Returns true if it must be delayed. */
	admit(x: Exchange, excessMs: number, cost: number): boolean {
		if (this.announcedResponses === 'always') this.announceLimit(x, excessMs, cost);
		if (excessMs <= 0) {
			this.limiter.countOutcome('admitted');
			return false;
		}
		if (this.isDryRun) this.recordExceeded(x, 'would_refuse');
		return !this.isDryRun;
	}

	/** Charges the key for the status of the response, once it is known. */
	chargeForStatus(x: Exchange, key: string): void {
		const { statusCosts } = this;
		if (!statusCosts) return;
		x.finishListeners ??= [];
		x.finishListeners.push(() => {
			const cost = statusCosts.get(x.response.status);
			if (cost !== undefined) this.limiter.charge(x, key, this.rate, cost);
		});
	}

	/** Records in metrics, variables and the access log that the request exceeds the limit. */
	recordExceeded(x: Exchange, outcome: 'delayed' | 'refused' | 'would_refuse'): void {
		this.limiter.countOutcome(outcome);
		if (outcome !== 'would_refuse') x.variables.set(EXCEEDED_ZONE_VARIABLE, this.#name);
		x.log ??= {};
		x.log.fields ??= {};
		x.log.fields.rate_limit = `${this.#name}: ${outcome}`;
	}

	/** Adds the fields of draft-ietf-httpapi-ratelimit-headers to the response. */
	announceLimit(x: Exchange, takenExcessMs: number, cost: number): void {
		const excessMs = takenExcessMs === UNCOUNTED ? 0 : takenExcessMs;
		x.response.headers.add('RateLimit-Policy', this.#policyField);
		// The limiter decides about a request of cost 0 as if its cost were 1. Because such a request uses nothing, the result is
		// reduced by one interval.
		const isFree = cost === 0 && excessMs <= 0;
		x.response.headers.add('RateLimit', this.#formatState(isFree ? excessMs - this.rate.intervalMs : excessMs));
	}

	createRefusal(excessMs: number): HttpError {
		if (excessMs === UNAVAILABLE) {
			const message = `The rate limit of the zone ${this.#name} cannot be checked.`;
			return new HttpError(503, message, { headers: [['Retry-After', UNAVAILABLE_RETRY_SECONDS]] });
		}
		const headers: [string, string][] = [['Retry-After', String(Math.max(1, Math.ceil(excessMs / 1000)))]];
		if (this.announcedResponses !== 'never')
			headers.push(['RateLimit-Policy', this.#policyField], ['RateLimit', this.#formatState(excessMs)]);
		return new HttpError(429, `The rate limit of the zone ${this.#name} is exceeded.`, { headers });
	}

	/**
	 * Returns the value of `RateLimit`: the number of remaining requests (`r`), and the seconds (`t`) until one more request is
	 * admitted or, if requests remain, until the full burst is available.
	 */
	#formatState(excessMs: number): string {
		const { intervalMs, capacityMs } = this.rate;
		// Without this tolerance, the rounding of `excessMs` could make the number of remaining requests too low by one.
		const roundingMs = Math.min(EXCESS_ROUNDING_MS, intervalMs / 2);
		const remainingRequests = excessMs > 0 ? 0 : Math.floor((roundingMs - excessMs) / intervalMs);
		const resetMs = excessMs > 0 ? excessMs : capacityMs + excessMs - roundingMs;
		return `"${this.#name}";r=${remainingRequests};t=${Math.max(0, Math.ceil(resetMs / 1000))}`;
	}
}

/**
 * Rejects a shared zone if the document has no option `cluster`, or if that option has no secret `key`, which is needed to hide
 * the keys of the zone (such as addresses of clients) in Redis.
 */
function requireCluster({ settings, pointer }: CompileContext, index: number): void {
	if (settings.cluster?.keys) return;
	const [code, message, hint] = settings.cluster
		? [
				'cluster/no-key',
				'`shared` needs the `key` of `cluster`, which hides the addresses of clients in Redis.',
				'Write `key {$CLUSTER_KEY}` in `cluster`.',
			]
		: [
				'cluster/missing',
				'`shared` needs the option `cluster`, which names the Redis server.',
				'Write `cluster redis://host:6379 { key {$CLUSTER_KEY} }` in the global options, or remove `shared`.',
			];
	throw new BuildError(code, `${pointer}/zones/${index}`, message, hint);
}

function compileCost(cost: number | string, cx: CompileContext): (x: Exchange) => number {
	if (typeof cost === 'number') return () => cost;
	const template = cx.template(cost, 'empty');
	return x => {
		const text = template.render(x);
		return /^\d{1,9}$/.test(text) ? Number(text) : 1;
	};
}

/** Returns the costs by status. The cost of a single status takes precedence over the cost of its class. */
function expandStatusCosts(costs: { readonly [status: string]: number }): ReadonlyMap<number, number> {
	const costByStatus = new Map<number, number>();
	for (let status = 200; status <= 599; status++) {
		const cost = costs[status] ?? costs[`${Math.floor(status / 100)}xx`];
		if (cost !== undefined) costByStatus.set(status, cost);
	}
	return costByStatus;
}
