/** Checks directives that are useless without a block. */

import type { LowerContext } from '../../modules/contract/lower-context.ts';
import type { Block, Line } from '../../syntax/ast.ts';

/** Returns the block of a line. If there is none, reports a mistake and returns undefined. */
export function requireBlock(line: Line, cx: LowerContext): Block | undefined {
	if (line.block) return line.block;
	const name = line.words[0]!;
	cx.problem('error', 'directive/missing-block', name.span, `\`${name.text}\` needs a block.`, {
		hint: `Write \`${name.text} … {\` and its directives on the lines below.`,
	});
	return undefined;
}
