/** Parses the argument of `root` and `rewrite`: a single argument is never the matcher. */

import type { Word } from '../../syntax/ast.ts';
import type { DirectiveLine } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';

/**
 * Returns the only argument of a line. If there is no argument, or more than one, reports a mistake and returns undefined.
 * `argumentName` is Caddy's name of the argument, for its messages.
 */
export function soleArgument(
	{ line, name, args }: DirectiveLine,
	cx: LowerContext,
	usage: string,
	argumentName: string,
): Word | undefined {
	cx.noBlock(line);
	const [firstWord, extraWord] = args;
	if (firstWord && !extraWord) return firstWord;
	if (firstWord && name.text === 'rewrite' && /^[~^]/.test(firstWord.text)) {
		cx.problem('error', 'rewrite/arguments', firstWord.span, `\`${firstWord.text}\` is not a target for \`rewrite\`.`, {
			hint: 'For a regular expression, write `uri path_regexp FIND REPLACE`.',
		});
		return undefined;
	}
	if (cx.dialect === 'configfile') cx.count(line, args, 1, 1, usage);
	else {
		const message = firstWord
			? `too many arguments; should only be a matcher and a ${argumentName}`
			: `too few arguments; must have at least a ${name.text} ${argumentName}`;
		cx.problem('error', `${name.text}/arguments`, (extraWord ?? line).span, message);
	}
	return undefined;
}
