/** Percent-encoding of the parts of a URI, and query strings as lists of parameters. */
import { decodePercent } from './request-path.ts';

/**
 * Matches the characters that are not allowed in a path: controls, space, non-ASCII, and delimiters of other parts. `%` is handled
 * separately.
 */
const ESCAPED_IN_PATH = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]/gu;

/** Encodes text as path data, so that it cannot introduce a delimiter, a query or an escape. Slashes stay. */
export function escapePathText(text: string): string {
	return text.replace(/%/g, '%25').replace(ESCAPED_IN_PATH, percentEncode);
}

/** Encodes the characters that are not allowed in a path, but keeps valid escapes, for text that may already be encoded. */
export function escapePathWhereNeeded(text: string): string {
	return text.replace(/%(?![0-9a-fA-F]{2})/g, '%25').replace(ESCAPED_IN_PATH, percentEncode);
}

/** Encodes only those characters of a query that would break a request line. */
export function escapeQueryWhereNeeded(text: string): string {
	return text.replace(/[^\u0021\u0022\u0024-\u007e]/gu, percentEncode);
}

/** Encodes a query component as HTML forms do: a space becomes `+`, and only unreserved characters stay. */
export function escapeQueryText(text: string): string {
	return text.replace(/[^A-Za-z0-9\-._~]/gu, c => (c === ' ' ? '+' : percentEncode(c)));
}

function percentEncode(character: string): string {
	let encoded = '';
	for (const byte of Buffer.from(character, 'utf8')) encoded += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
	return encoded;
}

/** Decodes a query component (`+` is a space); undefined if an escape is incomplete. */
export function decodeQueryText(text: string): string | undefined {
	return decodePercent(text.includes('+') ? text.replace(/\+/g, ' ') : text);
}

/**
 * Parses a query into its parameters, in the order of their first occurrence; undefined if an escape is incomplete. Empty parts
 * between `&`s are ignored, and a name without `=` has an empty value.
 */
export function parseQuery(query: string | undefined): Map<string, string[]> | undefined {
	const parameters = new Map<string, string[]>();
	if (!query) return parameters;
	for (const piece of query.split('&')) {
		if (piece === '') continue;
		const equals = piece.indexOf('=');
		const name = decodeQueryText(equals === -1 ? piece : piece.slice(0, equals));
		const value = equals === -1 ? '' : decodeQueryText(piece.slice(equals + 1));
		if (name === undefined || value === undefined) return undefined;
		const values = parameters.get(name);
		if (values) values.push(value);
		else parameters.set(name, [value]);
	}
	return parameters;
}

/** Like `parseQuery`, but ignores parameters that cannot be decoded. */
export function parseQueryLeniently(query: string | undefined): Map<string, string[]> {
	const parameters = parseQuery(query);
	if (parameters) return parameters;
	const decodable = query!.split('&').filter(piece => decodeQueryText(piece) !== undefined);
	return parseQuery(decodable.join('&')) ?? new Map();
}

/** Formats parameters as a query. Names are sorted; the values of each name keep their order. */
export function formatQuery(parameters: ReadonlyMap<string, readonly string[]>): string {
	const pieces: string[] = [];
	for (const name of [...parameters.keys()].sort(byCodePoint)) {
		for (const value of parameters.get(name)!) pieces.push(`${escapeQueryText(name)}=${escapeQueryText(value)}`);
	}
	return pieces.join('&');
}

function byCodePoint(a: string, b: string): number {
	return a < b ? -1 : a > b ? 1 : 0;
}
