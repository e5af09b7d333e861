/** Derives from the traits of handlers whether steps answer requests, and what they change. */

import type { Step } from '../../document/document.ts';
import type { HandlerDirective } from '../../modules/contract/directive.ts';
import type { StepBranch } from '../../modules/contract/traits.ts';
import { HANDLERS } from '../../modules/registry/handlers.ts';

/** The traits of a step whose handler is unknown. */
const NO_TRAITS: Partial<HandlerDirective> = {};

/** Returns the traits of a step's handler. */
export function traitsOf(step: Step): Partial<HandlerDirective> {
	return HANDLERS.get(step.handler) ?? NO_TRAITS;
}

/** Returns the name of a step's directive, as the user wrote it. */
export function directiveNameOf(step: Step): string {
	const { writtenAs, names } = traitsOf(step);
	return writtenAs?.(step) ?? names?.compatfile[0] ?? names?.configfile[0] ?? step.handler;
}

/** Reports whether a step answers every request that reaches it. */
export function alwaysAnswers(step: Step): boolean {
	if (step.when !== undefined || step.exclusive !== undefined) return false;
	return answersIfRun(step);
}

/** Reports whether a step answers every request for which it runs. */
export function answersIfRun(step: Step): boolean {
	const branches = branchesOf(step);
	if (branches.length > 0) {
		return (
			branches.some(({ when }) => when === undefined) && branches.every(({ pipeline }) => pipeline.some(alwaysAnswers))
		);
	}
	const { answers, passesOn } = traitsOf(step);
	return answers === 'always' && passesOn?.(step) !== true;
}

/** Reports whether a step, or a step nested in it, may answer a request. */
export function canAnswer(step: Step): boolean {
	return traitsOf(step).answers !== undefined || branchesOf(step).some(({ pipeline }) => pipeline.some(canAnswer));
}

/** Reports whether a step, or a step nested in it, changes what matchers on the path, query or method see. */
export function changesTarget(step: Step): boolean {
	return traitsOf(step).changesTarget === true || branchesOf(step).some(({ pipeline }) => pipeline.some(changesTarget));
}

/** Returns the pipelines nested in a step. A request that runs the step passes through one of them. */
export function branchesOf(step: Step): readonly StepBranch[] {
	return traitsOf(step).branches?.(step) ?? [];
}
