/** The paths of the fields of access log entries, as `format text` names them. */

/** Paths of the fields that do not depend on the directives of a site. `*` at the end of a path stands for any name. */
export const ENTRY_FIELD_PATHS: readonly string[] = [
	...['ts', 'level', 'logger', 'msg', 'bytes_read', 'user_id', 'duration', 'size', 'status', 'resp_headers>*'],
	...['remote_ip', 'remote_port', 'client_ip', 'proto', 'method', 'host', 'uri', 'headers>*'].map(
		prefixWith('request'),
	),
	...['resumed', 'version', 'cipher_suite', 'proto', 'server_name', 'ech'].map(prefixWith('request>tls')),
	...['client_common_name', 'client_serial'].map(prefixWith('request>tls')),
	...['address', 'tries', 'latency', 'error'].map(prefixWith('upstream')),
	...['upstream_attempts>*', 'file', 'encoding', 'cache', 'error', 'handler', 'at', 'uuid'],
];

function prefixWith(parent: string): (name: string) => string {
	return name => `${parent}>${name}`;
}

/** Fields that every entry has and that filters cannot change, because the format writes them itself. */
const UNFILTERABLE_PATHS: readonly string[] = ['ts', 'level', 'logger', 'msg'];

/** The paths in {@link ENTRY_FIELD_PATHS} of fields that filters can change. */
export const FILTERABLE_PATHS: readonly string[] = ENTRY_FIELD_PATHS.filter(
	field => !UNFILTERABLE_PATHS.includes(field),
);

/**
 * Reports whether entries can have a field, or an object of fields, at this path, which is in lower case. `addedPaths` are the
 * paths of fields that directives add; any names may occur below them.
 */
export function isEntryField(path: readonly string[], addedPaths: ReadonlySet<string>): boolean {
	return isFieldAmong(ENTRY_FIELD_PATHS, path, addedPaths);
}

/** Reports whether filters can change the field at this path. Takes the same parameters as {@link isEntryField}. */
export function isFilterableField(path: readonly string[], addedPaths: ReadonlySet<string>): boolean {
	return isFieldAmong(FILTERABLE_PATHS, path, addedPaths);
}

function isFieldAmong(
	knownPaths: readonly string[],
	path: readonly string[],
	addedPaths: ReadonlySet<string>,
): boolean {
	const pathText = path.join('>');
	const isAtOrBelow = (field: string): boolean => field === pathText || field.startsWith(`${pathText}>`);
	if (path.some((_, index) => addedPaths.has(path.slice(0, index + 1).join('>')))) return true;
	if ([...addedPaths].some(isAtOrBelow)) return true;
	return knownPaths.some(
		field => isAtOrBelow(field) || (field.endsWith('*') && pathText.startsWith(field.slice(0, -1))),
	);
}
