/** Builds the closure that serves one site, including error routes. */
import type { ErrorRoute, Settings, Site, Step } from '../document/document.ts';
import { isStream } from '../exchange/body.ts';
import { asBrokenResponse } from '../exchange/broken-response.ts';
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
	/** Code shared by sites that are built together. Each site adds to it; undefined if nothing is shared. */
	readonly sharedCode?: SharedCode | undefined;
}

/**
 * Builds a site. `index` is its index in `document.sites`, for pointers. `runSite` sets `x.siteName` and `x.accessLogs`. If no
 * handler answers, the response is 200 with an empty body.
 *
 * Errors go to the error routes, with the request's original method and URI and with `x.error` set. The routes run in order until
 * one answers. If none answers, `x.errorPage` does; if that is unset, the error is thrown as HttpError. A site with neither error
 * routes nor error pages throws what its handlers threw.
 *
 * Throws BuildError for a document that matches the schema but cannot be built.
 */
export function buildSite(site: Site, index: number, environment: BuildEnvironment): BuiltSite {
	const pointer = `/sites/${index}`;
	const scope: SiteScope = {
		settings: environment.settings,
		upstreams: environment.upstreams,
		routes: environment.routes,
		routeRunners: new Map(),
		mappedNames: lazyMappedNames(site, environment.routes),
		leases: environment.leases,
		logs: new SiteLogs(site.logs ?? [], environment.settings, environment.leases),
		facts: environment.facts,
		clientIp: compileSiteClientIp(environment.settings),
		tracer: environment.tracer,
		sharedCode: environment.sharedCode,
		builtSite: { handle: undefined },
		siteSpecificUseCount: 0,
		stepNumbers: new StepNumbers(site, environment.routes),
		nextExclusiveGroup: 0,
		answersErrors: false,
	};
	const compiler = new SiteCompiler(scope, pointer);
	const name = site.addresses[0] ?? '';
	const selectLogs = scope.logs.selectLogs;
	const mainHandler = withClientIp(compiler.pipeline(site.pipeline, endPipeline), scope);
	const errorRoutes = site.errors ?? [];
	const handleError = errorRoutes.length > 0 || scope.answersErrors ? compileErrors(compiler, errorRoutes) : undefined;
	const handle = handleError
		? withErrorRoutes(name, selectLogs, mainHandler, handleError)
		: withoutErrorRoutes(name, selectLogs, mainHandler);
	scope.builtSite.handle = handle;
	return {
		name,
		logs: scope.logs.defaultLogs,
		runSite: handle,
		mainHandler: handleError || selectLogs ? undefined : mainHandler,
	};
}

function compileSiteClientIp(settings: Settings): (x: Exchange) => string {
	try {
		return compileClientIp(settings);
	} catch (error) {
		throw new BuildError('address/invalid-range', '/settings/trusted_proxies', (error as Error).message);
	}
}

/** Returns a handler that determines the client's address behind trusted proxies first, because the access log needs it. */
function withClientIp(mainHandler: Handler, scope: SiteScope): Handler {
	const trustedProxies = scope.settings.trusted_proxies as readonly string[] | undefined;
	if (!scope.logs.hasLogs || !trustedProxies || trustedProxies.length === 0) return mainHandler;
	return x => {
		scope.clientIp(x);
		return mainHandler(x);
	};
}

function withoutErrorRoutes(name: string, selectLogs: AccessLogSelector | undefined, mainHandler: Handler): Handler {
	if (!selectLogs) {
		return x => {
			x.siteName = name;
			return mainHandler(x);
		};
	}
	return x => {
		x.siteName = name;
		x.accessLogs = selectLogs(x);
		return mainHandler(x);
	};
}

