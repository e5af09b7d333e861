/** `let`: constants of a file or of one site, replaced during expansion. */
import type { ParsedWord } from './parsed-file.ts';

/** A constant, defined by `let NAME VALUE…`. */
export interface Constant {
	readonly name: ParsedWord;
	readonly values: readonly ParsedWord[];
	/** True if defined in the main file; only there are unused constants reported. */
	readonly local: boolean;
	used: boolean;
}

/** The constants of a file or of a site; those of a site hide those of the file. */
export class Constants {
	readonly #own = new Map<string, Constant>();
	readonly #outer: Constants | undefined;

	constructor(outer: Constants | undefined) {
		this.#outer = outer;
	}

	/** Adds a constant. If the name is already defined on this level, returns the existing constant instead. */
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

	/** Returns every visible name, including those of the file. */
	names(): string[] {
		return [...this.#own.keys(), ...(this.#outer?.names() ?? [])];
	}

	/** Returns the unused constants of this level that are defined in the main file. */
	unused(): Constant[] {
		return [...this.#own.values()].filter(({ local, used }) => local && !used);
	}
}
