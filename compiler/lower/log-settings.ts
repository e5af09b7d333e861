/** What `log` holds at a site and in the global block: output, format and level. */
import { resolve } from 'node:path';
import type { Schema } from '../directives/directive.ts';
import type { Line, Word } from '../syntax/ast.ts';
import type { LowerContext, Subdirective } from './lower-context.ts';
import { sentenceList } from './sentences.ts';
import { unavailableMessage } from './unavailable.ts';

/** Levels in rising order, as the document writes them. */
export const LOG_LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'PANIC', 'FATAL'] as const;

const WRITERS = ['stdout', 'stderr', 'discard', 'file'] as const;
const ENCODERS = ['console', 'json'] as const;

/** Properties of a log in the document. */
export const LOG_PROPERTIES: { readonly [name: string]: Schema } = {
	name: { type: 'string', description: 'Logger name. Several sites may share it.' },
	output: {
		type: 'object',
		properties: {
			writer: { enum: WRITERS },
			path: { type: 'string', description: 'File of the writer `file`.' },
		},
		required: ['writer'],
		additionalProperties: false,
	},
	format: {
		type: 'object',
		properties: { encoder: { enum: ENCODERS } },
		required: ['encoder'],
		additionalProperties: false,
	},
	level: { enum: LOG_LEVELS },
	'@id': { type: 'string' },
};

/** A log while it is lowered. */
export interface LogDraft {
	output?: { writer: string; path?: string };
	format?: { encoder: string };
	level?: string;
}

/** Lowers the block of a `log`; `more` are the sub-directives of one place only. */
export function lowerLogBlock(line: Line, cx: LowerContext, more: { readonly [name: string]: Subdirective }): LogDraft {
	const draft: LogDraft = {};
	const seen = new Set<string>();
	const once = (name: string, lower: Subdirective): Subdirective => {
		return (args, at) => {
			if (seen.has(name)) {
				const message = `'${name}' subdirective specified more than once in the same log block`;
				cx.problem('error', 'log/repeated', at.words[0]!.span, message);
			}
			seen.add(name);
			lower(args, at);
		};
	};
	const unavailable: Subdirective = (_args, at) => {
		const word = at.words[0]!;
		cx.problem('error', 'directive/unavailable', word.span, unavailableMessage(word.text));
	};
	cx.subdirectives(
		line.block,
		{
			output: once('output', (args, at) => {
				const output = lowerOutput(args, at, cx);
				if (output) draft.output = output;
			}),
			format: once('format', (args, at) => {
				const encoder = lowerFormat(args, at, cx);
				if (encoder) draft.format = { encoder };
			}),
			level: once('level', (args, at) => {
				const level = cx.count(at, args, 1, 1, 'level DEBUG|INFO|WARN|ERROR') ? lowerLevel(args[0]!, cx) : undefined;
				if (level) draft.level = level;
			}),
			...more,
			sampling: unavailable,
			core: unavailable,
		},
		'log',
	);
	return draft;
}

function lowerLevel(word: Word, cx: LowerContext): string | undefined {
	const level = LOG_LEVELS.find(known => known === word.text.toUpperCase());
	if (level) return level;
	cx.problem('error', 'log/unknown-level', word.span, `\`${word.text}\` is not a log level.`, {
		hint: `Write one of ${LOG_LEVELS.join(', ')}.`,
	});
	return undefined;
}

function lowerOutput(args: readonly Word[], line: Line, cx: LowerContext): LogDraft['output'] {
	const usage = 'output stdout | stderr | discard | file <path>';
	const writer = args[0];
	if (!writer) {
		cx.count(line, args, 1, 2, usage);
		return undefined;
	}
	if (writer.text === 'net') {
		cx.problem('error', 'log/unavailable', writer.span, unavailableMessage('output net'));
		return undefined;
	}
	const known = cx.oneOf(writer, WRITERS, 'log writer');
	if (!known) return undefined;
	refuseSettings(line, cx, `output ${known}`);
	if (known !== 'file') return cx.count(line, args, 1, 1, usage) ? { writer: known } : undefined;
	if (!cx.count(line, args, 2, 2, usage)) return undefined;
	const path = args[1]!;
	return { writer: known, path: resolve(cx.folderOf(path.span), cx.template(path)) };
}

function lowerFormat(args: readonly Word[], line: Line, cx: LowerContext): string | undefined {
	const encoder = args[0];
	if (!cx.count(line, args, 1, 1, 'format console | json') || !encoder) return undefined;
	if (['filter', 'append', 'journald'].includes(encoder.text)) {
		cx.problem('error', 'log/unavailable', encoder.span, unavailableMessage(`format ${encoder.text}`));
		return undefined;
	}
	const known = cx.oneOf(encoder, ENCODERS, 'log format');
	if (known) refuseSettings(line, cx, `format ${known}`);
	return known;
}

/** Writers and encoders take no settings of their own yet: say which words those are. */
function refuseSettings(line: Line, cx: LowerContext, of: string): void {
	if (!line.block || line.block.lines.length === 0) return;
	const names = [...new Set(line.block.lines.map(inner => inner.words[0]!.text))];
	const message = `Settings of \`${of}\` (${sentenceList(names)}) are not part of this build yet.`;
	cx.problem('error', 'log/unavailable', line.block.lines[0]!.words[0]!.span, message);
}
