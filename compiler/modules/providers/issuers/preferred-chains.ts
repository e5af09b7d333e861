/** `preferred_chains`: selects among several certificate chains that an issuer offers. */

import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';

/** The setting `preferred_chains` in documents. Exactly one field is set. */
export interface PreferredChains {
	/** Selects the chain with the fewest bytes. */
	readonly smallest?: boolean;
	/** Selects the first chain whose root has one of these common names. */
	readonly root_common_name?: readonly string[];
	/** Selects the first chain with any certificate that has one of these common names. */
	readonly any_common_name?: readonly string[];
}

const NAMES_SCHEMA: Schema = { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 };

export const PREFERRED_CHAINS_SCHEMA: Schema = {
	type: 'object',
	description: 'Selects a chain if an issuer offers several.',
	properties: {
		smallest: { type: 'boolean', description: 'The chain with the fewest bytes.' },
		root_common_name: { ...NAMES_SCHEMA, description: 'The first chain whose root has one of these common names.' },
		any_common_name: {
			...NAMES_SCHEMA,
			description: 'The first chain with any certificate that has one of these common names.',
		},
	},
	additionalProperties: false,
};

/** Lowers the words and the block of `preferred_chains`. Returns undefined after reporting a mistake. */
export function lowerPreferredChains(args: readonly Word[], line: Line, cx: LowerContext): PreferredChains | undefined {
	const usage = 'preferred_chains smallest | { root_common_name <name>… | any_common_name <name>… }';
	const draft: { smallest?: boolean; root_common_name?: string[]; any_common_name?: string[] } = {};
	if (!cx.count(line, args, 0, 1, usage)) return undefined;
	if (args[0]) {
		if (args[0].text !== 'smallest') {
			cx.problem('error', 'issuer/preferred-chains', args[0].span, `Invalid argument '${args[0].text}'`, {
				hint: `Usage: ${usage}`,
			});
			return undefined;
		}
		draft.smallest = true;
	}
	const namesHandler =
		(
			name: 'root_common_name' | 'any_common_name',
			otherField: 'root_common_name' | 'any_common_name',
		): SubdirectiveHandler =>
		(words, innerLine) => {
			if (!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, `${name} <name>…`)) return;
			const conflictingField = draft.smallest ? 'smallest' : draft[otherField] ? otherField : undefined;
			if (conflictingField) {
				const message = `Can't set ${name} when ${conflictingField} is already set`;
				cx.problem('error', 'issuer/preferred-chains', innerLine.words[0]!.span, message);
				return;
			}
			draft[name] = [...(draft[name] ?? []), ...words.map(word => word.text)];
		};
	cx.subdirectives(
		line.block,
		{
			root_common_name: namesHandler('root_common_name', 'any_common_name'),
			any_common_name: namesHandler('any_common_name', 'root_common_name'),
		},
		'preferred_chains',
	);
	return draft;
}
