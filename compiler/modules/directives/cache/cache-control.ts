/** Parses the directives of `Cache-Control` and of its targeted variants (RFC 9111 §5.2, RFC 9213 §2). */

/** Maximum time in seconds; longer times are reduced to it (RFC 9111 §1.2.2). */
const MAX_SECONDS = 2 ** 31;

/** Maps directive names in lower case to their arguments, or to '' for directives without one. */
export type CacheControlDirectives = ReadonlyMap<string, string>;

const NO_DIRECTIVES: CacheControlDirectives = new Map();

/** Matches the value types of RFC 9651: numbers, strings, tokens, booleans, bytes, dates, display strings. */
const BARE =
	'(?:-?\\d{1,15}(?:\\.\\d{1,3})?|"(?:[ !#-\\[\\]-~]|\\\\["\\\\])*"|[A-Za-z*][!#$%&\'*+\\-.^_`|~0-9A-Za-z:/]*|\\?[01]|:[A-Za-z0-9+/=]*:|@-?\\d{1,15}|%"(?:[ !#$&-~]|%[0-9a-f]{2})*")';
const KEY = '[a-z*][a-z0-9_\\-.*]*';
const PARAMETERS = `(?: *; *${KEY}(?:=${BARE})?)*`;
const LIST = `\\( *(?:${BARE}${PARAMETERS}(?: +|(?=\\))))*\\)`;
const MEMBER = new RegExp(`(${KEY})(?:=(${BARE}|${LIST}))?${PARAMETERS}`, 'y');
const COMMA = /[ \t]*,[ \t]*/y;

/**
 * Parses a dictionary of directives with typed values (RFC 9213 §2.1). Ignores directives whose value has the wrong type. Returns
 * undefined if the text is not a dictionary or no directive remains; the field then counts as absent.
 */
export function parseTargetedCacheControl(text: string): CacheControlDirectives | undefined {
	const found = new Map<string, string>();
	const end = text.trimEnd().length;
	let at = text.length - text.trimStart().length;
	while (at < end) {
		MEMBER.lastIndex = at;
		const member = MEMBER.exec(text);
		if (!member) return undefined;
		const [, name, value] = member as unknown as [string, string, string | undefined];
		const argument = argumentOf(name, value);
		// Of two members with the same name, the last counts (RFC 9651 §3.2).
		if (argument === undefined) found.delete(name);
		else found.set(name, argument);
		at = MEMBER.lastIndex;
		if (at === end) break;
		COMMA.lastIndex = at;
		if (!COMMA.test(text) || COMMA.lastIndex >= end) return undefined;
		at = COMMA.lastIndex;
	}
	return found.size > 0 ? found : undefined;
}

/** Returns a directive's argument, '' if it has none; undefined if its value has the wrong type or is false. */
function argumentOf(name: string, value: string | undefined): string | undefined {
	if (isTime(name)) return value !== undefined && /^-?\d+$/.test(value) ? value : undefined;
	if (value === '?0') return undefined;
	// Directives that restrict storing count whatever their value, so that a mistake cannot lift the restriction.
	return value?.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : '';
}

/**
 * Match a directive, and the text up to the next one. They are separate expressions so that backtracking never tries another
 * length for the directive.
 */
const ITEM = /[\t ]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)(?:[\t ]*=[\t ]*(?:"((?:[^"\\]|\\.)*)"|([^",;\t ]*)))?/y;
const REST = /[^,"]*(?:,|$)/y;

/**
 * Parses a list of directives. If a time is given twice, the shorter one counts. An invalid time counts as 0, because a mistake
 * must not extend a response's lifetime (RFC 9111 §4.2.1).
 */
export function parseCacheControl(text: string | undefined): CacheControlDirectives {
	if (text === undefined || text.trim() === '') return NO_DIRECTIVES;
	const found = new Map<string, string>();
	let at = 0;
	while (at < text.length) {
		ITEM.lastIndex = at;
		const match = ITEM.exec(text);
		REST.lastIndex = ITEM.lastIndex;
		if (!match || !REST.test(text)) {
			const comma = text.indexOf(',', at);
			if (comma === -1) break;
			at = comma + 1;
			continue;
		}
		at = REST.lastIndex;
		const name = match[1]!.toLowerCase();
		const value = match[2] === undefined ? (match[3] ?? '') : match[2].replace(/\\(.)/g, '$1');
		const before = found.get(name);
		if (before === undefined) found.set(name, value);
		else if (isTime(name)) found.set(name, readSeconds(before) <= readSeconds(value) ? before : value);
		// A directive without an argument applies to all fields, so an occurrence that names fields does not narrow it.
		else if (before !== '' && value !== '') found.set(name, `${before},${value}`);
		else found.set(name, '');
	}
	return found;
}

function isTime(name: string): boolean {
	return name === 'max-age' || name === 's-maxage' || name.startsWith('stale-') || name === 'min-fresh';
}

/** Returns the time of a directive in milliseconds: 0 if it is invalid, undefined if the directive is absent. */
export function directiveTimeMs(directives: CacheControlDirectives, name: string): number | undefined {
	const text = directives.get(name);
	return text === undefined ? undefined : readSeconds(text) * 1000;
}

/** Parses whole seconds; 0 if the text is not a number. */
function readSeconds(text: string): number {
	return /^\d+$/.test(text) ? Math.min(Number(text), MAX_SECONDS) : 0;
}

/**
 * Returns the field names in the argument of `private` or `no-cache`, in lower case; undefined if the directive has no argument
 * or is absent.
 */
export function directiveFieldNames(directives: CacheControlDirectives, name: string): readonly string[] | undefined {
	const text = directives.get(name);
	if (text === undefined || text === '') return undefined;
	return text
		.toLowerCase()
		.split(',')
		.map(one => one.trim())
		.filter(one => one !== '');
}
