/**
 * Lowers lines of directives to steps: separates matcher tokens, forms alternatives and exclusive groups, and sorts the directives
 * of a Compatfile.
 */

import { didYouMean } from '../diagnostics/suggest.ts';
import { canonicalJson } from '../document/canonical-json.ts';
import type { Matcher, Step } from '../document/document.ts';
import type { Directive, DirectiveLine, HandlerDirective, SiteDraft } from '../modules/contract/directive.ts';
import { configfileHint, foreignHint } from '../modules/contract/foreign-words.ts';
import { groupStep } from '../modules/directives/route.ts';
import { firstMatchStep } from '../modules/directives/when.ts';
import { createPathMatcher } from '../modules/matchers/path.ts';
import type { Line, Word } from '../syntax/ast.ts';
import { spanOfWords } from './context/sentences.ts';
import { sortDirectives } from './directive-order.ts';
import type { Lowering } from './lowering.ts';
import { isMatcherDefinition, MatcherScope } from './matcher-scope.ts';

/**
 * The order of the steps in a block: `sorted` in a Compatfile, `written` in a Configfile, and `route` for the written order in a
 * `route` block of either language.
 */
export type LineOrder = 'sorted' | 'written' | 'route';

/** A lowered directive, not yet part of a pipeline. */
interface LoweredDirective {
	/**
	 * The directive's name. In a Compatfile it is the name as written, by which directives are sorted; in a Configfile, the primary
	 * name.
	 */
	readonly directive: string;
	readonly module: HandlerDirective;
	readonly line: Line;
	readonly when: Matcher | undefined;
	readonly steps: readonly Step[];
	/** Number of routes that Caddy generates for this directive. */
	readonly routeCount: number;
	/**
	 * Number of the run of adjacent alternatives to which the directive belongs. Two `handle` blocks are alternatives to each other
	 * only if they are in the same run.
	 */
	readonly runNumber: number;
}

/** Stands for a matcher whose mistake has been reported, so that no further diagnostics about it are reported. */
const UNKNOWN_MATCHER: Matcher = { type: 'any', of: [] };

const UPSTREAM_SCHEME = 'upstream://';

/** Lowers the lines of a block to steps. `site` is defined only at the top level of a site, where site directives are allowed. */
export function lowerLines(
	lowering: Lowering,
	lines: readonly Line[],
	order: LineOrder,
	site: SiteDraft | undefined,
): Step[] {
	const outerScope = lowering.matcherScope;
	const scope = new MatcherScope(lowering, outerScope);
	lowering.matcherScope = scope;
	lowering.within(undefined, () => {
		for (const line of lines) if (isMatcherDefinition(line)) scope.define(line);
	});
	const loweredDirectives: LoweredDirective[] = [];
	let runNumber = 0;
	for (const line of lines) {
		if (isMatcherDefinition(line)) continue;
		const module = findDirective(lowering, line, order, site !== undefined);
		if (!module) {
			runNumber++;
			continue;
		}
		if (module.kind === 'site') {
			const [name, ...args] = line.words as readonly [Word, ...Word[]];
			if (site) lowering.within(name.text, () => module.lower({ line, name, args }, site, lowering));
			runNumber++;
			continue;
		}
		const loweredDirective = lowering.within(line.words[0]!.text, () =>
			lowerHandler(lowering, line, module, runNumber),
		);
		if (loweredDirective?.module.alternativeTo === undefined) runNumber++;
		if (loweredDirective)
			loweredDirectives.push(...(order === 'sorted' ? splitForSorting(loweredDirective) : [loweredDirective]));
	}
	scope.lowerUnusedMatchers();
	lowering.matcherScope = outerScope;
	if (order === 'sorted')
		return assembleSteps(lowering, sortDirectives(loweredDirectives, lowering.environment.positions), true, true);
	const isCompatfile = lowering.dialect === 'compatfile';
	if (!isCompatfile) warnAboutUnreachable(lowering, loweredDirectives);
	return assembleSteps(lowering, loweredDirectives, isCompatfile, false);
}

