/** The definitions and uses of named routes, during lowering. */

import { nearestName, suggestName } from '../diagnostics/suggest.ts';
import type { NamedBlock, Word } from '../syntax/ast.ts';
import type { Lowering } from './lowering.ts';

/** The named routes of one configuration. */
export class NamedRoutes {
	/** Name of the route that is being lowered; undefined while a site is being lowered. */
	currentRoute: string | undefined = undefined;
	readonly #uses: { readonly from: string | undefined; readonly name: Word }[] = [];

	/** Records that the current site or route runs the named route. */
	recordUse(name: Word): void {
		this.#uses.push({ from: this.currentRoute, name });
	}

	/**
	 * After lowering, reports names of routes without a definition: in a Compatfile only names that a site can reach, as the
	 * compatible server does. In a Configfile, also warns about unused routes.
	 */
	checkUses(lowering: Lowering, routes: readonly NamedBlock[]): void {
		const names = new Set(routes.map(route => route.name.text));
		const usedRoutes = this.#usedRoutes();
		const compat = lowering.dialect === 'compatfile';
		for (const { from, name } of this.#uses) {
			if (names.has(name.text) || (compat && from !== undefined && !usedRoutes.has(from))) continue;
			const message = `cannot invoke named route '${name.text}', which was not defined`;
			const nearest = nearestName(name.text, names);
			// The most similar route was probably meant, so it is not reported as unused.
			if (nearest !== undefined) usedRoutes.add(nearest);
			lowering.problem('error', 'route/unknown', name.span, message, {
				...suggestName(name, nearest),
			});
		}
		if (compat) return;
		for (const { name } of routes) {
			if (!usedRoutes.has(name.text)) {
				lowering.problem('warning', 'route/unused', name.span, `The named route \`${name.text}\` is never used.`, {
					hint: `Run it with \`invoke ${name.text}\`.`,
				});
			}
		}
	}

	/** Returns the routes that sites run, directly or through other routes. */
	#usedRoutes(): Set<string> {
		const usedRoutes = new Set<string>();
		for (let sizeBefore = -1; sizeBefore !== usedRoutes.size; ) {
			sizeBefore = usedRoutes.size;
			for (const { from, name } of this.#uses)
				if (from === undefined || usedRoutes.has(from)) usedRoutes.add(name.text);
		}
		return usedRoutes;
	}
}
