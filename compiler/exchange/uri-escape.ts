/** Percent-encoding of the parts of a URI, and parsing of query strings. */
import { decodePercent } from './request-path.ts';

const PERCENT = 37;
const AMPERSAND = 38;
const PLUS = 43;
const EQUALS_SIGN = 61;

/**
 * Matches the characters that a path must not contain: controls, space, non-ASCII characters, and delimiters of other parts. `%` is
 * not matched, because it needs separate treatment.
 */
const ESCAPED_PATH_CHARS = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]/gu;

/** Encodes a text as data in a path, so that it cannot introduce a delimiter, a query or an escape. Slashes are kept. */
export function escapePathText(text: string): string {
	return text.replace(/%/g, '%25').replace(ESCAPED_PATH_CHARS, percentEncode);
}

/** Encodes the characters that a path must not contain, for a text that may already be encoded. Valid escapes are kept. */
export function escapePathWhereNeeded(text: string): string {
	return text.replace(/%(?![0-9a-fA-F]{2})/g, '%25').replace(ESCAPED_PATH_CHARS, percentEncode);
}

/** Encodes only the characters of a query that would break a request line. */
export function escapeQueryWhereNeeded(text: string): string {
	return text.replace(/[^\u0021\u0022\u0024-\u007e]/gu, percentEncode);
}

/** Encodes a text as a name or value in a query. A space becomes `+`; only unreserved characters (RFC 3986 §2.3) are kept. */
export function escapeQueryText(text: string): string {
	return text.replace(/[^A-Za-z0-9\-._~]/gu, c => (c === ' ' ? '+' : percentEncode(c)));
}

function percentEncode(character: string): string {
	let encoded = '';
	for (const byte of Buffer.from(character, 'utf8')) encoded += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
	return encoded;
}

/** Decodes a name or value in a query, in which `+` stands for a space; undefined if an escape is incomplete. */
export function decodeQueryText(text: string): string | undefined {
	return decodePercent(text.includes('+') ? text.replace(/\+/g, ' ') : text);
}

/**
 * Parses a query to the values of each parameter, in the order of the parameters' first occurrence; undefined if an escape is
 * incomplete. Empty parts between `&`s are ignored, and a name without `=` has an empty value.
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

/** Parses a query as `parseQuery` does, but ignores parameters that cannot be decoded. */
export function parseQueryLeniently(query: string | undefined): Map<string, string[]> {
	const parameters = parseQuery(query);
	if (parameters) return parameters;
	const decodablePieces = query!.split('&').filter(piece => decodeQueryText(piece) !== undefined);
	return parseQuery(decodablePieces.join('&')) ?? new Map();
}

/**
 * Returns the values of one parameter of a query, joined by commas; '' if there are none. Gives the same values as {@link
 * parseQueryLeniently}, but decodes and copies only what it needs.
 */
export function readQueryParameter(query: string, name: string): string {
	let values: string | undefined;
	let start = 0;
	let equals = -1;
	let isEncoded = false;
	for (let i = 0; i <= query.length; i++) {
		const c = i === query.length ? AMPERSAND : query.charCodeAt(i);
		if (c === EQUALS_SIGN) {
			if (equals === -1) equals = i;
		} else if (c === PERCENT || c === PLUS) isEncoded = true;
		else if (c === AMPERSAND) {
			const nameEnd = equals === -1 ? i : equals;
			const value =
				i === start || (!isEncoded && nameEnd - start !== name.length)
					? undefined
					: valueIfNamed(query.slice(start, nameEnd), query.slice(Math.min(nameEnd + 1, i), i), name, isEncoded);
			if (value !== undefined) values = values === undefined ? value : `${values},${value}`;
			start = i + 1;
			equals = -1;
			isEncoded = false;
		}
	}
	return values ?? '';
}

/** Returns the decoded value of a parameter if it has the given name and can be decoded. */
function valueIfNamed(writtenName: string, writtenValue: string, name: string, isEncoded: boolean): string | undefined {
	if (!isEncoded) return writtenName === name ? writtenValue : undefined;
	return decodeQueryText(writtenName) === name ? decodeQueryText(writtenValue) : undefined;
}

/** Formats parameters as a query. Parameters are sorted by name, while the values of each keep their order. */
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
