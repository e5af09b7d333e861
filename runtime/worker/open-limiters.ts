/** Opens a thread's side of the tables that `rate_limit` and `limit_concurrent` use. */
import type { LeaseKinds } from '../../compiler/exchange/leases.ts';
import type { ConcurrencyLimiter } from '../../compiler/modules/directives/limit-concurrent/concurrency-limiter.ts';
import type { RateLimiter } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import {
	CONCURRENCY_ROW_WORDS,
	ConcurrencyTable,
	concurrencyTableWords,
} from '../concurrency-limits/concurrency-table.ts';
import { ThreadConcurrencyLimiter } from '../concurrency-limits/thread-concurrency-limiter.ts';
import { LimitTable, limitTableWords } from '../rate-limits/limit-table.ts';
import { ThreadRateLimiter } from '../rate-limits/thread-rate-limiter.ts';
import type { LeaseMemory, LeaseThreadDeps, OpenLease } from './lease-deps.ts';

export function openRateLimiter(
	settings: LeaseKinds['rate_limiter']['settings'],
	handle: string,
	deps: LeaseThreadDeps,
	memory: LeaseMemory,
): OpenLease<RateLimiter> {
	const { zone, maxKeys, isShared } = settings;
	const commonWords = limitTableWords(maxKeys, isShared);
	const buffer = memory.take(handle, { slots: 0, common: commonWords, limits: settings });
	return {
		value: new ThreadRateLimiter(new LimitTable(buffer, maxKeys, isShared), {
			counterOf: event => deps.moduleCounters.rateLimitCounter(zone, event),
			reportUsage: place => deps.askMainThread({ about: 'rate_limit', table: handle, place }),
		}),
		close: () => memory.release(handle),
	};
}

export function openConcurrencyLimiter(
	settings: LeaseKinds['concurrency_limiter']['settings'],
	handle: string,
	{ rowCount: rows, index, moduleCounters }: LeaseThreadDeps,
	memory: LeaseMemory,
): OpenLease<ConcurrencyLimiter> {
	const { zone, maxKeys } = settings;
	const commonWords = concurrencyTableWords(maxKeys);
	const buffer = memory.take(handle, {
		slots: CONCURRENCY_ROW_WORDS,
		common: commonWords,
		concurrency: settings,
	});
	const table = new ConcurrencyTable(buffer, rows, maxKeys, index);
	return {
		value: new ThreadConcurrencyLimiter(table, outcome => moduleCounters.concurrencyLimitCounter(zone, outcome)),
		close: () => {
			table.close();
			memory.release(handle);
		},
	};
}
