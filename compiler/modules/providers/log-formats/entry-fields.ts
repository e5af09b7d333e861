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

/** Reports whether entries can have a field at this path, which is in lowercase. `added` are names of further fields. */
export function isEntryField(path: readonly string[], added: ReadonlySet<string>): boolean {
	if (added.has(path[0]!)) return true;
	const text = path.join('>');
	return ENTRY_FIELDS.some(
		field =>
			field === text || field.startsWith(`${text}>`) || (field.endsWith('*') && text.startsWith(field.slice(0, -1))),
	);
}
