/**
 * Canonical JSON text, with sorted keys and without white space, so that equal values have equal texts. The text
 * serves as the key of a value, for example of the settings of a lease.
 */

/** Returns the canonical text of a JSON value. Properties that are undefined are omitted. */
export function canonicalJson(value: unknown): string {
	if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
	if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
	const members: string[] = [];
	for (const key of Object.keys(value).sort()) {
		const member = (value as { [key: string]: unknown })[key];
		if (member !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`);
	}
	return `{${members.join(',')}}`;
}
