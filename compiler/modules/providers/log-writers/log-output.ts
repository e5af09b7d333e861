/** Lowering and schema of log outputs, which say where entries are written. */

import type { LogOutput } from '../../../document/log-settings.ts';
import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { FILE_PROPERTIES, FILE_USAGE, lowerFileOutput } from './file-output.ts';
import { lowerNetOutput, NET_PROPERTIES, NET_USAGE } from './net-output.ts';

const LOG_WRITER_NAMES = ['stdout', 'stderr', 'discard', 'file', 'net'] as const;

export const LOG_OUTPUT_SCHEMA: Schema = {
	type: 'object',
	description: 'Where entries are written; default standard error.',
	properties: {
		writer: { enum: LOG_WRITER_NAMES, description: 'The writer; only `file` and `net` have other fields.' },
		...FILE_PROPERTIES,
		...NET_PROPERTIES,
	},
	required: ['writer'],
	additionalProperties: false,
};

const OUTPUT_USAGE = `output stdout | stderr | discard | ${FILE_USAGE} | ${NET_USAGE}`;

/** Lowers `output WRITER …`; returns undefined after reporting a mistake. */
export function lowerLogOutput(args: readonly Word[], line: Line, cx: LowerContext): LogOutput | undefined {
	const writerWord = args[0];
	if (!writerWord) {
		cx.count(line, args, 1, 2, OUTPUT_USAGE);
		return undefined;
	}
	const writer = cx.oneOf(writerWord, LOG_WRITER_NAMES, 'log writer');
	if (!writer) return undefined;
	if (writer === 'file' || writer === 'net') {
		const lowerSettings = writer === 'file' ? lowerFileOutput : lowerNetOutput;
		const settings = lowerSettings(args.slice(1), line, cx);
		return settings && { writer, ...settings };
	}
	cx.subdirectives(line.block, {}, `output ${writer}`);
	return cx.count(line, args, 1, 1, OUTPUT_USAGE) ? { writer } : undefined;
}
