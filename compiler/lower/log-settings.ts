/** What `log` holds at a site and in the global block: output, format, level and sampling. */
import type { Schema } from '../modules/directives/directive.ts';
import { LOG_FORMAT_REFERENCE, type LogFormat, lowerLogFormat } from '../modules/providers/log-formats/log-format.ts';
import { LOG_OUTPUT, type LogOutput, lowerLogOutput } from '../modules/providers/log-writers/log-output.ts';
import type { Line, Word } from '../syntax/ast.ts';
import type { LowerContext, Subdirective } from './lower-context.ts';
import { unavailableMessage } from './unavailable.ts';

/** Levels in rising order, as the document writes them. */
const LOG_LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'PANIC', 'FATAL'] as const;

/** Of entries with one message: so many in an interval, and then each so many-th. */
export interface LogSampling {
	/** Milliseconds; 1000 if left out. */
	readonly interval?: number;
	/** 100 if left out. */
	readonly first?: number;
	/** 100 if left out; 0 drops the rest of the interval. */
	readonly thereafter?: number;
}

/** Properties of a log in the document. */
export const LOG_PROPERTIES: { readonly [name: string]: Schema } = {
	name: { type: 'string', description: 'Logger name. Several sites may share it.' },
	output: LOG_OUTPUT,
	format: LOG_FORMAT_REFERENCE,
	level: { enum: LOG_LEVELS, description: 'The least level that is written; `INFO` if left out.' },
	sampling: {
		type: 'object',
		description: 'Writes some of the entries with one message and level only.',
		properties: {
			interval: { type: 'integer', minimum: 1, default: 1000, description: 'Milliseconds; 1000 if left out.' },
			first: {
				type: 'integer',
				minimum: 0,
				default: 100,
				description: 'Entries written in an interval; 100 if left out.',
			},
			thereafter: {
				type: 'integer',
				minimum: 0,
				default: 100,
				description: 'Of those beyond, each so many-th is written, none with 0; 100 if left out.',
			},
		},
		additionalProperties: false,
	},
	'@id': { type: 'string' },
};

/** A log while it is lowered. */
export interface LogDraft {
	output?: LogOutput;
	format?: LogFormat;
	level?: string;
	sampling?: LogSampling;
}

/** Lowers the block of a `log`; `more` are the sub-directives of one place only. */
export function lowerLogBlock(line: Line, cx: LowerContext, more: { readonly [name: string]: Subdirective }): LogDraft {
	const draft: LogDraft = {};
	const once = onlyOnce('log', cx);
	cx.subdirectives(
		line.block,
		{
			output: once('output', (args, at) => {
				const output = lowerLogOutput(args, at, cx);
				if (output) draft.output = output;
			}),
			format: once('format', (args, at) => {
				const format = lowerLogFormat(args, at, cx);
				if (format) draft.format = cx.origin(format, at.span);
			}),
			level: once('level', (args, at) => {
				const level = cx.count(at, args, 1, 1, 'level DEBUG|INFO|WARN|ERROR') ? lowerLevel(args[0]!, cx) : undefined;
				if (level) draft.level = level;
			}),
			...more,
			sampling: once('sampling', (args, at) => {
				cx.count(at, args, 0, 0, 'sampling { interval <duration>; first <number>; thereafter <number> }');
				draft.sampling = lowerSampling(at, cx);
			}),
			core: (_args, at) => {
				cx.problem('error', 'directive/unavailable', at.words[0]!.span, unavailableMessage('core'));
			},
		},
		'log',
	);
	return draft;
}

/** Reports sub-directives that stand twice in one block. */
function onlyOnce(block: 'log' | 'sampling', cx: LowerContext): (name: string, lower: Subdirective) => Subdirective {
	const seen = new Set<string>();
	return (name, lower) => (args, at) => {
		if (seen.has(name)) {
			const what = block === 'log' ? `'${name}' subdirective` : `'${name}'`;
			const message = `${what} specified more than once in the same ${block} block`;
			cx.problem('error', 'log/repeated', at.words[0]!.span, message);
		}
		seen.add(name);
		lower(args, at);
	};
}

function lowerSampling(line: Line, cx: LowerContext): LogSampling {
	const sampling: { interval?: number; first?: number; thereafter?: number } = {};
	const once = onlyOnce('sampling', cx);
	const number =
		(name: 'first' | 'thereafter'): Subdirective =>
		(args, at) => {
			const value = cx.count(at, args, 1, 1, `${name} <number>`) ? cx.integer(args[0]!, 0, 2 ** 31 - 1) : undefined;
			if (value !== undefined) sampling[name] = value;
		};
	cx.subdirectives(
		line.block,
		{
			interval: once('interval', (args, at) => {
				const value = cx.count(at, args, 1, 1, 'interval <duration>') ? cx.duration(args[0]!) : undefined;
				if (value !== undefined) sampling.interval = Math.max(1, Math.round(value));
			}),
			first: once('first', number('first')),
			thereafter: once('thereafter', number('thereafter')),
		},
		'sampling',
	);
	return sampling;
}

function lowerLevel(word: Word, cx: LowerContext): string | undefined {
	const level = LOG_LEVELS.find(known => known === word.text.toUpperCase());
	if (level) return level;
	cx.problem('error', 'log/unknown-level', word.span, `\`${word.text}\` is not a log level.`, {
		hint: `Write one of ${LOG_LEVELS.join(', ')}.`,
	});
	return undefined;
}
