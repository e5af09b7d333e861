/** Formats of log entries: `console`, `json`, lines of text, and formats that wrap another one; lowering and schema. */

import type { LogFormat, TextLogFormat } from '../../../document/log-settings.ts';
import { DURATION_FORMATS, LEVEL_FORMATS, LOG_KEY_SETTINGS, type LogFilter } from '../../../document/log-settings.ts';
import type { Schema } from '../../../document/schema-type.ts';
import { formatNameList } from '../../../lower/context/sentences.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { parseScalar } from '../../words/parse-scalar.ts';
import { LOG_FILTER_SCHEMA, lowerFilterFields } from './log-filter.ts';
import { parseLogText, transformedText } from './log-text.ts';

/** Named time formats; any other value is a layout, such as `2006-01-02`. */
const TIME_FORMATS = [
	...(['unix_seconds_float', 'unix_milli_float', 'unix_nano', 'iso8601', 'rfc3339', 'rfc3339_nano'] as const),
	...(['wall', 'wall_milli', 'wall_nano', 'common_log'] as const),
] as const;

/** Names of formats in configurations. */
const LOG_ENCODERS = ['console', 'json', 'common', 'combined', 'text', 'filter', 'append', 'journald'] as const;

/** Those of a Compatfile: `transform` is `text` in a plugin of the compatible server. */
const COMPATIBLE_ENCODERS = [...LOG_ENCODERS, 'transform'] as const;

const FORMAT_USAGE = 'console | json | common | combined | text <text> | filter | append | journald';

/** Reference to the schema of a format: `$defs.log_format` of the document. */
export const LOG_FORMAT_REFERENCE: Schema = { $ref: '#/$defs/log_format' };

const KEY_SUMMARIES: { readonly [key in (typeof LOG_KEY_SETTINGS)[number]]: string } = {
	message_key: 'Name of the message field; an empty name omits it.',
	level_key: 'Name of the level field; an empty name omits it.',
	time_key: 'Name of the time field; an empty name omits it.',
	name_key: 'Name of the logger name field; an empty name omits it.',
	caller_key: 'Accepted for compatibility; entries of this server have no caller.',
	stacktrace_key: 'Accepted for compatibility; stack traces are in `stack`.',
};

const PLAIN_PROPERTIES: { readonly [name: string]: Schema } = {
	...Object.fromEntries(LOG_KEY_SETTINGS.map(key => [key, { type: 'string', description: KEY_SUMMARIES[key] }])),
	line_ending: { type: 'string', default: '\n', description: 'Text that ends an entry; default a line feed.' },
	time_format: { type: 'string', minLength: 1, description: `One of ${TIME_FORMATS.join(', ')}, or a layout.` },
	time_local: { type: 'boolean', default: false, description: 'Uses the time zone of the process instead of UTC.' },
	duration_format: { enum: DURATION_FORMATS, default: 's', description: 'Format of durations; default `s`.' },
	level_format: { enum: LEVEL_FORMATS, description: 'Format of levels.' },
};

const TEXT_PROPERTIES: { readonly [name: string]: Schema } = {
	time_format: { ...PLAIN_PROPERTIES.time_format, description: 'A time format or layout; default `common_log`.' },
	time_local: PLAIN_PROPERTIES.time_local!,
	duration_format: PLAIN_PROPERTIES.duration_format!,
};

function variant(encoder: string, properties: { readonly [name: string]: Schema }, required: string[] = []): Schema {
	return {
		type: 'object',
		properties: { encoder: { const: encoder }, ...properties },
		required: ['encoder', ...required],
		additionalProperties: false,
	};
}

const WRAP = { ...LOG_FORMAT_REFERENCE };

