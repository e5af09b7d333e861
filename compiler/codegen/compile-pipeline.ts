/**
 * Compiles steps to one closure. `next` is bound at build time, conditions become branches, and exclusive groups need no lookup
 * per request.
 */
import type { Step } from '../document/document.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler, Predicate } from '../exchange/handler.ts';
import type { HandlerBranch } from '../modules/contract/compile-context.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';
import { canUseBranchTable, compileBranchTable } from './branch-table.ts';
import { withBufferedBody } from './context/request-body.ts';
import type { SiteCompiler } from './site-compiler.ts';

/** Number of bits that `x.exclusiveGroups`, a signed 32-bit integer, provides for groups. */
const EXCLUSIVE_BITS = 31;

/**
 * Compiles the steps at `place`. The last step continues with `next`. Of the steps with the same `exclusive` name, only the first
 * whose `when` holds runs. If these steps are adjacent, they become plain branches. Otherwise, a bit of `x.exclusiveGroups` records
 * that one of them has run. The bit belongs to the group throughout the site, and is cleared at the start of the pipeline.
 */
export function compilePipeline(place: SiteCompiler, steps: readonly Step[], next: Handler): Handler {
	const groupsByName = findScatteredGroups(place, steps);
	let chain = next;
	for (let end = steps.length; end > 0; ) {
		const name = steps[end - 1]!.exclusive;
		const group = name === undefined ? undefined : groupsByName.get(name);
		const start = group ? end - 1 : runStart(steps, end);
		// Whichever branch of the group runs, it continues with the step after the group.
		const afterGroup = chain;
		const runSteps: BuiltStep[] = [];
		for (let i = end - 1; i >= start; i--) {
			const builtStep = buildStep(place.at(String(i)), steps[i]!, name === undefined ? chain : afterGroup);
			runSteps.unshift(builtStep);
			chain = addCondition(builtStep, chain, group);
		}
		if (!group && !place.isTraced && !runSteps.some(step => step.conditionNeedsBody) && canUseBranchTable(runSteps)) {
			chain = compileBranchTable(runSteps, afterGroup, place.scope.sharedCode?.tables);
		}
		end = start;
	}
	if (groupsByName.size === 0) return chain;
	const groups = [...groupsByName.values()];
	const firstHandler = chain;
	return x => {
		for (const group of groups) group.clear(x);
		return firstHandler(x);
	};
}

/** Records whether a step of an exclusive group has run in an exchange. */
interface ExclusiveGroup {
	hasRun(x: Exchange): boolean;
	markRun(x: Exchange): void;
	clear(x: Exchange): void;
}

function findScatteredGroups(place: SiteCompiler, steps: readonly Step[]): Map<string, ExclusiveGroup> {
	const lastIndexes = new Map<string, number>();
	const groups = new Map<string, ExclusiveGroup>();
	steps.forEach(({ exclusive }, i) => {
		if (exclusive === undefined) return;
		const lastIndex = lastIndexes.get(exclusive);
		if (lastIndex !== undefined && lastIndex !== i - 1 && !groups.has(exclusive)) {
			// The bit's number is specific to this site, so code that uses it cannot be shared with other sites.
			place.scope.siteSpecificUses++;
			groups.set(exclusive, exclusiveGroup(place.scope.nextExclusive++));
		}
		lastIndexes.set(exclusive, i);
	});
	return groups;
}

function exclusiveGroup(groupIndex: number): ExclusiveGroup {
	if (groupIndex < EXCLUSIVE_BITS) {
		const bit = 1 << groupIndex;
		return {
			hasRun: x => (x.exclusiveGroups & bit) !== 0,
			markRun: x => {
				x.exclusiveGroups |= bit;
			},
			clear: x => {
				x.exclusiveGroups &= ~bit;
			},
		};
	}
	// If a site has more groups than bits, the rest are recorded in variables.
	const name = `svc.exclusive.${groupIndex}`;
	return {
		hasRun: x => x.variable(name) === true,
		markRun: x => {
			x.variables.set(name, true);
		},
		clear: x => {
			if (x.variable(name) !== undefined) x.variables.delete(name);
		},
	};
}

/**
 * Returns the start of the run of steps before `end` that is compiled to alternatives: either one exclusive group, or steps that
 * all have a condition.
 */
function runStart(steps: readonly Step[], end: number): number {
	const { exclusive, when } = steps[end - 1]!;
	let start = end - 1;
	if (exclusive === undefined && !when) return start;
	while (
		start > 0 &&
		steps[start - 1]!.exclusive === exclusive &&
		(exclusive !== undefined || steps[start - 1]!.when)
	) {
		start--;
	}
	return start;
}

/** A compiled step without its condition. */
interface BuiltStep extends HandlerBranch {
	/** True if the condition itself uses the request body, which must then be read before it is evaluated. */
	readonly conditionNeedsBody: boolean;
}

function buildStep(place: SiteCompiler, step: Step, next: Handler): BuiltStep {
	const module = HANDLERS.get(step.handler);
	if (!module) return place.refuse(`\`${step.handler}\` is not a handler.`, 'handler/unknown');
	place.beginStep(step);
	let handler = module.compile!(step, place, next);
	if (place.needsWholeBody) handler = withBufferedBody(handler);
	place.needsWholeBody = false;
	handler = place.scope.tracer?.handler(place.pointer, step, handler) ?? handler;
	const predicate = step.when ? place.matcher(step.when) : undefined;
	return { when: step.when, predicate, handler, conditionNeedsBody: place.needsWholeBody };
}

function addCondition(step: BuiltStep, otherwise: Handler, group: ExclusiveGroup | undefined): Handler {
	const handler = conditionalHandler(step.predicate, step.handler, otherwise, group);
	return step.conditionNeedsBody ? withBufferedBody(handler) : handler;
}

function conditionalHandler(
	predicate: Predicate | undefined,
	handler: Handler,
	otherwise: Handler,
	group: ExclusiveGroup | undefined,
): Handler {
	if (group) {
		return x => {
			if (group.hasRun(x) || (predicate && !predicate(x))) return otherwise(x);
			group.markRun(x);
			return handler(x);
		};
	}
	if (!predicate) return handler;
	return x => (predicate(x) ? handler(x) : otherwise(x));
}