function findDirective(lowering: Lowering, line: Line, order: LineOrder, atSiteLevel: boolean): Directive | undefined {
	const name = line.words[0]!;
	const { registry, positions } = lowering.environment;
	const isCompatfile = lowering.dialect === 'compatfile';
	const module = registry.directives.get(name.text);
	if (!module) {
		reportUnknownDirective(lowering, line, atSiteLevel);
		markNamesUsed(lowering, line);
		return undefined;
	}
	if (line.alternative && !(module.kind === 'handler' && module.takesElse)) {
		const word = line.alternative.words[0]!;
		lowering.problem('error', 'when/else-without-when', word.span, '`else` follows the block of a `when`.');
	}
	if (module.kind === 'site' && !atSiteLevel) {
		const message =
			order === 'route' && isCompatfile
				? `${name.text} directive returned something other than an HTTP route or subroute: settings of the site (only handler directives can be used in routes)`
				: isCompatfile
					? `directive '${name.text}' is not an ordered HTTP handler, so it cannot be used here - try placing within a route block or using the order global option`
					: `\`${name.text}\` is allowed only at site level, not in a block.`;
		lowering.problem('error', 'directive/misplaced', name.span, message, { hint: 'Move it to site level.' });
		return undefined;
	}
	if (module.kind === 'handler' && order === 'sorted' && !positions.has(name.text)) {
		const message = `directive '${name.text}' is not an ordered HTTP handler, so it cannot be used here - try placing within a route block or using the order global option`;
		lowering.problem('error', 'directive/not-ordered', name.span, message);
		return undefined;
	}
	return module;
}

function reportUnknownDirective(lowering: Lowering, line: Line, atSiteLevel: boolean): void {
	const name = line.words[0]!;
	const { text, span } = name;
	const { registry } = lowering.environment;
	const isCompatfile = lowering.dialect === 'compatfile';
	const currentSpelling = registry.oldSpellings.get(text);
	if (currentSpelling !== undefined) {
		lowering.problem('error', 'directive/old-spelling', span, `\`${text}\` is written \`${currentSpelling}\` here.`, {
			label: `write \`${currentSpelling}\``,
			fix: { safety: 'safe', edits: [{ span, text: currentSpelling }] },
		});
		return;
	}
	if (text === 'else' && !isCompatfile) {
		const message = '`else` must be on the line of the `}` before it.';
		lowering.problem('error', 'when/misplaced-else', span, message, { hint: 'Write `} else {`.' });
		return;
	}
	const advice = atSiteLevel ? '' : ' - are you sure your Compatfile structure (nesting and braces) is correct?';
	const message = isCompatfile ? `unrecognized directive: ${text}${advice}` : `\`${text}\` is not a directive.`;
	const foreignNameHint =
		(isCompatfile ? configfileHint(text, registry.configfileOnly) : undefined) ?? foreignHint(text);
	const suggestion = foreignNameHint === undefined ? didYouMean(name, registry.directives.keys()) : {};
	const hint = looksLikeAddress(text)
		? 'Did you mean to define a second site? If so, you must use curly braces around each site to separate their configurations.'
		: foreignNameHint;
	lowering.problem('error', 'directive/unknown', span, message, { ...suggestion, hint });
}

/**
 * Marks as used the matchers and upstreams that are named in a line which cannot be lowered, so that they are not also reported as
 * unused.
 */
function markNamesUsed(lowering: Lowering, line: Line): void {
	for (const { text } of line.words) {
		if (text.startsWith('@')) lowering.matcherScope?.markUsed(text);
		else if (text.startsWith(UPSTREAM_SCHEME)) lowering.upstreamExists(text.slice(UPSTREAM_SCHEME.length));
	}
	for (const inner of line.block?.lines ?? []) markNamesUsed(lowering, inner);
	if (line.alternative) markNamesUsed(lowering, line.alternative);
}

