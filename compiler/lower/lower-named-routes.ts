/** The definitions and uses of named routes, during lowering. */

import { nearestName, suggestName } from '../diagnostics/suggest.ts';
import type { NamedBlock, Word } from '../syntax/ast.ts';
import type { Lowering } from './lowering.ts';

/** The named routes of one configuration. */
export class NamedRoutes {
	/** Name of the route that is being lowered; undefined while a site is. */
	lowered: string | undefined = undefined;
	readonly #uses: { readonly from: string | undefined; readonly name: Word }[] = [];

	/** Records that a route is run by the site or route that is being lowered. */
	use(name: Word): void {
		this.#uses.push({ from: this.lowered, name });
	}

	/**
	 * Called after lowering. Reports names without a definition; in a Compatfile, only those that a site can reach, as the
	 * compatible server does. In a Configfile, warns about unused routes.
	 */
	check(lowering: Lowering, routes: readonly NamedBlock[]): void {
		const names = new Set(routes.map(route => route.name.text));
		const run = this.#run();
		const compat = lowering.dialect === 'compatfile';
		for (const { from, name } of this.#uses) {
			if (names.has(name.text) || (compat && from !== undefined && !run.has(from))) continue;
			const message = `cannot invoke named route '${name.text}', which was not defined`;
			const nearest = nearestName(name.text, names);
			// The most similar route was probably meant, so it is not reported as unused.
			if (nearest !== undefined) run.add(nearest);
			lowering.problem('error', 'route/unknown', name.span, message, {
				...suggestName(name, nearest),
			});
		}
		if (compat) return;
		for (const { name } of routes) {
			if (!run.has(name.text)) {
				lowering.problem('warning', 'route/unused', name.span, `The named route \`${name.text}\` is never used.`, {
					hint: `Run it with \`invoke ${name.text}\`.`,
				});
			}
		}
	}

	/** Returns the routes that sites run, directly or through other routes. */
	#run(): Set<string> {
		const run = new Set<string>();
		for (let before = -1; before !== run.size; ) {
			before = run.size;
			for (const { from, name } of this.#uses) if (from === undefined || run.has(from)) run.add(name.text);
		}
		return run;
	}
}
