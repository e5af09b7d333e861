/** `let`: constants of the file and of one site, replaced while expanding. */
import type { ParsedWord } from './parsed-file.ts';

/** One `let NAME VALUE…`. */
export interface Constant {
	readonly name: ParsedWord;
	readonly values: readonly ParsedWord[];
	/** Defined in the main file, so that not using it is a mistake. */
	readonly local: boolean;
	used: boolean;
}

/** Constants of one level; those of a site hide those of the file. */
export class Constants {
	readonly #own = new Map<string, Constant>();
	readonly #outer: Constants | undefined;

	constructor(outer: Constants | undefined) {
		this.#outer = outer;
	}

	/** Adds one, or returns the one that has the name on this level already. */
	define(constant: Constant): Constant | undefined {
		const before = this.#own.get(constant.name.text);
		if (before) return before;
		this.#own.set(constant.name.text, constant);
		return undefined;
	}

	/** How many there are on this level. */
	get size(): number {
		return this.#own.size;
	}

	find(name: string): Constant | undefined {
		return this.#own.get(name) ?? this.#outer?.find(name);
	}

	/** Every name in sight. */
	names(): string[] {
		return [...this.#own.keys(), ...(this.#outer?.names() ?? [])];
	}

	/** Constants of this level in the main file that nothing uses. */
	unused(): Constant[] {
		return [...this.#own.values()].filter(({ local, used }) => local && !used);
	}
}
