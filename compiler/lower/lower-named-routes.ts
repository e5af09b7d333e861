/** The named routes during lowering: their definitions and their uses. */

import { suggest } from '../diagnostics/suggest.ts';
import type { NamedBlock, Word } from '../syntax/ast.ts';
import type { Lowering } from './lowering.ts';

/** The named routes of one configuration. */
export class NamedRoutes {
	/** The route being lowered; undefined in a site. */
	lowered: string | undefined = undefined;
	readonly #uses: { readonly from: string | undefined; readonly name: Word }[] = [];

	/** Records that a route is run from here. */
	use(name: Word): void {
		this.#uses.push({ from: this.lowered, name });
	}

	/**
	 * After lowering, reports names without a definition; in a Compatfile only where a site can reach them, like the compatible
	 * server. In a Configfile, warns about unused routes.
	 */
	check(lowering: Lowering, routes: readonly NamedBlock[]): void {
		const names = new Set(routes.map(route => route.name.text));
		const run = this.#run();
		const compat = lowering.dialect === 'compatfile';
		for (const { from, name } of this.#uses) {
			if (names.has(name.text) || (compat && from !== undefined && !run.has(from))) continue;
			const message = `cannot invoke named route '${name.text}', which was not defined`;
			const nearest = suggest(name.text, names);
			// Most likely the nearest route was meant, so it is not unused.
			if (nearest !== undefined) run.add(nearest);
			lowering.problem('error', 'route/unknown', name.span, message, {
				label: nearest === undefined ? undefined : `did you mean \`${nearest}\`?`,
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

	/** Returns the routes that a site runs, directly or through others. */
	#run(): Set<string> {
		const run = new Set<string>();
		for (let before = -1; before !== run.size; ) {
			before = run.size;
			for (const { from, name } of this.#uses) if (from === undefined || run.has(from)) run.add(name.text);
		}
		return run;
	}
}
