/** The log formats `json` and `console`. A value can never start a new line or control a terminal. */
import type { PlainLogFormat } from '../../compiler/document/log-settings.ts';
import type { LogLevel } from './log-entry.ts';
import { createTimeFormatter, formatWallTime } from './time-text.ts';

/** Formats an entry as a line, including its newline. */
export interface LogEncoder {
	/** `fields` are JSON members without braces (`"a":1,"b":"x"`), or ''. `timeMs` is in milliseconds since the epoch. */
	encode(level: LogLevel, logger: string, message: string, fields: string, timeMs: number): string;
}

/** Ranks of levels. A log writes the entries whose rank is at least the rank of the log's level. */
export const LEVEL_RANK: { readonly [level: string]: number } = {
	debug: 0,
	info: 1,
	warn: 2,
	error: 3,
	panic: 4,
	fatal: 5,
};

/** Returns the rank of a level, ignoring case; the rank of `info` if the level is undefined or unknown. */
export function levelRank(level: string | undefined): number {
	return LEVEL_RANK[(level ?? 'info').toLowerCase()] ?? LEVEL_RANK.info!;
}

/** Returns an encoder with default settings. */
export function encoderOf(name: 'console' | 'json'): LogEncoder {
	return name === 'json' ? createDefaultJsonEncoder() : CONSOLE_ENCODER;
}

/** Returns the encoder of `console` or `json` with the given settings. */
export function plainEncoder(name: 'console' | 'json', settings: PlainLogFormat): LogEncoder {
	const {
		encoder: _,
		caller_key: _caller,
		stacktrace_key: _stack,
		duration_format: _duration,
		...otherSettings
	} = settings;
	if (Object.keys(otherSettings).length === 0) return encoderOf(name);
	return name === 'json' ? jsonEncoder(otherSettings) : consoleEncoder(otherSettings);
}

function createDefaultJsonEncoder(): LogEncoder {
	// Caches the last time as text, because formatting numbers is slow and many entries have the same millisecond.
	let lastTime = Number.NaN;
	let secondsText = '';
	// Caches the last logger and message as JSON, because many entries have the same ones.
	let lastLogger = '';
	let lastMessage = '';
	let loggerAndMessage = '"logger":"","msg":""';
	return {
		encode(level, logger, message, fields, timeMs) {
			if (timeMs !== lastTime) {
				lastTime = timeMs;
				secondsText = String(timeMs / 1000);
			}
			if (logger !== lastLogger || message !== lastMessage) {
				lastLogger = logger;
				lastMessage = message;
				loggerAndMessage = flattenString(`"logger":${jsonString(logger)},"msg":${jsonString(message)}`);
			}
			if (fields === '') return `{"level":"${level}","ts":${secondsText},${loggerAndMessage}}\n`;
			return `{"level":"${level}","ts":${secondsText},${loggerAndMessage},${fields}}\n`;
		},
	};
}

const CONSOLE_ENCODER: LogEncoder = {
	encode(level, logger, message, fields, timeMs) {
		const linePrefix = `${formatWallTime(timeMs)}\t${level.toUpperCase()}\t${escapeControls(logger)}\t${escapeControls(message)}`;
		return fields === '' ? `${linePrefix}\n` : `${linePrefix}\t{${fields}}\n`;
	},
};

type Settings = Omit<PlainLogFormat, 'encoder'>;

function jsonEncoder(settings: Settings): LogEncoder {
	const { level_key = 'level', time_key = 'ts', name_key = 'logger', message_key = 'msg' } = settings;
	const formatEntryTime = createTimeFormatter(
		settings.time_format ?? 'unix_seconds_float',
		settings.time_local === true,
	);
	const lineEnd = `}${settings.line_ending ?? '\n'}`;
	return {
		encode(level, logger, message, fields, timeMs) {
			const parts: string[] = [];
			if (level_key !== '')
				parts.push(`${jsonString(level_key)}:${jsonString(levelText(level, settings.level_format ?? 'lower'))}`);
			if (time_key !== '') {
				const value = formatEntryTime(timeMs);
				parts.push(`${jsonString(time_key)}:${typeof value === 'number' ? value : jsonString(value)}`);
			}
			if (name_key !== '') parts.push(`${jsonString(name_key)}:${jsonString(logger)}`);
			if (message_key !== '') parts.push(`${jsonString(message_key)}:${jsonString(message)}`);
			if (fields !== '') parts.push(fields);
			return `{${parts.join(',')}${lineEnd}`;
		},
	};
}

function consoleEncoder(settings: Settings): LogEncoder {
	const formatEntryTime = createTimeFormatter(settings.time_format ?? 'wall_milli', settings.time_local === true);
	const lineEnd = settings.line_ending ?? '\n';
	return {
		encode(level, logger, message, fields, timeMs) {
			const parts: string[] = [];
			if (settings.time_key !== '') parts.push(escapeControls(String(formatEntryTime(timeMs))));
			if (settings.level_key !== '') parts.push(levelText(level, settings.level_format ?? 'upper'));
			if (settings.name_key !== '') parts.push(escapeControls(logger));
			if (settings.message_key !== '') parts.push(escapeControls(message));
			if (fields !== '') parts.push(`{${fields}}`);
			return `${parts.join('\t')}${lineEnd}`;
		},
	};
}

const COLORS: { readonly [level in LogLevel]: number } = { debug: 35, info: 34, warn: 33, error: 31 };

function levelText(level: LogLevel, format: 'lower' | 'upper' | 'color'): string {
	if (format === 'lower') return level;
	return format === 'upper' ? level.toUpperCase() : `\u001b[${COLORS[level]}m${level.toUpperCase()}\u001b[0m`;
}

/** Returns the JSON of a string. Also escapes DEL, C1 controls and line separators, which JSON does not require to be escaped. */
export function jsonString(value: string): string {
	if (SAFE_STRING.test(value)) return `"${value}"`;
	const json = JSON.stringify(value);
	return UNSAFE_CHARACTER.test(json) ? json.replace(UNSAFE_CHARACTERS, unicodeEscape) : json;
}

/** Flattens a string that was made by concatenation. Otherwise every later use would traverse its parts (a rope). */
export function flattenString(value: string): string {
	value.charCodeAt(0);
	return value;
}

/** Returns the JSON members of an object, without braces. Values that JSON cannot represent are omitted. */
export function jsonMembers(fields: { readonly [name: string]: unknown } | undefined): string {
	if (!fields) return '';
	let members = '';
	for (const [name, value] of Object.entries(fields)) {
		const json = JSON.stringify(value);
		if (json === undefined) continue;
		members += `${members === '' ? '' : ','}${jsonString(name)}:${UNSAFE_CHARACTER.test(json) ? json.replace(UNSAFE_CHARACTERS, unicodeEscape) : json}`;
	}
	return members;
}

// Matches nearly every string: those in which nothing needs to be escaped.
const SAFE_STRING = /^[ !#-[\]-~]*$/;
// JSON.stringify itself escapes C0 controls. DEL, C1 controls and the Unicode line separators remain to be escaped.
const UNSAFE_CHARACTER = /[\u007f-\u009f\u2028\u2029]/;
const UNSAFE_CHARACTERS = /[\u007f-\u009f\u2028\u2029]/g;
const UNPRINTABLE_CHARACTERS = /[^\u0020-\u007e\u00a0-\u2027\u202a-\uffff]/g;

function unicodeEscape(character: string): string {
	return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Escapes every control character. */
function escapeControls(value: string): string {
	return value.replace(UNPRINTABLE_CHARACTERS, unicodeEscape);
}
