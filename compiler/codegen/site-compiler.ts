/** Compiles one site: provides directives and matchers with the context for the place in the document that is being compiled. */
import type { Matcher, Settings, Step } from '../document/document.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { decodeFieldText } from '../exchange/field-syntax.ts';
import type { Handler, Predicate } from '../exchange/handler.ts';
import type { AccessLog, FileReader, LeaseKinds, Leases } from '../exchange/leases.ts';
import type { PageWork } from '../exchange/page-work.ts';
import {
	BuildError,
	type CompileContext,
	type EscapeValue,
	type HandlerBranch,
	type Template,
} from '../modules/contract/compile-context.ts';
import type { StepTraits } from '../modules/contract/traits.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';
import { MATCHERS_BY_TYPE } from '../modules/registry/matchers.ts';
import { canUseBranchTable, compileBranchTable, firstMatchingBranch } from './branch-table.ts';
import { compileRouteRunner, type RouteRunner } from './compile-named-routes.ts';
import { compilePipeline } from './compile-pipeline.ts';
import type { StepNumbers } from './context/step-numbers.ts';
import { compilePlaceholder, isFieldPlaceholder } from './placeholders/index.ts';
import type { HostFacts, PlaceholderReader, PlaceholderScope } from './placeholders/placeholder.ts';
import { compileTemplate, hasPlaceholders, TemplateError } from './placeholders/template.ts';
import { compileRegexp } from './regexp/regexp.ts';
import { REQUEST_REGEXP_BOUNDS } from './regexp/regexp-bounds.ts';
import { RegexpError, RegexpTooLarge } from './regexp/regexp-error.ts';
import type { SharedCode } from './shared-code.ts';
import type { SiteLogs } from './site-logs.ts';

/** Observes every handler and predicate while the handler graph is built, and may replace it. Used by `explain`. */
export interface BuildTracer {
	wrapHandler(pointer: string, step: Step, handler: Handler): Handler;
	wrapMatcher(pointer: string, matcher: Matcher, predicate: Predicate): Predicate;
}

/** The state of building one site, shared by its {@link SiteCompiler}s, of which there is one for each place in the document. */
export interface SiteScope {
	readonly settings: Settings;
	readonly upstreams: { readonly [name: string]: unknown };
	/** The named routes of the document. */
	readonly routes: { readonly [name: string]: readonly Step[] };
	/** The compiled named routes that this site invokes, by name. */
	readonly routeRunners: Map<string, RouteRunner>;
	/** Returns the names of the placeholders that `map` defines for this site. */
	readonly mappedNames: () => ReadonlySet<string>;
	readonly leases: Leases;
	readonly logs: SiteLogs;
	readonly facts: HostFacts;
	readonly clientIp: (x: Exchange) => string;
	readonly tracer: BuildTracer | undefined;
	/** Code shared by sites that are built together; undefined if nothing is shared. */
	readonly sharedCode: SharedCode | undefined;
	/** The handler of the whole site, including error routes; undefined until the site is built. */
	readonly builtSite: { handle: Handler | undefined };
	/**
	 * Incremented by each use of site-specific state. If compiling some code changes the number, that code cannot be shared between
	 * sites.
	 */
	siteSpecificUseCount: number;
	/** Number of the next exclusive group whose members are not adjacent; see compile-pipeline.ts. */
	nextExclusiveGroup: number;
	/** True if a handler sets `x.errorPage`. */
	answersErrors: boolean;
	/** Numbers of the site's steps and of the steps in named routes. */
	readonly stepNumbers: StepNumbers;
}

/** The CompileContext for one place in the document, which a JSON pointer identifies. */
export class SiteCompiler implements CompileContext, PlaceholderScope {
	readonly #pointer: string;
	readonly scope: SiteScope;
	/** Set if a template at this place needs the whole request body. */
	needsWholeBody = false;
	/**
	 * Number of the step that is being compiled. It counts from the start of the pipeline rather than of the site, because sites
	 * may share the pipeline.
	 */
	stepNumber = 0;
	/** The number, in the site, of the first step of the pipeline that is being compiled. {@link stepNumber} counts from it. */
	readonly #stepBase: number;

	constructor(scope: SiteScope, pointer: string, stepBase = 0) {
		this.scope = scope;
		this.#pointer = pointer;
		this.#stepBase = stepBase;
	}

	get pointer(): string {
		this.scope.siteSpecificUseCount++;
		return this.#pointer;
	}

	get settings(): Settings {
		return this.scope.settings;
	}

	get upstreams(): { readonly [name: string]: unknown } {
		return this.scope.upstreams;
	}

	get facts(): HostFacts {
		return this.scope.facts;
	}

	get clientIp(): (x: Exchange) => string {
		return this.scope.clientIp;
	}

	get isTraced(): boolean {
		return this.scope.tracer !== undefined;
	}

	firstBranch(branches: readonly HandlerBranch[], fallbackHandler: Handler): Handler {
		if (!this.isTraced && canUseBranchTable(branches)) return compileBranchTable(branches, fallbackHandler);
		return x => (firstMatchingBranch(branches, x)?.handler ?? fallbackHandler)(x);
	}

	get wholeSite(): Handler {
		const { builtSite } = this.scope;
		this.scope.siteSpecificUseCount++;
		return x => builtSite.handle!(x);
	}

	enableErrorPages(): void {
		this.scope.siteSpecificUseCount++;
		this.scope.answersErrors = true;
	}

