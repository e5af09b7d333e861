/** Derives facts about steps from the traits of their handlers: which answer requests, always or sometimes, and their words. */

import { HANDLERS } from '../../codegen/handlers.ts';
import type { Step } from '../../document/document.ts';
import type { HandlerDirective } from '../../modules/directives/directive.ts';
import type { StepBranch } from '../../modules/directives/traits.ts';

/** Traits of a step with an unknown handler. */
const NONE: Partial<HandlerDirective> = {};

/** Returns the traits of a step's handler. */
export function traitsOf(step: Step): Partial<HandlerDirective> {
	return HANDLERS.get(step.handler) ?? NONE;
}

/** Returns the word for a step, as a person would write it. */
export function directiveOf(step: Step): string {
	const { writtenAs, names } = traitsOf(step);
	return writtenAs?.(step) ?? names?.compatfile[0] ?? names?.configfile[0] ?? step.handler;
}

/** Reports whether no request at all continues past the step. */
export function alwaysAnswers(step: Step): boolean {
	if (step.when !== undefined || step.exclusive !== undefined) return false;
	return answersOnceRun(step);
}

/** Reports whether no request for which the step runs continues past it. */
export function answersOnceRun(step: Step): boolean {
	const branches = branchesOf(step);
	if (branches.length > 0) {
		return (
			branches.some(({ when }) => when === undefined) && branches.every(({ pipeline }) => pipeline.some(alwaysAnswers))
		);
	}
	const { answers, passesOn } = traitsOf(step);
	return answers === 'always' && passesOn?.(step) !== true;
}

/** Reports whether the step, or one nested in it, may answer a request. */
export function mayAnswer(step: Step): boolean {
	return traitsOf(step).answers !== undefined || branchesOf(step).some(({ pipeline }) => pipeline.some(mayAnswer));
}

/** Reports whether the step, or one nested in it, affects matchers on the path, query or method. */
export function changesTarget(step: Step): boolean {
	return traitsOf(step).changesTarget === true || branchesOf(step).some(({ pipeline }) => pipeline.some(changesTarget));
}

/** Returns the pipelines nested in a step that requests run through before they continue. */
export function branchesOf(step: Step): readonly StepBranch[] {
	return traitsOf(step).branches?.(step) ?? [];
}
