/** Directives of `Cache-Control` and its targeted relatives, read (RFC 9111 §5.2, RFC 9213 §2). */

/** Seconds that stand for any longer time (RFC 9111 §1.2.2). */
const LONGEST_SECONDS = 2 ** 31;

/** Directives by name in lower case; a directive without an argument is ''. */
export type Directives = ReadonlyMap<string, string>;

/** No directive at all. */
const NO_DIRECTIVES: Directives = new Map();

/** A dictionary of RFC 9651, of the values that directives have: numbers, strings, tokens, booleans, bytes. */
const BARE =
	'(?:-?\\d{1,15}(?:\\.\\d{1,3})?|"(?:[ !#-\\[\\]-~]|\\\\["\\\\])*"|[A-Za-z*][!#$%&\'*+\\-.^_`|~0-9A-Za-z:/]*|\\?[01]|:[A-Za-z0-9+/=]*:)';
const KEY = '[a-z*][a-z0-9_\\-.*]*';
const MEMBER = `${KEY}(?:=${BARE})?(?: *; *${KEY}(?:=${BARE})?)*`;
const DICTIONARY = new RegExp(`^ *${MEMBER}(?:[ \\t]*,[ \\t]*${MEMBER})* *$`);

/** Whether a text is a structured dictionary: targeted directives that are none do not count (RFC 9213 §2.1). */
export function isDictionary(text: string): boolean {
	return DICTIONARY.test(text);
}

const ITEM = /[\t ]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)(?:[\t ]*=[\t ]*(?:"((?:[^"\\]|\\.)*)"|([^",;\t ]*)))?[^,"]*(?:,|$)/y;

/**
 * Reads a list of directives. Of times that are given twice the shorter counts, and one that cannot be read counts as 0: a
 * mistake must not let a response live longer (RFC 9111 §4.2.1).
 */
export function parseDirectives(text: string | undefined): Directives {
	if (text === undefined || text.trim() === '') return NO_DIRECTIVES;
	const found = new Map<string, string>();
	let at = 0;
	while (at < text.length) {
		ITEM.lastIndex = at;
		const match = ITEM.exec(text);
		if (!match) {
			const comma = text.indexOf(',', at);
			if (comma === -1) break;
			at = comma + 1;
			continue;
		}
		at = ITEM.lastIndex;
		const name = match[1]!.toLowerCase();
		const value = match[2] === undefined ? (match[3] ?? '') : match[2].replace(/\\(.)/g, '$1');
		const before = found.get(name);
		if (before === undefined) found.set(name, value);
		else if (isTime(name)) found.set(name, readSeconds(before) <= readSeconds(value) ? before : value);
		// A field named alone takes nothing from one that stands for all.
		else if (before !== '' && value !== '') found.set(name, `${before},${value}`);
		else found.set(name, '');
	}
	return found;
}

function isTime(name: string): boolean {
	return name === 'max-age' || name === 's-maxage' || name.startsWith('stale-') || name === 'min-fresh';
}

/** Milliseconds of a directive with a time; undefined when it is not there. One that cannot be read is 0. */
export function timeOf(directives: Directives, name: string): number | undefined {
	const text = directives.get(name);
	return text === undefined ? undefined : readSeconds(text) * 1000;
}

/** Whole seconds of a text, 0 when it is none. */
function readSeconds(text: string): number {
	return /^\d+$/.test(text) ? Math.min(Number(text), LONGEST_SECONDS) : 0;
}

/** Field names in the argument of `private` and `no-cache`, in lower case; undefined when the directive stands alone or is not there. */
export function namedFields(directives: Directives, name: string): readonly string[] | undefined {
	const text = directives.get(name);
	if (text === undefined || text === '') return undefined;
	return text
		.toLowerCase()
		.split(',')
		.map(one => one.trim())
		.filter(one => one !== '');
}
