/** Functions for JSON pointers (RFC 6901). */

/** Returns the value at a JSON pointer. */
export function valueAt(document: unknown, pointer: string): unknown {
	let value = document;
	if (pointer === '') return value;
	for (const segment of pointer.slice(1).split('/')) {
		if (typeof value !== 'object' || value === null) return undefined;
		const key = segment.replaceAll('~1', '/').replaceAll('~0', '~');
		if (!Object.hasOwn(value, key)) return undefined;
		value = (value as { [key: string]: unknown })[key];
	}
	return value;
}

/** Escapes one segment of a JSON pointer. */
export function escapePointer(segment: string): string {
	return segment.replaceAll('~', '~0').replaceAll('/', '~1');
}
