/** Evaluates `Accept` (RFC 9110 §12.5.1): which of a few media types a client prefers. */

/** A media range with its weight. Other parameters are ignored. */
const RANGE = /^[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*(?:;[^,]*)?$/;
const WEIGHT = /;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*(?:;|$)/i;

/**
 * Returns the first of `types` with the highest weight among those that the client names, either itself or as `text/*`;
 * undefined if it names none. The range for all types does not count as naming one, because programs send it for want of a preference.
 */
export function namedType<T extends string>(field: string | undefined, types: readonly T[]): T | undefined {
	if (field === undefined) return undefined;
	const weights = new Map<string, number>();
	for (const element of field.split(',')) {
		const range = RANGE.exec(element)?.[1];
		if (range === undefined) continue;
		const weight = WEIGHT.exec(element)?.[1];
		weights.set(range.toLowerCase(), weight === undefined ? 1 : Number(weight));
	}
	let best: T | undefined;
	let most = 0;
	for (const type of types) {
		const weight = weights.get(type) ?? weights.get(`${type.slice(0, type.indexOf('/'))}/*`) ?? 0;
		if (weight > most) {
			best = type;
			most = weight;
		}
	}
	return best;
}
