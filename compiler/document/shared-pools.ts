/** Lists the upstream pools that a document defines outside its sites, whether or not a site uses them. */
import type { Document } from './document.ts';

/** A named pool, or the pool of a step in a named route. */
export interface SharedPool {
	/** Name of the pool, if it has one. */
	readonly pool?: string;
	/** Addresses, as written. */
	readonly to: readonly string[];
}

/** Returns the pools in `upstreams` and those in `routes`. */
export function sharedPools({ upstreams = {}, routes = {} }: Document): SharedPool[] {
	const pools: SharedPool[] = Object.entries(upstreams).flatMap(([pool, settings]) =>
		isPool(settings) ? [{ pool, to: settings.to }] : [],
	);
	const gather = (value: unknown): void => {
		if (typeof value !== 'object' || value === null) return;
		for (const [key, inner] of Object.entries(value)) {
			// A step that has its own pool keeps it under this key.
			if (key === 'upstreams' && isPool(inner)) pools.push({ to: inner.to });
			else gather(inner);
		}
	};
	gather(routes);
	return pools;
}

function isPool(value: unknown): value is { readonly to: readonly string[] } {
	return typeof value === 'object' && value !== null && Array.isArray((value as { to?: unknown }).to);
}
