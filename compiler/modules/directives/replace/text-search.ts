/** Compiles what a `replace` step searches for. */

import { parseRegexp } from '../../../codegen/regexp/parse-regexp.ts';
import { compileRegexpAlternatives, type RegexpAlternative } from '../../../codegen/regexp/regexp-alternatives.ts';
import { RegexpError, RegexpTooLarge } from '../../../codegen/regexp/regexp-error.ts';
import { isNullable } from '../../../codegen/regexp/regexp-node.ts';
import { FollowedRegexp } from '../../../codegen/regexp/unfinished-matches.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import type { TextReplacement } from './replace.ts';

export const EMPTY_MATCH_MESSAGE = 'The expression matches the empty text, which is everywhere.';
export const EMPTY_MATCH_HINT = 'Use `+` instead of `*`, or add what must be there.';

/** Reports whether an expression matches the empty text. Throws RegexpError. */
export function matchesEmptyText(source: string): boolean {
	return isNullable(parseRegexp(source, false).root);
}

/** A text or regular expression that a search looks for. */
export interface SearchAlternative extends RegexpAlternative {
	readonly isReplacedOnce: boolean;
}

export interface TextSearch {
	readonly regexp: RegExp;
	readonly followedRegexp: FollowedRegexp;
	readonly alternatives: readonly SearchAlternative[];
	/** Maximum length of a match that is replaced, in UTF-16 units. */
	readonly maxMatchLength: number;
	/** Returns the index of the alternative that a match belongs to. */
	alternativeIndexOf(match: RegExpExecArray): number;
}

/**
 * Compiles the texts and expressions of a step to one search. If several alternatives match at the same position, the first one
 * applies.
 */
export function compileTextSearch(
	replacements: readonly TextReplacement[],
	maxMatchLength: number,
	cx: CompileContext,
): TextSearch {
	const expressions = replacements.map(({ find, regexp = false, ignore_case: ignoreCase = false }) => {
		return { source: regexp ? find : escapeRegexp(find), ignoreCase };
	});
	try {
		if (replacements.some(({ find, regexp }) => regexp && matchesEmptyText(find))) {
			return cx.refuse(EMPTY_MATCH_MESSAGE, 'replace/matches-nothing', EMPTY_MATCH_HINT);
		}
		const {
			regexp,
			parsed: parsedRegexp,
			alternatives,
			maxMatchLength: maxLength,
		} = compileRegexpAlternatives(expressions);
		return {
			regexp,
			followedRegexp: new FollowedRegexp(parsedRegexp),
			alternatives: alternatives.map((alternative, index) => ({
				...alternative,
				isReplacedOnce: replacements[index]!.once === true,
			})),
			maxMatchLength: Math.min(maxLength, maxMatchLength),
			alternativeIndexOf: match => alternatives.findIndex(({ group }) => match[group] !== undefined),
		};
	} catch (error) {
		if (error instanceof RegexpTooLarge) return cx.refuse(error.message, 'regexp/too-large', error.hint);
		if (error instanceof RegexpError) return cx.refuse(error.message, 'regexp/invalid');
		throw error;
	}
}

/** Returns a regular expression that matches the text literally. */
function escapeRegexp(text: string): string {
	return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
