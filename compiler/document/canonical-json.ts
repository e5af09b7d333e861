/** JSON text that is the same for equal values: keys sorted, no white space. The key of leases and of unchanged sites. */

/** Canonical text of a JSON value. Properties that are undefined are left out. */
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
