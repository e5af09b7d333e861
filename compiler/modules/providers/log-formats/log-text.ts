/** Reads the text of `format text`: literal text, and placeholders that stand for fields of an entry. */
import { fullPlaceholderName, SHORTHANDS } from '../../../codegen/placeholders/shorthands.ts';
import type { LogFormat } from '../../../document/log-settings.ts';
import type { Word } from '../../../syntax/ast.ts';

export type LogTextPart =
	| { readonly literal: string }
	/** A placeholder whose value is known when the format is compiled: `{env.NAME}` or `{system.hostname}`. */
	| { readonly machine: string }
	/** The path of a field in an entry, in lower case: `request`, `headers`, `user-agent`. */
	| { readonly path: readonly string[]; readonly index?: number }
	| { readonly computed: ComputedField }
	/** A placeholder, without braces, for which an entry has no field. */
	| { readonly unknown: string };

/** A part of a line that is computed from one or more fields of an entry. */
export type ComputedField = (typeof COMPUTED_FIELDS)[number];

const COMPUTED_FIELDS = ['time', 'request_line', 'host', 'path', 'query', 'scheme', 'level', 'logger', 'msg'] as const;

const COMPUTED_FIELD_BY_PLACEHOLDER: { readonly [placeholder: string]: ComputedField } = {
	ts: 'time',
	'http.request.host': 'host',
	'http.request.uri.path': 'path',
	'http.request.orig_uri.path': 'path',
	'http.request.uri.query': 'query',
	'http.request.orig_uri.query': 'query',
	'http.request.scheme': 'scheme',
	...Object.fromEntries(COMPUTED_FIELDS.map(name => [name, name])),
};

/** For each placeholder, the path of the log entry field that has its value. */
const PATH_BY_PLACEHOLDER: { readonly [placeholder: string]: string } = {
	'http.request.method': 'request>method',
	'http.request.orig_method': 'request>method',
	'http.request.uri': 'request>uri',
	'http.request.orig_uri': 'request>uri',
	'http.request.hostport': 'request>host',
	'http.request.proto': 'request>proto',
	'http.request.remote.host': 'request>remote_ip',
	'http.request.remote.port': 'request>remote_port',
	'http.vars.client_ip': 'request>client_ip',
	'http.request.tls.version': 'request>tls>version',
	'http.request.tls.cipher_suite': 'request>tls>cipher_suite',
	'http.auth.user.id': 'user_id',
	'http.response.status': 'status',
	'http.response.size': 'size',
	'http.reverse_proxy.upstream.hostport': 'upstream>address',
};

const PATH_BY_PREFIX: { readonly [prefix: string]: string } = {
	'http.request.header.': 'request>headers>',
	'http.response.header.': 'resp_headers>',
};

/** The text of `format common`, as in Apache's `common`. */
const COMMON_TEXT = '{request>client_ip} - {user_id} [{time}] "{request_line}" {status} {size}';

/** The text of `format combined`, as in nginx's and Apache's `combined`. */
const COMBINED_TEXT = `${COMMON_TEXT} "{request>headers>Referer}" "{request>headers>User-Agent}"`;

/** Returns the text that makes `format text` write the same lines as a `common`, `combined` or `text` format. */
export function logTextOf(format: Extract<LogFormat, { encoder: 'common' | 'combined' | 'text' }>): string {
	if (format.encoder === 'text') return format.text;
	return format.encoder === 'common' ? COMMON_TEXT : COMBINED_TEXT;
}

/** Converts the text of `format transform`, which is a plugin of Caddy, to the text of `format text`. */
export function convertTransformText(text: string): string {
	return text.replaceAll('{common_log}', () => COMMON_TEXT);
}

/** Matches an escaped brace or a placeholder. */
const PART_PATTERN = /\\([{}])|\{([^{}]+)\}/g;

/** Splits a text into its parts. `\{` and `\}` are literal braces, and a brace without its counterpart is literal, too. */
export function parseLogText(text: string): LogTextPart[] {
	const parts: LogTextPart[] = [];
	let literal = '';
	let literalStart = 0;
	const addLiteralPart = (): void => {
		if (literal !== '') parts.push({ literal });
		literal = '';
	};
	for (const match of text.matchAll(PART_PATTERN)) {
		literal += text.slice(literalStart, match.index);
		literalStart = match.index + match[0].length;
		if (match[1] !== undefined) {
			literal += match[1];
			continue;
		}
		addLiteralPart();
		parts.push(parsePlaceholder(match[2]!));
	}
	literal += text.slice(literalStart);
	addLiteralPart();
	return parts;
}

/** Returns the placeholders of a text that name fields of an entry by their paths. The names are without braces. */
export function fieldsInLogText(text: string): { readonly name: string; readonly path: readonly string[] }[] {
	return [...text.matchAll(PART_PATTERN)].flatMap(([, , name]) => {
		const part = name === undefined ? undefined : parsePlaceholder(name);
		return part && 'path' in part ? [{ name: name!, path: part.path }] : [];
	});
}

/** Returns the names of the short placeholders for which an entry has a field. */
export function shorthandsOfLogText(): readonly string[] {
	return [...Object.keys(SHORTHANDS), ...COMPUTED_FIELDS].filter(name => !('unknown' in parsePlaceholder(name)));
}

function parsePlaceholder(name: string): LogTextPart {
	if (/^(?:env|system)\./.test(name)) return { machine: `{${name}}` };
	const fullName = fullPlaceholderName(name);
	if (Object.hasOwn(COMPUTED_FIELD_BY_PLACEHOLDER, fullName))
		return { computed: COMPUTED_FIELD_BY_PLACEHOLDER[fullName]! };
	if (Object.hasOwn(PATH_BY_PLACEHOLDER, fullName)) return parseFieldPath(PATH_BY_PLACEHOLDER[fullName]!);
	for (const [prefix, path] of Object.entries(PATH_BY_PREFIX)) {
		if (fullName.startsWith(prefix)) return parseFieldPath(path + fullName.slice(prefix.length));
	}
	// Only names of header fields contain dots. Any other name with a dot is a placeholder for which entries have no field.
	if (!name.includes('>') && (name.includes('.') || fullName !== name)) return { unknown: name };
	return parseFieldPath(name);
}

/** Parses the path of a field, such as `request>headers>Accept>[0]`. */
function parseFieldPath(path: string): LogTextPart {
	const fieldNames = path.split('>').map(name => name.toLowerCase());
	const indexMatch = fieldNames.length > 1 ? /^\[(\d{1,4})\]$/.exec(fieldNames.at(-1)!) : null;
	const fieldPath = indexMatch ? fieldNames.slice(0, -1) : fieldNames;
	// Entries have the host outside of the header fields, because it is not a header field in HTTP/2 and HTTP/3.
	const entryPath = fieldPath.join('>') === 'request>headers>host' ? ['request', 'host'] : fieldPath;
	return indexMatch ? { path: entryPath, index: Number(indexMatch[1]) } : { path: entryPath };
}

/** Reports whether a line selects a format whose text contains names in braces that are fields of log entries, not placeholders. */
export function namesLogFields([keyword, formatWord]: readonly Word[]): boolean {
	return (
		(keyword?.text === 'format' || keyword?.text === 'wrap') &&
		(formatWord?.text === 'text' || formatWord?.text === 'transform')
	);
}