export const LOG_FORMAT_SCHEMA: Schema = {
	type: 'object',
	description: 'The format of an entry.',
	discriminator: { propertyName: 'encoder' },
	oneOf: [
		variant('console', PLAIN_PROPERTIES),
		variant('json', PLAIN_PROPERTIES),
		variant('common', TEXT_PROPERTIES),
		variant('combined', TEXT_PROPERTIES),
		variant(
			'text',
			{
				text: { type: 'string', minLength: 1, description: 'The line, with fields of the entry as placeholders.' },
				...TEXT_PROPERTIES,
			},
			['text'],
		),
		variant(
			'filter',
			{
				wrap: WRAP,
				fields: {
					type: 'object',
					description: 'Filters by field path, such as `request>headers`.',
					additionalProperties: LOG_FILTER_SCHEMA,
				},
			},
			['fields'],
		),
		variant(
			'append',
			{
				wrap: WRAP,
				fields: {
					type: 'object',
					description: 'Fields to add, by name.',
					additionalProperties: { type: ['string', 'number', 'boolean'] },
				},
			},
			['fields'],
		),
		variant('journald', { wrap: WRAP }),
	],
};

/** Lowers `format ENCODER { … }` and `wrap ENCODER { … }`; returns undefined after reporting a mistake. */
export function lowerLogFormat(args: readonly Word[], line: Line, cx: LowerContext): LogFormat | undefined {
	const word = args[0];
	const hasText = word?.text === 'text' || (cx.dialect === 'compatfile' && word?.text === 'transform');
	const count = hasText ? 2 : 1;
	if (!cx.count(line, args, count, count, `${line.words[0]!.text} ${FORMAT_USAGE}`) || !word) return undefined;
	const known: readonly (typeof COMPATIBLE_ENCODERS)[number][] =
		cx.dialect === 'compatfile' ? COMPATIBLE_ENCODERS : LOG_ENCODERS;
	const encoder = cx.oneOf(word, known, 'log format');
	switch (encoder) {
		case undefined:
			return undefined;
		case 'console':
		case 'json':
			return lowerPlain(encoder, line, cx);
		case 'common':
		case 'combined':
			return { encoder, ...lowerTextSettings(encoder, line, cx) };
		case 'text':
			return lowerText(args[1]!, args[1]!.text, line, cx);
		case 'transform':
			return lowerText(args[1]!, transformedText(args[1]!.text), line, cx);
		case 'filter':
			return lowerFilter(line, cx);
		case 'append':
			return lowerAppend(line, cx);
		case 'journald': {
			const wrapped: { wrap?: LogFormat } = {};
			cx.subdirectives(line.block, { wrap: lowerWrap(wrapped, cx) }, 'format journald');
			return { encoder, ...wrapped };
		}
	}
}

function lowerWrap(into: { wrap?: LogFormat }, cx: LowerContext): SubdirectiveHandler {
	return (args, at) => {
		const wrap = lowerLogFormat(args, at, cx);
		if (wrap) into.wrap = wrap;
	};
}

function lowerPlain(encoder: 'console' | 'json', line: Line, cx: LowerContext): LogFormat {
	const settings: { [name: string]: unknown } = {};
	const one =
		(name: string, read: (word: Word) => unknown): SubdirectiveHandler =>
		(args, at) => {
			if (!cx.count(at, args, 1, 1, `${name} <value>`)) return;
			const value = read(args[0]!);
			if (value !== undefined) settings[name] = value;
		};
	const known: { [name: string]: SubdirectiveHandler } = {};
	for (const key of [...LOG_KEY_SETTINGS, 'line_ending', 'time_format']) known[key] = one(key, ({ text }) => text);
	known.duration_format = one('duration_format', word =>
		cx.oneOf(durationWord(word), DURATION_FORMATS, 'duration format'),
	);
	known.level_format = one('level_format', word => cx.oneOf(word, LEVEL_FORMATS, 'level format'));
	known.time_local = (args, at) => {
		if (cx.count(at, args, 0, 0, 'time_local')) settings.time_local = true;
	};
	cx.subdirectives(line.block, known, `format ${encoder}`);
	return { encoder, ...settings };
}

