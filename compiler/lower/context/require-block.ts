/** Checks directives that are useless without a block. */

import type { LowerContext } from '../../modules/contract/lower-context.ts';
import type { Block, Line } from '../../syntax/ast.ts';

/** Returns the line's block. If it has none, reports this and returns undefined. */
export function requireBlock(line: Line, cx: LowerContext): Block | undefined {
	if (line.block) return line.block;
	const name = line.words[0]!;
	cx.problem('error', 'directive/missing-block', name.span, `\`${name.text}\` needs a block.`, {
		hint: `Write \`${name.text} … {\` and its directives on the lines below.`,
	});
	return undefined;
}
