/** `route/unused`. */
import { linesOf } from '../lint-context.ts';
import type { LintRule } from '../lint-rule.ts';

/** A named route is never run. */
export const routeUnused: LintRule = {
	name: 'route/unused',
	severity: 'warning',
	summary: 'A named route is never run.',
	documentation: 'Run it with `invoke`, or remove it.',
	ofConfigfile: true,
	check: cx => {
		// Compiling a Configfile finds them.
		if (cx.dialect !== 'compatfile' || !cx.tree) return;
		const run = new Set<string>();
		for (const { line } of linesOf(cx.tree)) {
			if (line.words[0]!.text === 'invoke') for (const { text } of line.words.slice(1)) run.add(text);
		}
		for (const { name } of cx.tree.namedRoutes) {
			if (run.has(name.text)) continue;
			cx.report(name.span, `The named route \`${name.text}\` is never used.`, {
				hint: `Run it with \`invoke ${name.text}\`.`,
			});
		}
	},
};