	get handlers(): ReadonlyMap<string, StepTraits> {
		return HANDLERS;
	}

	/** Returns the context for a value nested at `path`. */
	at(path: string): SiteCompiler {
		return new SiteCompiler(this.scope, `${this.#pointer}/${path}`, this.#stepBase);
	}

	/** Returns the context for the named routes, which are outside of the site in the document. */
	forNamedRoutes(): SiteCompiler {
		return new SiteCompiler(this.scope, '/routes');
	}

	needsBody(): void {
		this.needsWholeBody = true;
	}

	lease<K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']): LeaseKinds[K]['lease'] {
		this.scope.siteSpecificUseCount++;
		return this.scope.leases.lease(kind, settings);
	}

	get pageWork(): PageWork | undefined {
		this.scope.siteSpecificUseCount++;
		return this.scope.leases.pageWork;
	}

	pipeline(steps: readonly Step[], next: Handler, field = 'pipeline'): Handler {
		const { scope } = this;
		// Only a pipeline that ends with `endPipeline` can be shared, because every other `next` belongs to the site.
		if (next !== endPipeline || scope.sharedCode === undefined || this.isTraced) {
			return compilePipeline(this.at(field), steps, next);
		}
		const firstStepNumber = steps.length === 0 ? this.#stepBase : scope.stepNumbers.numberOf(steps[0]!);
		const handler = scope.sharedCode.getOrCompile(steps, () => {
			const { siteSpecificUseCount: useCountBefore } = scope;
			const pipelineCompiler = new SiteCompiler(scope, `${this.#pointer}/${field}`, firstStepNumber);
			return {
				handler: compilePipeline(pipelineCompiler, steps, next),
				isSiteSpecific: scope.siteSpecificUseCount !== useCountBefore,
			};
		});
		return withStepOffset(firstStepNumber - this.#stepBase, handler);
	}

	/** Must be called before the step at this place is compiled. Sets {@link stepNumber}. */
	beginStep(step: Step): void {
		this.stepNumber = this.scope.stepNumbers.numberOf(step) - this.#stepBase;
	}

	matcher(matcher: Matcher, field = 'when'): Predicate {
		const matcherCompiler = this.at(field);
		const matcherModule = MATCHERS_BY_TYPE.get(matcher.type);
		if (!matcherModule) return matcherCompiler.refuse(`\`${matcher.type}\` is not a matcher.`, 'matcher/unknown');
		const predicate = matcherModule.compile(matcher, matcherCompiler);
		if (matcherCompiler.needsWholeBody) this.needsWholeBody = true;
		return this.scope.tracer?.wrapMatcher(matcherCompiler.#pointer, matcher, predicate) ?? predicate;
	}

	route(name: string): RouteRunner {
		this.scope.siteSpecificUseCount++;
		return compileRouteRunner(this, name);
	}

	isMapped(name: string): boolean {
		this.scope.siteSpecificUseCount++;
		return this.scope.mappedNames().has(name);
	}

	files(): FileReader {
		return this.lease('files', {});
	}

	template(text: string, whenUnknown: 'keep' | 'empty', encode?: EscapeValue): Template {
		try {
			return compileTemplate(text, whenUnknown, this, encode);
		} catch (error) {
			if (error instanceof TemplateError)
				return this.refuse(`${error.message}: \`${shorten(text)}\`.`, 'template/invalid');
			throw error;
		}
	}

	placeholder(name: string): PlaceholderReader | undefined {
		const compiledPlaceholder = compilePlaceholder(name, this);
		if (typeof compiledPlaceholder === 'string') return () => compiledPlaceholder;
		if (compiledPlaceholder === undefined || !isFieldPlaceholder(name)) return compiledPlaceholder;
		return x => {
			const value = compiledPlaceholder(x);
			return typeof value === 'string' ? decodeFieldText(value) : value;
		};
	}

	accessLogs(name: string): readonly AccessLog[] {
		this.scope.siteSpecificUseCount++;
		return this.scope.logs.logsNamed(name);
	}

	hasPlaceholders(text: string): boolean {
		return hasPlaceholders(text, this);
	}

	regexpFor(source: string, flags?: string): RegExp {
		try {
			return compileRegexp(source, flags);
		} catch (error) {
			if (error instanceof RegexpTooLarge) return this.refuse(error.message, 'regexp/too-large', error.hint);
			if (error instanceof RegexpError) return this.refuse(error.message, 'regexp/invalid');
			throw error;
		}
	}

	dynamicRegexp(source: string, flags?: string): RegExp {
		return compileRegexp(source, flags, REQUEST_REGEXP_BOUNDS);
	}

	refuse(message: string, code = 'document/invalid', hint?: string): never {
		throw new BuildError(code, this.#pointer, message, hint);
	}
}

/**
 * Returns a handler that adds `offset` to the step numbers of a shared pipeline, which count from its own first step. The offset
 * is never removed, because no step outside of the pipeline runs after it.
 */
function withStepOffset(offset: number, handler: Handler): Handler {
	if (offset === 0) return handler;
	return x => {
		x.stepBase += offset;
		return handler(x);
	};
}

function shorten(text: string): string {
	return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}

/** Ends a pipeline: if no handler has answered, sets the status to 200, with an empty body. */
export function endPipeline(x: Exchange): void {
	if (x.response.status === 0) x.response.status = 200;
}
