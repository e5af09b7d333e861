/** One execution of a template: its output, its budget and its defined templates. */
import type { TemplateBody } from './compile.ts';
import { FunctionError, LimitError } from './template-error.ts';
import type { Value } from './value.ts';

/** Limits that keep a template from blocking a thread or exhausting its memory. */
export interface Bounds {
	/** Steps of evaluation, for all templates of one execution together; long texts and lists count as several. */
	readonly steps: number;
	/** Characters of a text or of the output. */
	readonly characters: number;
	/** Entries of a list or dictionary. */
	readonly entries: number;
}

/** Used when serving: about a tenth of a second at worst. */
export const DEFAULT_BOUNDS: Bounds = { steps: 1_000_000, characters: 10 * 1024 * 1024, entries: 100_000 };

/** Maximum nesting of template calls and of values, before the stack overflows. */
const MAX_DEPTH = 100;

/** The remaining budget of one execution. Included templates draw on it, and so do repetitions (see `restart`). */
export class Budget {
	readonly bounds: Bounds;
	readonly #steps: { left: number };
	#depth = 0;

	/** `steps` are shared by several executions. */
	constructor(bounds: Bounds = DEFAULT_BOUNDS, steps: { left: number } = { left: bounds.steps }) {
		this.bounds = bounds;
		this.#steps = steps;
	}

	/** Counts steps. Throws LimitError if none are left. */
	spend(steps: number): void {
		this.#steps.left -= steps;
		if (this.#steps.left < 0) throw new LimitError(`the template takes more than ${this.bounds.steps} steps`);
	}

	/** Counts a new text. */
	text(length: number): void {
		this.fits(length);
		this.spend(length >> 7);
	}

	/** Checks the length of a text under construction without counting it, because building it piece by piece checks often. */
	fits(length: number): void {
		if (length > this.bounds.characters) {
			throw new LimitError(`a text is longer than ${this.bounds.characters} characters`);
		}
	}

	/** Counts a list or dictionary that was built or traversed. */
	entries(count: number): void {
		if (count > this.bounds.entries) throw new LimitError(`a list has more than ${this.bounds.entries} entries`);
		this.spend(count >> 2);
	}

	/** Called before the same execution is repeated: spent steps are not returned. */
	restart(): void {
		this.#depth = 0;
	}

	/** Enters one level; `leave` returns. */
	enter(): void {
		if (++this.#depth > MAX_DEPTH) throw new LimitError(`templates or values nest deeper than ${MAX_DEPTH}`);
	}

	leave(): void {
		this.#depth--;
	}
}

/** Dependencies of an execution. */
export interface RunDependencies {
	/** Returns the time, in milliseconds since 1970. */
	now(): number;
	/** Returns a compiled regular expression with the flag `g`. Throws FunctionError. */
	regexp(source: string): RegExp;
	/**
	 * Returns the result of `make`, or, when the execution is repeated, its earlier result. Omitted if executions are never
	 * repeated. Calls come in the same order each time.
	 */
	once?<T extends Value>(make: () => T): T;
	/** State for the functions of the embedder; the language does not use it. */
	readonly host: unknown;
}

/** One execution. */
export class Run {
	readonly budget: Budget;
	readonly deps: RunDependencies;
	/** Name of the text whose actions are running, and of the template in it, for messages. */
	parseName: string;
	templateName: string;
	/** Templates by name: of the text itself and of imported ones. */
	readonly templates = new Map<string, { readonly body: TemplateBody; readonly parseName: string }>();
	readonly #pieces: string[] = [];
	#length = 0;

	constructor(name: string, budget: Budget, deps: RunDependencies) {
		this.parseName = name;
		this.templateName = name;
		this.budget = budget;
		this.deps = deps;
	}

	/** Appends to the output. */
	write(text: string): void {
		this.#length += text.length;
		this.budget.fits(this.#length);
		this.#pieces.push(text);
	}

	/** Returns the output. */
	output(): string {
		return this.#pieces.join('');
	}

	/** Returns the result of a random `make`; a repetition of the execution gets the same. */
	once<T extends Value>(make: () => T): T {
		return this.deps.once ? this.deps.once(make) : make();
	}

	/** Throws a function's complaint about its arguments. */
	fail(reason: string): never {
		throw new FunctionError(reason);
	}
}

/** Values of the variables of one template call, by slot; `$` is the first. */
export type Variables = Value[];
