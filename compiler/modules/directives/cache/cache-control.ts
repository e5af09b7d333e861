/** Parses the directives of `Cache-Control` and of its targeted variants (RFC 9111 §5.2, RFC 9213 §2). */

/** Maximum time in seconds; longer times are reduced to it (RFC 9111 §1.2.2). */
const MAX_TIME_SECONDS = 2 ** 31;

/** Maps directive names in lower case to their arguments, or to '' for directives without one. */
export type CacheControlDirectives = ReadonlyMap<string, string>;

const NO_DIRECTIVES: CacheControlDirectives = new Map();

/** Matches the value types of RFC 9651: numbers, strings, tokens, booleans, bytes, dates, display strings. */
const BARE_ITEM =
	'(?:-?\\d{1,15}(?:\\.\\d{1,3})?|"(?:[ !#-\\[\\]-~]|\\\\["\\\\])*"|[A-Za-z*][!#$%&\'*+\\-.^_`|~0-9A-Za-z:/]*|\\?[01]|:[A-Za-z0-9+/=]*:|@-?\\d{1,15}|%"(?:[ !#$&-~]|%[0-9a-f]{2})*")';
const MEMBER_KEY = '[a-z*][a-z0-9_\\-.*]*';
const PARAMETERS = `(?: *; *${MEMBER_KEY}(?:=${BARE_ITEM})?)*`;
const INNER_LIST = `\\( *(?:${BARE_ITEM}${PARAMETERS}(?: +|(?=\\))))*\\)`;
const DICTIONARY_MEMBER = new RegExp(`(${MEMBER_KEY})(?:=(${BARE_ITEM}|${INNER_LIST}))?${PARAMETERS}`, 'y');
const COMMA_PATTERN = /[ \t]*,[ \t]*/y;

/**
 * Parses a dictionary of directives with typed values (RFC 9213 §2.1). Ignores directives whose value has the wrong type. Returns
 * undefined if the text is not a dictionary or no directive remains; the field is then treated as absent.
 */
export function parseTargetedCacheControl(fieldValue: string): CacheControlDirectives | undefined {
	const directives = new Map<string, string>();
	const endOffset = fieldValue.trimEnd().length;
	let offset = fieldValue.length - fieldValue.trimStart().length;
	while (offset < endOffset) {
		DICTIONARY_MEMBER.lastIndex = offset;
		const member = DICTIONARY_MEMBER.exec(fieldValue);
		if (!member) return undefined;
		const [, name, value] = member as unknown as [string, string, string | undefined];
		const argument = argumentOf(name, value);
		// Of two members with the same name, the last is used (RFC 9651 §3.2).
		if (argument === undefined) directives.delete(name);
		else directives.set(name, argument);
		offset = DICTIONARY_MEMBER.lastIndex;
		if (offset === endOffset) break;
		COMMA_PATTERN.lastIndex = offset;
		if (!COMMA_PATTERN.test(fieldValue) || COMMA_PATTERN.lastIndex >= endOffset) return undefined;
		offset = COMMA_PATTERN.lastIndex;
	}
	return directives.size > 0 ? directives : undefined;
}

/** Returns a directive's argument, '' if it has none; undefined if its value has the wrong type or is false. */
function argumentOf(name: string, value: string | undefined): string | undefined {
	if (hasTimeArgument(name)) return value !== undefined && /^-?\d+$/.test(value) ? value : undefined;
	if (value === '?0') return undefined;
	// Directives that restrict storing apply whatever their value, so that a mistake cannot lift the restriction.
	return value?.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : '';
}

/**
 * `DIRECTIVE` matches one directive, `SEPARATOR` the text up to the next one. The two are separate, so that backtracking never
 * tries another length for the directive.
 */
const DIRECTIVE = /[\t ]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)(?:[\t ]*=[\t ]*(?:"((?:[^"\\]|\\.)*)"|([^",;\t ]*)))?/y;
const SEPARATOR = /[^,"]*(?:,|$)/y;

/**
 * Parses the value of `Cache-Control`. If a time is given twice, the shorter one is used. An invalid time is treated as 0,
 * because a mistake must not extend a response's lifetime (RFC 9111 §4.2.1).
 */
export function parseCacheControl(fieldValue: string | undefined): CacheControlDirectives {
	if (fieldValue === undefined || fieldValue.trim() === '') return NO_DIRECTIVES;
	const directives = new Map<string, string>();
	let offset = 0;
	while (offset < fieldValue.length) {
		DIRECTIVE.lastIndex = offset;
		const match = DIRECTIVE.exec(fieldValue);
		SEPARATOR.lastIndex = DIRECTIVE.lastIndex;
		if (!match || !SEPARATOR.test(fieldValue)) {
			const comma = fieldValue.indexOf(',', offset);
			if (comma === -1) break;
			offset = comma + 1;
			continue;
		}
		offset = SEPARATOR.lastIndex;
		const name = match[1]!.toLowerCase();
		const value = match[2] === undefined ? (match[3] ?? '') : match[2].replace(/\\(.)/g, '$1');
		const earlierValue = directives.get(name);
		if (earlierValue === undefined) directives.set(name, value);
		else if (hasTimeArgument(name))
			directives.set(name, parseSeconds(earlierValue) <= parseSeconds(value) ? earlierValue : value);
		// A directive without field names, such as `private`, applies to the whole response, so another occurrence with field names
		// does not limit it to these fields.
		else if (earlierValue !== '' && value !== '') directives.set(name, `${earlierValue},${value}`);
		else directives.set(name, '');
	}
	return directives;
}

function hasTimeArgument(name: string): boolean {
	return name === 'max-age' || name === 's-maxage' || name.startsWith('stale-') || name === 'min-fresh';
}

/** Returns the time of a directive in milliseconds: 0 if it is invalid, undefined if the directive is absent. */
export function directiveTimeMs(directives: CacheControlDirectives, name: string): number | undefined {
	const text = directives.get(name);
	return text === undefined ? undefined : parseSeconds(text) * 1000;
}

/** Parses a number of seconds; 0 if the text is not a number. */
function parseSeconds(text: string): number {
	return /^\d+$/.test(text) ? Math.min(Number(text), MAX_TIME_SECONDS) : 0;
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
		.map(fieldName => fieldName.trim())
		.filter(fieldName => fieldName !== '');
}
