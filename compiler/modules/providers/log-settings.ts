/**
 * Lowering and schema of the settings that `log` has both in a site and in the global block: output, format, level and sampling.
 */

import type { LogFormat, LogOutput, LogSampling } from '../../document/log-settings.ts';
import type { Schema } from '../../document/schema-type.ts';
import { unavailableMessage } from '../../lower/context/unavailable.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../contract/lower-context.ts';
import { LOG_FORMAT_REFERENCE, lowerLogFormat } from './log-formats/log-format.ts';
import { LOG_OUTPUT_SCHEMA, lowerLogOutput } from './log-writers/log-output.ts';

/** Levels in ascending order, as they are written in the document. */
const LOG_LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'PANIC', 'FATAL'] as const;

export const LOG_SCHEMA_PROPERTIES: { readonly [name: string]: Schema } = {
	name: { type: 'string', description: 'Logger name. Several sites may share it.' },
	output: LOG_OUTPUT_SCHEMA,
	format: LOG_FORMAT_REFERENCE,
	level: { enum: LOG_LEVELS, description: 'The lowest level that is written; default `INFO`.' },
	sampling: {
		type: 'object',
		description: 'Writes only some of the entries with the same message and level.',
		properties: {
			interval: { type: 'integer', minimum: 1, default: 1000, description: 'Milliseconds; default 1000.' },
			first: {
				type: 'integer',
				minimum: 0,
				default: 100,
				description: 'Entries written per interval before sampling starts; default 100.',
			},
			thereafter: {
				type: 'integer',
				minimum: 0,
				default: 100,
				description: 'After those, every Nth entry is written, or none if 0; default 100.',
			},
		},
		additionalProperties: false,
	},
	'@id': { type: 'string' },
};

/** The settings of a log that is being lowered. The lines of its block set the fields. */
export interface LogDraft {
	output?: LogOutput;
	format?: LogFormat;
	level?: string;
	sampling?: LogSampling;
}

/** Lowers the block of a `log`. `extraHandlers` handles the sub-directives that only the caller's block has. */
export function lowerLogBlock(
	line: Line,
	cx: LowerContext,
	extraHandlers: { readonly [name: string]: SubdirectiveHandler },
): LogDraft {
	const draft: LogDraft = {};
	const reportingRepeats = createRepeatReporter('log', cx);
	cx.subdirectives(
		line.block,
		{
			output: reportingRepeats('output', (args, innerLine) => {
				const output = lowerLogOutput(args, innerLine, cx);
				if (output) draft.output = output;
			}),
			format: reportingRepeats('format', (args, innerLine) => {
				const format = lowerLogFormat(args, innerLine, cx);
				if (format) draft.format = cx.origin(format, innerLine.span);
			}),
			level: reportingRepeats('level', (args, innerLine) => {
				const level = cx.count(innerLine, args, 1, 1, 'level DEBUG|INFO|WARN|ERROR')
					? lowerLevel(args[0]!, cx)
					: undefined;
				if (level) draft.level = level;
			}),
			...extraHandlers,
			sampling: reportingRepeats('sampling', (args, innerLine) => {
				cx.count(innerLine, args, 0, 0, 'sampling { interval <duration>; first <number>; thereafter <number> }');
				draft.sampling = lowerSampling(innerLine, cx);
			}),
			core: (_args, innerLine) => {
				cx.problem('error', 'directive/unavailable', innerLine.words[0]!.span, unavailableMessage('core'));
			},
		},
		'log',
	);
	return draft;
}

/**
 * Returns a function that wraps the handler of a sub-directive, so that repetitions of the sub-directive in a block are reported.
 */
function createRepeatReporter(
	blockName: 'log' | 'sampling',
	cx: LowerContext,
): (name: string, lower: SubdirectiveHandler) => SubdirectiveHandler {
	const usedNames = new Set<string>();
	return (name, lower) => (args, innerLine) => {
		if (usedNames.has(name)) {
			const subject = blockName === 'log' ? `'${name}' subdirective` : `'${name}'`;
			const message = `${subject} specified more than once in the same ${blockName} block`;
			cx.problem('error', 'log/repeated', innerLine.words[0]!.span, message);
		}
		usedNames.add(name);
		lower(args, innerLine);
	};
}

function lowerSampling(line: Line, cx: LowerContext): LogSampling {
	const sampling: { interval?: number; first?: number; thereafter?: number } = {};
	const reportingRepeats = createRepeatReporter('sampling', cx);
	const numberHandler =
		(name: 'first' | 'thereafter'): SubdirectiveHandler =>
		(args, innerLine) => {
			const entryCount = cx.count(innerLine, args, 1, 1, `${name} <number>`)
				? cx.integer(args[0]!, 0, 2 ** 31 - 1)
				: undefined;
			if (entryCount !== undefined) sampling[name] = entryCount;
		};
	cx.subdirectives(
		line.block,
		{
			interval: reportingRepeats('interval', (args, innerLine) => {
				const intervalMs = cx.count(innerLine, args, 1, 1, 'interval <duration>') ? cx.duration(args[0]!) : undefined;
				if (intervalMs !== undefined) sampling.interval = Math.max(1, Math.round(intervalMs));
			}),
			first: reportingRepeats('first', numberHandler('first')),
			thereafter: reportingRepeats('thereafter', numberHandler('thereafter')),
		},
		'sampling',
	);
	return sampling;
}

function lowerLevel(word: Word, cx: LowerContext): string | undefined {
	const level = LOG_LEVELS.find(name => name === word.text.toUpperCase());
	if (level) return level;
	cx.problem('error', 'log/unknown-level', word.span, `\`${word.text}\` is not a log level.`, {
		hint: `Write one of ${LOG_LEVELS.join(', ')}.`,
	});
	return undefined;
}
