/** Builds the closure that serves one site, including error routes. */
import type { ErrorRoute, Settings, Site, Step } from '../document/document.ts';
import { isStream } from '../exchange/body.ts';
import { compileClientIp } from '../exchange/client-ip.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler } from '../exchange/handler.ts';
import { HttpError } from '../exchange/http-error.ts';
import type { Leases } from '../exchange/leases.ts';
import { BuildError } from '../modules/contract/compile-context.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';
import type { BuiltSite } from './built-site.ts';
import { compileStatuses } from './context/statuses.ts';
import { StepNumbers } from './context/step-numbers.ts';
import type { HostFacts } from './placeholders/placeholder.ts';
import type { SharedCode } from './shared-code.ts';
import { type BuildTracer, endPipeline, SiteCompiler, type SiteScope } from './site-compiler.ts';
import { type AccessLogSelector, SiteLogs } from './site-logs.ts';

/** The dependencies of {@link buildSite}. */
export interface BuildEnvironment {
	readonly settings: Settings;
	readonly upstreams: { readonly [name: string]: unknown };
	readonly routes: { readonly [name: string]: readonly Step[] };
	readonly leases: Leases;
	/** Facts about the machine for `{env.*}` and `{system.*}`; {@link UNKNOWN_HOST_FACTS} if nothing will be served. */
	readonly facts: HostFacts;
	/** Observes the closures of the site for `explain`; costs nothing if omitted. */
	readonly tracer?: BuildTracer | undefined;
	/** Code that sites share which are built together. Each site adds to it; undefined if nothing is shared. */
	readonly sharedCode?: SharedCode | undefined;
}

/**
 * Builds a site. `index` is its index in `document.sites`, for pointers. The closure sets `x.site` and `x.accessLogs`. If no
 * handler answers, the response is 200 with an empty body.
 *
 * Errors go to the error routes, with the request's original method and URI and with `x.error` set. The routes run in order until
 * one answers. If none answers, `x.errorPage` does; if that is unset, the error is thrown as HttpError. A site with neither error
 * routes nor error pages throws what its handlers threw.
 *
 * Throws BuildError for a document that matches the schema but cannot be built.
 */
export function buildSite(site: Site, index: number, env: BuildEnvironment): BuiltSite {
	const pointer = `/sites/${index}`;
	const scope: SiteScope = {
		settings: env.settings,
		upstreams: env.upstreams,
		routes: env.routes,
		routeRunners: new Map(),
		mappedNames: lazyMappedNames(site, env.routes),
		leases: env.leases,
		logs: new SiteLogs(site.logs ?? [], env.settings, env.leases),
		facts: env.facts,
		clientIp: clientIpOf(env.settings),
		tracer: env.tracer,
		sharedCode: env.sharedCode,
		builtSite: { handle: undefined },
		siteSpecificUses: 0,
		numbers: new StepNumbers(site, env.routes),
		nextExclusive: 0,
		answersErrors: false,
	};
	const place = new SiteCompiler(scope, pointer);
	const name = site.addresses[0] ?? '';
	const logs = scope.logs.selectLogs;
	const main = withClientIp(place.pipeline(site.pipeline, endPipeline), scope);
	const routes = site.errors ?? [];
	const handleError = routes.length > 0 || scope.answersErrors ? compileErrors(place, routes) : undefined;
	const handle = handleError ? withErrorRoutes(name, logs, main, handleError) : withoutErrorRoutes(name, logs, main);
	scope.builtSite.handle = handle;
	return { name, logs: scope.logs.defaultLogs, handle, mainHandler: handleError || logs ? undefined : main };
}

function clientIpOf(settings: Settings): (x: Exchange) => string {
	try {
		return compileClientIp(settings);
	} catch (error) {
		throw new BuildError('address/invalid-range', '/settings/trusted_proxies', (error as Error).message);
	}
}

/** Determines the client's address behind trusted proxies before anything else, because the access log needs it. */
function withClientIp(main: Handler, scope: SiteScope): Handler {
	const trustedProxies = scope.settings.trusted_proxies as readonly string[] | undefined;
	if (!scope.logs.hasLogs || !trustedProxies || trustedProxies.length === 0) return main;
	return x => {
		scope.clientIp(x);
		return main(x);
	};
}

function withoutErrorRoutes(name: string, logs: AccessLogSelector | undefined, main: Handler): Handler {
	if (!logs) {
		return x => {
			x.site = name;
			return main(x);
		};
	}
	return x => {
		x.site = name;
		x.accessLogs = logs(x);
		return main(x);
	};
}

