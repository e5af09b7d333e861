/** Opens a thread's side of a response cache. */
import type { LeaseKinds } from '../../compiler/exchange/leases.ts';
import type { CacheEvent } from '../../compiler/exchange/response-cache.ts';
import { cacheLayout } from '../cache/memory-layout.ts';
import { type ClusterPort, type DiskPort, type LowerTiersPort, SharedCache } from '../cache/shared-cache.ts';
import { countCacheEvent } from '../metrics/cache-counters.ts';
import type { LeaseMemory, LeaseThreadDeps, OpenLease } from './lease-deps.ts';

export function openCache(
	settings: LeaseKinds['cache']['settings'],
	handle: string,
	deps: LeaseThreadDeps,
	memory: LeaseMemory,
): OpenLease<SharedCache> {
	const { rowCount: rows, index: thread, counters } = deps;
	const { ceiling } = settings;
	const diskSize = settings.disk?.size;
	const commonWords = cacheLayout(ceiling, rows, diskSize).words;
	const buffer = memory.take(handle, { slots: 0, common: commonWords, cache: settings });
	const countEvent = (event: CacheEvent): void => countCacheEvent(counters, event);
	return {
		value: new SharedCache({
			...{ buffer, ceiling, rows, thread, count: countEvent, diskSize },
			...((settings.disk || settings.shared) && { lowerTiers: lowerTiersPort(deps, handle) }),
			disk: settings.disk && diskPort(deps, handle),
			cluster: settings.shared && clusterPort(deps, handle),
		}),
		close: () => memory.release(handle),
	};
}

/** Returns the thread's interface to the disk and cluster tiers of a response cache, which the main thread owns. */
function lowerTiersPort(thread: LeaseThreadDeps, store: string): LowerTiersPort {
	return {
		reportRemoved: key => thread.sendMessage({ type: 'cache', store, event: { event: 'removed', key } }),
		invalidateUrl: async (host, path, query) => {
			await thread.askMainThread({ about: 'cache', store, diskRequest: { request: 'invalidate', host, path, query } });
		},
	};
}

/** Returns the thread's interface to the cluster tier of a response cache. */
function clusterPort(thread: LeaseThreadDeps, store: string): ClusterPort {
	return {
		consult: question =>
			thread.askMainThread({ about: 'cluster_cache', store, consultation: { ...question, thread: thread.index } }),
		endFetch: result => thread.sendMessage({ type: 'cluster_fetch_ended', result }),
	};
}

/** Returns the thread's interface to the disk tier of a response cache. */
function diskPort(thread: LeaseThreadDeps, store: string): DiskPort {
	return {
		reportStored: (key, entry, serial) =>
			thread.sendMessage({ type: 'cache', store, event: { event: 'stored', key, entry, serial } }),
		recall: async key => {
			await thread.askMainThread({ about: 'cache', store, diskRequest: { request: 'recall', key } });
		},
	};
}
