/** The fields that entries of access logs have, by their paths, as `format text` names them. */

/** Paths of the fields that do not depend on the directives of a site. Below a path that ends with `>*`, any name may occur. */
export const ENTRY_FIELDS: readonly string[] = [
	...['ts', 'level', 'logger', 'msg', 'bytes_read', 'user_id', 'duration', 'size', 'status', 'resp_headers>*'],
	...['remote_ip', 'remote_port', 'client_ip', 'proto', 'method', 'host', 'uri', 'headers>*'].map(of('request')),
	...['resumed', 'version', 'cipher_suite', 'proto', 'server_name', 'ech'].map(of('request>tls')),
	...['client_common_name', 'client_serial'].map(of('request>tls')),
	...['address', 'tries', 'latency', 'error'].map(of('upstream')),
	...['upstream_attempts>*', 'file', 'encoding', 'cache', 'handler', 'at', 'uuid'],
];

function of(parent: string): (name: string) => string {
	return name => `${parent}>${name}`;
}

/** Fields that every entry has and that filters cannot change: the format writes them by itself. */
const UNFILTERED: readonly string[] = ['ts', 'level', 'logger', 'msg'];

/** Those of the paths in {@link ENTRY_FIELDS} that filters can change. */
export const FILTERED_FIELDS: readonly string[] = ENTRY_FIELDS.filter(field => !UNFILTERED.includes(field));

/**
 * Reports whether entries can have a field at this path, which is in lowercase. `added` are paths of further fields, below which
 * any name may occur.
 */
export function isEntryField(path: readonly string[], added: ReadonlySet<string>): boolean {
	return isFieldAmong(ENTRY_FIELDS, path, added);
}

/** Reports whether filters can change a field at this path, like {@link isEntryField}. */
export function isFilteredField(path: readonly string[], added: ReadonlySet<string>): boolean {
	return isFieldAmong(FILTERED_FIELDS, path, added);
}

function isFieldAmong(known: readonly string[], path: readonly string[], added: ReadonlySet<string>): boolean {
	const text = path.join('>');
	const isOrHolds = (field: string): boolean => field === text || field.startsWith(`${text}>`);
	if (path.some((_, index) => added.has(path.slice(0, index + 1).join('>')))) return true;
	if ([...added].some(isOrHolds)) return true;
	return known.some(field => isOrHolds(field) || (field.endsWith('*') && text.startsWith(field.slice(0, -1))));
}
