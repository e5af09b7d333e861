/** Placeholders that `map` makes: their names in a document, and their values in an exchange. */
import type { Site, Step } from '../document/document.ts';
import type { Exchange } from '../exchange/exchange.ts';

/** Handler that makes placeholders. */
export const LOOKUP_HANDLER = 'lookup';

/** Before the name of such a placeholder among the variables; the value is a {@link MappedValue}. */
export const MAPPED = 'svc.map.';

/** Finds the value when it is asked for. */
export type MappedValue = (x: Exchange) => unknown;

/** The value of a placeholder that `map` makes; undefined when no `map` has run that makes it. */
export function mappedValue(key: string): (x: Exchange) => unknown {
	return x => (x.variable(key) as MappedValue | undefined)?.(x);
}

/** The names that the steps of a site and the named routes make. Looked for when first asked. */
export function mappedNames(
	site: Site,
	routes: { readonly [name: string]: readonly Step[] },
): () => ReadonlySet<string> {
	let names: Set<string> | undefined;
	return () => {
		if (!names) {
			names = new Set();
			gather(site.pipeline, names);
			gather(site.errors, names);
			gather(routes, names);
		}
		return names;
	};
}

function gather(value: unknown, names: Set<string>): void {
	if (typeof value !== 'object' || value === null) return;
	if (Array.isArray(value)) {
		for (const item of value) gather(item, names);
		return;
	}
	const { handler, destinations } = value as { handler?: unknown; destinations?: unknown };
	if (handler === LOOKUP_HANDLER && Array.isArray(destinations)) for (const name of destinations) names.add(name);
	for (const key in value) gather((value as { [key: string]: unknown })[key], names);
}
