/** Lists the upstream pools that a document defines outside of its sites, including unused ones. */
import type { Document } from './document.ts';

/** An upstream pool outside of any site: a named pool, or the pool of a step in a named route. */
export interface SharedPool {
	/** Name of the pool, if it has one. */
	readonly pool?: string;
	/** The addresses of the upstreams, as written. */
	readonly to: readonly string[];
}

/** Returns the pools in `upstreams` and those in `routes`. */
export function sharedPools({ upstreams = {}, routes = {} }: Document): SharedPool[] {
	const pools: SharedPool[] = Object.entries(upstreams).flatMap(([pool, settings]) =>
		isPool(settings) ? [{ pool, to: settings.to }] : [],
	);
	const collectPools = (value: unknown): void => {
		if (typeof value !== 'object' || value === null) return;
		for (const [key, inner] of Object.entries(value)) {
			// A step with a pool of its own has it under the key `upstreams`.
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
