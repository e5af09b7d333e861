/** The paths of the fields of access log entries, as `format text` names them. */

/** Paths of the fields that do not depend on the directives of a site. `*` at the end of a path stands for any name. */
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
 * Reports whether entries can have a field, or an object of fields, at this path, which is in lower case. `addedPaths` are the
 * paths of fields that directives add; any names may occur below them.
 */
export function isEntryField(path: readonly string[], addedPaths: ReadonlySet<string>): boolean {
	return isFieldAmong(ENTRY_FIELDS, path, addedPaths);
}

/** Reports whether filters can change the field at this path. The parameters are those of {@link isEntryField}. */
export function isFilterableField(path: readonly string[], addedPaths: ReadonlySet<string>): boolean {
	return isFieldAmong(FILTERABLE_FIELDS, path, addedPaths);
}

function isFieldAmong(
	knownFields: readonly string[],
	path: readonly string[],
	addedPaths: ReadonlySet<string>,
): boolean {
	const pathText = path.join('>');
	const isOrHolds = (field: string): boolean => field === pathText || field.startsWith(`${pathText}>`);
	if (path.some((_, index) => addedPaths.has(path.slice(0, index + 1).join('>')))) return true;
	if ([...addedPaths].some(isOrHolds)) return true;
	return knownFields.some(
		field => isOrHolds(field) || (field.endsWith('*') && pathText.startsWith(field.slice(0, -1))),
	);
}
