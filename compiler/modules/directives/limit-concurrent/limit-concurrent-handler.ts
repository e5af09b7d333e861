/**
 * The handler of `limit_concurrent`: runs a request if fewer requests with its key than allowed are running, and otherwise queues
 * or refuses it.
 */
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

/** A zone of `limit_concurrent` in the document. Times are in milliseconds. */
export interface ConcurrencyZone extends LimitZone {
	/** Maximum number of requests that run at a time. */
	readonly requests: number;
	/** Maximum number of requests that wait until a running request ends; default 0. */
	readonly queue?: number;
	/** Maximum milliseconds for which a request waits; default {@link DEFAULT_QUEUE_TIMEOUT_MS}. */
	readonly timeout?: number;
	/** Status of refused requests; default {@link DEFAULT_REFUSAL_STATUS}. */
	readonly status?: number;
}

export interface LimitConcurrentStep extends Step {
	readonly handler: 'limit_concurrent';
	readonly zones: readonly ConcurrencyZone[];
}

export const DEFAULT_CONCURRENT_KEYS = 16_384;
/** Default maximum time, in milliseconds, for which a request waits. */
export const DEFAULT_QUEUE_TIMEOUT_MS = 5000;
export const DEFAULT_REFUSAL_STATUS = 503;
/** Variable that holds the name of the zone that has refused or queued the request. */
export const EXCEEDED_CONCURRENCY_VARIABLE = 'http.limit_concurrent.exceeded.name';
/** Variable that holds the {@link HeldPlaces} of a request. */
const PLACES_VARIABLE = 'http.limit_concurrent.places';

export function compileLimitConcurrent(step: LimitConcurrentStep, cx: CompileContext, next: Handler): Handler {
	const { stepNumber } = cx;
	const zones = step.zones.map((zone, index) => new CompiledZone(zone, cx, `/zones/${index}/when`));
	const createRefusalError = (
		x: Exchange,
		zone: CompiledZone,
		places: HeldPlaces,
		outcome: 'refused' | 'timed_out',
	): HttpError => {
		// Places in other zones are freed before the response is sent, because sending it may take a long time.
		places.leaveAll();
		zone.recordExceeded(x, outcome);
		x.markAnswered('limit_concurrent', stepNumber);
		return zone.createRefusal();
	};
	const enterZones = (x: Exchange, places: HeldPlaces, firstIndex: number): void | Promise<void> => {
		for (let index = firstIndex; index < zones.length; index++) {
			const zone = zones[index]!;
			if (!zone.appliesTo(x)) continue;
			const key = zone.keyOf(x);
			if (places.has(zone.name, key)) continue;
			const place = zone.limiter.enter(x, key, zone.limit);
			if (place === 'refused') {
				if (!zone.isDryRun) throw createRefusalError(x, zone, places, 'refused');
				zone.recordExceeded(x, 'would_refuse');
			} else if (place instanceof Promise) {
				return place.then(waitResult => {
					if (waitResult === 'timed_out') throw createRefusalError(x, zone, places, waitResult);
					if (waitResult === 'left') {
						zone.recordExceeded(x, waitResult);
						x.abort();
						return undefined;
					}
					places.add(zone.name, key, waitResult);
					zone.recordExceeded(x, 'queued');
					return enterZones(x, places, index + 1);
				});
			} else {
				places.add(zone.name, key, place);
				zone.limiter.countOutcome('admitted');
			}
		}
		return next(x);
	};
	return x => enterZones(x, getHeldPlaces(x), 0);
}

/** The places (see {@link ConcurrencyPlace}) that a request has taken in all zones. They are freed when the exchange ends. */
class HeldPlaces {
	readonly #places: { readonly zone: string; readonly key: string; readonly place: ConcurrencyPlace }[] = [];

	/** Reports whether the request already has a place for this zone and key, and therefore does not need another one. */
	has(zone: string, key: string): boolean {
		for (const heldPlace of this.#places) if (heldPlace.zone === zone && heldPlace.key === key) return true;
		return false;
	}

	add(zone: string, key: string, place: ConcurrencyPlace): void {
		this.#places.push({ zone, key, place });
	}

	leaveAll(): void {
		for (const { place } of this.#places.splice(0)) place.leave();
	}
}

/** Returns the places of a request, including those taken by earlier steps. */
function getHeldPlaces(x: Exchange): HeldPlaces {
	const existingPlaces = x.variable(PLACES_VARIABLE);
	if (existingPlaces instanceof HeldPlaces) return existingPlaces;
	const places = new HeldPlaces();
	x.variables.set(PLACES_VARIABLE, places);
	x.finishListeners ??= [];
	x.finishListeners.push(() => places.leaveAll());
	return places;
}

/** A compiled zone of one step. */
class CompiledZone {
	readonly name: string;
	readonly limiter: ConcurrencyLimiter;
	readonly limit: ConcurrencyLimit;
	readonly isDryRun: boolean;
	readonly appliesTo: (x: Exchange) => boolean;
	readonly keyOf: (x: Exchange) => string;
	readonly #status: number;

	constructor(zone: ConcurrencyZone, cx: CompileContext, whenPointer: string) {
		const { name, requests, queue = 0, timeout = DEFAULT_QUEUE_TIMEOUT_MS, status = DEFAULT_REFUSAL_STATUS } = zone;
		this.name = name;
		this.limit = { maxRequests: requests, maxQueued: queue, timeoutMs: timeout };
		this.isDryRun = zone.dry_run === true;
		this.limiter = cx.lease('concurrency_limiter', { zone: name, maxKeys: zone.max_keys ?? DEFAULT_CONCURRENT_KEYS });
		this.appliesTo = compileZoneScope(zone, whenPointer, cx);
		this.keyOf = compileZoneKey(zone, cx);
		this.#status = status;
	}

	/** Records in metrics, variables and the access log that the key had reached its limit when the request arrived. */
	recordExceeded(x: Exchange, outcome: Exclude<ConcurrencyOutcome, 'admitted'>): void {
		this.limiter.countOutcome(outcome);
		if (outcome !== 'would_refuse') x.variables.set(EXCEEDED_CONCURRENCY_VARIABLE, this.name);
		x.log ??= {};
		x.log.fields ??= {};
		x.log.fields.limit_concurrent = `${this.name}: ${outcome}`;
	}

	createRefusal(): HttpError {
		const { maxQueued: queue, timeoutMs: timeout } = this.limit;
		// It is unknown when a running request will end. The maximum waiting time serves as an estimate.
		const retryAfterSeconds = queue === 0 ? 1 : Math.max(1, Math.ceil(timeout / 1000));
		const headers: [string, string][] = [['Retry-After', String(retryAfterSeconds)]];
		return new HttpError(this.#status, `Too many requests of the zone ${this.name} run at a time.`, { headers });
	}
}
