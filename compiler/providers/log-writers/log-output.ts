/** Outputs of logs: where entries are written; their text and their schema. */
import { resolve } from 'node:path';
import type { Schema } from '../../directives/directive.ts';
import type { LowerContext, Subdirective } from '../../lower/lower-context.ts';
import { unavailableMessage } from '../../lower/unavailable.ts';
import type { Line, Word } from '../../syntax/ast.ts';

/** Names of writers. */
export const LOG_WRITERS = ['stdout', 'stderr', 'discard', 'file'] as const;

/** An output as the document holds it. */
export interface LogOutput {
	/** One of {@link LOG_WRITERS}. */
	readonly writer: string;
	/** Of `file`. */
	readonly path?: string;
	/** Octal permissions of the file; `0600` if left out. */
	readonly mode?: string;
	/** Octal permissions of folders that are made, `inherit` or `from_file`; `0700` if left out. */
	readonly dir_mode?: string;
}

const MODE = '^0?[0-7]{3}$';

/** Schema of an output. */
export const LOG_OUTPUT: Schema = {
	type: 'object',
	description: 'Where entries are written; standard error if left out.',
	properties: {
		writer: { enum: LOG_WRITERS },
		path: { type: 'string', minLength: 1, description: 'File of the writer `file`; `{env.NAME}` is read at load.' },
		mode: { type: 'string', pattern: MODE, description: 'Octal permissions of the file; `0600` if left out.' },
		dir_mode: {
			type: 'string',
			pattern: `${MODE}|^inherit$|^from_file$`,
			description:
				'Octal permissions of folders that are made; `inherit` takes those of the folder above, `from_file` those of the file with the right to enter where it can be read. `0700` if left out.',
		},
	},
	required: ['writer'],
	additionalProperties: false,
};

const USAGE =
	'output stdout | stderr | discard | file <path> [{ mode <octal>; dir_mode <octal> | inherit | from_file }]';

const ROLLING = [
	...['roll_size', 'roll_uncompressed', 'roll_compression', 'roll_local_time', 'roll_keep', 'roll_keep_for'],
	...['roll_interval', 'roll_minutes', 'roll_at', 'backup_time_format'],
];

/** Lowers `output WRITER …`; undefined after a mistake was reported. */
export function lowerLogOutput(args: readonly Word[], line: Line, cx: LowerContext): LogOutput | undefined {
	const word = args[0];
	if (!word) {
		cx.count(line, args, 1, 2, USAGE);
		return undefined;
	}
	if (word.text === 'net') {
		cx.problem('error', 'log/unavailable', word.span, unavailableMessage('output net'));
		return undefined;
	}
	const writer = cx.oneOf(word, LOG_WRITERS, 'log writer');
	if (!writer) return undefined;
	if (writer !== 'file') {
		cx.subdirectives(line.block, {}, `output ${writer}`);
		return cx.count(line, args, 1, 1, USAGE) ? { writer } : undefined;
	}
	if (!cx.count(line, args, 2, 2, USAGE)) return undefined;
	const path = args[1]!;
	const template = cx.template(path);
	// Where a placeholder begins the path, only the server knows whether it is absolute.
	const full = template.startsWith('{') ? template : resolve(cx.folderOf(path.span), template);
	return { writer, path: full, ...lowerFileSettings(line, cx) };
}

function lowerFileSettings(line: Line, cx: LowerContext): { mode?: string; dir_mode?: string } {
	const settings: { mode?: string; dir_mode?: string } = {};
	const octal = (word: Word, more: readonly string[]): string | undefined => {
		if (/^0?[0-7]{3}$/.test(word.text)) return word.text.padStart(4, '0');
		if (more.includes(word.text)) return word.text;
		cx.problem('error', 'log/bad-mode', word.span, `\`${word.text}\` is not a file mode.`, {
			hint: `Write three octal digits, such as 0640${more.map(name => ` or ${name}`).join('')}.`,
		});
		return undefined;
	};
	const known: { [name: string]: Subdirective } = {
		mode: (words, at) => {
			const mode = cx.count(at, words, 1, 1, 'mode <octal>') ? octal(words[0]!, []) : undefined;
			if (mode !== undefined) settings.mode = mode;
		},
		dir_mode: (words, at) => {
			if (!cx.count(at, words, 1, 1, 'dir_mode <octal> | inherit | from_file')) return;
			const mode = octal(words[0]!, ['inherit', 'from_file']);
			if (mode !== undefined) settings.dir_mode = mode;
		},
		// A log that grows without end is what this build writes anyway.
		roll_disabled: (words, at) => void cx.count(at, words, 0, 0, 'roll_disabled'),
	};
	const refuse: Subdirective = (_words, at) => {
		const word = at.words[0]!;
		cx.problem('error', 'log/unavailable', word.span, unavailableMessage(word.text), {
			hint: 'Let another program rotate the file; it is opened for appending.',
		});
	};
	for (const name of ROLLING) Object.defineProperty(known, name, { value: refuse, enumerable: false });
	cx.subdirectives(line.block, known, 'output file');
	return settings;
}
