/** The handler of `limit_concurrent`: runs requests while their key has places, and queues or refuses the others. */
import type { Step } from '../../../document/document.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileZoneKey, compileZoneScope, type LimitZone } from '../../words/limit-zone.ts';
import type {
	ConcurrencyLimit,
	ConcurrencyLimiter,
	ConcurrencyOutcome,
	ConcurrencyPlace,
} from './concurrency-limiter.ts';

/** A zone in the document; times in milliseconds. */
export interface ConcurrencyZone extends LimitZone {
	/** Maximum number of requests that run at a time. */
	readonly requests: number;
	/** Maximum number of requests that wait for a place; default 0. */
	readonly queue?: number;
	/** Maximum time for which a request waits; default {@link DEFAULT_TIMEOUT}. */
	readonly timeout?: number;
	/** Status of refused requests; default {@link DEFAULT_STATUS}. */
	readonly status?: number;
}

export interface LimitConcurrentStep extends Step {
	readonly handler: 'limit_concurrent';
	readonly zones: readonly ConcurrencyZone[];
}

export const DEFAULT_CONCURRENT_KEYS = 16_384;
/** Milliseconds. */
export const DEFAULT_TIMEOUT = 5000;
export const DEFAULT_STATUS = 503;
/** Variable with the name of the zone that has refused or queued the request. */
export const EXCEEDED_CONCURRENCY = 'http.limit_concurrent.exceeded.name';
/** Variable with the {@link HeldPlaces} of a request. */
const HELD = 'http.limit_concurrent.places';

/** Compiles a `limit_concurrent` step to its handler. */
export function compileLimitConcurrent(step: LimitConcurrentStep, cx: CompileContext, next: Handler): Handler {
	const { step: stepNumber } = cx;
	const zones = step.zones.map((zone, index) => new Zone(zone, cx, `/zones/${index}/when`));
	const refuse = (x: Exchange, zone: Zone, held: HeldPlaces, outcome: 'refused' | 'timed_out'): HttpError => {
		// The response to a refused request may take long to send, and needs no place of another zone meanwhile.
		held.leave();
		zone.exceeded(x, outcome);
		x.markAnswered('limit_concurrent', stepNumber);
		return zone.refusal();
	};
	const enter = (x: Exchange, held: HeldPlaces, from: number): void | Promise<void> => {
		for (let index = from; index < zones.length; index++) {
			const zone = zones[index]!;
			if (!zone.applies(x)) continue;
			const key = zone.keyOf(x);
			if (held.has(zone.name, key)) continue;
			const place = zone.limiter.enter(x, key, zone.limit);
			if (place === 'refused') {
				if (!zone.onlyCounts) throw refuse(x, zone, held, 'refused');
				zone.exceeded(x, 'would_refuse');
			} else if (place instanceof Promise) {
				return place.then(came => {
					if (came === 'timed_out') throw refuse(x, zone, held, came);
					if (came === 'left') {
						zone.exceeded(x, came);
						x.abort();
						return undefined;
					}
					held.add(zone.name, key, came);
					zone.exceeded(x, 'queued');
					return enter(x, held, index + 1);
				});
			} else {
				held.add(zone.name, key, place);
				zone.limiter.count('admitted');
			}
		}
		return next(x);
	};
	return x => enter(x, heldPlaces(x), 0);
}

/** The places that a request has taken. They are free again when the exchange has ended, however it ends. */
class HeldPlaces {
	readonly #places: { readonly zone: string; readonly key: string; readonly place: ConcurrencyPlace }[] = [];

	/** Reports whether the request has a place of this zone and key already: it needs only one. */
	has(zone: string, key: string): boolean {
		for (const held of this.#places) if (held.zone === zone && held.key === key) return true;
		return false;
	}

	add(zone: string, key: string, place: ConcurrencyPlace): void {
		this.#places.push({ zone, key, place });
	}

	leave(): void {
		for (const { place } of this.#places.splice(0)) place.leave();
	}
}

/** Returns the places of a request, also those from earlier steps. */
function heldPlaces(x: Exchange): HeldPlaces {
	const known = x.variable(HELD);
	if (known instanceof HeldPlaces) return known;
	const held = new HeldPlaces();
	x.variables.set(HELD, held);
	x.finishListeners ??= [];
	x.finishListeners.push(() => held.leave());
	return held;
}

/** A zone as this place of the configuration uses it. */
class Zone {
	readonly name: string;
	readonly limiter: ConcurrencyLimiter;
	readonly limit: ConcurrencyLimit;
	readonly onlyCounts: boolean;
	readonly applies: (x: Exchange) => boolean;
	readonly keyOf: (x: Exchange) => string;
	readonly #status: number;

	constructor(zone: ConcurrencyZone, cx: CompileContext, whenField: string) {
		const { name, requests, queue = 0, timeout = DEFAULT_TIMEOUT, status = DEFAULT_STATUS } = zone;
		this.name = name;
		this.limit = { requests, queue, timeout };
		this.onlyCounts = zone.dry_run === true;
		this.limiter = cx.lease('concurrency_limiter', { zone: name, maxKeys: zone.max_keys ?? DEFAULT_CONCURRENT_KEYS });
		this.applies = compileZoneScope(zone, whenField, cx);
		this.keyOf = compileZoneKey(zone, cx);
		this.#status = status;
	}

	/** Records that the request did not find a free place at once. */
	exceeded(x: Exchange, outcome: Exclude<ConcurrencyOutcome, 'admitted'>): void {
		this.limiter.count(outcome);
		if (outcome !== 'would_refuse') x.variables.set(EXCEEDED_CONCURRENCY, this.name);
		x.log ??= {};
		x.log.fields ??= {};
		x.log.fields.limit_concurrent = `${this.name}: ${outcome}`;
	}

	refusal(): HttpError {
		const { queue, timeout } = this.limit;
		// When a place will be free is unknown. Requests are expected to end in the time for which others wait.
		const seconds = queue === 0 ? 1 : Math.max(1, Math.ceil(timeout / 1000));
		const headers: [string, string][] = [['Retry-After', String(seconds)]];
		return new HttpError(this.#status, `Too many requests of the zone ${this.name} run at a time.`, { headers });
	}
}