function looksLikeAddress(text: string): boolean {
	return text === 'localhost' || text.includes('://') || /^[\w*-]*(\.[\w*-]+)+(:\d+)?$|^[\w*-]*:\d+$/.test(text);
}

function lowerHandler(
	lowering: Lowering,
	line: Line,
	module: HandlerDirective,
	runNumber: number,
): LoweredDirective | undefined {
	const separatedLine = takeMatcher(lowering, line, module);
	const handlerResult = module.lower(separatedLine.directive, lowering);
	if (handlerResult === undefined) return undefined;
	let steps: readonly Step[] = Array.isArray(handlerResult)
		? (handlerResult as readonly Step[])
		: [handlerResult as Step];
	let { when } = separatedLine;
	const onlyStep = steps.length === 1 ? steps[0]! : undefined;
	if (onlyStep?.when !== undefined && when === undefined) {
		const { when: stepMatcher, ...otherFields } = onlyStep;
		const unconditionalStep = otherFields as Step;
		moveOrigin(lowering, onlyStep, unconditionalStep, line);
		steps = [unconditionalStep];
		when = stepMatcher;
	}
	for (const step of steps) if (!lowering.environment.origins.has(step)) lowering.origin(step, line.span);
	const directive = lowering.dialect === 'compatfile' ? line.words[0]!.text : module.names.configfile[0]!;
	return {
		directive,
		module,
		line,
		when,
		steps,
		routeCount: (onlyStep && module.order?.routeCount?.(onlyStep)) ?? 1,
		runNumber,
	};
}

/** Splits a directive into the parts that are sorted separately. For example, a `header` with `?` lines has two parts. */
function splitForSorting(item: LoweredDirective): LoweredDirective[] {
	if (!item.module.order?.sortsStepsApart || item.steps.length < 2) return [item];
	return item.steps.map(step => ({ ...item, steps: [step] }));
}

/** Separates the matcher token from a line, if the first argument is one. Returns the remaining line and the matcher. */
function takeMatcher(
	lowering: Lowering,
	line: Line,
	module: HandlerDirective,
): { directive: DirectiveLine; when: Matcher | undefined } {
	const name = line.words[0]!;
	const args = line.words.slice(1);
	const matcherToken = args[0];
	const minArguments = module.matcherToken === 'with-more-arguments' ? 2 : 1;
	if (module.matcherToken === 'none' || !matcherToken || args.length < minArguments)
		return { directive: { line, name, args }, when: undefined };
	const isCompatfile = lowering.dialect === 'compatfile';
	if (!isCompatfile && matcherToken.quote !== 'none') return { directive: { line, name, args }, when: undefined };
	const directive: DirectiveLine = { line, name, args: args.slice(1) };
	if (matcherToken.text === '*') return { directive, when: undefined };
	if (matcherToken.text.startsWith('@'))
		return { directive, when: lowering.matcherScope?.resolve(matcherToken) ?? UNKNOWN_MATCHER };
	if (matcherToken.text.startsWith('/') || (!isCompatfile && matcherToken.text.startsWith('*'))) {
		return {
			directive,
			when: lowering.origin(createPathMatcher([lowering.template(matcherToken)]), matcherToken.span),
		};
	}
	return { directive: { line, name, args }, when: undefined };
}

/** Adjacent directives that form one route and share one evaluation of their matcher. */
interface RouteGroup {
	readonly directives: [LoweredDirective, ...LoweredDirective[]];
	readonly when: Matcher | undefined;
	/** Name of the exclusive group, in which only the first matching route runs; undefined if the route is in no group. */
	readonly groupName: string | undefined;
}

/**
 * Combines lowered directives to a pipeline: sets the conditions of steps, makes adjacent `handle` blocks and the adjacent routes of
 * an exclusive group alternatives, and names the exclusive groups whose routes are not adjacent.
 */
