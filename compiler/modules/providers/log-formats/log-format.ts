/** Lowering and schema of the formats of log entries: `console`, `json`, lines of text, and formats that wrap another format. */

import type { LogFormat, TextLogFormat } from '../../../document/log-settings.ts';
import { DURATION_FORMATS, LEVEL_FORMATS, LOG_KEY_SETTINGS, type LogFilter } from '../../../document/log-settings.ts';
import type { Schema } from '../../../document/schema-type.ts';
import { formatNameList } from '../../../lower/context/sentences.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { parseScalar } from '../../words/parse-scalar.ts';
import { LOG_FILTER_SCHEMA, lowerFilterFields } from './log-filter.ts';
import { convertTransformText, parseLogText } from './log-text.ts';

/** Names of time formats. Any other value is a layout in Go's notation, such as `2006-01-02`. */
const TIME_FORMATS = [
	...(['unix_seconds_float', 'unix_milli_float', 'unix_nano', 'iso8601', 'rfc3339', 'rfc3339_nano'] as const),
	...(['wall', 'wall_milli', 'wall_nano', 'common_log'] as const),
] as const;

/** Names of log formats in configurations. */
const LOG_ENCODER_NAMES = ['console', 'json', 'common', 'combined', 'text', 'filter', 'append', 'journald'] as const;

/** Names of formats in a Compatfile: `transform` is the name of `text` in a plugin of Caddy. */
const COMPATFILE_ENCODER_NAMES = [...LOG_ENCODER_NAMES, 'transform'] as const;

const FORMAT_USAGE = 'console | json | common | combined | text <text> | filter | append | journald';

/** Reference to the schema of a format: `$defs.log_format` of the document. */
export const LOG_FORMAT_REFERENCE: Schema = { $ref: '#/$defs/log_format' };

const KEY_DESCRIPTIONS: { readonly [key in (typeof LOG_KEY_SETTINGS)[number]]: string } = {
	message_key: 'Name of the message field; an empty name omits it.',
	level_key: 'Name of the level field; an empty name omits it.',
	time_key: 'Name of the time field; an empty name omits it.',
	name_key: 'Name of the logger name field; an empty name omits it.',
	caller_key: 'Accepted for compatibility; entries of this server have no caller.',
	stacktrace_key: 'Accepted for compatibility; stack traces are in `stack`.',
};

const CONSOLE_JSON_PROPERTIES: { readonly [name: string]: Schema } = {
	...Object.fromEntries(LOG_KEY_SETTINGS.map(key => [key, { type: 'string', description: KEY_DESCRIPTIONS[key] }])),
	line_ending: { type: 'string', default: '\n', description: 'Text that ends an entry; default a line feed.' },
	time_format: { type: 'string', minLength: 1, description: `One of ${TIME_FORMATS.join(', ')}, or a layout.` },
	time_local: { type: 'boolean', default: false, description: 'Uses the time zone of the process instead of UTC.' },
	duration_format: { enum: DURATION_FORMATS, default: 's', description: 'Format of durations; default `s`.' },
	level_format: { enum: LEVEL_FORMATS, description: 'Format of levels.' },
};

const TEXT_PROPERTIES: { readonly [name: string]: Schema } = {
	time_format: {
		...CONSOLE_JSON_PROPERTIES.time_format,
		description: 'A time format or layout; default `common_log`.',
	},
	time_local: CONSOLE_JSON_PROPERTIES.time_local!,
	duration_format: CONSOLE_JSON_PROPERTIES.duration_format!,
};

function formatSchema(
	encoder: string,
	properties: { readonly [name: string]: Schema },
	requiredNames: string[] = [],
): Schema {
	return {
		type: 'object',
		properties: { encoder: { const: encoder }, ...properties },
		required: ['encoder', ...requiredNames],
		additionalProperties: false,
	};
}

const WRAPPED_FORMAT_SCHEMA = { ...LOG_FORMAT_REFERENCE };

