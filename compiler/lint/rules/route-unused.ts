/** The lint rule `route/unused`, which reports a named route that is never run. */
import { traitsOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const routeUnused: LintRule = {
	name: 'route/unused',
	severity: 'warning',
	summary: 'A named route is never run.',
	documentation: 'Run it with `invoke`, or remove it.',
	checkedForConfigfile: true,
	check: cx => {
		// For a Configfile, the compiler reports unused routes.
		if (cx.dialect !== 'compatfile' || !cx.tree) return;
		const usedRoutes = new Set<string>();
		for (const { step } of cx.walkedDocument.steps) {
			const route = traitsOf(step).routeOf?.(step);
			if (route !== undefined) usedRoutes.add(route);
		}
		for (const { name } of cx.tree.namedRoutes) {
			if (usedRoutes.has(name.text)) continue;
			cx.report(name.span, `The named route \`${name.text}\` is never used.`, {
				hint: `Run it with \`invoke ${name.text}\`.`,
			});
		}
	},
};
