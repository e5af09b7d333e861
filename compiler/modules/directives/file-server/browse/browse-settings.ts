/** The block `browse` of `file_server`: lowering and schema. */

import type { Schema } from '../../../../document/schema-type.ts';
import type { Line, Word } from '../../../../syntax/ast.ts';
import type { LowerContext } from '../../../contract/lower-context.ts';
import { LISTING_SORTS, type ListingOrder, type ListingSort } from './listing.ts';

/** Settings for listing folders without an index file. */
export interface BrowseSettings {
	/** Path of a template file, with placeholders. Default: a built-in page. */
	readonly template?: string;
	/** True to show the targets of symbolic links. */
	readonly reveal_symlinks?: true;
	/** Sort key. Default: `namedirfirst`. */
	readonly sort?: ListingSort;
	/** Sort direction. Default: `asc`. */
	readonly order?: ListingOrder;
	/** Maximum number of entries that are read from a folder. Default: 10000. */
	readonly file_limit?: number;
}

export const BROWSE_SCHEMA: Schema = {
	type: 'object',
	description: 'Lists folders without an index.',
	properties: {
		template: { type: 'string', minLength: 1, description: 'Template file; default a built-in page.' },
		reveal_symlinks: { const: true, description: 'Shows the targets of symbolic links.' },
		sort: { enum: LISTING_SORTS, default: 'namedirfirst', description: 'Default `namedirfirst`.' },
		order: { enum: ['asc', 'desc'], default: 'asc', description: 'Default `asc`.' },
		file_limit: {
			type: 'integer',
			minimum: 1,
			maximum: 1_000_000,
			default: 10_000,
			description: 'Maximum entries read; default 10000.',
		},
	},
	additionalProperties: false,
};

/** Lowers `browse [TEMPLATE] { … }`. */
export function lowerBrowse(
	args: readonly Word[],
	line: Line,
	lowerTemplatePath: (word: Word) => string,
	cx: LowerContext,
): BrowseSettings {
	const settings: { -readonly [K in keyof BrowseSettings]: BrowseSettings[K] } = {};
	if (cx.count(line, args, 0, 1, 'browse [template]') && args[0]) settings.template = lowerTemplatePath(args[0]);
	cx.subdirectives(
		line.block,
		{
			reveal_symlinks: (words, innerLine) => {
				if (cx.count(innerLine, words, 0, 0, 'reveal_symlinks')) settings.reveal_symlinks = true;
			},
			sort: (words, innerLine) => {
				if (!cx.count(innerLine, words, 1, 2, 'sort name | namedirfirst | size | time [asc | desc]')) return;
				const [sortWord, orderWord] = words as [Word, Word?];
				if (LISTING_SORTS.includes(sortWord.text as ListingSort)) settings.sort = sortWord.text as ListingSort;
				else {
					cx.problem('error', 'browse/unknown-sort', sortWord.span, `unknown sort option '${sortWord.text}'`, {
						hint: `Write ${LISTING_SORTS.map(name => `\`${name}\``).join(', ')}.`,
					});
				}
				if (!orderWord) return;
				if (orderWord.text === 'asc' || orderWord.text === 'desc') settings.order = orderWord.text;
				else {
					const message = `the second option must be one of the following: asc, desc, but got ${orderWord.text}`;
					cx.problem('error', 'browse/unknown-order', orderWord.span, message);
				}
			},
			file_limit: (words, innerLine) => {
				if (!cx.count(innerLine, words, 1, 1, 'file_limit <number>')) return;
				const entryLimit = cx.integer(words[0]!, 1, 1_000_000);
				if (entryLimit !== undefined) settings.file_limit = entryLimit;
			},
		},
		'browse',
	);
	return settings;
}
