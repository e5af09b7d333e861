/** Selects among stored responses by `Vary`, with fields normalized (RFC 9111 §4.1). */
import { trimBlanks } from '../../../exchange/field-syntax.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { CachedResponse } from '../../../exchange/response-cache.ts';

/** Content codings of responses, in canonical order. */
const CONTENT_CODINGS = ['zstd', 'br', 'gzip', 'deflate'] as const;

/** Returns the lower-case names of the request fields that select a response: those in its `Vary`, and `configuredNames`. */
export function selectingNames(headers: HeaderList, configuredNames: readonly string[]): readonly string[] {
	const vary = headers.getCombined('vary');
	if (vary === undefined) return configuredNames;
	const names = new Set(configuredNames);
	for (const part of vary.toLowerCase().split(',')) {
		const name = part.trim();
		if (name !== '') names.add(name);
	}
	return [...names].sort();
}

/** A `Vary` with more fields than this is useless for selection. */
export const MAX_SELECTING_FIELDS = 32;

/** Prefix that marks a selecting value as compared verbatim, without normalization. */
const VERBATIM_PREFIX = '\u0001';

/**
 * Returns alternating names and values of the selecting fields in `requestHeaders`. A response in an uncommon coding is only for
 * requests with exactly the same `Accept-Encoding`.
 */
export function selectingValues(
	names: readonly string[],
	requestHeaders: HeaderList,
	responseHeaders: HeaderList,
): string[] {
	const values: string[] = [];
	const hasKnownCodings = (responseHeaders.getCombined('content-encoding') ?? '')
		.toLowerCase()
		.split(',')
		.every(coding => ['', 'identity', 'x-gzip', ...CONTENT_CODINGS].includes(coding.trim()));
	for (const name of names) {
		const value = requestHeaders.getCombined(name);
		if (name !== 'accept-encoding' || hasKnownCodings || value === undefined)
			values.push(name, normalizeSelectingValue(name, value));
		else values.push(name, VERBATIM_PREFIX + value);
	}
	return values;
}

/** Returns the newest stored response whose selecting fields match the request. */
export function selectStoredResponse(
	storedResponses: readonly CachedResponse[],
	requestHeaders: HeaderList,
): CachedResponse | undefined {
	let newest: CachedResponse | undefined;
	// Variants of one URL usually select by the same fields, so each value of the request is normalized only once.
	const normalizedValues = storedResponses.length > 1 ? new Map<string, string>() : undefined;
	for (let i = 0; i < storedResponses.length; i++) {
		const candidate = storedResponses[i]!;
		if (!matchesRequest(candidate.head.selecting, requestHeaders, normalizedValues)) continue;
		if (newest === undefined || candidate.head.storedAt > newest.head.storedAt) newest = candidate;
	}
	return newest;
}

function matchesRequest(
	selectingValues: readonly string[],
	requestHeaders: HeaderList,
	normalizedValues: Map<string, string> | undefined,
): boolean {
	for (let i = 0; i < selectingValues.length; i += 2) {
		const name = selectingValues[i]!;
		const storedValue = selectingValues[i + 1]!;
		if (storedValue.startsWith(VERBATIM_PREFIX)) {
			if (VERBATIM_PREFIX + requestHeaders.getCombined(name) !== storedValue) return false;
			continue;
		}
		let requestValue = normalizedValues?.get(name);
		if (requestValue === undefined) {
			requestValue = normalizeSelectingValue(name, requestHeaders.getCombined(name));
			normalizedValues?.set(name, requestValue);
		}
		if (requestValue !== storedValue) return false;
	}
	return true;
}

/** Fields that are lists, in which spaces between members are irrelevant. In other fields, a comma may have any meaning. */
const LIST_FIELDS: ReadonlySet<string> = new Set(['cache-control', 'te']);

