/** Evaluates conditional requests: entity tags, HTTP dates and the precedence of preconditions (RFC 9110 §13). */
import type { HeaderList } from '../../exchange/header-list.ts';

/** The validators of a representation, with which preconditions are compared. */
export interface Validators {
	/** Entity tag with its quotes, or undefined if the response has no tag. */
	readonly etag: string | undefined;
	/** Last modification in whole seconds since the epoch; undefined when unknown. */
	readonly modified: number | undefined;
}

/** How to answer a conditional request: `proceed` as if there were no preconditions, `not-modified` with 304, `failed` with 412. */
export type PreconditionResult = 'proceed' | 'not-modified' | 'failed';

const DAY_NAMES = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const LOWER_MONTH_NAMES = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const MONTH_PATTERN = `(${LOWER_MONTH_NAMES.join('|')})`;
const TIME_PATTERN = '(\\d{2}):(\\d{2}):(\\d{2})';
const IMF_FIXDATE = new RegExp(`^${DAY_NAMES}, (\\d{2}) ${MONTH_PATTERN} (\\d{4}) ${TIME_PATTERN} GMT$`, 'i');
const RFC850_DATE = new RegExp(
	`^(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday), (\\d{2})-${MONTH_PATTERN}-(\\d{2}) ${TIME_PATTERN} GMT$`,
	'i',
);
const ASCTIME_DATE = new RegExp(`^${DAY_NAMES} ${MONTH_PATTERN} ([ \\d]\\d) ${TIME_PATTERN} (\\d{4})$`, 'i');

/**
 * Returns the seconds since the epoch of an HTTP-date in any of its three forms (RFC 9110 §5.6.7), or undefined for other text.
 * Names are case-insensitive, as recommended for caches (RFC 9111 §4.2). `nowMs`, in milliseconds, determines the century of a
 * two-digit year.
 */
export function parseHttpDate(text: string, nowMs: number): number | undefined {
	let match = IMF_FIXDATE.exec(text);
	if (match) return secondsOfDate(Number(match[3]), match[2]!, match[1]!, match[4]!, match[5]!, match[6]!);
	match = RFC850_DATE.exec(text);
	if (match) {
		const thisYear = new Date(nowMs).getUTCFullYear();
		let year = Math.floor(thisYear / 100) * 100 + Number(match[3]);
		if (year > thisYear + 50) year -= 100;
		return secondsOfDate(year, match[2]!, match[1]!, match[4]!, match[5]!, match[6]!);
	}
	match = ASCTIME_DATE.exec(text);
	if (match) return secondsOfDate(Number(match[6]), match[1]!, match[2]!, match[3]!, match[4]!, match[5]!);
	return undefined;
}

function secondsOfDate(
	year: number,
	month: string,
	day: string,
	hour: string,
	minute: string,
	second: string,
): number | undefined {
	if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined;
	const date = new Date(0);
	date.setUTCFullYear(year, LOWER_MONTH_NAMES.indexOf(month.toLowerCase()), Number(day));
	if (date.getUTCDate() !== Number(day)) return undefined;
	date.setUTCHours(Number(hour), Number(minute), Number(second));
	return date.getTime() / 1000;
}

/**
 * Reports whether a list of entity tags (`*`, or `"a", W/"b"`) contains `etag`. If `isStrong`, tags are compared strongly, as in
 * If-Match: a weak tag is never equal to another tag. Otherwise only the parts in quotes are compared (RFC 9110 §8.8.3.2). Parsing
 * stops at the first malformed member.
 */
