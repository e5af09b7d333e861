/** The state of one execution of a template: its output, its budget, and the templates that it can call. */
import type { TemplateBody } from './compile.ts';
import { FunctionError, LimitError } from './template-error.ts';
import type { Value } from './value.ts';

/** Limits that keep a template from blocking a thread or exhausting its memory. */
export interface ExecutionBounds {
	/**
	 * Maximum number of evaluation steps of one execution, including the templates it calls. Long strings and lists count as several
	 * steps.
	 */
	readonly maxSteps: number;
	/** Maximum number of characters of a string, and of the output. */
	readonly maxCharacters: number;
	/** Maximum number of entries of a list or dictionary. */
	readonly maxEntries: number;
}

/** The bounds for serving requests: about a tenth of a second in the worst case. */
export const DEFAULT_EXECUTION_BOUNDS: ExecutionBounds = {
	maxSteps: 1_000_000,
	maxCharacters: 10 * 1024 * 1024,
	maxEntries: 100_000,
};

/** Maximum depth to which template calls and values may be nested; deeper nesting could overflow the stack. */
const MAX_NESTING_DEPTH = 100;

/** The remaining budget of one execution. Included templates and repetitions (see `restart`) spend from the same budget. */
export class ExecutionBudget {
	readonly bounds: ExecutionBounds;
	readonly #remainingSteps: { stepsLeft: number };
	#depth = 0;

	/** @param remainingSteps The remaining steps, which several executions may share. */
	constructor(
		bounds: ExecutionBounds = DEFAULT_EXECUTION_BOUNDS,
		remainingSteps: { stepsLeft: number } = { stepsLeft: bounds.maxSteps },
	) {
		this.bounds = bounds;
		this.#remainingSteps = remainingSteps;
	}

	/** Spends steps of the budget. Throws LimitError if none are left. */
	spendSteps(stepCount: number): void {
		this.#remainingSteps.stepsLeft -= stepCount;
		if (this.#remainingSteps.stepsLeft < 0)
			throw new LimitError(`the template takes more than ${this.bounds.maxSteps} steps`);
	}

	/** Charges the budget for a new string of this length. */
	chargeText(length: number): void {
		this.checkLength(length);
		this.spendSteps(length >> 7);
	}

	/**
	 * Checks the length of a string under construction. Does not charge the budget, because a string that is built in many steps is
	 * checked at each of them.
	 */
	checkLength(length: number): void {
		if (length > this.bounds.maxCharacters) {
			throw new LimitError(`a text is longer than ${this.bounds.maxCharacters} characters`);
		}
	}

	/** Charges the budget for building or traversing a list or dictionary with this many entries. */
	chargeEntries(count: number): void {
		if (count > this.bounds.maxEntries) throw new LimitError(`a list has more than ${this.bounds.maxEntries} entries`);
		this.spendSteps(count >> 2);
	}

	/** Called before the same execution is repeated. Steps already spent are not refunded. */
	restart(): void {
		this.#depth = 0;
	}

	/** Enters a level of nesting, until `leaveLevel` is called. Throws LimitError if the nesting is too deep. */
	enterLevel(): void {
		if (++this.#depth > MAX_NESTING_DEPTH)
			throw new LimitError(`templates or values nest deeper than ${MAX_NESTING_DEPTH}`);
	}

	leaveLevel(): void {
		this.#depth--;
	}
}

/** What an execution needs from the program that embeds the template language. */
export interface RunDependencies {
	/** Returns the time, in milliseconds since 1970. */
	now(): number;
	/** Returns a compiled regular expression with the flag `g`. Throws FunctionError. */
	regexp(source: string): RegExp;
	/**
	 * Returns the result of `compute`. When the execution is repeated, returns the earlier result: calls come in the same order each
	 * time. Omitted if executions are never repeated.
	 */
	once?<T extends Value>(compute: () => T): T;
	/** State for functions that the embedding program adds. The language itself does not use it. */
	readonly hostState: unknown;
}

export class TemplateRun {
	readonly budget: ExecutionBudget;
	readonly deps: RunDependencies;
	/** Name, for messages, of the source whose actions are running. `templateName` is the name of the template in it. */
	sourceName: string;
	templateName: string;
	/** The templates that can be called, by name: the templates of the executed source and of imported sources. */
	readonly templates = new Map<string, { readonly body: TemplateBody; readonly sourceName: string }>();
	readonly #outputPieces: string[] = [];
	#outputLength = 0;

	constructor(name: string, budget: ExecutionBudget, deps: RunDependencies) {
		this.sourceName = name;
		this.templateName = name;
		this.budget = budget;
		this.deps = deps;
	}

	/** Appends text to the output. Throws LimitError if the output becomes too long. */
	write(text: string): void {
		this.#outputLength += text.length;
		this.budget.checkLength(this.#outputLength);
		this.#outputPieces.push(text);
	}

	output(): string {
		return this.#outputPieces.join('');
	}

	/** Returns the result of `compute`, which may be random. When the execution is repeated, returns the same result. */
	once<T extends Value>(compute: () => T): T {
		return this.deps.once ? this.deps.once(compute) : compute();
	}

	/** Throws FunctionError. Called by a function to report an unusable argument. */
	fail(reason: string): never {
		throw new FunctionError(reason);
	}
}

/** Values of the variables of one template call, by slot; `$` is the first. */
export type VariableSlots = Value[];