/** Fields that list preferences with weights. The order of the preferences is irrelevant (RFC 9110 §12.5). */
const PREFERENCE_FIELDS: ReadonlySet<string> = new Set(['accept', 'accept-charset', 'accept-language']);

/** Normalizes a field's value for selection. Returns '\0', which is never a valid value, if the field is absent. */
export function normalizeSelectingValue(name: string, value: string | undefined): string {
	if (value === undefined) return '\0';
	if (name === 'accept-encoding') return normalizeAcceptEncoding(value);
	if (PREFERENCE_FIELDS.has(name)) return normalizePreferences(value, name !== 'accept');
	if (!LIST_FIELDS.has(name)) return value.trim();
	return value
		.trim()
		.split(',')
		.map(trimBlanks)
		.join(',')
		.replace(/[ \t]+/g, ' ');
}

/** Maximum number of characters of a list of preferences; longer lists are compared as they are. Browsers send far fewer. */
const MAX_PREFERENCES_LENGTH = 1024;

const WEIGHTED_RANGE =
	/[ \t,]*([^ \t,;"]+)((?:[ \t]*;[ \t]*[^ \t,;="]+(?:=(?:"(?:[^"\\]|\\.)*"|[^ \t,;"]*))?)*)[ \t]*(?:,|$)/y;
const RANGE_PARAMETER = /[^ \t,;="]+(?:=(?:"(?:[^"\\]|\\.)*"|[^ \t,;"]*))?/g;

/**
 * Returns the ranges in a list of preferences, with their weights, in canonical order. A value that cannot be parsed is returned
 * verbatim. `ignoreParameterCase` is false for media types, in which the case of parameters is significant.
 */
function normalizePreferences(value: string, ignoreParameterCase: boolean): string {
	const normalizedRanges: string[] = [];
	let offset = 0;
	const trimmedValue = value.trim();
	if (trimmedValue.length > MAX_PREFERENCES_LENGTH) return trimmedValue;
	while (offset < trimmedValue.length) {
		WEIGHTED_RANGE.lastIndex = offset;
		const match = WEIGHTED_RANGE.exec(trimmedValue);
		if (!match) return trimmedValue;
		offset = WEIGHTED_RANGE.lastIndex;
		let weight = '1';
		let range = match[1]!.toLowerCase();
		for (const [parameter] of match[2]!.matchAll(RANGE_PARAMETER)) {
			const weightMatch = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i.exec(parameter);
			if (weightMatch) weight = String(Number(weightMatch[1]));
			else range += `;${ignoreParameterCase ? parameter.toLowerCase() : parameter}`;
		}
		normalizedRanges.push(`${range};q=${weight}`);
	}
	return normalizedRanges.sort().join(',');
}

/** Returns the content codings that `Accept-Encoding` accepts, in canonical order and without weights. */
function normalizeAcceptEncoding(value: string): string {
	const text = value.toLowerCase();
	const acceptedCodings: string[] = [];
	let acceptsIdentity = true;
	let acceptsOthers = false;
	const acceptanceByCoding = new Map<string, boolean>();
	for (const part of text.split(',')) {
		const [coding, ...parameters] = part.split(';');
		const isRefused = parameters.some(parameter => /^[ \t]*q=0(?:\.0{0,3})?[ \t]*$/.test(parameter));
		const codingName = coding!.trim();
		if (codingName === '*') acceptsOthers = !isRefused;
		if (codingName === 'identity' || codingName === '*')
			acceptsIdentity =
				codingName === 'identity' ? !isRefused : acceptsIdentity && !(isRefused && !acceptanceByCoding.has('identity'));
		acceptanceByCoding.set(codingName === 'x-gzip' ? 'gzip' : codingName, !isRefused);
	}
	for (const coding of CONTENT_CODINGS)
		if (acceptanceByCoding.get(coding) ?? acceptsOthers) acceptedCodings.push(coding);
	return `${acceptedCodings.join(',')}${acceptsIdentity ? '' : ';identity=0'}`;
}
