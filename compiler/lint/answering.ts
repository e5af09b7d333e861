/** What steps do, by the traits of their handlers: which answer requests, always or sometimes, and what they are called. */

import { HANDLERS } from '../codegen/handlers.ts';
import type { Step } from '../document/document.ts';
import type { HandlerDirective } from '../modules/directives/directive.ts';
import type { StepBranch } from '../modules/directives/traits.ts';

/** Traits of a step whose handler is not known. */
const NONE: Partial<HandlerDirective> = {};

/** Returns what the handler of a step says about itself. */
export function traitsOf(step: Step): Partial<HandlerDirective> {
	return HANDLERS.get(step.handler) ?? NONE;
}

/** Returns the word that a person writes for a step. */
export function directiveOf(step: Step): string {
	const { writtenAs, names } = traitsOf(step);
	return writtenAs?.(step) ?? names?.compatfile[0] ?? names?.configfile[0] ?? step.handler;
}

/** Reports whether no request gets past the step, whatever it is. */
export function alwaysAnswers(step: Step): boolean {
	if (step.when !== undefined || step.exclusive !== undefined) return false;
	return answersOnceRun(step);
}

/** Reports whether no request that the step runs for gets past it. */
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

/** Reports whether the step, or one inside of it, may answer a request. */
export function mayAnswer(step: Step): boolean {
	return traitsOf(step).answers !== undefined || branchesOf(step).some(({ pipeline }) => pipeline.some(mayAnswer));
}

/** Reports whether the step, or one inside of it, changes what matchers on the path, the query or the method see. */
export function changesTarget(step: Step): boolean {
	return traitsOf(step).changesTarget === true || branchesOf(step).some(({ pipeline }) => pipeline.some(changesTarget));
}

/** Returns the pipelines inside of a step that requests run through before they go on. */
export function branchesOf(step: Step): readonly StepBranch[] {
	return traitsOf(step).branches?.(step) ?? [];
}
