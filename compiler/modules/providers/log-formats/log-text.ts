/** Reads the text of `format text`: literal text, and placeholders that stand for fields of an entry. */
import { fullPlaceholderName, SHORTHANDS } from '../../../codegen/placeholders/shorthands.ts';
import type { LogFormat } from '../../../document/log-settings.ts';
import type { Word } from '../../../syntax/ast.ts';

/** A part of a line. */
export type LogTextPart =
	| { readonly literal: string }
	/** A placeholder whose value is known when the format is compiled: `{env.NAME}` or `{system.hostname}`. */
	| { readonly machine: string }
	/** The place of a field in an entry, in lowercase: `request`, `headers`, `user-agent`. */
	| { readonly path: readonly string[]; readonly index?: number }
	| { readonly computed: ComputedField }
	/** A placeholder, without braces, that an entry has no field for. */
	| { readonly unknown: string };

/** Parts of a line that are derived from several fields of an entry. */
export type ComputedField = (typeof COMPUTED_FIELDS)[number];

const COMPUTED_FIELDS = ['time', 'request_line', 'host', 'path', 'query', 'scheme', 'level', 'logger', 'msg'] as const;

const COMPUTED: { readonly [placeholder: string]: ComputedField } = {
	ts: 'time',
	'http.request.host': 'host',
	'http.request.uri.path': 'path',
	'http.request.orig_uri.path': 'path',
	'http.request.uri.query': 'query',
	'http.request.orig_uri.query': 'query',
	'http.request.scheme': 'scheme',
	...Object.fromEntries(COMPUTED_FIELDS.map(name => [name, name])),
};

/** Placeholders of requests, and the fields of an entry that have their values. */
const FIELDS: { readonly [placeholder: string]: string } = {
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

const FIELD_PREFIXES: { readonly [prefix: string]: string } = {
	'http.request.header.': 'request>headers>',
	'http.response.header.': 'resp_headers>',
};

/** The text of `format common`, as in Apache's `common`. */
const COMMON = '{request>client_ip} - {user_id} [{time}] "{request_line}" {status} {size}';

/** The text of `format combined`, as in nginx's and Apache's `combined`. */
const COMBINED = `${COMMON} "{request>headers>Referer}" "{request>headers>User-Agent}"`;

/** Returns the text of a text format. */
export function logTextOf(format: Extract<LogFormat, { encoder: 'common' | 'combined' | 'text' }>): string {
	if (format.encoder === 'text') return format.text;
	return format.encoder === 'common' ? COMMON : COMBINED;
}

/** Returns the text that `format transform` of the compatible server's plugin means by its own. */
export function transformedText(text: string): string {
	return text.replaceAll('{common_log}', () => COMMON);
}

/** An escaped brace, or a placeholder. */
const PARTS = /\\([{}])|\{([^{}]+)\}/g;

/** Splits a text into its parts. `\{` and `\}` are literal braces, and a brace without its counterpart is literal, too. */
export function parseLogText(text: string): LogTextPart[] {
	const parts: LogTextPart[] = [];
	let literal = '';
	let end = 0;
	const flush = (): void => {
		if (literal !== '') parts.push({ literal });
		literal = '';
	};
	for (const match of text.matchAll(PARTS)) {
		literal += text.slice(end, match.index);
		end = match.index + match[0].length;
		if (match[1] !== undefined) {
			literal += match[1];
			continue;
		}
		flush();
		parts.push(partOf(match[2]!));
	}
	literal += text.slice(end);
	flush();
	return parts;
}

/** Returns the placeholders of a text, without braces, that stand for fields of an entry by their paths. */
export function fieldsInLogText(text: string): { readonly name: string; readonly path: readonly string[] }[] {
	return [...text.matchAll(PARTS)].flatMap(([, , name]) => {
		const part = name === undefined ? undefined : partOf(name);
		return part && 'path' in part ? [{ name: name!, path: part.path }] : [];
	});
}

/** Returns the short placeholders that stand for something that an entry has. */
export function shorthandsOfLogText(): readonly string[] {
	return [...Object.keys(SHORTHANDS), ...COMPUTED_FIELDS].filter(name => !('unknown' in partOf(name)));
}

function partOf(name: string): LogTextPart {
	if (/^(?:env|system)\./.test(name)) return { machine: `{${name}}` };
	const full = fullPlaceholderName(name);
	if (Object.hasOwn(COMPUTED, full)) return { computed: COMPUTED[full]! };
	if (Object.hasOwn(FIELDS, full)) return pathOf(FIELDS[full]!);
	for (const [prefix, path] of Object.entries(FIELD_PREFIXES)) {
		if (full.startsWith(prefix)) return pathOf(path + full.slice(prefix.length));
	}
	// Names of fields have no dots, except those of headers. What is left is a placeholder of something that no entry has.
	if (!name.includes('>') && (name.includes('.') || full !== name)) return { unknown: name };
	return pathOf(name);
}

/** Reads `request>headers>Accept>[0]`. */
function pathOf(path: string): LogTextPart {
	const names = path.split('>').map(name => name.toLowerCase());
	const index = names.length > 1 ? /^\[(\d{1,4})\]$/.exec(names.at(-1)!) : null;
	const plain = index ? names.slice(0, -1) : names;
	// Entries have the host, which in HTTP/2 and HTTP/3 is no header field, beside the header fields.
	const found = plain.join('>') === 'request>headers>host' ? ['request', 'host'] : plain;
	return index ? { path: found, index: Number(index[1]) } : { path: found };
}

/** Reports whether a line selects a format whose text names fields of log entries in braces. They are no placeholders. */
export function namesLogFields([word, format]: readonly Word[]): boolean {
	return (
		(word?.text === 'format' || word?.text === 'wrap') && (format?.text === 'text' || format?.text === 'transform')
	);
}
