/** Parses the argument of directives that accept a matcher only in addition to an argument: `root`, `rewrite`. */

import type { Word } from '../../syntax/ast.ts';
import type { DirectiveLine } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';

/**
 * Returns the argument, or undefined after reporting that there is none or more than one. `what` is what the compatible server
 * calls it.
 */
export function soleArgument(
	{ line, name, args }: DirectiveLine,
	cx: LowerContext,
	usage: string,
	what: string,
): Word | undefined {
	cx.noBlock(line);
	const [argument, surplus] = args;
	if (argument && !surplus) return argument;
	if (argument && name.text === 'rewrite' && /^[~^]/.test(argument.text)) {
		cx.problem('error', 'rewrite/arguments', argument.span, `\`${argument.text}\` is not a target for \`rewrite\`.`, {
			hint: 'For a regular expression, write `uri path_regexp FIND REPLACE`.',
		});
		return undefined;
	}
	if (cx.dialect === 'configfile') cx.count(line, args, 1, 1, usage);
	else {
		const message = argument
			? `too many arguments; should only be a matcher and a ${what}`
			: `too few arguments; must have at least a ${name.text} ${what}`;
		cx.problem('error', `${name.text}/arguments`, (surplus ?? line).span, message);
	}
	return undefined;
}
