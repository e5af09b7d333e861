/**
 * Finds steps that a request reaches after a given step: in the same pipeline, in a nested one, or after the step that contains
 * it.
 */
import type { Matcher, Step } from '../../document/document.ts';
import { alwaysAnswers, branchesOf } from './answering.ts';
import { areDisjoint, coversMatcher } from './coverage.ts';
import type { WalkedStep } from './walk-document.ts';

/**
 * Returns the first wanted step after `from` that may be reached by a request which the matcher matches. Undefined matches every
 * request.
 */
export function findLaterStep(
	from: WalkedStep,
	when: Matcher | undefined,
	wanted: (step: Step) => boolean,
): { readonly step: Step; readonly pointer: string } | undefined {
	let at: WalkedStep | undefined = from;
	while (at) {
		const { steps, owner } = at.pipeline as WalkedStep['pipeline'];
		const begin = steps.indexOf(at) + 1;
		const { found, ended } = search(
			steps.slice(begin).map(({ step, pointer }) => ({ step, pointer })),
			when,
			wanted,
		);
		if (found) return found;
		if (ended) return undefined;
		at = owner;
	}
	return undefined;
}

interface PlacedStep {
	readonly step: Step;
	readonly pointer: string;
}

/** Searches steps in order. `ended` is true if no request continues past them. */
function search(
	steps: readonly PlacedStep[],
	when: Matcher | undefined,
	wanted: (step: Step) => boolean,
): { readonly found?: PlacedStep; readonly ended: boolean } {
	for (const placed of steps) {
		const { step, pointer } = placed;
		if (isDisjoint(step.when, when)) continue;
		if (wanted(step)) return { found: placed, ended: true };
		for (const { when: branch, pipeline, pointer: at } of branchesOf(step)) {
			if (isDisjoint(branch, when)) continue;
			const { found } = search(
				pipeline.map((inner, index) => ({ step: inner, pointer: `${pointer}${at}/pipeline/${index}` })),
				when,
				wanted,
			);
			if (found) return { found, ended: true };
		}
		const { when: own, ...always } = step;
		if (coversMatcher(own as Matcher | undefined, when) && alwaysAnswers(always as Step)) return { ended: true };
	}
	return { ended: false };
}

/** Returns true only if no request can match both. Undefined matches every request. */
function isDisjoint(one: Matcher | undefined, other: Matcher | undefined): boolean {
	if (one === undefined || other === undefined) return false;
	if (areDisjoint(one, other)) return true;
	for (const [a, b] of [
		[one, other],
		[other, one],
	] as const) {
		if (a.type === 'all' && (a.of as readonly Matcher[]).some(part => isDisjoint(part, b))) return true;
		if (a.type === 'any' && (a.of as readonly Matcher[]).every(part => isDisjoint(part, b))) return true;
		if (a.type === 'not' && coversMatcher(a.of as Matcher, b)) return true;
	}
	return false;
}
