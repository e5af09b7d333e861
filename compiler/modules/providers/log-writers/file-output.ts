/** Lowering and schema of the log output `file`: a file that is rolled by size or time. */

import type { FileOutput, LogRolling } from '../../../document/log-settings.ts';
import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';

/** Defaults of {@link LogRolling}. */
export const ROLLING_DEFAULTS = {
	size: 100 * 1024 ** 2,
	compression: 'gzip',
	keep: 10,
	keep_for: 90 * 86_400_000,
	time_format: '2006-01-02T15-04-05.000',
} as const;

/** Syntax of `output file`. */
export const FILE_USAGE = 'file <path> [{ mode … dir_mode … roll_… }]';

const FILE_MODE_PATTERN = '^0?[0-7]{3}$';

const TIME_OF_DAY_PATTERN = '^(?:[01]?\\d|2[0-3]):[0-5]\\d$';

const MIB_BYTES = 1024 ** 2;

const DAY_MS = 86_400_000;

const ROLLING_SCHEMA: Schema = {
	type: 'object',
	description: 'When the file is rolled, and what happens to rolled files.',
	properties: {
		size: {
			type: 'integer',
			minimum: 1,
			default: 104_857_600,
			description: 'Maximum bytes of a file; default 104857600.',
		},
		compression: { enum: ['none', 'gzip', 'zstd'], default: 'gzip', description: 'Default `gzip`.' },
		local_time: { const: true, description: 'Use local time in file names; default UTC.' },
		keep: {
			type: 'integer',
			minimum: 0,
			default: 10,
			description: 'Rolled files to keep; default 10, 0 for no limit.',
		},
		keep_for: {
			type: 'integer',
			minimum: 0,
			default: 7_776_000_000,
			description: 'Milliseconds for which rolled files are kept; default 90 days, 0 for no limit.',
		},
		interval: { type: 'integer', minimum: 1000, description: 'Milliseconds after which a file is rolled.' },
		minutes: {
			type: 'array',
			items: { type: 'integer', minimum: 0, maximum: 59 },
			description: 'Minutes of each hour at which it is rolled.',
		},
		at: {
			type: 'array',
			items: { type: 'string', pattern: TIME_OF_DAY_PATTERN },
			description: 'Times of day, `HH:MM`, at which it is rolled.',
		},
		time_format: {
			type: 'string',
			pattern: '^[^/\\\\\\u0000]+$',
			default: '2006-01-02T15-04-05.000',
			description:
				'Layout of the time in names of rolled files; default `2006-01-02T15-04-05.000`. Files with names of that layout and of this one are compressed and removed; those with a layout configured earlier are not.',
		},
	},
	additionalProperties: false,
};

export const FILE_PROPERTIES: { readonly [name: string]: Schema } = {
	path: { type: 'string', minLength: 1, description: 'File of the writer `file`; `{env.NAME}` is read at load.' },
	mode: { type: 'string', pattern: FILE_MODE_PATTERN, description: 'Octal permissions of the file; default `0600`.' },
	dir_mode: {
		type: 'string',
		pattern: `${FILE_MODE_PATTERN}|^inherit$|^from_file$`,
		description:
			'Octal permissions of created folders; `inherit` uses those of the parent folder, `from_file` those of the file, with search permission wherever it is readable. Default `0700`.',
	},
	rolling: {
		anyOf: [{ const: false, description: 'Lets the file grow without limit.' }, ROLLING_SCHEMA],
		description: 'When the file is rolled and how many files are kept; false disables rolling.',
	},
};

/** Lowers the path and the block of `output file`; returns undefined after reporting a mistake. */
export function lowerFileOutput(args: readonly Word[], line: Line, cx: LowerContext): FileOutput | undefined {
	if (!cx.count(line, args, 1, 1, `output ${FILE_USAGE}`)) return undefined;
	const pathWord = args[0]!;
	return { path: cx.filePath(cx.template(pathWord), pathWord.span), ...lowerFileSettings(line, cx) };
}

type Draft<T> = { -readonly [K in keyof T]: T[K] };

