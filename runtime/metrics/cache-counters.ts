/** Slots of the counter row (see counter-row.ts) in which threads count cache events. */
import { CACHE_EVENTS, type CacheEvent } from '../../compiler/exchange/response-cache.ts';
import type { ThreadTotals } from './thread-totals.ts';

/** Slot of the first event. The slots of the other events follow, in the order of {@link CACHE_EVENTS}. */
const FIRST_CACHE_SLOT = 56;

const SLOTS_BY_EVENT = new Map<CacheEvent, number>(
	CACHE_EVENTS.map((event, index) => [event, FIRST_CACHE_SLOT + index]),
);

export function countCacheEvent(row: Float64Array, event: CacheEvent): void {
	row[SLOTS_BY_EVENT.get(event)!]!++;
}

/** Returns how often each event has happened, summed over all threads. */
export function cacheEvents(totals: ThreadTotals): { readonly [event in CacheEvent]: number } {
	const counts = CACHE_EVENTS.map(event => [event, totals.slotTotal(cacheEventSlot(event))] as const);
	return Object.fromEntries(counts) as { [event in CacheEvent]: number };
}

/** Returns the slot in which an event is counted. */
export function cacheEventSlot(event: CacheEvent): number {
	return SLOTS_BY_EVENT.get(event)!;
}
