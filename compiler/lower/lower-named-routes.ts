/** The definitions and uses of named routes, recorded during lowering. */

import { nearestName, suggestName } from '../diagnostics/suggest.ts';
import type { NamedBlock, Word } from '../syntax/ast.ts';
import type { Lowering } from './lowering.ts';

/** Records the uses of named routes while a configuration is lowered. */
export class NamedRoutes {
	/** Name of the route that is being lowered; undefined while a site is being lowered. */
	currentRoute: string | undefined = undefined;
	readonly #uses: { readonly usingRoute: string | undefined; readonly name: Word }[] = [];

	/** Records that the current site or route runs the named route. */
	recordUse(name: Word): void {
		this.#uses.push({ usingRoute: this.currentRoute, name });
	}

	/**
	 * Reports uses of undefined routes. Called after lowering. In a Compatfile, only uses that a site can reach are reported, as in
	 * Caddy. In a Configfile, unused routes are reported as well.
	 */
	checkUses(lowering: Lowering, routes: readonly NamedBlock[]): void {
		const routeNames = new Set(routes.map(route => route.name.text));
		const usedRoutes = this.#usedRoutes();
		const isCompatfile = lowering.dialect === 'compatfile';
		for (const { usingRoute, name } of this.#uses) {
			if (routeNames.has(name.text) || (isCompatfile && usingRoute !== undefined && !usedRoutes.has(usingRoute)))
				continue;
			const message = `cannot invoke named route '${name.text}', which was not defined`;
			const nearest = nearestName(name.text, routeNames);
			// The most similar route was probably meant, so it must not be reported as unused.
			if (nearest !== undefined) usedRoutes.add(nearest);
			lowering.problem('error', 'route/unknown', name.span, message, {
				...suggestName(name, nearest),
			});
		}
		if (isCompatfile) return;
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
			for (const { usingRoute, name } of this.#uses)
				if (usingRoute === undefined || usedRoutes.has(usingRoute)) usedRoutes.add(name.text);
		}
		return usedRoutes;
	}
}
