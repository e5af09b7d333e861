/** The lint rule `block/empty`. */
import { directives } from '../../modules/registry/directives.ts';
import { linesOf } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports a block of directives that is empty. */
export const blockEmpty: LintRule = {
	name: 'block/empty',
	severity: 'note',
	summary: 'A block of directives is empty.',
	documentation:
		'An empty `handle` takes its requests away from other handlers and answers 200 with an empty body. Write what it should do, such as `respond 204`.',
	check: cx => {
		if (!cx.tree || !cx.dialect) return;
		const blocks = new Set(['else']);
		for (const { isBlock, names } of directives) if (isBlock) for (const name of names[cx.dialect]) blocks.add(name);
		for (const { line } of linesOf(cx.tree)) {
			const name = line.words[0]!;
			if (!blocks.has(name.text) || !line.block || line.block.lines.length > 0) continue;
			cx.report(name.span, `This \`${name.text}\` does nothing.`, { hint: 'Write what it should do, or remove it.' });
		}
	},
};
