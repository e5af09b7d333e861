/**
 * Placeholders whose values arise while a request is handled: the response, variables, captures, errors, and the response of an
 * upstream.
 */

import { CLIENT_IP_VARIABLE } from '../../exchange/client-ip.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { decodePercent } from '../../exchange/request-path.ts';
import { STATUS_CODES } from '../../exchange/status-codes.ts';
import {
	FILE_MATCH_VARIABLE,
	type FileMatch,
	LAST_CAPTURES_VARIABLE,
	NAMED_CAPTURES_PREFIX,
	URL_PATTERN_VARIABLE,
	type UrlPatternGroups,
} from '../context/captures.ts';
import { proxyFactsOf } from '../context/proxy-facts.ts';
import { definePlaceholder, definePlaceholderFamily, type Placeholder } from './placeholder.ts';

const ERROR_ID_VARIABLE = 'http.error.id';
const ID_LETTERS = 'abcdefghijkmnpqrstuvwxyz0123456789';

function errorId(x: Exchange): string | undefined {
	if (!x.error) return undefined;
	const existingId = x.variable(ERROR_ID_VARIABLE);
	if (existingId !== undefined) return existingId as string;
	let id = '';
	for (const byte of crypto.getRandomValues(new Uint8Array(9))) id += ID_LETTERS[byte % ID_LETTERS.length];
	x.variables.set(ERROR_ID_VARIABLE, id);
	return id;
}

/** Returns the text that a group matched: empty if it took no part in the match, undefined if the expression has no such group. */
function captureText(match: RegExpExecArray | undefined, name: string): string | undefined {
	if (!match) return undefined;
	if (/^(?:0|[1-9]\d*)$/.test(name)) return Number(name) < match.length ? (match[Number(name)] ?? '') : undefined;
	return match.groups !== undefined && Object.hasOwn(match.groups, name) ? (match.groups[name] ?? '') : undefined;
}

const FILE_SUMMARIES = {
	relative: 'Path of the matched file below the root.',
	absolute: 'Absolute path of the matched file.',
	type: '`file` or `directory`.',
	remainder: 'The part of the path that `split_path` cut off.',
};

const URL_COMPONENTS: ReadonlySet<string> = new Set([
	...['protocol', 'username', 'password', 'hostname', 'port', 'pathname', 'search', 'hash'],
]);

function splitAtDot(text: string): readonly [string, string | undefined] {
	const dot = text.indexOf('.');
	return dot === -1 ? [text, undefined] : [text.slice(0, dot), text.slice(dot + 1)];
}

/** The placeholders `http.response.*`, `http.vars.*`, `http.regexp.*`, `http.error.*` and `http.reverse_proxy.*`. */
export const OUTCOME_PLACEHOLDERS: readonly Placeholder[] = [
	definePlaceholderFamily(
		'http.response.header.*',
		'A field of the response so far; several are joined by commas.',
		name => {
			const lowerName = name.toLowerCase();
			return x => x.response.headers.getAll(lowerName).join(',');
		},
	),
	definePlaceholder('http.response.status', 'Status of the response, once there is one.', x => x.response.status),
	definePlaceholder('http.response.size', 'Bytes of the response body that were sent.', x => x.response.bytesSent),
	definePlaceholder(
		'http.response.duration',
		'Seconds since the request arrived, as text.',
		x => `${Number(((performance.now() - x.startedAt) / 1000).toFixed(9))}s`,
	),
	definePlaceholder(
		'http.response.duration_ms',
		'Milliseconds since the request arrived.',
		x => performance.now() - x.startedAt,
	),
	definePlaceholderFamily(
		'http.vars.*',
		'A variable of the request: `root`, `client_ip`, or one set by `vars`.',
		(name, scope) => (name === CLIENT_IP_VARIABLE ? scope.clientIp : x => x.variable(name) ?? null),
	),
	definePlaceholderFamily(
		'http.regexp.*',
		'A capture of a regular expression: `NAME.1`, `NAME.group`, or `1` of the last match.',
		path => {
			const dot = path.indexOf('.');
			if (dot === -1) return x => captureText(x.variable(LAST_CAPTURES_VARIABLE) as RegExpExecArray | undefined, path);
			const captureKey = NAMED_CAPTURES_PREFIX + path.slice(0, dot);
			const groupName = path.slice(dot + 1);
			return x => captureText(x.variable(captureKey) as RegExpExecArray | undefined, groupName);
		},
	),
	...(['relative', 'absolute', 'type', 'remainder'] as const).map(field =>
		definePlaceholder(
			`http.matchers.file.${field}`,
			FILE_SUMMARIES[field],
			x => (x.variable(FILE_MATCH_VARIABLE) as FileMatch | undefined)?.[field],
		),
	),
	definePlaceholderFamily(
		'http.url_pattern.*',
		'A group of the last matching URL pattern: `pathname.NAME`, or `search.0` for an unnamed one.',
		path => {
			const [component, name] = splitAtDot(path);
			if (name === undefined || !URL_COMPONENTS.has(component)) return undefined;
			return x => {
				const groups = x.variable(URL_PATTERN_VARIABLE) as UrlPatternGroups | undefined;
				if (!groups) return undefined;
				const value = groups.get(component, name);
				return component === 'pathname' ? (decodePercent(value) ?? value) : value;
			};
		},
	),
	definePlaceholder('http.error', 'The error that error routes handle.', x => x.error?.message),
	definePlaceholder('http.error.status_code', 'Status of the error.', x => x.error?.status),
	definePlaceholder(
		'http.error.status_text',
		'Text of that status.',
		x => x.error && (STATUS_CODES[x.error.status] ?? ''),
	),
	definePlaceholder('http.error.message', 'Message of the error.', x => x.error?.message),
	definePlaceholder('http.error.trace', 'Origin of the error; empty in this build.', x => x.error && ''),
	definePlaceholder('http.error.id', 'Nine random characters that identify this error.', errorId),
	definePlaceholderFamily(
		'http.reverse_proxy.*',
		'Results of proxying: `upstream.hostport`, `status_code`, `header.NAME` and others.',
		path => {
			return x => proxyFactsOf(x)?.placeholderValue(path);
		},
	),
];
