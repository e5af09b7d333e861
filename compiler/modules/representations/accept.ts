/** Evaluates `Accept` (RFC 9110 §12.5.1): which of a few media types a client prefers. */

/** Matches a media range with its parameters. */
const MEDIA_RANGE = /^[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*(?:;[^,]*)?$/;
const WEIGHT_PARAMETER = /;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*(?:;|$)/i;

/**
 * Returns the type among `types` to which the client gives the highest weight, by its name or by a range such as `text/*`; the
 * first one if several have the same weight. Returns undefined if the client names none of them. The range that covers all
 * types is ignored, because programs without a preference send it.
 */
export function preferredType<T extends string>(fieldValue: string | undefined, types: readonly T[]): T | undefined {
	if (fieldValue === undefined) return undefined;
	const weights = new Map<string, number>();
	for (const element of fieldValue.split(',')) {
		const range = MEDIA_RANGE.exec(element)?.[1];
		if (range === undefined) continue;
		const weight = WEIGHT_PARAMETER.exec(element)?.[1];
		weights.set(range.toLowerCase(), weight === undefined ? 1 : Number(weight));
	}
	let bestType: T | undefined;
	let bestWeight = 0;
	for (const type of types) {
		const weight = weights.get(type) ?? weights.get(`${type.slice(0, type.indexOf('/'))}/*`) ?? 0;
		if (weight > bestWeight) {
			bestType = type;
			bestWeight = weight;
		}
	}
	return bestType;
}