function lowerFileSettings(line: Line, cx: LowerContext): Omit<FileOutput, 'path'> {
	const settings: Draft<Omit<FileOutput, 'path'>> = {};
	const rolling: Draft<LogRolling> = {};
	const lowerMode = (word: Word, namedModes: readonly string[]): string | undefined => {
		if (/^0?[0-7]{3}$/.test(word.text)) return word.text.padStart(4, '0');
		if (namedModes.includes(word.text)) return word.text;
		cx.problem('error', 'log/bad-mode', word.span, `\`${word.text}\` is not a file mode.`, {
			hint: `Write three octal digits, such as 0640${namedModes.map(name => ` or ${name}`).join('')}.`,
		});
		return undefined;
	};
	/** Returns the handler of a sub-directive with one argument. */
	const valueHandler =
		(usage: string, lowerValue: (word: Word) => void): SubdirectiveHandler =>
		(words, innerLine) => {
			if (cx.count(innerLine, words, 1, 1, usage)) lowerValue(words[0]!);
		};
	const handlers: { [name: string]: SubdirectiveHandler } = {
		mode: valueHandler('mode <octal>', word => {
			const mode = lowerMode(word, []);
			if (mode !== undefined) settings.mode = mode;
		}),
		dir_mode: valueHandler('dir_mode <octal> | inherit | from_file', word => {
			const mode = lowerMode(word, ['inherit', 'from_file']);
			if (mode !== undefined) settings.dir_mode = mode;
		}),
		roll_disabled: (words, innerLine) => {
			if (cx.count(innerLine, words, 0, 0, 'roll_disabled')) settings.rolling = false;
		},
		roll_size: valueHandler('roll_size <size>', word => {
			const sizeBytes = cx.size(word);
			if (sizeBytes === undefined) return;
			if (sizeBytes > 0) rolling.size = Math.ceil(sizeBytes / MIB_BYTES) * MIB_BYTES;
			else cx.problem('error', 'value/out-of-range', word.span, 'A log file needs room for at least one byte.');
		}),
		roll_uncompressed: (words, innerLine) => {
			if (cx.count(innerLine, words, 0, 0, 'roll_uncompressed')) rolling.compression = 'none';
		},
		roll_compression: valueHandler('roll_compression none | gzip | zstd', word => {
			const compression = cx.oneOf(word, ['none', 'gzip', 'zstd'] as const, 'compression');
			if (compression) rolling.compression = compression;
		}),
		roll_local_time: (words, innerLine) => {
			if (cx.count(innerLine, words, 0, 0, 'roll_local_time')) rolling.local_time = true;
		},
		roll_keep: valueHandler('roll_keep <number>', word => {
			const keepCount = cx.integer(word, 0, 1_000_000);
			if (keepCount !== undefined) rolling.keep = keepCount;
		}),
		roll_keep_for: valueHandler('roll_keep_for <duration>', word => {
			const keptForMs = cx.duration(word);
			if (keptForMs === undefined) return;
			if (keptForMs >= 0) rolling.keep_for = Math.ceil(keptForMs / DAY_MS) * DAY_MS;
			else cx.problem('error', 'value/out-of-range', word.span, 'Files cannot be kept for a negative time.');
		}),
		roll_interval: valueHandler('roll_interval <duration>', word => {
			const intervalMs = cx.duration(word);
			if (intervalMs === undefined) return;
			if (intervalMs >= 1000) rolling.interval = intervalMs;
			else cx.problem('error', 'value/out-of-range', word.span, 'A log file can be rolled at most once a second.');
		}),
		roll_minutes: (words, innerLine) => {
			if (!cx.count(innerLine, words, 1, 60, 'roll_minutes <minute>…')) return;
			rolling.minutes = splitAtCommas(words).flatMap(({ text, word }) => {
				if (/^[0-5]?\d$/.test(text)) return Number(text);
				cx.problem('error', 'log/bad-time', word.span, `\`${text}\` is not a minute of an hour, 0 to 59.`);
				return [];
			});
		},
		roll_at: (words, innerLine) => {
			if (!cx.count(innerLine, words, 1, 1440, 'roll_at <HH:MM>…')) return;
			rolling.at = splitAtCommas(words).flatMap(({ text, word }) => {
				if (new RegExp(TIME_OF_DAY_PATTERN).test(text)) return text.padStart(5, '0');
				cx.problem('error', 'log/bad-time', word.span, `\`${text}\` is not a time of day, 00:00 to 23:59.`);
				return [];
			});
		},
		backup_time_format: valueHandler('backup_time_format <layout>', word => {
			if (/[/\\\0]/.test(word.text) || word.text === '') {
				cx.problem('error', 'log/bad-time', word.span, 'The layout becomes part of a file name.', {
					hint: 'Write it without slashes, such as 2006-01-02T15-04-05.',
				});
			} else rolling.time_format = word.text;
		}),
	};
	cx.subdirectives(line.block, handlers, 'output file');
	if (settings.rolling !== false && Object.keys(rolling).length > 0) settings.rolling = rolling;
	return settings;
}

/** Splits words that contain several comma-separated values. */
function splitAtCommas(words: readonly Word[]): { text: string; word: Word }[] {
	return words.flatMap(word =>
		word.text
			.split(',')
			.filter(text => text !== '')
			.map(text => ({ text, word })),
	);
}
