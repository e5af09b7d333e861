/** The paths of the fields of access log entries, as `format text` names them. */

/** Paths of the fields that do not depend on the directives of a site. Below a path that ends with `>*`, any name may occur. */
export const ENTRY_FIELDS: readonly string[] = [
	...['ts', 'level', 'logger', 'msg', 'bytes_read', 'user_id', 'duration', 'size', 'status', 'resp_headers>*'],
	...['remote_ip', 'remote_port', 'client_ip', 'proto', 'method', 'host', 'uri', 'headers>*'].map(
		prefixWith('request'),
	),
	...['resumed', 'version', 'cipher_suite', 'proto', 'server_name', 'ech'].map(prefixWith('request>tls')),
	...['client_common_name', 'client_serial'].map(prefixWith('request>tls')),
	...['address', 'tries', 'latency', 'error'].map(prefixWith('upstream')),
	...['upstream_attempts>*', 'file', 'encoding', 'cache', 'handler', 'at', 'uuid'],
];

function prefixWith(parent: string): (name: string) => string {
	return name => `${parent}>${name}`;
}

/** Fields that every entry has and that filters cannot change, because the format writes them itself. */
const UNFILTERED_FIELDS: readonly string[] = ['ts', 'level', 'logger', 'msg'];

/** The paths in {@link ENTRY_FIELDS} of fields that filters can change. */
export const FILTERABLE_FIELDS: readonly string[] = ENTRY_FIELDS.filter(field => !UNFILTERED_FIELDS.includes(field));

/**
 * Reports whether entries can have a field at this path, which is in lower case. `addedPaths` are paths of further fields, below
 * which any name may occur.
 */
export function isEntryField(path: readonly string[], addedPaths: ReadonlySet<string>): boolean {
	return isFieldAmong(ENTRY_FIELDS, path, addedPaths);
}

/** Reports whether filters can change a field at this path, like {@link isEntryField}. */
export function isFilterableField(path: readonly string[], addedPaths: ReadonlySet<string>): boolean {
	return isFieldAmong(FILTERABLE_FIELDS, path, addedPaths);
}

function isFieldAmong(
	knownFields: readonly string[],
	path: readonly string[],
	addedPaths: ReadonlySet<string>,
): boolean {
	const text = path.join('>');
	const isOrHolds = (field: string): boolean => field === text || field.startsWith(`${text}>`);
	if (path.some((_, index) => addedPaths.has(path.slice(0, index + 1).join('>')))) return true;
	if ([...addedPaths].some(isOrHolds)) return true;
	return knownFields.some(field => isOrHolds(field) || (field.endsWith('*') && text.startsWith(field.slice(0, -1))));
}
