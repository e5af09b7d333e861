/** Compiles named routes. A route is compiled once per site, however many steps invoke it. */

import { escapePointer } from '../document/json-pointer.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler } from '../exchange/handler.ts';
import { HttpError } from '../exchange/http-error.ts';
import type { SiteCompiler } from './site-compiler.ts';

/** Runs a named route, and continues with `next` if the route does not answer. */
export type RouteRunner = (x: Exchange, next: Handler) => void | Promise<void>;

/** Name of the variable with a stack of handlers: the continuations of the running routes, innermost last. */
const RETURN_STACK_VARIABLE = 'svc.routes.returns';

/** Maximum nesting of routes in one request. */
const MAX_NESTED_ROUTES = 100;

/**
 * Returns the runner of a route, which is compiled on first use. A route may invoke itself, even through other routes, so the
 * runner exists before the route is compiled. Throws BuildError for an unknown name.
 */
export function compileRouteRunner(compiler: SiteCompiler, name: string): RouteRunner {
	const { scope } = compiler;
	const cachedRunner = scope.routeRunners.get(name);
	if (cachedRunner) return cachedRunner;
	if (!Object.hasOwn(scope.routes, name)) {
		return compiler.refuse(`cannot invoke named route '${name}', which was not defined`, 'route/unknown');
	}
	let routeHandler: Handler | undefined;
	const runner: RouteRunner = (x, next) => {
		let returnStack = x.variable(RETURN_STACK_VARIABLE) as Handler[] | undefined;
		if (!returnStack) {
			returnStack = [];
			x.variables.set(RETURN_STACK_VARIABLE, returnStack);
		}
		// A route that answers leaves its entry on the stack. This is harmless, because later entries are pushed above it.
		if (returnStack.length >= MAX_NESTED_ROUTES)
			throw new HttpError(500, `The route \`${name}\` invokes itself endlessly.`);
		const { stepBase } = x;
		x.stepBase = 0;
		returnStack.push(stepBase === 0 ? next : withStepBase(stepBase, next));
		return routeHandler!(x);
	};
	scope.routeRunners.set(name, runner);
	routeHandler = compiler.forNamedRoutes().pipeline(scope.routes[name]!, returnFromRoute, escapePointer(name));
	return runner;
}

/**
 * Returns a handler that restores the step numbering of the invoking pipeline after a route, whose steps have their own numbers.
 */
function withStepBase(stepBase: number, next: Handler): Handler {
	return x => {
		x.stepBase = stepBase;
		return next(x);
	};
}

function returnFromRoute(x: Exchange): void | Promise<void> {
	x.stepBase = 0;
	return (x.variable(RETURN_STACK_VARIABLE) as Handler[]).pop()!(x);
}
