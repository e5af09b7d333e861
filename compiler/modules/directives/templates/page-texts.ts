/** Text functions for pages: stripping tags, front matter, human-readable sizes and times, paths. */
import { toTemplateValue } from '../../templates/json-text.ts';
import { FunctionError, Suspension } from '../../templates/template-error.ts';
import { parseTime } from '../../templates/time-layout.ts';
import type { Dictionary, Value } from '../../templates/value.ts';

/**
 * Returns HTML without its tags. Nested `<` are matched with their `>`, so that the remaining text cannot form a tag: `<<>b>`
 * becomes empty. An unclosed `<` removes everything after it.
 */
export function stripHtml(html: string): string {
	let output = '';
	let depth = 0;
	let quote = '';
	for (const character of html) {
		if (quote !== '') {
			if (character === quote) quote = '';
		} else if (depth > 0 && (character === '"' || character === "'")) quote = character;
		else if (character === '<') depth++;
		else if (character === '>' && depth > 0) depth--;
		else if (depth === 0) output += character;
	}
	return output;
}

/** The data of a text's front matter, and the text after the front matter. */
export interface FrontMatter {
	readonly meta: Dictionary;
	readonly body: string;
}

/** Parses one format of front matter. Throws an Error that says what is wrong, or Suspension while the library is loading. */
export type FrontMatterParser = (text: string) => unknown;

/** The front matter parsers that need a library. */
export interface FrontMatterParsers {
	readonly yaml: FrontMatterParser;
	readonly toml: FrontMatterParser;
}

/** The formats of front matter, by their opening line. */
const FRONT_MATTER_FORMATS: {
	readonly [open: string]: {
		readonly name: string;
		readonly closingLines: readonly string[];
		readonly selectParser: (parsers: FrontMatterParsers) => FrontMatterParser;
	};
} = {
	'---': { name: 'YAML', closingLines: ['---', '...'], selectParser: ({ yaml }) => yaml },
	'+++': { name: 'TOML', closingLines: ['+++'], selectParser: ({ toml }) => toml },
	'{': { name: 'JSON', closingLines: ['}'], selectParser: () => text => JSON.parse(`{${text}}`) },
};

/** Splits a text into front matter and body. Throws FunctionError, or Suspension while a library is loading. */
export function splitFrontMatter(input: string, parsers: FrontMatterParsers): FrontMatter {
	const lineEnd = input.indexOf('\n');
	const firstLine = (lineEnd === -1 ? input : input.slice(0, lineEnd)).trim();
	const format = Object.hasOwn(FRONT_MATTER_FORMATS, firstLine) ? FRONT_MATTER_FORMATS[firstLine] : undefined;
	if (!format || lineEnd === -1) return { meta: new Map(), body: input };
	const afterOpeningLine = input.slice(lineEnd);
	for (const closingLine of format.closingLines) {
		const closingOffset = afterOpeningLine.indexOf(`\n${closingLine}`);
		if (closingOffset === -1) continue;
		const parse = format.selectParser(parsers);
		let meta: Value;
		try {
			meta = toTemplateValue(parse(afterOpeningLine.slice(0, closingOffset)), false);
		} catch (error) {
			if (error instanceof Suspension) throw error;
			throw new FunctionError(`${format.name} front matter: ${(error as Error).message}`);
		}
		return {
			meta: meta instanceof Map ? meta : new Map(),
			body: afterOpeningLine.slice(closingOffset + 1 + closingLine.length),
		};
	}
	throw new FunctionError('unterminated front matter');
}

const SIZE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];

/** Formats a number of bytes: `82854982` as `83 MB`. Below 10, a unit larger than bytes gets one decimal: `1.5 kB`. */
export function formatByteSize(bytes: bigint): string {
	if (bytes < 10n) return `${bytes} B`;
	let unitIndex = 0;
	let valueInUnit = Number(bytes);
	while (valueInUnit >= 1000 && unitIndex < SIZE_UNITS.length - 1) {
		valueInUnit /= 1000;
		unitIndex++;
	}
	valueInUnit = Math.floor(valueInUnit * 10 + 0.5) / 10;
	return `${valueInUnit < 10 ? valueInUnit.toFixed(1) : valueInUnit.toFixed(0)} ${SIZE_UNITS[unitIndex]}`;
}

const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 60 * MINUTE_SECONDS;
const DAY_SECONDS = 24 * HOUR_SECONDS;
const WEEK_SECONDS = 7 * DAY_SECONDS;
const MONTH_SECONDS = 30 * DAY_SECONDS;
const YEAR_SECONDS = 12 * MONTH_SECONDS;

/** Units of time. A time that is less than `below` seconds away is described in the unit, which is `unit` seconds long. */
const TIME_UNITS: readonly (readonly [below: number, unit: number, one: string, many: string])[] = [
	[MINUTE_SECONDS, 1, '1 second', 'seconds'],
	[HOUR_SECONDS, MINUTE_SECONDS, '1 minute', 'minutes'],
	[DAY_SECONDS, HOUR_SECONDS, '1 hour', 'hours'],
	[WEEK_SECONDS, DAY_SECONDS, '1 day', 'days'],
	[MONTH_SECONDS, WEEK_SECONDS, '1 week', 'weeks'],
	[YEAR_SECONDS, MONTH_SECONDS, '1 month', 'months'],
	[37 * YEAR_SECONDS, YEAR_SECONDS, '1 year', 'years'],
];

/** Describes how long ago, or how far in the future, a time is. `time` and `now` are milliseconds since 1970. */
function formatRelativeTime(time: number, now: number): string {
	const seconds = Math.floor(Math.abs(now - time) / 1000);
	const direction = time > now ? 'from now' : 'ago';
	if (seconds < 1) return 'now';
	const timeUnit = TIME_UNITS.find(([maxSeconds]) => seconds < maxSeconds);
	if (!timeUnit) return `a long while ${direction}`;
	const [, unit, singular, plural] = timeUnit;
	const count = Math.floor(seconds / unit);
	return `${count <= 1 ? singular : `${count} ${plural}`} ${direction}`;
}

const RFC1123Z_LAYOUT = 'Mon, 02 Jan 2006 15:04:05 -0700';

/** Implements `humanize`. The format is `size` for a number of bytes, `time` or `time:LAYOUT` for a date. Throws FunctionError. */
export function humanize(format: string, data: string, nowMs: number): string {
	const colon = format.indexOf(':');
	const formatKind = colon === -1 ? format : format.slice(0, colon);
	if (formatKind === 'size') {
		if (!/^\d{1,20}$/.test(data)) throw new FunctionError(`humanize: size cannot be parsed: "${data}"`);
		return formatByteSize(BigInt(data));
	}
	if (formatKind !== 'time') throw new FunctionError('no known function was given');
	const parsedTime = parseTime(data, colon === -1 ? RFC1123Z_LAYOUT : format.slice(colon + 1), 'UTC');
	if (!parsedTime) throw new FunctionError(`humanize: time cannot be parsed: "${data}"`);
	return formatRelativeTime(parsedTime.time, nowMs);
}

/** Percent-encodes a path segment. */
export function pathEscape(text: string): string {
	return text.replace(/[^A-Za-z0-9\-._~$&+=:@]/gu, character =>
		[...Buffer.from(character)].map(byte => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
	);
}