function withErrorRoutes(
	name: string,
	selectLogs: AccessLogSelector | undefined,
	mainHandler: Handler,
	handleError: (x: Exchange, thrown: unknown) => void | Promise<void>,
): Handler {
	return x => {
		x.siteName = name;
		if (selectLogs) x.accessLogs = selectLogs(x);
		let mainPromise: void | Promise<void>;
		try {
			mainPromise = mainHandler(x);
		} catch (thrown) {
			return handleError(x, thrown);
		}
		return mainPromise instanceof Promise ? mainPromise.catch(thrown => handleError(x, thrown)) : undefined;
	};
}

/** Compiles error routes. Those that cover the error's status run in order until one answers. */
function compileErrors(compiler: SiteCompiler, errorRoutes: readonly ErrorRoute[]) {
	let handlerChain: Handler = x => {
		if (x.errorPage === undefined) throw asHttpError(x.error?.cause);
		x.error!.unanswered = true;
		return x.errorPage(x);
	};
	for (let i = errorRoutes.length - 1; i >= 0; i--) {
		const route = errorRoutes[i]!;
		const nextRoute = handlerChain;
		const runRoute = compiler.at(`errors/${i}`).pipeline(route.pipeline, nextRoute);
		if (!route.statuses || route.statuses.length === 0) {
			handlerChain = runRoute;
			continue;
		}
		const coversStatus = compileStatuses(route.statuses, compiler.at(`errors/${i}/statuses`));
		handlerChain = x => (coversStatus(x.error!.status) ? runRoute(x) : nextRoute(x));
	}
	const firstRoute = handlerChain;
	return (x: Exchange, thrown: unknown): void | Promise<void> => {
		// After the client has aborted the request or the connection was upgraded, no error response can be sent.
		if (x.isAborted || x.upgradeCallback) throw thrown;
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
		const { answeredBy: failedHandlerName } = x;
		x.answeredBy = '';
		for (const [field, value] of error.headers) response.headers.set(field, value);
		let routePromise: void | Promise<void>;
		// If no error route answers, access logs name the handler whose failure came first as the answering one, as in a site without
		// error routes.
		const restoreAnsweredBy = (): void => {
			if (x.answeredBy === '' && x.error!.unanswered) x.answeredBy = failedHandlerName;
		};
		const throwCombinedError = (secondError: unknown): never => {
			if (x.answeredBy === '') x.answeredBy = failedHandlerName;
			throw errorOfErrorRoute(error, secondError);
		};
		try {
			routePromise = firstRoute(x);
		} catch (secondError) {
			return throwCombinedError(secondError);
		}
		if (routePromise instanceof Promise) return routePromise.then(restoreAnsweredBy, throwCombinedError);
		restoreAnsweredBy();
	};
}

/** Returns the error to throw if an error route fails as well. The client still gets the status of the first error. */
function errorOfErrorRoute(firstError: HttpError, secondError: unknown): HttpError {
	if (secondError === firstError) return firstError;
	const { message: secondMessage, unforeseen } = asHttpError(secondError);
	const message = `${firstError.message} (and the error route failed: ${secondMessage})`;
	return new HttpError(firstError.status, message, {
		cause: secondError,
		headers: firstError.headers,
		unforeseen: firstError.unforeseen || unforeseen,
	});
}

/** Converts a thrown value to an HttpError. Anything but an HttpError becomes a 500. */
function asHttpError(thrown: unknown): HttpError {
	const error = asBrokenResponse(thrown);
	if (error instanceof HttpError) return error;
	const message = thrown instanceof Error ? thrown.message : String(thrown);
	return new HttpError(500, message, { cause: thrown, unforeseen: true });
}

/**
 * Returns a function that lists the placeholders that `map` steps define in a site and in the named routes. It searches for them on
 * its first call.
 */
function lazyMappedNames(site: Site, routes: { readonly [name: string]: readonly Step[] }): () => ReadonlySet<string> {
	let mappedNames: Set<string> | undefined;
	return () => {
		if (!mappedNames) {
			mappedNames = new Set();
			collectMappedNames(site.pipeline, mappedNames);
			collectMappedNames(site.errors, mappedNames);
			collectMappedNames(routes, mappedNames);
		}
		return mappedNames;
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
