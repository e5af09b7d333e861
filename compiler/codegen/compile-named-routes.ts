/** Named routes while a site is built: each is compiled once for the site, however often and from wherever it is run. */
import { escapePointer } from '../document/validate.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler } from '../exchange/handler.ts';
import { HttpError } from '../exchange/http-error.ts';
import { SiteCompiler } from './site-compiler.ts';

/** Runs a route and goes on with `next` when the route did not answer. */
export type RouteRunner = (x: Exchange, next: Handler) => void | Promise<void>;

/** Variable of the handlers that the routes being run go back to, the innermost last. */
const RETURNS = 'svc.routes.returns';

/** Routes inside of routes that one request may be in. */
const MOST_NESTED = 100;

/**
 * The runner of a route, which is compiled when first asked for. A route may run itself, also through others: its runner
 * is there before it is compiled. Throws BuildError for a name that stands for nothing.
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
		// What stays behind when a route answers does no harm: it lies below whatever is run after it.
		if (returns.length >= MOST_NESTED) throw new HttpError(500, `The route \`${name}\` runs itself without end.`);
		const { stepBase } = x;
		x.stepBase = 0;
		returns.push(stepBase === 0 ? next : countingFrom(stepBase, next));
		return route!(x);
	};
	scope.routeRunners.set(name, runner);
	route = new SiteCompiler(scope, '/routes').pipeline(scope.routes[name]!, goBack, escapePointer(name));
	return runner;
}

/** Steps of routes have numbers of their own: where it goes on, those of the site count again. */
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
