/** A log's format as its settings compose it: a line's encoder, and what is done with its fields before. */
import type { LogFormat } from '../../compiler/modules/providers/log-formats/log-format.ts';
import type { LogLevel } from '../threads/messages.ts';
import { encoderOf, members, plainEncoder } from './encoders.ts';
import { compileLogFilters, type FieldEdit } from './log-filters.ts';
import type { ExpandText } from './machine-text.ts';
import { writeDuration } from './time-text.ts';

/** A format that this build does not have. */
export class UnknownEncoder extends Error {
	constructor(name: string) {
		super(`There is no log format \`${name}\`.`);
		this.name = 'UnknownEncoder';
	}
}

/** Turns entries into lines. */
export interface LineFormat {
	/** `fields` is JSON members without the braces, '' for none. `at` is milliseconds since the epoch. */
	encode(level: LogLevel, logger: string, message: string, fields: string, at: number): string;
	/** A duration in milliseconds, as JSON. */
	readonly duration: (milliseconds: number) => string;
	/** A line is that of `json` without settings, and durations are seconds. */
	readonly isUsual: boolean;
}

/** Severities of syslog (RFC 5424 §6.2.1) as the journal reads them at the beginning of a line. */
const SYSLOG: { readonly [level in LogLevel]: number } = { debug: 7, info: 6, warn: 4, error: 3 };

/**
 * Compiles a format. `automatic` is the encoder for a format that names none. Throws UnknownEncoder, and SyntaxError for
 * an expression that is none.
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
		case 'filter':
			return edited(compileLogFormat(wrapped(format), automatic, expand), compileLogFilters(format.fields));
		case 'append': {
			const added = members(
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
			return inner.encode(level, logger, message, members(parsed), at);
		},
	};
}
