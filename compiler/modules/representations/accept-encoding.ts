/** Evaluates `Accept-Encoding` (RFC 9110 §12.5.3): which content coding a client prefers. */

/**
 * Returns the first of `codings` with the highest weight that the client accepts; undefined if it accepts none or prefers
 * identity. A missing or malformed field requests no coding.
 */
export function preferredCoding(fieldValue: string | undefined, codings: readonly string[]): string | undefined {
	if (fieldValue === undefined || fieldValue === '') return undefined;
	const weights = parseWeights(fieldValue);
	const wildcardWeight = weights.get('*');
	let bestCoding: string | undefined;
	let bestWeight = 0;
	for (const coding of codings) {
		const weight = weights.get(coding) ?? wildcardWeight ?? 0;
		if (weight > bestWeight) {
			bestCoding = coding;
			bestWeight = weight;
		}
	}
	// An uncompressed response (`identity`) is always acceptable, but preferred to a coding only if it is listed with a higher weight.
	return bestWeight < (weights.get('identity') ?? 0) ? undefined : bestCoding;
}

const CODING_WITH_WEIGHT =
	/^[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*(?:;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*)?$/i;

function parseWeights(fieldValue: string): Map<string, number> {
	const weights = new Map<string, number>();
	for (const element of fieldValue.split(',')) {
		const elementMatch = CODING_WITH_WEIGHT.exec(element);
		if (!elementMatch) continue;
		const name = elementMatch[1]!.toLowerCase();
		// Obsolete aliases are treated like the current names (RFC 9110 §8.4.1.3).
		weights.set(name === 'x-gzip' ? 'gzip' : name, elementMatch[2] === undefined ? 1 : Number(elementMatch[2]));
	}
	return weights;
}
