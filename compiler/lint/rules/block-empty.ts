/** The lint rule `block/empty`, which reports a block of directives that is empty. */
import type { Dialect } from '../../dialects/dialect.ts';
import { directives } from '../../modules/registry/directives.ts';
import { linesOf } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** The names of directives that have a block of directives. */
const BLOCK_NAMES = { configfile: blockNames('configfile'), compatfile: blockNames('compatfile') } as const;

function blockNames(dialect: Dialect): ReadonlySet<string> {
	return new Set(['else', ...directives.flatMap(({ isBlock, names }) => (isBlock ? names[dialect] : []))]);
}

export const blockEmpty: LintRule = {
	name: 'block/empty',
	severity: 'note',
	summary: 'A block of directives is empty.',
	documentation:
		'An empty `handle` takes its requests away from other handlers and answers 200 with an empty body. Write what it should do, such as `respond 204`.',
	dependsOn: 'site',
	check: cx => {
		if (!cx.tree || !cx.dialect) return;
		const dialectBlockNames = BLOCK_NAMES[cx.dialect];
		for (const { line } of linesOf(cx.tree)) {
			const name = line.words[0]!;
			if (!dialectBlockNames.has(name.text) || !line.block || line.block.lines.length > 0) continue;
			cx.report(name.span, `This \`${name.text}\` does nothing.`, { hint: 'Write what it should do, or remove it.' });
		}
	},
};
