/** The two log formats, `json` and `console`. A value can never begin a new line or move a terminal's cursor. */
import type { PlainLogFormat } from '../../compiler/modules/providers/log-formats/log-format.ts';
import type { LogLevel } from '../threads/messages.ts';
import { wallTime, writeTime } from './time-text.ts';

/** Turns one entry into one line, its line end included. */
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

/** An encoder without settings of its own. */
export function encoderOf(name: 'console' | 'json'): Encoder {
	return name === 'json' ? usualJson() : CONSOLE_ENCODER;
}

/** The encoder of `console` or `json` with settings of its own. */
export function plainEncoder(name: 'console' | 'json', settings: PlainLogFormat): Encoder {
	const { encoder: _, caller_key: _caller, stacktrace_key: _stack, duration_format: _duration, ...rest } = settings;
	if (Object.keys(rest).length === 0) return encoderOf(name);
	return name === 'json' ? jsonEncoder(rest) : consoleEncoder(rest);
}

function usualJson(): Encoder {
	// Many entries are of one millisecond, and numbers are slow to write.
	let last = Number.NaN;
	let seconds = '';
	// So are those of one logger that say the same.
	let lastLogger = '';
	let lastMessage = '';
	let named = '"logger":"","msg":""';
	return {
		encode(level, logger, message, fields, at) {
			if (at !== last) {
				last = at;
				seconds = String(at / 1000);
			}
			if (logger !== lastLogger || message !== lastMessage) {
				lastLogger = logger;
				lastMessage = message;
				named = flat(`"logger":${text(logger)},"msg":${text(message)}`);
			}
			if (fields === '') return `{"level":"${level}","ts":${seconds},${named}}\n`;
			return `{"level":"${level}","ts":${seconds},${named},${fields}}\n`;
		},
	};
}

const CONSOLE_ENCODER: Encoder = {
	encode(level, logger, message, fields, at) {
		const head = `${wallTime(at)}\t${level.toUpperCase()}\t${printable(logger)}\t${printable(message)}`;
		return fields === '' ? `${head}\n` : `${head}\t{${fields}}\n`;
	},
};

type Settings = Omit<PlainLogFormat, 'encoder'>;

function jsonEncoder(settings: Settings): Encoder {
	const { level_key = 'level', time_key = 'ts', name_key = 'logger', message_key = 'msg' } = settings;
	const time = writeTime(settings.time_format ?? 'unix_seconds_float', settings.time_local === true);
	const end = `}${settings.line_ending ?? '\n'}`;
	return {
		encode(level, logger, message, fields, at) {
			const parts: string[] = [];
			if (level_key !== '')
				parts.push(`${text(level_key)}:${text(levelText(level, settings.level_format ?? 'lower'))}`);
			if (time_key !== '') {
				const value = time(at);
				parts.push(`${text(time_key)}:${typeof value === 'number' ? value : text(value)}`);
			}
			if (name_key !== '') parts.push(`${text(name_key)}:${text(logger)}`);
			if (message_key !== '') parts.push(`${text(message_key)}:${text(message)}`);
			if (fields !== '') parts.push(fields);
			return `{${parts.join(',')}${end}`;
		},
	};
}

function consoleEncoder(settings: Settings): Encoder {
	const time = writeTime(settings.time_format ?? 'wall_milli', settings.time_local === true);
	const end = settings.line_ending ?? '\n';
	return {
		encode(level, logger, message, fields, at) {
			const parts: string[] = [];
			if (settings.time_key !== '') parts.push(printable(String(time(at))));
			if (settings.level_key !== '') parts.push(levelText(level, settings.level_format ?? 'upper'));
			if (settings.name_key !== '') parts.push(printable(logger));
			if (settings.message_key !== '') parts.push(printable(message));
			if (fields !== '') parts.push(`{${fields}}`);
			return `${parts.join('\t')}${end}`;
		},
	};
}

const COLORS: { readonly [level in LogLevel]: number } = { debug: 35, info: 34, warn: 33, error: 31 };

function levelText(level: LogLevel, format: 'lower' | 'upper' | 'color'): string {
	if (format === 'lower') return level;
	return format === 'upper' ? level.toUpperCase() : `\u001b[${COLORS[level]}m${level.toUpperCase()}\u001b[0m`;
}

/** JSON of a string. Control characters above ASCII and line separators, which JSON may hold raw, are escaped too. */
export function text(value: string): string {
	if (PLAIN.test(value)) return `"${value}"`;
	const json = JSON.stringify(value);
	return RISKY.test(json) ? json.replace(ALL_RISKY, escaped) : json;
}

/** The text in one piece: one that is put together is looked at piece by piece by everything that it becomes part of. */
export function flat(value: string): string {
	value.charCodeAt(0);
	return value;
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

// What nearly every text is: nothing in it to escape.
const PLAIN = /^[ !#-[\]-~]*$/;
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
