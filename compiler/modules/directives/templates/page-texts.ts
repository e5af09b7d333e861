/** Text functions for pages: stripping tags, front matter, human-readable sizes and times, paths. */
import { toTemplateValue } from '../../templates/json-text.ts';
import { FunctionError, Suspension } from '../../templates/template-error.ts';
import { parseTime } from '../../templates/time-layout.ts';
import type { Dictionary, Value } from '../../templates/value.ts';

/**
 * Returns HTML with its tags removed. Nested `<` are matched with their `>`, so that the rest can never form a tag: `<<>b>`
 * becomes empty. An unclosed `<` removes everything after it.
 */
export function stripHtml(html: string): string {
	let out = '';
	let depth = 0;
	let quote = '';
	for (const c of html) {
		if (quote !== '') {
			if (c === quote) quote = '';
		} else if (depth > 0 && (c === '"' || c === "'")) quote = c;
		else if (c === '<') depth++;
		else if (c === '>' && depth > 0) depth--;
		else if (depth === 0) out += c;
	}
	return out;
}

/** A document and its front matter. */
export interface FrontMatter {
	readonly meta: Dictionary;
	readonly body: string;
}

/**
 * Parses one front matter format; throws an Error whose message says what is wrong, or Suspension while the library is loading.
 */
export type FrontMatterParser = (text: string) => unknown;

/** The front matter parsers that need a library. */
export interface FrontMatterParsers {
	readonly yaml: FrontMatterParser;
	readonly toml: FrontMatterParser;
}

/** The formats of front matter, by their opening line. */
const FORMATS: {
	readonly [open: string]: {
		readonly name: string;
		readonly close: readonly string[];
		readonly parser: (parsers: FrontMatterParsers) => FrontMatterParser;
	};
} = {
	'---': { name: 'YAML', close: ['---', '...'], parser: ({ yaml }) => yaml },
	'+++': { name: 'TOML', close: ['+++'], parser: ({ toml }) => toml },
	'{': { name: 'JSON', close: ['}'], parser: () => text => JSON.parse(`{${text}}`) },
};

/** Splits a document into front matter and body. Throws FunctionError, or Suspension while a library is loading. */
export function splitFrontMatter(input: string, parsers: FrontMatterParsers): FrontMatter {
	const lineEnd = input.indexOf('\n');
	const first = (lineEnd === -1 ? input : input.slice(0, lineEnd)).trim();
	const format = Object.hasOwn(FORMATS, first) ? FORMATS[first] : undefined;
	if (!format || lineEnd === -1) return { meta: new Map(), body: input };
	const rest = input.slice(lineEnd);
	for (const close of format.close) {
		const end = rest.indexOf(`\n${close}`);
		if (end === -1) continue;
		const parse = format.parser(parsers);
		let meta: Value;
		try {
			meta = toTemplateValue(parse(rest.slice(0, end)), false);
		} catch (error) {
			if (error instanceof Suspension) throw error;
			throw new FunctionError(`${format.name} front matter: ${(error as Error).message}`);
		}
		return { meta: meta instanceof Map ? meta : new Map(), body: rest.slice(end + 1 + close.length) };
	}
	throw new FunctionError('unterminated front matter');
}

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];

/** Formats `82854982` as `83 MB`, with one decimal below 10. */
export function humanByteSize(bytes: bigint): string {
	if (bytes < 10n) return `${bytes} B`;
	let power = 0;
	let value = Number(bytes);
	while (value >= 1000 && power < SIZES.length - 1) {
		value /= 1000;
		power++;
	}
	value = Math.floor(value * 10 + 0.5) / 10;
	return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${SIZES[power]}`;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;
const MONTH = 30 * DAY;
const YEAR = 12 * MONTH;

/** Units of time: spans shorter than `below` seconds are given in this unit. */
const SPANS: readonly (readonly [below: number, unit: number, one: string, many: string])[] = [
	[MINUTE, 1, '1 second', 'seconds'],
	[HOUR, MINUTE, '1 minute', 'minutes'],
	[DAY, HOUR, '1 hour', 'hours'],
	[WEEK, DAY, '1 day', 'days'],
	[MONTH, WEEK, '1 week', 'weeks'],
	[YEAR, MONTH, '1 month', 'months'],
	[37 * YEAR, YEAR, '1 year', 'years'],
];

/** Describes how long ago, or how far in the future, a time is. `time` and `now` are milliseconds since 1970. */
function humanTime(time: number, now: number): string {
	const seconds = Math.floor(Math.abs(now - time) / 1000);
	const end = time > now ? 'from now' : 'ago';
	if (seconds < 1) return 'now';
	const span = SPANS.find(([below]) => seconds < below);
	if (!span) return `a long while ${end}`;
	const [, unit, one, many] = span;
	const count = Math.floor(seconds / unit);
	return `${count <= 1 ? one : `${count} ${many}`} ${end}`;
}

const RFC1123Z = 'Mon, 02 Jan 2006 15:04:05 -0700';

/** Implements `humanize`: `size` of a number of bytes, `time` or `time:LAYOUT` of a date. Throws FunctionError. */
export function humanize(format: string, data: string, now: number): string {
	const colon = format.indexOf(':');
	const kind = colon === -1 ? format : format.slice(0, colon);
	if (kind === 'size') {
		if (!/^\d{1,20}$/.test(data)) throw new FunctionError(`humanize: size cannot be parsed: "${data}"`);
		return humanByteSize(BigInt(data));
	}
	if (kind !== 'time') throw new FunctionError('no known function was given');
	const found = parseTime(data, colon === -1 ? RFC1123Z : format.slice(colon + 1), 'UTC');
	if (!found) throw new FunctionError(`humanize: time cannot be parsed: "${data}"`);
	return humanTime(found.time, now);
}

/** Percent-encodes a path segment. */
export function pathEscape(text: string): string {
	return text.replace(/[^A-Za-z0-9\-._~$&+=:@]/gu, c =>
		[...Buffer.from(c)].map(byte => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
	);
}
