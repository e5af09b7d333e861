/** `let`: constants of a file or site, which are replaced during expansion. */
import type { ParsedWord } from './parsed-file.ts';

/** A constant, defined by a line `let NAME VALUE…`. */
export interface Constant {
	readonly name: ParsedWord;
	readonly values: readonly ParsedWord[];
	/** True if the constant is defined in the main file. Unused constants are reported only there. */
	readonly inMainFile: boolean;
	isUsed: boolean;
}

/** The constants of a file or site. A site's constant hides a constant of the file with the same name. */
export class Constants {
	readonly #constants = new Map<string, Constant>();
	readonly #parent: Constants | undefined;

	constructor(parent: Constants | undefined) {
		this.#parent = parent;
	}

	/** Adds a constant. If this level already has a constant of this name, returns that one instead. */
	define(constant: Constant): Constant | undefined {
		const existing = this.#constants.get(constant.name.text);
		if (existing) return existing;
		this.#constants.set(constant.name.text, constant);
		return undefined;
	}

	get size(): number {
		return this.#constants.size;
	}

	find(name: string): Constant | undefined {
		return this.#constants.get(name) ?? this.#parent?.find(name);
	}

	/** Returns the names of all constants that can be used, including those of the file. */
	names(): string[] {
		return [...this.#constants.keys(), ...(this.#parent?.names() ?? [])];
	}

	/** Returns the unused constants of this level that are defined in the main file. */
	unusedConstants(): Constant[] {
		return [...this.#constants.values()].filter(({ inMainFile, isUsed }) => inMainFile && !isUsed);
	}
}
