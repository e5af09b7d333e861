/**
 * Finds steps that a request reaches after a given step: in the same pipeline, in nested pipelines, or after the enclosing step.
 */
import type { Matcher, Step } from '../../document/document.ts';
import { alwaysAnswers, branchesOf } from './answering.ts';
import { areDisjoint, coversMatcher } from './coverage.ts';
import type { WalkedStep } from './walk-document.ts';

/**
 * Returns the first step after `startStep` for which `isWanted` returns true and that a request matched by `when` may reach. An
 * undefined `when` matches every request.
 */
export function findLaterStep(
	startStep: WalkedStep,
	when: Matcher | undefined,
	isWanted: (step: Step) => boolean,
): { readonly step: Step; readonly pointer: string } | undefined {
	let currentStep: WalkedStep | undefined = startStep;
	while (currentStep) {
		const { steps, owner } = currentStep.pipeline as WalkedStep['pipeline'];
		const firstIndex = steps.indexOf(currentStep) + 1;
		const { laterStep, isEnd } = searchSteps(
			steps.slice(firstIndex).map(({ step, pointer }) => ({ step, pointer })),
			when,
			isWanted,
		);
		if (laterStep) return laterStep;
		if (isEnd) return undefined;
		currentStep = owner;
	}
	return undefined;
}

interface PlacedStep {
	readonly step: Step;
	readonly pointer: string;
}

/** Searches steps in order. `isEnd` is true if no request continues after them. */
function searchSteps(
	steps: readonly PlacedStep[],
	when: Matcher | undefined,
	isWanted: (step: Step) => boolean,
): { readonly laterStep?: PlacedStep; readonly isEnd: boolean } {
	for (const placedStep of steps) {
		const { step, pointer } = placedStep;
		if (isDisjoint(step.when, when)) continue;
		if (isWanted(step)) return { laterStep: placedStep, isEnd: true };
		for (const { when: condition, pipeline, pointer: branchPointer } of branchesOf(step)) {
			if (isDisjoint(condition, when)) continue;
			const { laterStep } = searchSteps(
				pipeline.map((inner, index) => ({ step: inner, pointer: `${pointer}${branchPointer}/pipeline/${index}` })),
				when,
				isWanted,
			);
			if (laterStep) return { laterStep, isEnd: true };
		}
		const { when: ownCondition, ...unconditional } = step;
		if (coversMatcher(ownCondition as Matcher | undefined, when) && alwaysAnswers(unconditional as Step))
			return { isEnd: true };
	}
	return { isEnd: false };
}

/** Returns true only if it is certain that no request can match both matchers. An undefined matcher matches every request. */
export function isDisjoint(first: Matcher | undefined, second: Matcher | undefined): boolean {
	if (first === undefined || second === undefined) return false;
	if (areDisjoint(first, second)) return true;
	for (const [a, b] of [
		[first, second],
		[second, first],
	] as const) {
		if (a.type === 'all' && (a.of as readonly Matcher[]).some(part => isDisjoint(part, b))) return true;
		if (a.type === 'any' && (a.of as readonly Matcher[]).every(part => isDisjoint(part, b))) return true;
		if (a.type === 'not' && coversMatcher(a.of as Matcher, b)) return true;
	}
	return false;
}
