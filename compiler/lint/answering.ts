/** Which steps answer requests: always, or perhaps. */

import type { Step } from '../document/document.ts';
import type { HandlerDirective } from '../modules/directives/directive.ts';
import { directives } from '../modules/directives/index.ts';

const byHandler: () => ReadonlyMap<string, HandlerDirective> = (() => {
	let made: ReadonlyMap<string, HandlerDirective> | undefined;
	return () => {
		made ??= new Map(
			directives.flatMap(one => (one.kind === 'handler' && one.id !== '' ? [[one.id, one] as const] : [])),
		);
		return made;
	};
})();

/** The word that a person writes for a step. */
export function directiveOf(step: Step): string {
	const module = byHandler().get(step.handler);
	if (step.handler === 'edit_headers') return step.response ? 'header' : 'request_header';
	if (step.handler === 'set_variables' && 'root' in (step.variables as object)) return 'root';
	return module?.names.compatfile[0] ?? module?.names.configfile[0] ?? step.handler;
}

/** True if no request gets past the step, whatever it is. */
export function alwaysAnswers(step: Step): boolean {
	if (step.when !== undefined || step.exclusive !== undefined) return false;
	return answersOnceRun(step);
}

/** True if no request that the step runs for gets past it. */
export function answersOnceRun(step: Step): boolean {
	if (step.handler === 'group') return pipelineAnswers(step.pipeline);
	if (step.handler === 'first_match') {
		const branches = branchesOf(step);
		return (
			branches.some(({ when }) => when === undefined) && branches.every(({ pipeline }) => pipelineAnswers(pipeline))
		);
	}
	if (byHandler().get(step.handler)?.answers !== true) return false;
	return step.pass_thru !== true && step.responses === undefined;
}

/** True if the step, or one inside of it, may answer a request. */
export function mayAnswer(step: Step): boolean {
	const module = byHandler().get(step.handler);
	if (!module || module.answers === true || MAY_ANSWER.has(step.handler)) return true;
	if (step.handler === 'group') return (step.pipeline as readonly Step[]).some(mayAnswer);
	if (step.handler === 'first_match') return branchesOf(step).some(({ pipeline }) => pipeline.some(mayAnswer));
	// A handler with steps of its own that is not known here.
	return Object.keys(step).some(key => key === 'pipeline' || key === 'branches' || key === 'rules');
}

/** Handlers that answer some requests only. */
const MAY_ANSWER: ReadonlySet<string> = new Set(['run_route', 'intercept_response', 'basic_auth', 'acme_authority']);

/** The branches of a `first_match`. */
export function branchesOf(
	step: Step,
): readonly { readonly when?: Step['when']; readonly pipeline: readonly Step[] }[] {
	return (step.branches ?? []) as readonly { readonly when?: Step['when']; readonly pipeline: readonly Step[] }[];
}

function pipelineAnswers(steps: unknown): boolean {
	return (steps as readonly Step[]).some(alwaysAnswers);
}
