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
const EXCLUSIVE_GROUP_BITS = 31;

/**
 * Compiles steps to a handler. `compiler` is the context for their place in the document. The last step continues with `next`. Of
 * the steps with the same `exclusive` name, only the first whose `when` holds runs. If these steps are adjacent, they become
 * plain branches. Otherwise, a bit of `x.exclusiveGroups` records that one of them has run. No other group of the site has the
 * same bit, which is cleared at the start of the pipeline.
 */
export function compilePipeline(compiler: SiteCompiler, steps: readonly Step[], next: Handler): Handler {
	const groupsByName = findScatteredGroups(compiler, steps);
	let handlerChain = next;
	for (let endIndex = steps.length; endIndex > 0; ) {
		const groupName = steps[endIndex - 1]!.exclusive;
		const group = groupName === undefined ? undefined : groupsByName.get(groupName);
		const firstIndex = group ? endIndex - 1 : findRunStart(steps, endIndex);
		// Whichever branch of the group runs, it continues with the step after the group.
		const afterGroup = handlerChain;
		const runSteps: BuiltStep[] = [];
		for (let i = endIndex - 1; i >= firstIndex; i--) {
			const builtStep = buildStep(
				compiler.at(String(i)),
				steps[i]!,
				groupName === undefined ? handlerChain : afterGroup,
			);
			runSteps.unshift(builtStep);
			handlerChain = addCondition(builtStep, handlerChain, group);
		}
		if (
			!group &&
			!compiler.isTraced &&
			!runSteps.some(step => step.conditionNeedsBody) &&
			canUseBranchTable(runSteps)
		) {
			handlerChain = compileBranchTable(runSteps, afterGroup, compiler.scope.sharedCode?.branchTables);
		}
		endIndex = firstIndex;
	}
	if (groupsByName.size === 0) return handlerChain;
	const groups = [...groupsByName.values()];
	const firstHandler = handlerChain;
	return x => {
		for (const group of groups) group.clear(x);
		return firstHandler(x);
	};
}

/** Records, for each exchange, whether a step of one exclusive group has run. */
interface ExclusiveGroup {
	hasRun(x: Exchange): boolean;
	markRun(x: Exchange): void;
	clear(x: Exchange): void;
}

function findScatteredGroups(compiler: SiteCompiler, steps: readonly Step[]): Map<string, ExclusiveGroup> {
	const lastIndexByGroup = new Map<string, number>();
	const scatteredGroups = new Map<string, ExclusiveGroup>();
	steps.forEach(({ exclusive }, i) => {
		if (exclusive === undefined) return;
		const lastIndex = lastIndexByGroup.get(exclusive);
		if (lastIndex !== undefined && lastIndex !== i - 1 && !scatteredGroups.has(exclusive)) {
			// The bit's number is specific to this site, so code that uses it cannot be shared with other sites.
			compiler.scope.siteSpecificUseCount++;
			scatteredGroups.set(exclusive, createExclusiveGroup(compiler.scope.nextExclusiveGroup++));
		}
		lastIndexByGroup.set(exclusive, i);
	});
	return scatteredGroups;
}

function createExclusiveGroup(groupIndex: number): ExclusiveGroup {
	if (groupIndex < EXCLUSIVE_GROUP_BITS) {
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
	const variableName = `svc.exclusive.${groupIndex}`;
	return {
		hasRun: x => x.variable(variableName) === true,
		markRun: x => {
			x.variables.set(variableName, true);
		},
		clear: x => {
			if (x.variable(variableName) !== undefined) x.variables.delete(variableName);
		},
	};
}

/**
 * Returns the index of the first of the adjacent steps before `endIndex` that are compiled together: the steps of one exclusive
 * group, or steps that all have a condition.
 */
function findRunStart(steps: readonly Step[], endIndex: number): number {
	const { exclusive, when } = steps[endIndex - 1]!;
	let startIndex = endIndex - 1;
	if (exclusive === undefined && !when) return startIndex;
	while (
		startIndex > 0 &&
		steps[startIndex - 1]!.exclusive === exclusive &&
		(exclusive !== undefined || steps[startIndex - 1]!.when)
	) {
		startIndex--;
	}
	return startIndex;
}

/** A compiled step. Its `handler` does not check the condition yet; see {@link addCondition}. */
interface BuiltStep extends HandlerBranch {
	/** True if the condition itself uses the request body, which must then be read before it is evaluated. */
	readonly conditionNeedsBody: boolean;
}

function buildStep(compiler: SiteCompiler, step: Step, next: Handler): BuiltStep {
	const handlerModule = HANDLERS.get(step.handler);
	if (!handlerModule) return compiler.refuse(`\`${step.handler}\` is not a handler.`, 'handler/unknown');
	compiler.beginStep(step);
	let handler = handlerModule.compile!(step, compiler, next);
	if (compiler.needsWholeBody) handler = withBufferedBody(handler);
	compiler.needsWholeBody = false;
	handler = compiler.scope.tracer?.wrapHandler(compiler.pointer, step, handler) ?? handler;
	const predicate = step.when ? compiler.matcher(step.when) : undefined;
	return { when: step.when, predicate, handler, conditionNeedsBody: compiler.needsWholeBody };
}

function addCondition(step: BuiltStep, fallbackHandler: Handler, group: ExclusiveGroup | undefined): Handler {
	const handler = conditionalHandler(step.predicate, step.handler, fallbackHandler, group);
	return step.conditionNeedsBody ? withBufferedBody(handler) : handler;
}

function conditionalHandler(
	predicate: Predicate | undefined,
	handler: Handler,
	fallbackHandler: Handler,
	group: ExclusiveGroup | undefined,
): Handler {
	if (group) {
		return x => {
			if (group.hasRun(x) || (predicate && !predicate(x))) return fallbackHandler(x);
			group.markRun(x);
			return handler(x);
		};
	}
	if (!predicate) return handler;
	return x => (predicate(x) ? handler(x) : fallbackHandler(x));
}
