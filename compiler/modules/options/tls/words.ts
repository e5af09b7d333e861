/** Defines simple options (flags, and options with a single value), and parses their values. */

import type { Schema } from '../../../document/schema-type.ts';
import type { Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import type { GlobalOption } from '../../contract/option.ts';

/** The ID and documentation of a simple option. */
export interface OptionDescription {
	readonly id: string;
	readonly summary: string;
	readonly documentation: string;
}

/** Returns an option without arguments, which sets `settings.<id>` to true. */
export function flagOption(description: OptionDescription): GlobalOption {
	const { id } = description;
	return {
		...description,
		names: { configfile: [id], compatfile: [id] },
		usage: id,
		lower: (line, settings, cx) => {
			cx.noBlock(line);
			if (cx.count(line, line.words.slice(1), 0, 0, id)) settings[id] = true;
		},
		schema: { type: 'boolean' },
		startup: false,
	};
}

/**
 * Returns an option with one argument. `parseValue` parses the argument to the value of `settings.<id>`; it returns undefined after
 * reporting a mistake.
 */
export function valueOption(
	description: OptionDescription & {
		readonly usage: string;
		readonly schema: Schema;
		readonly parseValue: (word: Word, cx: LowerContext) => unknown;
	},
): GlobalOption {
	const { id, parseValue, ...otherFields } = description;
	return {
		id,
		...otherFields,
		names: { configfile: [id], compatfile: [id] },
		lower: (line, settings, cx) => {
			cx.noBlock(line);
			const args = line.words.slice(1);
			if (!cx.count(line, args, 1, 1, otherFields.usage)) return;
			const value = parseValue(args[0]!, cx);
			if (value !== undefined) settings[id] = value;
		},
		startup: false,
	};
}

/** Parses a positive duration as milliseconds. Returns undefined after reporting a mistake. */
export function parsePositiveDuration(word: Word, cx: LowerContext): number | undefined {
	const durationMs = cx.duration(word);
	if (durationMs === undefined || durationMs > 0) return durationMs;
	cx.problem('error', 'value/out-of-range', word.span, 'The duration must be positive.');
	return undefined;
}

export function parseHttpUrl(word: Word, cx: LowerContext): string | undefined {
	const url = URL.parse(word.text);
	if (url && (url.protocol === 'http:' || url.protocol === 'https:')) return word.text;
	cx.problem('error', 'value/not-a-url', word.span, `\`${word.text}\` is not an HTTP URL.`, {
		hint: 'Write one that begins with https://.',
	});
	return undefined;
}

/** Returns a server name in lower case; undefined after reporting a mistake. */
export function parseServerName(word: Word, cx: LowerContext): string | undefined {
	if (/^[A-Za-z0-9*._:-]{1,253}$/.test(word.text)) return word.text.toLowerCase();
	cx.problem('error', 'value/not-a-name', word.span, `\`${word.text}\` is not a server name.`);
	return undefined;
}
