/** `let`: constants of the file and of one site, replaced during expansion. */
import type { ParsedWord } from './parsed-file.ts';

/** One `let NAME VALUE…`. */
export interface Constant {
	readonly name: ParsedWord;
	readonly values: readonly ParsedWord[];
	/** True if defined in the main file, where an unused constant is reported. */
	readonly local: boolean;
	used: boolean;
}

/** The constants of one level; those of a site hide those of the file. */
export class Constants {
	readonly #own = new Map<string, Constant>();
	readonly #outer: Constants | undefined;

	constructor(outer: Constants | undefined) {
		this.#outer = outer;
	}

	/** Adds a constant, or returns the existing one of that name on this level. */
	define(constant: Constant): Constant | undefined {
		const before = this.#own.get(constant.name.text);
		if (before) return before;
		this.#own.set(constant.name.text, constant);
		return undefined;
	}

	/** Number of constants on this level. */
	get size(): number {
		return this.#own.size;
	}

	find(name: string): Constant | undefined {
		return this.#own.get(name) ?? this.#outer?.find(name);
	}

	/** Returns every visible name. */
	names(): string[] {
		return [...this.#own.keys(), ...(this.#outer?.names() ?? [])];
	}

	/** Returns the unused constants of this level that the main file defines. */
	unused(): Constant[] {
		return [...this.#own.values()].filter(({ local, used }) => local && !used);
	}
}
