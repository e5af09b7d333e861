/** `let`: constants of a file or of one site, replaced during expansion. */
import type { ParsedWord } from './parsed-file.ts';

/** A constant, defined by `let NAME VALUE…`. */
export interface Constant {
	readonly name: ParsedWord;
	readonly values: readonly ParsedWord[];
	/** True if the constant is defined in the main file. Unused constants are reported only there. */
	readonly inMainFile: boolean;
	used: boolean;
}

/** The constants of a file or of a site; those of a site hide those of the file. */
export class Constants {
	readonly #constants = new Map<string, Constant>();
	readonly #parent: Constants | undefined;

	constructor(parent: Constants | undefined) {
		this.#parent = parent;
	}

	/** Adds a constant. If the name is already defined on this level, returns the existing constant instead. */
	define(constant: Constant): Constant | undefined {
		const existing = this.#constants.get(constant.name.text);
		if (existing) return existing;
		this.#constants.set(constant.name.text, constant);
		return undefined;
	}

	/** Number of constants on this level. */
	get size(): number {
		return this.#constants.size;
	}

	find(name: string): Constant | undefined {
		return this.#constants.get(name) ?? this.#parent?.find(name);
	}

	/** Returns every visible name, including those of the file. */
	names(): string[] {
		return [...this.#constants.keys(), ...(this.#parent?.names() ?? [])];
	}

	/** Returns the unused constants of this level that are defined in the main file. */
	unused(): Constant[] {
		return [...this.#constants.values()].filter(({ inMainFile: local, used }) => local && !used);
	}
}