function withErrorRoutes(
	name: string,
	logs: AccessLogSelector | undefined,
	main: Handler,
	handleError: (x: Exchange, thrown: unknown) => void | Promise<void>,
): Handler {
	return x => {
		x.site = name;
		if (logs) x.accessLogs = logs(x);
		let pending: void | Promise<void>;
		try {
			pending = main(x);
		} catch (thrown) {
			return handleError(x, thrown);
		}
		return pending instanceof Promise ? pending.catch(thrown => handleError(x, thrown)) : undefined;
	};
}

/** Compiles error routes. They run in order until one that covers the status answers. */
function compileErrors(place: SiteCompiler, routes: readonly ErrorRoute[]) {
	let chain: Handler = x => {
		if (x.errorPage === undefined) throw asHttpError(x.error?.cause);
		x.error!.unanswered = true;
		return x.errorPage(x);
	};
	for (let i = routes.length - 1; i >= 0; i--) {
		const route = routes[i]!;
		const nextRoute = chain;
		const runRoute = place.at(`errors/${i}`).pipeline(route.pipeline, nextRoute);
		if (!route.statuses || route.statuses.length === 0) {
			chain = runRoute;
			continue;
		}
		const coversStatus = compileStatuses(route.statuses, place.at(`errors/${i}/statuses`));
		chain = x => (coversStatus(x.error!.status) ? runRoute(x) : nextRoute(x));
	}
	const firstRoute = chain;
	return (x: Exchange, thrown: unknown): void | Promise<void> => {
		// After an abort or an upgrade, it is too late to answer.
		if (x.aborted || x.upgradeCallback) throw thrown;
		const error = asHttpError(thrown);
		x.stepBase = 0;
		x.error = { status: error.status, message: error.message, cause: error };
		const { request, response, received } = x;
		request.method = received.method;
		request.path = received.path;
		request.query = received.query;
		if (isStream(response.body)) response.body.cancel(error);
		response.status = 0;
		response.body = null;
		response.trailers = undefined;
		const { answeredBy: failedBy } = x;
		x.answeredBy = '';
		for (const [field, value] of error.headers) response.headers.set(field, value);
		let pending: void | Promise<void>;
		// If no error route answered, the handler that failed first is recorded as the handler that answered, as in a site without
		// error routes.
		const settle = (): void => {
			if (x.answeredBy === '' && x.error!.unanswered) x.answeredBy = failedBy;
		};
		const fail = (secondError: unknown): never => {
			if (x.answeredBy === '') x.answeredBy = failedBy;
			throw errorOfErrorRoute(error, secondError);
		};
		try {
			pending = firstRoute(x);
		} catch (secondError) {
			return fail(secondError);
		}
		if (pending instanceof Promise) return pending.then(settle, fail);
		settle();
	};
}

/** Returns the error to throw if an error route fails as well. The client still gets the status of the first error. */
function errorOfErrorRoute(firstError: HttpError, secondError: unknown): HttpError {
	if (secondError === firstError) return firstError;
	const { message: text, unforeseen } = asHttpError(secondError);
	const message = `${firstError.message} (and the error route failed: ${text})`;
	return new HttpError(firstError.status, message, {
		cause: secondError,
		headers: firstError.headers,
		unforeseen: firstError.unforeseen || unforeseen,
	});
}

/** Converts a thrown value to an HttpError. Anything but an HttpError becomes a 500. */
function asHttpError(thrown: unknown): HttpError {
	if (thrown instanceof HttpError) return thrown;
	const message = thrown instanceof Error ? thrown.message : String(thrown);
	return new HttpError(500, message, { cause: thrown, unforeseen: true });
}

/**
 * Returns a function that lists the placeholders that `map` steps define in a site and in the named routes. It searches for them on
 * its first call.
 */
function lazyMappedNames(site: Site, routes: { readonly [name: string]: readonly Step[] }): () => ReadonlySet<string> {
	let names: Set<string> | undefined;
	return () => {
		if (!names) {
			names = new Set();
			collectMappedNames(site.pipeline, names);
			collectMappedNames(site.errors, names);
			collectMappedNames(routes, names);
		}
		return names;
	};
}

function collectMappedNames(value: unknown, names: Set<string>): void {
	if (typeof value !== 'object' || value === null) return;
	if (Array.isArray(value)) {
		for (const item of value) collectMappedNames(item, names);
		return;
	}
	if ('handler' in value) {
		const step = value as Step;
		for (const name of HANDLERS.get(step.handler)?.placeholdersOf?.(step) ?? []) names.add(name);
	}
	for (const key in value) collectMappedNames((value as { [key: string]: unknown })[key], names);
}