export function etagListHas(tagList: string, etag: string | undefined, isStrong: boolean): boolean {
	const trimmedList = tagList.trim();
	if (trimmedList === '*') return true;
	if (etag === undefined) return false;
	const isWeak = etag.startsWith('W/');
	if (isStrong && isWeak) return false;
	const opaqueTag = isWeak ? etag.slice(2) : etag;
	let position = 0;
	while (position < trimmedList.length) {
		const character = trimmedList[position];
		if (character === ' ' || character === '\t' || character === ',') {
			position += 1;
			continue;
		}
		const isMemberWeak = trimmedList.startsWith('W/', position);
		const tagStart = isMemberWeak ? position + 2 : position;
		if (trimmedList[tagStart] !== '"') return false;
		const tagEnd = trimmedList.indexOf('"', tagStart + 1);
		if (tagEnd === -1) return false;
		if (!(isStrong && isMemberWeak) && trimmedList.slice(tagStart, tagEnd + 1) === opaqueTag) return true;
		position = tagEnd + 1;
	}
	return false;
}

/** Returns the entity tags in a list verbatim; an empty array for `*`. Parsing stops at the first malformed member. */
export function parseEntityTags(tagList: string): string[] {
	const tags: string[] = [];
	const memberPattern = /[ \t,]*((?:W\/)?"[^"]*")/y;
	for (let match = memberPattern.exec(tagList); match; match = memberPattern.exec(tagList)) tags.push(match[1]!);
	return tags;
}

/** Fields that a 304 omits because they describe content that is not sent (RFC 9110 §15.4.5). */
const CONTENT_FIELDS: ReadonlySet<string> = new Set([
	...['content-type', 'content-encoding', 'content-language', 'content-range', 'content-disposition', 'accept-ranges'],
	...['content-length', 'content-md5', 'content-digest', 'digest'],
]);

/** Removes the header fields that describe content, for a response without content. */
export function omitContentFields(headers: HeaderList): void {
	headers.filter(name => !CONTENT_FIELDS.has(name.toLowerCase()));
}

/**
 * Evaluates the preconditions of a GET or HEAD in the order of RFC 9110 §13.2.2: If-Match or, in its absence, If-Unmodified-Since;
 * then If-None-Match or, in its absence, If-Modified-Since. An unreadable date is treated as absent. `nowMs` is in milliseconds.
 */
export function evaluatePreconditions(headers: HeaderList, validators: Validators, nowMs: number): PreconditionResult {
	const ifMatch = headers.getCombined('if-match');
	if (ifMatch !== undefined) {
		if (!etagListHas(ifMatch, validators.etag, true)) return 'failed';
	} else {
		const since = parseDateField(headers, 'if-unmodified-since', nowMs);
		if (since !== undefined && validators.modified !== undefined && validators.modified > since) return 'failed';
	}
	const ifNoneMatch = headers.getCombined('if-none-match');
	if (ifNoneMatch !== undefined) {
		return etagListHas(ifNoneMatch, validators.etag, false) ? 'not-modified' : 'proceed';
	}
	const since = parseDateField(headers, 'if-modified-since', nowMs);
	if (since !== undefined && validators.modified !== undefined && validators.modified <= since) return 'not-modified';
	return 'proceed';
}

/**
 * Parses a header field whose value is a date, as seconds since the epoch. A repeated field is not a date, so it is ignored (RFC
 * 9110 §13.1.3).
 */
function parseDateField(headers: HeaderList, lowerName: string, nowMs: number): number | undefined {
	const dateText = headers.getCombined(lowerName);
	return dateText === undefined ? undefined : parseHttpDate(dateText.trim(), nowMs);
}

/**
 * Reports whether `Range` is to be obeyed: there is no If-Range, or its validator matches the current representation. Entity tags
 * are compared strongly. A date must be equal to the modification date and at least a second in the past; otherwise it is not a
 * strong validator (RFC 9110 §13.1.5, §8.8.2.2).
 */
export function rangeApplies(headers: HeaderList, validators: Validators, nowMs: number): boolean {
	const ifRange = headers.getCombined('if-range')?.trim();
	if (ifRange === undefined) return true;
	if (ifRange.startsWith('"')) return ifRange === validators.etag;
	if (validators.modified === undefined) return false;
	const date = parseHttpDate(ifRange, nowMs);
	return date === validators.modified && nowMs / 1000 - date >= 1;
}
