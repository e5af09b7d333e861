/** Compiles named routes. Each is compiled once per site, however many steps invoke it. */

import type { Exchange } from '../exchange/exchange.ts';
import type { Handler } from '../exchange/handler.ts';
import { HttpError } from '../exchange/http-error.ts';
import { escapePointer } from '../schema/validate.ts';
import { SiteCompiler } from './site-compiler.ts';

/** Runs a route and continues with `next` if the route did not answer. */
export type RouteRunner = (x: Exchange, next: Handler) => void | Promise<void>;

/** Name of the variable with a stack of handlers, innermost last. Each is the continuation of a running route. */
const RETURNS = 'svc.routes.returns';

/** Maximum nesting of routes in one request. */
const MAX_NESTED = 100;

/**
 * Returns the runner of a route, compiling it on first use. A route may run itself, also through others, so its runner exists
 * before it is compiled. Throws BuildError for an unknown name.
 */
export function routeRunner(place: SiteCompiler, name: string): RouteRunner {
	const { scope } = place;
	const known = scope.routeRunners.get(name);
	if (known) return known;
	if (!Object.hasOwn(scope.routes, name)) {
		return place.refuse(`cannot invoke named route '${name}', which was not defined`, 'route/unknown');
	}
	let route: Handler | undefined;
	const runner: RouteRunner = (x, next) => {
		let returns = x.variable(RETURNS) as Handler[] | undefined;
		if (!returns) {
			returns = [];
			x.variables.set(RETURNS, returns);
		}
		// A route that answers leaves its entry on the stack. This is harmless, because later entries are pushed above it.
		if (returns.length >= MAX_NESTED) throw new HttpError(500, `The route \`${name}\` invokes itself endlessly.`);
		const { stepBase } = x;
		x.stepBase = 0;
		returns.push(stepBase === 0 ? next : countingFrom(stepBase, next));
		return route!(x);
	};
	scope.routeRunners.set(name, runner);
	route = new SiteCompiler(scope, '/routes').pipeline(scope.routes[name]!, goBack, escapePointer(name));
	return runner;
}

/** Returns a handler that restores the site's step numbering after a route, whose steps have their own numbers. */
function countingFrom(stepBase: number, next: Handler): Handler {
	return x => {
		x.stepBase = stepBase;
		return next(x);
	};
}

function goBack(x: Exchange): void | Promise<void> {
	x.stepBase = 0;
	return (x.variable(RETURNS) as Handler[]).pop()!(x);
}
