/** One execution of a template: its output, its budget and the templates it has defined. */
import type { TemplateBody } from './compile.ts';
import { FunctionError, LimitError } from './template-error.ts';
import type { Value } from './value.ts';

/** Bounds that keep a template from holding a thread or its memory. */
export interface Bounds {
	/** Steps of evaluation, of all templates of one execution together; long texts and lists count more than one. */
	readonly steps: number;
	/** Characters of one text or of the output. */
	readonly characters: number;
	/** Entries of one list or dictionary. */
	readonly entries: number;
}

/** What serving uses: about a tenth of a second at worst. */
export const DEFAULT_BOUNDS: Bounds = { steps: 1_000_000, characters: 10 * 1024 * 1024, entries: 100_000 };

/** Templates that call each other, and values in values, deeper than this are refused before the stack is used up. */
const MAX_DEPTH = 100;

/** What is left of the bounds; shared by the templates that one execution includes, and by its repetitions. */
export class Budget {
	readonly bounds: Bounds;
	readonly #steps: { left: number };
	#depth = 0;

	/** `steps` are those left to several executions together. */
	constructor(bounds: Bounds = DEFAULT_BOUNDS, steps: { left: number } = { left: bounds.steps }) {
		this.bounds = bounds;
		this.#steps = steps;
	}

	/** Counts steps. Throws LimitError when there are none left. */
	spend(steps: number): void {
		this.#steps.left -= steps;
		if (this.#steps.left < 0) throw new LimitError(`the template takes more than ${this.bounds.steps} steps`);
	}

	/** Counts a text that was made. */
	text(length: number): void {
		this.fits(length);
		this.spend(length >> 7);
	}

	/** Looks at the length of a text that is being made, and counts nothing: who makes it piece by piece asks often. */
	fits(length: number): void {
		if (length > this.bounds.characters) {
			throw new LimitError(`a text is longer than ${this.bounds.characters} characters`);
		}
	}

	/** Counts a list or dictionary that was made or walked. */
	entries(count: number): void {
		if (count > this.bounds.entries) throw new LimitError(`a list has more than ${this.bounds.entries} entries`);
		this.spend(count >> 2);
	}

	/** Before another attempt at the same execution: steps stay spent. */
	restart(): void {
		this.#depth = 0;
	}

	/** One level deeper; `leave` comes back. */
	enter(): void {
		if (++this.#depth > MAX_DEPTH) throw new LimitError(`templates or values nest deeper than ${MAX_DEPTH}`);
	}

	leave(): void {
		this.#depth--;
	}
}

/** What an execution takes from where it runs. */
export interface Surroundings {
	/** The time, in milliseconds since 1970. */
	now(): number;
	/** A compiled regular expression with the flag `g`. Throws FunctionError. */
	regexp(source: string): RegExp;
	/**
	 * What `make` gives, and in a repetition of the execution what it gave before: left out where nothing is repeated. Calls
	 * come in the same order each time.
	 */
	once?<T extends Value>(make: () => T): T;
	/** What functions of the dependencies need; the language does not look at it. */
	readonly host: unknown;
}

/** One execution. */
export class Run {
	readonly budget: Budget;
	readonly deps: Surroundings;
	/** Name in messages of the text whose actions are running, and of the template in it. */
	parseName: string;
	templateName: string;
	/** Templates by name: of the text itself and of what it imported. */
	readonly templates = new Map<string, { readonly body: TemplateBody; readonly parseName: string }>();
	readonly #pieces: string[] = [];
	#length = 0;

	constructor(name: string, budget: Budget, deps: Surroundings) {
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

	/** Everything written. */
	output(): string {
		return this.#pieces.join('');
	}

	/** What `make` gives by chance: a repetition of the execution takes the same. */
	once<T extends Value>(make: () => T): T {
		return this.deps.once ? this.deps.once(make) : make();
	}

	/** For functions: says what is wrong with their arguments. */
	fail(reason: string): never {
		throw new FunctionError(reason);
	}
}

/** Values of the variables of one call of a template, by slot; `$` is the first. */
export type Variables = Value[];
