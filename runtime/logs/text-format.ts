/**
 * The log formats `common`, `combined` and `text`: lines made of text and fields of an entry. Values are escaped as nginx escapes
 * them, so that no client can begin a new line, leave quotation marks, or control a terminal.
 */
import type { TextLogFormat } from '../../compiler/document/log-settings.ts';
import { type ComputedField, logTextOf, parseLogText } from '../../compiler/modules/providers/log-formats/log-text.ts';
import { encoderOf } from './encoders.ts';
import type { LogLevel } from './log-entry.ts';
import type { LineFormat } from './log-format.ts';
import type { ExpandText } from './machine-text.ts';
import { createDurationFormatter, createTimeFormatter } from './time-text.ts';

type Fields = { readonly [name: string]: unknown };

interface Entry {
	readonly level: LogLevel;
	readonly logger: string;
	readonly message: string;
	/** Time of the entry, in milliseconds since the epoch. */
	readonly timeMs: number;
	readonly fields: Fields;
}

type LinePart = string | ((entry: Entry) => string);

/** Compiles a text format. Entries that are not about a request are formatted as by `console`. */
export function compileTextFormat(format: TextLogFormat, expand: ExpandText): LineFormat {
	const formatEntryTime = createTimeFormatter(format.time_format ?? 'common_log', format.time_local === true);
	const parts = parseLogText(logTextOf(format)).map((part): LinePart => {
		if ('literal' in part) return part.literal;
		if ('machine' in part) return expand(part.machine);
		if ('unknown' in part) return '-';
		if ('computed' in part) return compileComputed(part.computed, formatEntryTime);
		const { path, index } = part;
		// Each character of a header field or of the request line stands for one byte. Other values, such as user names, are Unicode
		// text.
		const isLatin1 = path[0] === 'request' || path[0] === 'resp_headers';
		return ({ fields }) => fieldText(fieldAt(fields, path), index, isLatin1);
	});
	const consoleEncoder = encoderOf('console');
	return {
		formatDuration: createDurationFormatter(format.duration_format ?? 's'),
		isDefaultJson: false,
		encode(level, logger, message, json, timeMs) {
			const fields = (json === '' ? {} : JSON.parse(`{${json}}`)) as Fields;
			if (typeof fields.request !== 'object' || fields.request === null) {
				return consoleEncoder.encode(level, logger, message, json, timeMs);
			}
			const entry: Entry = { level, logger, message, timeMs, fields };
			let line = '';
			for (const part of parts) line += typeof part === 'string' ? part : part(entry);
			return `${line}\n`;
		},
	};
}

function compileComputed(field: ComputedField, formatEntryTime: (timeMs: number) => string | number): LinePart {
	switch (field) {
		case 'time':
			return ({ timeMs }) => String(formatEntryTime(timeMs));
		case 'level':
			return ({ level }) => level;
		case 'logger':
			return ({ logger }) => escapeText(logger, false);
		case 'msg':
			return ({ message }) => escapeText(message, false);
		case 'request_line':
			return ({ fields }) => {
				const request = fields.request as Fields;
				const words = ['method', 'uri', 'proto'].map(name => request[name]).filter(word => typeof word === 'string');
				return words.length === 0 ? '-' : escapeText(words.join(' '), true);
			};
		case 'host':
			return ({ fields }) => fieldText(hostOf((fields.request as Fields).host), undefined, true);
		case 'path':
			return ({ fields }) => fieldText(splitUri((fields.request as Fields).uri)[0], undefined, true);
		case 'query':
			return ({ fields }) => fieldText(splitUri((fields.request as Fields).uri)[1], undefined, true);
		case 'scheme':
			return ({ fields }) => ((fields.request as Fields).tls === undefined ? 'http' : 'https');
	}
}

/** Returns an authority without its port. */
function hostOf(authority: unknown): unknown {
	return typeof authority === 'string' ? authority.replace(/:\d*$/, '') : authority;
}

function splitUri(uri: unknown): readonly [unknown, unknown] {
	if (typeof uri !== 'string') return [uri, undefined];
	const queryStart = uri.indexOf('?');
	return queryStart === -1 ? [uri, undefined] : [uri.slice(0, queryStart), uri.slice(queryStart + 1)];
}

/** Returns the value at a path. The path's names are in lowercase; the entry's names may be in any case. */
function fieldAt(fields: Fields, path: readonly string[]): unknown {
	let value: unknown = fields;
	let listItems: unknown[] | undefined;
	for (const pathName of path) {
		if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
		const parent = value as Fields;
		value = undefined;
		listItems = undefined;
		for (const name of Object.keys(parent)) {
			if (name.length !== pathName.length || name.toLowerCase() !== pathName) continue;
			const member = parent[name];
			// A client may send a field several times with its name in different cases; all of the values are used.
			if (Array.isArray(member)) listItems = listItems ? [...listItems, ...member] : member;
			else value ??= member;
		}
		if (listItems) value = listItems;
	}
	return value;
}

/** Returns a value as escaped text; `-` for a field that the entry does not have. Lists are joined by commas. */
function fieldText(value: unknown, index: number | undefined, isLatin1: boolean): string {
	let selectedValue = value;
	if (Array.isArray(value)) selectedValue = index === undefined ? value.join(', ') : value[index];
	else if (index !== undefined && index > 0) selectedValue = undefined;
	if (selectedValue === undefined || selectedValue === null) return '-';
	if (typeof selectedValue === 'object') return escapeText(JSON.stringify(selectedValue), false);
	const text = String(selectedValue);
	return text === '' ? '-' : escapeText(text, isLatin1);
}

const SAFE_TEXT = /^[ !#-[\]-~]*$/;
const UNSAFE_CHARACTERS = /[^ !#-[\]-~]/g;

/**
 * Escapes quotation marks, backslashes, controls and everything outside ASCII as `\xHH`. With `isLatin1`, each character is a
 * byte.
 */
function escapeText(text: string, isLatin1: boolean): string {
	if (SAFE_TEXT.test(text)) return text;
	if (isLatin1 && !/[^\0-\u00ff]/.test(text))
		return text.replace(UNSAFE_CHARACTERS, character => hexEscape(character.charCodeAt(0)));
	return Buffer.from(text)
		.toString('latin1')
		.replace(UNSAFE_CHARACTERS, character => hexEscape(character.charCodeAt(0)));
}

function hexEscape(byte: number): string {
	return `\\x${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}