export const LOG_FORMAT_SCHEMA: Schema = {
	type: 'object',
	description: 'The format of an entry.',
	discriminator: { propertyName: 'encoder' },
	oneOf: [
		formatSchema('console', CONSOLE_JSON_PROPERTIES),
		formatSchema('json', CONSOLE_JSON_PROPERTIES),
		formatSchema('common', TEXT_PROPERTIES),
		formatSchema('combined', TEXT_PROPERTIES),
		formatSchema(
			'text',
			{
				text: { type: 'string', minLength: 1, description: 'The line, with fields of the entry as placeholders.' },
				...TEXT_PROPERTIES,
			},
			['text'],
		),
		formatSchema(
			'filter',
			{
				wrap: WRAPPED_FORMAT_SCHEMA,
				fields: {
					type: 'object',
					description: 'Filters by field path, such as `request>headers`.',
					additionalProperties: LOG_FILTER_SCHEMA,
				},
			},
			['fields'],
		),
		formatSchema(
			'append',
			{
				wrap: WRAPPED_FORMAT_SCHEMA,
				fields: {
					type: 'object',
					description: 'Fields to add, by name.',
					additionalProperties: { type: ['string', 'number', 'boolean'] },
				},
			},
			['fields'],
		),
		formatSchema('journald', { wrap: WRAPPED_FORMAT_SCHEMA }),
	],
};

/** Lowers `format ENCODER { … }` and `wrap ENCODER { … }`; returns undefined after reporting a mistake. */
export function lowerLogFormat(args: readonly Word[], line: Line, cx: LowerContext): LogFormat | undefined {
	const formatWord = args[0];
	const hasTextArgument =
		formatWord?.text === 'text' || (cx.dialect === 'compatfile' && formatWord?.text === 'transform');
	const argumentCount = hasTextArgument ? 2 : 1;
	if (!cx.count(line, args, argumentCount, argumentCount, `${line.words[0]!.text} ${FORMAT_USAGE}`) || !formatWord)
		return undefined;
	const encoderNames: readonly (typeof COMPATFILE_ENCODER_NAMES)[number][] =
		cx.dialect === 'compatfile' ? COMPATFILE_ENCODER_NAMES : LOG_ENCODER_NAMES;
	const encoder = cx.oneOf(formatWord, encoderNames, 'log format');
	switch (encoder) {
		case undefined:
			return undefined;
		case 'console':
		case 'json':
			return lowerConsoleOrJson(encoder, line, cx);
		case 'common':
		case 'combined':
			return { encoder, ...lowerTextSettings(encoder, line, cx) };
		case 'text':
			return lowerTextFormat(args[1]!, args[1]!.text, line, cx);
		case 'transform':
			return lowerTextFormat(args[1]!, convertTransformText(args[1]!.text), line, cx);
		case 'filter':
			return lowerFilterFormat(line, cx);
		case 'append':
			return lowerAppendFormat(line, cx);
		case 'journald': {
			const wrapSettings: { wrap?: LogFormat } = {};
			cx.subdirectives(line.block, { wrap: wrapHandler(wrapSettings, cx) }, 'format journald');
			return { encoder, ...wrapSettings };
		}
	}
}

function wrapHandler(target: { wrap?: LogFormat }, cx: LowerContext): SubdirectiveHandler {
	return (args, innerLine) => {
		const wrappedFormat = lowerLogFormat(args, innerLine, cx);
		if (wrappedFormat) target.wrap = wrappedFormat;
	};
}

function lowerConsoleOrJson(encoder: 'console' | 'json', line: Line, cx: LowerContext): LogFormat {
	const settings: { [name: string]: unknown } = {};
	const valueHandler =
		(name: string, parseValue: (word: Word) => unknown): SubdirectiveHandler =>
		(args, innerLine) => {
			if (!cx.count(innerLine, args, 1, 1, `${name} <value>`)) return;
			const value = parseValue(args[0]!);
			if (value !== undefined) settings[name] = value;
		};
	const handlers: { [name: string]: SubdirectiveHandler } = {};
	for (const key of [...LOG_KEY_SETTINGS, 'line_ending', 'time_format'])
		handlers[key] = valueHandler(key, ({ text }) => text);
	handlers.duration_format = valueHandler('duration_format', word =>
		cx.oneOf(toShortDurationFormat(word), DURATION_FORMATS, 'duration format'),
	);
	handlers.level_format = valueHandler('level_format', word => cx.oneOf(word, LEVEL_FORMATS, 'level format'));
	handlers.time_local = (args, innerLine) => {
		if (cx.count(innerLine, args, 0, 0, 'time_local')) settings.time_local = true;
	};
	cx.subdirectives(line.block, handlers, `format ${encoder}`);
	return { encoder, ...settings };
}

