/** The handler of `rate_limit`: counts requests by zone and key, and admits, delays or refuses them. */
import type { Step } from '../../../document/document.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileZoneKey, compileZoneScope, type LimitZone } from '../../words/limit-zone.ts';
import type { Rate, RateLimiter } from './rate-limiter.ts';

/** A zone in the document; times in milliseconds. */
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
}

/** Which responses have the `RateLimit` fields. */
export type AnnouncedResponses = 'refused' | 'always' | 'never';

export interface RateLimitStep extends Step {
	readonly handler: 'rate_limit';
	readonly zones: readonly RateLimitZone[];
}

export const DEFAULT_MAX_KEYS = 65_536;
/** Variable that holds the name of the zone that has refused or delayed the request. */
export const EXCEEDED_ZONE_VARIABLE = 'http.rate_limit.exceeded.name';

/** The cost that a zone has counted for the current request. */
interface ZoneCount {
	readonly zone: CompiledZone;
	readonly key: string;
	readonly cost: number;
}

/** Compiles a `rate_limit` step to its handler. */
export function compileRateLimit(step: RateLimitStep, cx: CompileContext, next: Handler): Handler {
	const { step: stepNumber } = cx;
	const zones = step.zones.map((zone, index) => new CompiledZone(zone, cx, `/zones/${index}/when`));
	// The counts are needed later: they are refunded if a later zone refuses the request, and their keys are charged for the status of
	// the response.
	const needsCounts = zones.length > 1 || zones.some(zone => zone.statusCosts);
	return x => {
		let delayMs = 0;
		let delayingZone: CompiledZone | undefined;
		let zoneCounts: ZoneCount[] | undefined;
		for (const zone of zones) {
			if (!zone.appliesTo(x)) continue;
			const key = zone.keyOf(x);
			const cost = zone.costOf(x);
			const excessMs = zone.limiter.take(x, key, zone.rate, cost);
			if (excessMs > zone.rate.maxDelayMs && !zone.isDryRun) {
				if (zoneCounts) for (const { zone, key, cost } of zoneCounts) zone.limiter.charge(x, key, zone.rate, -cost);
				zone.recordExceeded(x, 'refused');
				x.markAnswered('rate_limit', stepNumber);
				throw zone.createRefusal(excessMs);
			}
			if (zone.announcedResponses === 'always') zone.announce(x, excessMs);
			if (excessMs <= 0) zone.limiter.countOutcome('admitted');
			else if (zone.isDryRun) zone.recordExceeded(x, 'would_refuse');
			else if (excessMs > delayMs) {
				delayMs = excessMs;
				delayingZone = zone;
			}
			if (needsCounts) {
				zoneCounts ??= [];
				zoneCounts.push({ zone, key, cost });
			}
		}
		if (zoneCounts) for (const { zone, key } of zoneCounts) zone.chargeForStatus(x, key);
		if (!delayingZone) return next(x);
		delayingZone.recordExceeded(x, 'delayed');
		return delayingZone.limiter.delay(x, delayMs).then(isConnected => (isConnected ? next(x) : x.abort()));
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
	readonly #policy: string;

	constructor(zone: RateLimitZone, cx: CompileContext, whenField: string) {
		const { name, requests, window, burst = requests } = zone;
		const intervalMs = window / requests;
		this.#name = name;
		this.rate = {
			intervalMs: intervalMs,
			capacityMs: burst * intervalMs,
			maxDelayMs: zone.dry_run ? 0 : (zone.delay ?? 0),
		};
		this.isDryRun = zone.dry_run === true;
		this.announcedResponses = zone.announce ?? 'refused';
		this.limiter = cx.lease('rate_limiter', { zone: name, maxKeys: zone.max_keys ?? DEFAULT_MAX_KEYS });
		this.appliesTo = compileZoneScope(zone, whenField, cx);
		this.keyOf = compileZoneKey(zone, cx);
		this.costOf = compileCost(zone.cost ?? 1, cx);
		this.statusCosts = zone.status_cost && expandStatusCosts(zone.status_cost);
		this.#policy = `"${name}";q=${requests};w=${Math.ceil(window / 1000)}`;
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
	announce(x: Exchange, excessMs: number): void {
		x.response.headers.add('RateLimit-Policy', this.#policy);
		x.response.headers.add('RateLimit', this.#formatState(excessMs));
	}

	createRefusal(excessMs: number): HttpError {
		const headers: [string, string][] = [['Retry-After', String(Math.max(1, Math.ceil(excessMs / 1000)))]];
		if (this.announcedResponses !== 'never')
			headers.push(['RateLimit-Policy', this.#policy], ['RateLimit', this.#formatState(excessMs)]);
		return new HttpError(429, `The rate limit of the zone ${this.#name} is exceeded.`, { headers });
	}

	/**
	 * Returns the value of `RateLimit`: the number of remaining requests (`r`), and the seconds (`t`) until one more request is
	 * admitted or, if requests remain, until the full burst is available.
	 */
	#formatState(excessMs: number): string {
		const remaining = excessMs > 0 ? 0 : Math.floor(-excessMs / this.rate.intervalMs);
		const resetMs = excessMs > 0 ? excessMs : this.rate.capacityMs + excessMs;
		return `"${this.#name}";r=${remaining};t=${Math.max(0, Math.ceil(resetMs / 1000))}`;
	}
}

function compileCost(cost: number | string, cx: CompileContext): (x: Exchange) => number {
	if (typeof cost === 'number') return () => cost;
	const template = cx.template(cost, 'empty');
	return x => {
		const text = template.render(x);
		return /^\d{1,9}$/.test(text) ? Number(text) : 1;
	};
}

/** Returns the costs by status. The cost of a status has precedence over that of its class. */
function expandStatusCosts(costs: { readonly [status: string]: number }): ReadonlyMap<number, number> {
	const costByStatus = new Map<number, number>();
	for (let status = 200; status <= 599; status++) {
		const cost = costs[status] ?? costs[`${Math.floor(status / 100)}xx`];
		if (cost !== undefined) costByStatus.set(status, cost);
	}
	return costByStatus;
}