function assembleSteps(
	lowering: Lowering,
	loweredDirectives: readonly LoweredDirective[],
	formsGroups: boolean,
	isSorted: boolean,
): Step[] {
	const routes = formsGroups
		? consolidateRoutes(loweredDirectives)
		: loweredDirectives.map(item => routeOfDirective(item, undefined));
	const routesByGroup = Map.groupBy(routes, ({ groupName }) => groupName);
	const steps: Step[] = [];
	const alternativeRuns = findAlternativeRuns(routes, isSorted);
	for (let index = 0; index < routes.length; index++) {
		const route = routes[index]!;
		const { alternativeTo } = route.directives[0].module;
		if (alternativeTo !== undefined) {
			const isScattered = formsGroups && alternativeRuns.count > 1;
			const runLength = isScattered ? 1 : (alternativeRuns.lengths.get(index) ?? 1);
			if (runLength > 1) {
				steps.push(firstMatchOf(lowering, routes.slice(index, index + runLength)));
				index += runLength - 1;
				continue;
			}
			steps.push(conditionalStep(lowering, route, isScattered ? alternativeTo : undefined));
			continue;
		}
		const groupRoutes = route.groupName === undefined ? [route] : routesByGroup.get(route.groupName)!;
		const isAdjacentGroup = groupRoutes[0] === route && groupRoutes.at(-1) === routes[index + groupRoutes.length - 1];
		if (groupRoutes.length > 1 && isAdjacentGroup) {
			steps.push(firstMatchOf(lowering, groupRoutes));
			index += groupRoutes.length - 1;
			continue;
		}
		const groupName = groupRoutes.length > 1 ? route.groupName : undefined;
		if (route.when === undefined && groupName === undefined) for (const step of routeSteps(route)) steps.push(step);
		else steps.push(conditionalStep(lowering, route, groupName));
	}
	return steps;
}

/**
 * Consolidates directives to routes as Caddy does. Adjacent directives with equal matchers form one route, whose
 * matcher is evaluated once. Without this, `uri /api/* strip_prefix /api` followed by `reverse_proxy /api/*` would not work.
 */
function consolidateRoutes(loweredDirectives: readonly LoweredDirective[]): RouteGroup[] {
	const directiveCounts = new Map<string, number>();
	for (const { directive, module } of loweredDirectives) {
		const name = module.alternativeTo ?? directive;
		directiveCounts.set(name, (directiveCounts.get(name) ?? 0) + 1);
	}
	const routes: RouteGroup[] = [];
	for (const item of loweredDirectives) {
		const lastRoute = routes.at(-1);
		const route = routeOfDirective(item, exclusiveGroup(item, directiveCounts));
		if (lastRoute && lastRoute.groupName === route.groupName && sameMatcher(lastRoute.when, route.when))
			lastRoute.directives.push(item);
		else routes.push(route);
	}
	return routes;
}

function routeOfDirective(item: LoweredDirective, groupName: string | undefined): RouteGroup {
	return { directives: [item], when: item.when, groupName };
}

/**
 * Returns the name of a directive's exclusive group; undefined if it is in none. A directive whose module declares `exclusive:
 * 'apart'` has a group even if it occurs only once.
 */
function exclusiveGroup(
	{ directive, module }: LoweredDirective,
	directiveCounts: ReadonlyMap<string, number>,
): string | undefined {
	if (module.exclusive === 'apart') return directive;
	const name = module.alternativeTo ?? (module.exclusive ? directive : undefined);
	return name !== undefined && directiveCounts.get(name)! > 1 ? name : undefined;
}

function sameMatcher(a: Matcher | undefined, b: Matcher | undefined): boolean {
	return a === b || (a !== undefined && b !== undefined && a.type === b.type && matcherKey(a) === matcherKey(b));
}

/** Returns a text that is equal for equal matchers. The order in which `all` combines conditions makes no difference. */
function matcherKey(matcher: Matcher): string {
	if (matcher.type !== 'all') return canonicalJson(matcher);
	return `all ${(matcher.of as readonly Matcher[]).map(matcherKey).sort().join(' ')}`;
}