function lowerTextFormat(word: Word, text: string, line: Line, cx: LowerContext): LogFormat | undefined {
	const settings = lowerTextSettings('text', line, cx);
	if (text === '') {
		cx.problem('error', 'log/empty-text', word.span, 'The text of the format is empty.');
		return undefined;
	}
	const unknownPlaceholders = parseLogText(text).flatMap(part => ('unknown' in part ? [`{${part.unknown}}`] : []));
	if (unknownPlaceholders.length > 0) {
		const message = `Entries of access logs have no field for ${formatNameList(unknownPlaceholders, 'or')}.`;
		const hint = `Add it with \`log_append NAME ${unknownPlaceholders[0]}\`, and write \`{NAME}\` here.`;
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
			time_format: (args, innerLine) => {
				if (cx.count(innerLine, args, 1, 1, 'time_format <format>')) settings.time_format = args[0]!.text;
			},
			time_local: (args, innerLine) => {
				if (cx.count(innerLine, args, 0, 0, 'time_local')) settings.time_local = true;
			},
			duration_format: (args, innerLine) => {
				if (!cx.count(innerLine, args, 1, 1, 'duration_format <format>')) return;
				const format = cx.oneOf(toShortDurationFormat(args[0]!), DURATION_FORMATS, 'duration format');
				if (format) settings.duration_format = format;
			},
		},
		`format ${encoder}`,
	);
	return settings;
}

/** Replaces the long name of a duration format with its short name. */
function toShortDurationFormat(word: Word): Word {
	const shortName = { second: 's', seconds: 's', millis: 'ms', milli: 'ms', nano: 'ns', nanos: 'ns' }[word.text];
	return shortName === undefined ? word : { ...word, text: shortName };
}

function lowerFilterFormat(line: Line, cx: LowerContext): LogFormat {
	const wrapSettings: { wrap?: LogFormat } = {};
	const filterByPath: { [path: string]: LogFilter } = {};
	const filterLines: Line[] = [];
	for (const innerLine of line.block?.lines ?? []) {
		const name = innerLine.words[0]!.text;
		if (name === 'wrap') wrapHandler(wrapSettings, cx)(innerLine.words.slice(1), innerLine);
		else if (name === 'fields' && innerLine.words.length === 1) filterLines.push(...(innerLine.block?.lines ?? []));
		else filterLines.push(innerLine);
	}
	lowerFilterFields(filterLines, filterByPath, cx);
	return { encoder: 'filter', ...wrapSettings, fields: filterByPath };
}

function lowerAppendFormat(line: Line, cx: LowerContext): LogFormat {
	const wrapSettings: { wrap?: LogFormat } = {};
	const valueByName: { [name: string]: string | number | boolean } = {};
	const addField = (innerLine: Line): void => {
		cx.noBlock(innerLine);
		const [nameWord, valueWord] = innerLine.words as readonly [Word, Word | undefined];
		if (!cx.count(innerLine, innerLine.words.slice(1), 1, 1, '<name> <value>') || !valueWord) return;
		const scalar = valueWord.quote === 'none' ? parseScalar(valueWord.text) : valueWord.text;
		// The value is defined as a property, so that `__proto__` is a name like any other.
		Object.defineProperty(valueByName, nameWord.text, {
			value: typeof scalar === 'string' ? cx.template(valueWord) : scalar,
			enumerable: true,
			configurable: true,
			writable: true,
		});
	};
	for (const innerLine of line.block?.lines ?? []) {
		const name = innerLine.words[0]!.text;
		if (name === 'wrap') wrapHandler(wrapSettings, cx)(innerLine.words.slice(1), innerLine);
		else if (name === 'fields' && innerLine.words.length === 1) (innerLine.block?.lines ?? []).forEach(addField);
		else addField(innerLine);
	}
	return { encoder: 'append', ...wrapSettings, fields: valueByName };
}
