/** Lists the upstream pools that a document defines outside of its sites, including pools that nothing uses. */
import type { Document } from './document.ts';

/** An upstream pool outside of the sites: a named pool, or the pool of a step in a named route. */
export interface SharedPool {
	/** Name of the pool; undefined for the pool of a step. */
	readonly pool?: string;
	/** The addresses of the upstreams, as written. */
	readonly to: readonly string[];
}

/** Returns the pools in `upstreams` and the pools of the steps in `routes`. */
export function sharedPools({ upstreams = {}, routes = {} }: Document): SharedPool[] {
	const pools: SharedPool[] = Object.entries(upstreams).flatMap(([pool, settings]) =>
		isPool(settings) ? [{ pool, to: settings.to }] : [],
	);
	const collectPools = (value: unknown): void => {
		if (typeof value !== 'object' || value === null) return;
		for (const [key, inner] of Object.entries(value)) {
			// The pool of a step is under the key `upstreams`.
			if (key === 'upstreams' && isPool(inner)) pools.push({ to: inner.to });
			else collectPools(inner);
		}
	};
	collectPools(routes);
	return pools;
}

function isPool(value: unknown): value is { readonly to: readonly string[] } {
	return typeof value === 'object' && value !== null && Array.isArray((value as { to?: unknown }).to);
}
