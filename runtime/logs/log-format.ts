/** Compiles a log's format: the encoder of a line, and the edits of its fields. */
import type { LogFormat } from '../../compiler/document/log-settings.ts';
import { encoderOf, jsonMembers, plainEncoder } from './encoders.ts';
import type { LogLevel } from './log-entry.ts';
import { compileLogFilters, type FieldEdit } from './log-filters.ts';
import type { ExpandText } from './machine-text.ts';
import { compileTextFormat } from './text-format.ts';
import { createDurationFormatter } from './time-text.ts';

/** Thrown for a log format that this build does not support. */
export class UnknownEncoder extends Error {
	constructor(name: string) {
		super(`\`${name}\` is not a log format of this build.`);
		this.name = 'UnknownEncoder';
	}
}

/** Formats entries as lines. */
export interface LineFormat {
	/** `fields` are JSON members without braces, or ''. `timeMs` is in milliseconds since the epoch. */
	encode(level: LogLevel, logger: string, message: string, fields: string, timeMs: number): string;
	/** Formats a duration in milliseconds as JSON. */
	readonly formatDuration: (milliseconds: number) => string;
	/** True if lines have the form of `json` with default settings, with durations in seconds. */
	readonly isDefaultJson: boolean;
}

/** Syslog severities (RFC 5424 §6.2.1), which the journal reads at the beginning of a line. */
const SYSLOG_SEVERITIES: { readonly [level in LogLevel]: number } = { debug: 7, info: 6, warn: 4, error: 3 };

/**
 * Compiles a format. `defaultEncoder` is the encoder for a format that names none. Throws UnknownEncoder, and SyntaxError for an
 * invalid expression.
 */
export function compileLogFormat(
	format: LogFormat,
	defaultEncoder: 'console' | 'json',
	expand: ExpandText,
): LineFormat {
	switch (format.encoder) {
		case 'default':
			return {
				encode: encoderOf(defaultEncoder).encode,
				formatDuration: createDurationFormatter('s'),
				isDefaultJson: defaultEncoder === 'json',
			};
		case 'console':
		case 'json': {
			const { encode } = plainEncoder(format.encoder, format);
			const isDefaultJson = format.encoder === 'json' && Object.keys(format).length === 1;
			return { encode, formatDuration: createDurationFormatter(format.duration_format ?? 's'), isDefaultJson };
		}
		case 'common':
		case 'combined':
		case 'text':
			return compileTextFormat(format, expand);
		case 'filter':
			return withEdits(compileLogFormat(innerFormat(format), defaultEncoder, expand), compileLogFilters(format.fields));
		case 'append': {
			const extraMembers = jsonMembers(
				Object.fromEntries(
					Object.entries(format.fields).map(([name, value]) => [
						name,
						typeof value === 'string' ? expand(value) : value,
					]),
				),
			);
			const wrappedFormat = compileLogFormat(innerFormat(format), defaultEncoder, expand);
			return {
				...wrappedFormat,
				isDefaultJson: false,
				encode: (level, logger, message, fields, timeMs) =>
					wrappedFormat.encode(
						level,
						logger,
						message,
						fields === '' || extraMembers === '' ? fields + extraMembers : `${fields},${extraMembers}`,
						timeMs,
					),
			};
		}
		case 'journald': {
			const wrappedFormat = compileLogFormat(innerFormat(format), defaultEncoder, expand);
			return {
				...wrappedFormat,
				isDefaultJson: false,
				encode: (level, ...otherArgs) => `<${SYSLOG_SEVERITIES[level]}>${wrappedFormat.encode(level, ...otherArgs)}`,
			};
		}
		default:
			throw new UnknownEncoder((format as { encoder: string }).encoder);
	}
}

function innerFormat(format: { readonly wrap?: LogFormat }): LogFormat {
	return format.wrap ?? { encoder: 'default' };
}

function withEdits(wrappedFormat: LineFormat, edit: FieldEdit): LineFormat {
	return {
		...wrappedFormat,
		isDefaultJson: false,
		encode(level, logger, message, fields, timeMs) {
			if (fields === '') return wrappedFormat.encode(level, logger, message, fields, timeMs);
			const fieldObject = JSON.parse(`{${fields}}`) as { [name: string]: unknown };
			edit(fieldObject);
			return wrappedFormat.encode(level, logger, message, jsonMembers(fieldObject), timeMs);
		},
	};
}
