/** `block/empty`. */
import { linesOf } from '../lint-context.ts';
import type { LintRule } from '../lint-rule.ts';

const BLOCKS: ReadonlySet<string> = new Set(['handle', 'handle_path', 'route', 'when', 'else', 'handle_errors']);

/** A block of directives is empty. */
export const blockEmpty: LintRule = {
	name: 'block/empty',
	severity: 'note',
	summary: 'A block of directives is empty.',
	documentation:
		'An empty `handle` takes its requests from the others and answers 200 with nothing. Say what is meant, such as `respond 204`.',
	check: cx => {
		if (!cx.tree) return;
		for (const { line } of linesOf(cx.tree)) {
			const name = line.words[0]!;
			if (!BLOCKS.has(name.text) || !line.block || line.block.lines.length > 0) continue;
			cx.report(name.span, `This \`${name.text}\` does nothing.`, { hint: 'Write what it is to do, or remove it.' });
		}
	},
};
