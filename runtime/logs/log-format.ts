/** Compiles a log's format: the encoder of a line, and the edits of its fields. */
import type { LogFormat } from '../../compiler/document/log-settings.ts';
import { encoderOf, jsonMembers, plainEncoder } from './encoders.ts';
import type { LogLevel } from './log-entry.ts';
import { compileLogFilters, type FieldEdit } from './log-filters.ts';
import type { ExpandText } from './machine-text.ts';
import { compileTextFormat } from './text-format.ts';
import { writeDuration } from './time-text.ts';

/** A format that this build does not support. */
export class UnknownEncoder extends Error {
	constructor(name: string) {
		super(`\`${name}\` is not a log format of this build.`);
		this.name = 'UnknownEncoder';
	}
}

/** Formats entries as lines. */
export interface LineFormat {
	/** `fields` are JSON members without braces, or ''. `at` is in milliseconds since the epoch. */
	encode(level: LogLevel, logger: string, message: string, fields: string, at: number): string;
	/** Formats a duration in milliseconds as JSON. */
	readonly duration: (milliseconds: number) => string;
	/** True if lines have the form of `json` with default settings, with durations in seconds. */
	readonly isUsual: boolean;
}

/** Syslog severities (RFC 5424 §6.2.1), which the journal reads at the beginning of a line. */
const SYSLOG: { readonly [level in LogLevel]: number } = { debug: 7, info: 6, warn: 4, error: 3 };

/**
 * Compiles a format. `automatic` is the encoder for a format that names none. Throws UnknownEncoder, and SyntaxError for an
 * invalid expression.
 */
export function compileLogFormat(format: LogFormat, automatic: 'console' | 'json', expand: ExpandText): LineFormat {
	switch (format.encoder) {
		case 'default':
			return { encode: encoderOf(automatic).encode, duration: writeDuration('s'), isUsual: automatic === 'json' };
		case 'console':
		case 'json': {
			const { encode } = plainEncoder(format.encoder, format);
			const isUsual = format.encoder === 'json' && Object.keys(format).length === 1;
			return { encode, duration: writeDuration(format.duration_format ?? 's'), isUsual };
		}
		case 'common':
		case 'combined':
		case 'text':
			return compileTextFormat(format, expand);
		case 'filter':
			return edited(compileLogFormat(wrapped(format), automatic, expand), compileLogFilters(format.fields));
		case 'append': {
			const added = jsonMembers(
				Object.fromEntries(
					Object.entries(format.fields).map(([name, value]) => [
						name,
						typeof value === 'string' ? expand(value) : value,
					]),
				),
			);
			const inner = compileLogFormat(wrapped(format), automatic, expand);
			return {
				...inner,
				isUsual: false,
				encode: (level, logger, message, fields, at) =>
					inner.encode(
						level,
						logger,
						message,
						fields === '' || added === '' ? fields + added : `${fields},${added}`,
						at,
					),
			};
		}
		case 'journald': {
			const inner = compileLogFormat(wrapped(format), automatic, expand);
			return {
				...inner,
				isUsual: false,
				encode: (level, ...rest) => `<${SYSLOG[level]}>${inner.encode(level, ...rest)}`,
			};
		}
		default:
			throw new UnknownEncoder((format as { encoder: string }).encoder);
	}
}

function wrapped(format: { readonly wrap?: LogFormat }): LogFormat {
	return format.wrap ?? { encoder: 'default' };
}

function edited(inner: LineFormat, edit: FieldEdit): LineFormat {
	return {
		...inner,
		isUsual: false,
		encode(level, logger, message, fields, at) {
			if (fields === '') return inner.encode(level, logger, message, fields, at);
			const parsed = JSON.parse(`{${fields}}`) as { [name: string]: unknown };
			edit(parsed);
			return inner.encode(level, logger, message, jsonMembers(parsed), at);
		},
	};
}
