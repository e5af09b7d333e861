/** Selects among stored responses by `Vary`, with fields normalized (RFC 9111 §4.1). */
import { trimBlanks } from '../../../exchange/field-syntax.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { CachedResponse } from '../../../exchange/response-cache.ts';

/** Content codings of responses, in canonical order. */
const CODINGS = ['zstd', 'br', 'gzip', 'deflate'] as const;

/** Returns the lower-case names of the fields that select a response: those of its `Vary` and the configured ones. */
export function selectingNames(headers: HeaderList, always: readonly string[]): readonly string[] {
	const vary = headers.combined('vary');
	if (vary === undefined) return always;
	const names = new Set(always);
	for (const part of vary.toLowerCase().split(',')) {
		const name = part.trim();
		if (name !== '') names.add(name);
	}
	return [...names].sort();
}

/** A `Vary` with more fields than this is useless for selection. */
export const MAX_SELECTING_FIELDS = 32;

/** Prefix of a value that is compared verbatim. */
const AS_IT_CAME = '\u0001';

/**
 * Returns alternating names and values for a response received with these fields. A response in an uncommon coding is only for
 * requests that list exactly the same codings.
 */
export function selectingValues(names: readonly string[], request: HeaderList, response: HeaderList): string[] {
	const values: string[] = [];
	const isKnown = (response.combined('content-encoding') ?? '')
		.toLowerCase()
		.split(',')
		.every(coding => ['', 'identity', 'x-gzip', ...CODINGS].includes(coding.trim()));
	for (const name of names) {
		const value = request.combined(name);
		if (name !== 'accept-encoding' || isKnown || value === undefined)
			values.push(name, normalizeSelectingValue(name, value));
		else values.push(name, AS_IT_CAME + value);
	}
	return values;
}

/** Returns the newest stored response whose selecting fields match the request. */
export function selectStoredResponse(
	stored: readonly CachedResponse[],
	request: HeaderList,
): CachedResponse | undefined {
	let found: CachedResponse | undefined;
	// Variants of one URL mostly name the same fields, so each value is normalized once.
	const known = stored.length > 1 ? new Map<string, string>() : undefined;
	for (let i = 0; i < stored.length; i++) {
		const one = stored[i]!;
		if (!matches(one.head.selecting, request, known)) continue;
		if (found === undefined || one.head.storedAt > found.head.storedAt) found = one;
	}
	return found;
}

function matches(selecting: readonly string[], request: HeaderList, known: Map<string, string> | undefined): boolean {
	for (let i = 0; i < selecting.length; i += 2) {
		const name = selecting[i]!;
		const wanted = selecting[i + 1]!;
		if (wanted.startsWith(AS_IT_CAME)) {
			if (AS_IT_CAME + request.combined(name) !== wanted) return false;
			continue;
		}
		let is = known?.get(name);
		if (is === undefined) {
			is = normalizeSelectingValue(name, request.combined(name));
			known?.set(name, is);
		}
		if (is !== wanted) return false;
	}
	return true;
}

/** Lists in which white space between members is irrelevant. In unknown fields, the meaning of a comma is unknown. */
const LISTS: ReadonlySet<string> = new Set(['cache-control', 'te']);

/** Lists of preferences by weight, whose order is irrelevant (RFC 9110 §12.5). */
const PREFERENCES: ReadonlySet<string> = new Set(['accept', 'accept-charset', 'accept-language']);

/** Normalizes a value for selection. An absent field is '\0', which no value can be. */
export function normalizeSelectingValue(name: string, value: string | undefined): string {
	if (value === undefined) return '\0';
	if (name === 'accept-encoding') return acceptedCodings(value);
	if (PREFERENCES.has(name)) return preferences(value, name !== 'accept');
	if (!LISTS.has(name)) return value.trim();
	return value
		.trim()
		.split(',')
		.map(trimBlanks)
		.join(',')
		.replace(/[ \t]+/g, ' ');
}

/** Maximum characters of a value to parse; browsers send far fewer. */
const MAX_PREFERENCES = 1024;

const RANGE = /[ \t,]*([^ \t,;"]+)((?:[ \t]*;[ \t]*[^ \t,;="]+(?:=(?:"(?:[^"\\]|\\.)*"|[^ \t,;"]*))?)*)[ \t]*(?:,|$)/y;
const PARAMETER = /[^ \t,;="]+(?:=(?:"(?:[^"\\]|\\.)*"|[^ \t,;"]*))?/g;

/**
 * Returns the preferred ranges with their weights in canonical order. A value that cannot be parsed is returned verbatim.
 * `caseless` ignores the case of parameters, which is significant for media types.
 */
function preferences(value: string, caseless: boolean): string {
	const ranges: string[] = [];
	let at = 0;
	const text = value.trim();
	if (text.length > MAX_PREFERENCES) return text;
	while (at < text.length) {
		RANGE.lastIndex = at;
		const match = RANGE.exec(text);
		if (!match) return text;
		at = RANGE.lastIndex;
		let weight = '1';
		let range = match[1]!.toLowerCase();
		for (const [parameter] of match[2]!.matchAll(PARAMETER)) {
			const weighed = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i.exec(parameter);
			if (weighed) weight = String(Number(weighed[1]));
			else range += `;${caseless ? parameter.toLowerCase() : parameter}`;
		}
		ranges.push(`${range};q=${weight}`);
	}
	return ranges.sort().join(',');
}

/** Returns the accepted codings, without order and weights. */
function acceptedCodings(value: string): string {
	const text = value.toLowerCase();
	const taken: string[] = [];
	let rest = true;
	let anything = false;
	const named = new Map<string, boolean>();
	for (const part of text.split(',')) {
		const [coding, ...parameters] = part.split(';');
		const refused = parameters.some(one => /^[ \t]*q=0(?:\.0{0,3})?[ \t]*$/.test(one));
		const name = coding!.trim();
		if (name === '*') anything = !refused;
		if (name === 'identity' || name === '*')
			rest = name === 'identity' ? !refused : rest && !(refused && !named.has('identity'));
		named.set(name === 'x-gzip' ? 'gzip' : name, !refused);
	}
	for (const coding of CODINGS) if (named.get(coding) ?? anything) taken.push(coding);
	return `${taken.join(',')}${rest ? '' : ';identity=0'}`;
}
