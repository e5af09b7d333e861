/** The two log formats, `json` and `console`. A value can never begin a new line or move a terminal's cursor. */
import type { LogLevel } from '../threads/messages.ts';

/** Turns one entry into one line, its newline included. */
export interface Encoder {
	/** `fields` is JSON members without the braces (`"a":1,"b":"x"`), '' for none. `at` is milliseconds since the epoch. */
	encode(level: LogLevel, logger: string, message: string, fields: string, at: number): string;
}

/** Rank of a level: an entry is written when its rank is at least that of its log. */
export const LEVEL_RANK: { readonly [level: string]: number } = {
	debug: 0,
	info: 1,
	warn: 2,
	error: 3,
	panic: 4,
	fatal: 5,
};

/** Rank of a level in any case; that of `info` when it is left out. */
export function levelRank(level: string | undefined): number {
	return LEVEL_RANK[(level ?? 'info').toLowerCase()] ?? LEVEL_RANK.info!;
}

/** The encoder of a name; undefined when there is no such one. */
export function encoderOf(name: string): Encoder | undefined {
	if (name === 'json') return JSON_ENCODER;
	if (name === 'console') return CONSOLE_ENCODER;
	return undefined;
}

const JSON_ENCODER: Encoder = {
	encode(level, logger, message, fields, at) {
		const head = `{"level":"${level}","ts":${at / 1000},"logger":${text(logger)},"msg":${text(message)}`;
		return fields === '' ? `${head}}\n` : `${head},${fields}}\n`;
	},
};

const CONSOLE_ENCODER: Encoder = {
	encode(level, logger, message, fields, at) {
		const head = `${wallTime(at)}\t${level.toUpperCase()}\t${printable(logger)}\t${printable(message)}`;
		return fields === '' ? `${head}\n` : `${head}\t{${fields}}\n`;
	},
};

/** JSON of a string. Control characters above ASCII and line separators, which JSON may hold raw, are escaped too. */
export function text(value: string): string {
	const json = JSON.stringify(value);
	return RISKY.test(json) ? json.replace(ALL_RISKY, escaped) : json;
}

/** JSON members of an object, without its braces. Values that are not JSON are left out. */
export function members(fields: { readonly [name: string]: unknown } | undefined): string {
	if (!fields) return '';
	let all = '';
	for (const [name, value] of Object.entries(fields)) {
		const json = JSON.stringify(value);
		if (json === undefined) continue;
		all += `${all === '' ? '' : ','}${text(name)}:${RISKY.test(json) ? json.replace(ALL_RISKY, escaped) : json}`;
	}
	return all;
}

// JSON.stringify escapes C0 itself: what is left are DEL, C1 and the Unicode line separators.
const RISKY = /[\u007f-\u009f\u2028\u2029]/;
const ALL_RISKY = /[\u007f-\u009f\u2028\u2029]/g;
const UNPRINTABLE = /[^\u0020-\u007e\u00a0-\u2027\u202a-\uffff]/g;

function escaped(character: string): string {
	return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Text with every control character escaped. */
function printable(value: string): string {
	return value.replace(UNPRINTABLE, escaped);
}

/** `2026/11/21 05:46:45.123`, local time. */
function wallTime(at: number): string {
	const time = new Date(at);
	const two = (value: number) => (value < 10 ? `0${value}` : String(value));
	const day = `${time.getFullYear()}/${two(time.getMonth() + 1)}/${two(time.getDate())}`;
	const clock = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
	return `${day} ${clock}.${String(time.getMilliseconds()).padStart(3, '0')}`;
}
