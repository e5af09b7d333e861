/** Short names of placeholders (`{host}`, `{header.X}`), expanded once during lowering. */
import type { Dialect } from '../../dialects/dialect.ts';

/** Full names of placeholders, by short name. */
export const SHORTHANDS: { readonly [short: string]: string } = {
	host: 'http.request.host',
	sent_host: 'http.request.sent_host',
	hostport: 'http.request.hostport',
	port: 'http.request.port',
	method: 'http.request.method',
	scheme: 'http.request.scheme',
	uuid: 'http.request.uuid',
	uri: 'http.request.uri',
	'%uri': 'http.request.uri_escaped',
	path: 'http.request.uri.path',
	'%path': 'http.request.uri.path_escaped',
	dir: 'http.request.uri.path.dir',
	file: 'http.request.uri.path.file',
	query: 'http.request.uri.query',
	'%query': 'http.request.uri.query_escaped',
	'?query': 'http.request.uri.prefixed_query',
	orig_method: 'http.request.orig_method',
	orig_uri: 'http.request.orig_uri',
	orig_path: 'http.request.orig_uri.path',
	orig_dir: 'http.request.orig_uri.path.dir',
	orig_file: 'http.request.orig_uri.path.file',
	orig_query: 'http.request.orig_uri.query',
	'orig_?query': 'http.request.orig_uri.prefixed_query',
	remote: 'http.request.remote',
	remote_host: 'http.request.remote.host',
	remote_port: 'http.request.remote.port',
	client_ip: 'http.vars.client_ip',
	upstream_hostport: 'http.reverse_proxy.upstream.hostport',
	tls_cipher: 'http.request.tls.cipher_suite',
	tls_version: 'http.request.tls.version',
	tls_client_fingerprint: 'http.request.tls.client.fingerprint',
	tls_client_issuer: 'http.request.tls.client.issuer',
	tls_client_serial: 'http.request.tls.client.serial',
	tls_client_subject: 'http.request.tls.client.subject',
	tls_client_certificate_pem: 'http.request.tls.client.certificate_pem',
	tls_client_certificate_der_base64: 'http.request.tls.client.certificate_der_base64',
};

/** For short names with a parameter, such as `header.X`: the prefix of the full name, by the prefix of the short name. */
const PARAMETER_PREFIXES: { readonly [prefix: string]: string } = {
	header: 'http.request.header.',
	cookie: 'http.request.cookie.',
	query: 'http.request.uri.query.',
	labels: 'http.request.host.labels.',
	path: 'http.request.uri.path.',
	file: 'http.request.uri.path.file.',
	re: 'http.regexp.',
	vars: 'http.vars.',
	rp: 'http.reverse_proxy.',
	resp: 'http.intercept.',
	err: 'http.error.',
	file_match: 'http.matchers.file.',
};

const DOTTED_PARAMETER_PREFIXES: ReadonlySet<string> = new Set(['re', 'rp', 'resp', 'err']);

/** Returns the full name that a short name stands for. Other names are returned unchanged. */
export function fullPlaceholderName(name: string): string {
	if (Object.hasOwn(SHORTHANDS, name)) return SHORTHANDS[name]!;
	const dot = name.indexOf('.');
	if (dot <= 0) return name;
	const prefix = name.slice(0, dot);
	if (!Object.hasOwn(PARAMETER_PREFIXES, prefix)) return name;
	const parameter = name.slice(dot + 1);
	const pattern = DOTTED_PARAMETER_PREFIXES.has(prefix) ? /^[\w.-]+$/ : /^[\w-]+$/;
	return pattern.test(parameter) ? PARAMETER_PREFIXES[prefix] + parameter : name;
}

/** Full names that mean something else in a Compatfile, each with the full name that has this meaning in a Configfile. */
const COMPATFILE_PLACEHOLDER_NAMES: { readonly [fullName: string]: string } = {
	'http.request.host': 'http.request.sent_host',
	'http.reverse_proxy.upstream.address': 'http.reverse_proxy.upstream.network_address',
};

/**
 * Expands all short placeholder names in a string according to the dialect. Escaped braces (`\{host}`) and unknown names are left
 * as written.
 */
export function expandShorthands(text: string, dialect: Dialect = 'configfile'): string {
	if (!text.includes('{')) return text;
	return text.replace(/(?<!\\)\{([^{}]+)\}/g, (placeholder, name: string) => {
		const fullName =
			dialect === 'compatfile' ? compatiblePlaceholderName(fullPlaceholderName(name)) : fullPlaceholderName(name);
		return fullName === name ? placeholder : `{${fullName}}`;
	});
}

/** Renames the placeholders in a text of a Compatfile that mean something else in a Configfile, so that it keeps its meaning. */
export function nameCompatiblePlaceholders(text: string): string {
	return text.replace(/(?<!\\)\{([\w.]+)\}/g, (placeholder, name: string) => {
		const fullName = fullPlaceholderName(name);
		const compatibleName = compatiblePlaceholderName(fullName);
		return compatibleName === fullName ? placeholder : `{${shortPlaceholderName(compatibleName)}}`;
	});
}

/** Returns the full name of the placeholder that means what `fullName` means in a Compatfile. */
export function compatiblePlaceholderName(fullName: string): string {
	return Object.hasOwn(COMPATFILE_PLACEHOLDER_NAMES, fullName) ? COMPATFILE_PLACEHOLDER_NAMES[fullName]! : fullName;
}

/** Returns the short names, with `*` for parameters, for completion and "did you mean". */
export function shorthandNames(): readonly string[] {
	return [...Object.keys(SHORTHANDS), ...Object.keys(PARAMETER_PREFIXES).map(prefix => `${prefix}.*`)];
}

const SHORT_NAMES: ReadonlyMap<string, string> = new Map(
	Object.entries(SHORTHANDS).map(([short, full]) => [full, short]),
);

/** Pairs of a short prefix and the full prefix that it stands for. The longest full prefix comes first. */
const LONGEST_PREFIXES = Object.entries(PARAMETER_PREFIXES).sort(([, a], [, b]) => b.length - a.length);

/** Replaces full names of placeholders by short names where they exist: the inverse of {@link expandShorthands}. */
export function abbreviatePlaceholders(text: string): string {
	return text.replace(/\{([^{}]+)\}/g, (_placeholder, name: string) => `{${shortPlaceholderName(name)}}`);
}

function shortPlaceholderName(fullName: string): string {
	const shortName = SHORT_NAMES.get(fullName);
	if (shortName !== undefined) return shortName;
	const [prefix, fullPrefix] = LONGEST_PREFIXES.find(([, full]) => fullName.startsWith(full)) ?? ['', ''];
	return fullPrefix === '' ? fullName : `${prefix}.${fullName.slice(fullPrefix.length)}`;
}
