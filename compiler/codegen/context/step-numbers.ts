/** Numbers the steps that a site may run: the site's own steps from 0, and the steps of named routes from FIRST_ROUTE_STEP. */
import type { Site, Step } from '../../document/document.ts';
import { escapePointer } from '../../document/json-pointer.ts';
import { FIRST_ROUTE_STEP } from '../../exchange/step-place.ts';

/** Calls `visit` for every step inside `value`, with its JSON pointer. An outer step comes before the steps nested in it. */
export function forEachStep(value: object, pointer: string, visit: (step: Step, pointer: string) => void): void {
	if ('handler' in value) visit(value as Step, pointer);
	for (const [name, child] of Object.entries(value)) {
		if (typeof child !== 'object' || child === null) continue;
		forEachStep(child, `${pointer}/${escapePointer(name)}`, visit);
	}
}

/** Assigns numbers to a site's steps, all at once when the first number is requested. */
export class StepNumbers {
	readonly #site: Site;
	readonly #routes: { readonly [name: string]: readonly Step[] };
	#numbersByStep: Map<object, number> | undefined;

	constructor(site: Site, routes: { readonly [name: string]: readonly Step[] }) {
		this.#site = site;
		this.#routes = routes;
	}

	/** Returns the number of a step; 0 if the step is not in the document. */
	numberOf(step: Step): number {
		this.#numbersByStep ??= this.#numberSteps();
		return this.#numbersByStep.get(step) ?? 0;
	}

	#numberSteps(): Map<object, number> {
		const numbersByStep = new Map<object, number>();
		let nextNumber = 0;
		const assignNumber = (step: Step): void => {
			numbersByStep.set(step, nextNumber++);
		};
		forEachStep(this.#site, '', assignNumber);
		nextNumber = FIRST_ROUTE_STEP;
		forEachStep(this.#routes, '', assignNumber);
		return numbersByStep;
	}
}