function routeSteps({ directives }: RouteGroup): readonly Step[] {
	return directives.flatMap(({ steps }) => steps);
}

/** Returns the number of runs of alternatives, and the length of each run by the index of its first route. */
function findAlternativeRuns(
	routes: readonly RouteGroup[],
	isSorted: boolean,
): { count: number; lengths: Map<number, number> } {
	const lengths = new Map<number, number>();
	let runStart = -1;
	for (let index = 0; index < routes.length; index++) {
		const { module, runNumber } = routes[index]!.directives[0];
		if (module.alternativeTo === undefined) {
			runStart = -1;
			continue;
		}
		if (runStart === -1 || !(isSorted || routes[index - 1]!.directives[0].runNumber === runNumber)) {
			runStart = index;
			lengths.set(index, 1);
		} else lengths.set(runStart, lengths.get(runStart)! + 1);
	}
	return { count: lengths.size, lengths };
}

function firstMatchOf(lowering: Lowering, routes: readonly RouteGroup[]): Step {
	const branches = routes.map(route => {
		const steps = routeSteps(route);
		const isBlock = route.directives[0].module.alternativeTo !== undefined && steps.length === 1;
		const pipeline = isBlock ? (steps[0]!.pipeline as readonly Step[]) : steps;
		return lowering.origin(route.when ? { when: route.when, pipeline } : { pipeline }, route.directives[0].line.span);
	});
	return lowering.origin(firstMatchStep(branches), routes[0]!.directives[0].line.span);
}

/**
 * Returns a step that runs a route if its matcher holds. Several steps are combined to one, so that the matcher is evaluated once.
 */
function conditionalStep(lowering: Lowering, route: RouteGroup, exclusive: string | undefined): Step {
	const { when } = route;
	const { line } = route.directives[0];
	const steps = routeSteps(route);
	const onlyStep = steps.length === 1 ? steps[0]! : undefined;
	const singleStep: Step = onlyStep && onlyStep.when === undefined ? onlyStep : groupStep(steps);
	if (when === undefined && exclusive === undefined) return singleStep;
	const { handler, ...fields } = singleStep;
	const step: Step = {
		handler,
		...(when === undefined ? {} : { when }),
		...(exclusive === undefined ? {} : { exclusive }),
		...fields,
	};
	moveOrigin(lowering, singleStep, step, line);
	return step;
}

function moveOrigin(lowering: Lowering, oldStep: Step, newStep: Step, line: Line): void {
	if (lowering.environment.origins.has(oldStep)) lowering.environment.origins.move(oldStep, newStep);
	else lowering.origin(newStep, line.span);
}

/**
 * Warns about lines of a Configfile that can never run, because a directive before them always answers, or a branch before them
 * matches every request.
 */
function warnAboutUnreachable(lowering: Lowering, loweredDirectives: readonly LoweredDirective[]): void {
	for (let index = 0; index + 1 < loweredDirectives.length; index++) {
		const item = loweredDirectives[index]!;
		const nextItem = loweredDirectives[index + 1]!;
		if (item.when !== undefined) continue;
		const itemSpan = spanOfWords(item.line.words);
		const nextSpan = spanOfWords(nextItem.line.words);
		if (
			item.module.alternativeTo !== undefined &&
			nextItem.module.alternativeTo !== undefined &&
			item.runNumber === nextItem.runNumber
		) {
			const message = 'This block can never run: the one before it takes every request.';
			lowering.problem('warning', 'branch/never-runs', nextSpan, message, {
				related: [{ span: itemSpan, message: 'takes every request' }],
			});
		}
		const { answers, passesOn } = item.module;
		if (answers !== 'always' || item.steps.some(step => passesOn?.(step))) continue;
		const message = `\`${nextItem.directive}\` can never run: \`${item.directive}\` before it always answers.`;
		lowering.problem('warning', 'directive/never-runs', nextSpan, message, {
			related: [{ span: itemSpan, message: 'answers every request that reaches it' }],
		});
		return;
	}
}