/** Lowers `format text TEXT`. */
function lowerText(word: Word, text: string, line: Line, cx: LowerContext): LogFormat | undefined {
	const settings = lowerTextSettings('text', line, cx);
	if (text === '') {
		cx.problem('error', 'log/empty-text', word.span, 'The text of the format is empty.');
		return undefined;
	}
	const unknown = parseLogText(text).flatMap(part => ('unknown' in part ? [`{${part.unknown}}`] : []));
	if (unknown.length > 0) {
		const message = `Entries of access logs have no field for ${formatNameList(unknown, 'or')}.`;
		const hint = `Add it with \`log_append NAME ${unknown[0]}\`, and write \`{NAME}\` here.`;
		cx.problem('error', 'log/unknown-field', word.span, message, { hint });
	}
	return { encoder: 'text', text, ...settings };
}

/** Lowers the block of `common`, `combined` and `text`. */
function lowerTextSettings(
	encoder: TextLogFormat['encoder'],
	line: Line,
	cx: LowerContext,
): Pick<TextLogFormat, 'time_format' | 'time_local' | 'duration_format'> {
	const settings: { -readonly [K in 'time_format' | 'time_local' | 'duration_format']?: TextLogFormat[K] } = {};
	cx.subdirectives(
		line.block,
		{
			time_format: (args, at) => {
				if (cx.count(at, args, 1, 1, 'time_format <format>')) settings.time_format = args[0]!.text;
			},
			time_local: (args, at) => {
				if (cx.count(at, args, 0, 0, 'time_local')) settings.time_local = true;
			},
			duration_format: (args, at) => {
				if (!cx.count(at, args, 1, 1, 'duration_format <format>')) return;
				const format = cx.oneOf(durationWord(args[0]!), DURATION_FORMATS, 'duration format');
				if (format) settings.duration_format = format;
			},
		},
		`format ${encoder}`,
	);
	return settings;
}

/** Replaces the long name of a duration format by its short one. */
function durationWord(word: Word): Word {
	const short = { second: 's', seconds: 's', millis: 'ms', milli: 'ms', nano: 'ns', nanos: 'ns' }[word.text];
	return short === undefined ? word : { ...word, text: short };
}

function lowerFilter(line: Line, cx: LowerContext): LogFormat {
	const wrapped: { wrap?: LogFormat } = {};
	const fields: { [path: string]: LogFilter } = {};
	const lines: Line[] = [];
	for (const inner of line.block?.lines ?? []) {
		const name = inner.words[0]!.text;
		if (name === 'wrap') lowerWrap(wrapped, cx)(inner.words.slice(1), inner);
		else if (name === 'fields' && inner.words.length === 1) lines.push(...(inner.block?.lines ?? []));
		else lines.push(inner);
	}
	lowerFilterFields(lines, fields, cx);
	return { encoder: 'filter', ...wrapped, fields };
}

function lowerAppend(line: Line, cx: LowerContext): LogFormat {
	const wrapped: { wrap?: LogFormat } = {};
	const fields: { [name: string]: string | number | boolean } = {};
	const take = (inner: Line): void => {
		cx.noBlock(inner);
		const [name, value] = inner.words as readonly [Word, Word | undefined];
		if (!cx.count(inner, inner.words.slice(1), 1, 1, '<name> <value>') || !value) return;
		const read = value.quote === 'none' ? parseScalar(value.text) : value.text;
		// The value is defined as a property, so that `__proto__` is a name like any other.
		Object.defineProperty(fields, name.text, {
			value: typeof read === 'string' ? cx.template(value) : read,
			enumerable: true,
			configurable: true,
			writable: true,
		});
	};
	for (const inner of line.block?.lines ?? []) {
		const name = inner.words[0]!.text;
		if (name === 'wrap') lowerWrap(wrapped, cx)(inner.words.slice(1), inner);
		else if (name === 'fields' && inner.words.length === 1) (inner.block?.lines ?? []).forEach(take);
		else take(inner);
	}
	return { encoder: 'append', ...wrapped, fields };
}
