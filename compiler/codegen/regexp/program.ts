/**
 * Compiles an expression to a graph of instructions. Priorities, captures and assertions are explicit in it, and no repetition
 * can loop without consuming a character.
 */
import type { CharacterSet } from './character-sets.ts';
import type { RegexpBounds } from './regexp-bounds.ts';
import { RegexpTooLarge } from './regexp-error.ts';
import { isNullable, type ParsedRegexp, type RegexpAssertion, type RegexpNode } from './regexp-node.ts';

/** An instruction. `next` and `targets` are indices of instructions. */
export type RegexpInstruction =
	/** Never succeeds. */
	| { readonly op: 'fail' }
	/** The end of the expression. */
	| { readonly op: 'match' }
	/** Consumes a character of a set. */
	| { readonly op: 'set'; readonly set: number; readonly next: number }
	/** Tries the targets in this order. */
	| { readonly op: 'choice'; readonly targets: number[] }
	/** Stores the position: slot 2n is the start of group n, slot 2n + 1 its end. */
	| { readonly op: 'save'; readonly slot: number; readonly next: number }
	/** Clears the slots from `from` up to, but not including, `to`. */
	| { readonly op: 'clear'; readonly from: number; readonly to: number; readonly next: number }
	| { readonly op: 'assert'; readonly assertion: RegexpAssertion; readonly next: number };

/** A compiled expression. */
export interface RegexpProgram {
	readonly instructions: readonly RegexpInstruction[];
	readonly start: number;
	/** The character sets that instructions refer to by index. */
	readonly sets: readonly CharacterSet[];
}

/** The instruction that never succeeds. */
const FAIL = 0;
/** The instruction that ends a match. */
export const MATCH_INSTRUCTION = 1;
/** Maximum nodes visited per permitted instruction. It is greater than 1, because some nodes produce no instruction. */
const VISITS = 5;

/** Compiles an expression. Throws RegexpTooLarge. */
export function compileProgram({ root }: ParsedRegexp, bounds: RegexpBounds): RegexpProgram {
	const builder = new Builder(bounds);
	const start = builder.node(root, MATCH_INSTRUCTION);
	return { instructions: builder.instructions, start, sets: builder.sets };
}

type Repeat = Extract<RegexpNode, { kind: 'repeat' }>;

/** The optional iterations of a repetition: the instruction at which they begin, and the first iteration alone. */
interface OptionalPart {
	readonly entry: number;
	readonly iteration: number;
}

/** Builds a program backward: every method receives the instruction that follows and returns the one at which to begin. */
class Builder {
	readonly instructions: RegexpInstruction[] = [{ op: 'fail' }, { op: 'match' }];
	readonly sets: CharacterSet[] = [];
	readonly #setNumbers = new Map<CharacterSet | string, number>();
	readonly #optionalParts = new Map<Repeat, Map<number, OptionalPart>>();
	readonly #bounds: RegexpBounds;
	#visits = 0;

	constructor(bounds: RegexpBounds) {
		this.#bounds = bounds;
	}

	/** Compiles a node that is followed by `next`. */
	node(node: RegexpNode, next: number): number {
		return this.#either(node, next, next);
	}

	#add(instruction: RegexpInstruction): number {
		if (this.instructions.length >= this.#bounds.instructions) throw new RegexpTooLarge();
		return this.instructions.push(instruction) - 1;
	}

	#choice(targets: readonly number[]): number {
		const open = targets.filter(target => target !== FAIL);
		return open.length < 2 ? (open[0] ?? FAIL) : this.#add({ op: 'choice', targets: open });
	}

	/**
	 * Compiles a node that continues with `full` if it has consumed a character, and with `empty` if it has not. As in
	 * JavaScript,
	 * an optional iteration must consume something, so its `empty` is FAIL.
	 */
	#either(node: RegexpNode, empty: number, full: number): number {
		if (++this.#visits > VISITS * this.#bounds.instructions) throw new RegexpTooLarge();
		switch (node.kind) {
			case 'assert':
				return empty === FAIL ? FAIL : this.#add({ op: 'assert', assertion: node.assertion, next: empty });
			case 'set':
				return this.#add({ op: 'set', set: this.#numberOf(node.ranges), next: full });
			case 'group': {
				const end = (next: number): number =>
					next === FAIL ? FAIL : this.#add({ op: 'save', slot: 2 * node.index + 1, next });
				const afterFull = end(full);
				const inner = this.#either(node.of, empty === full ? afterFull : end(empty), afterFull);
				return inner === FAIL ? FAIL : this.#add({ op: 'save', slot: 2 * node.index, next: inner });
			}
			case 'alt':
				return this.#choice(node.of.map(child => this.#either(child, empty, full)));
			case 'cat':
				return this.#sequence(node.of, empty, full, (at, ...next) => this.#either(node.of[at]!, ...next));
			case 'repeat': {
				const { entry, iteration } = this.#optional(node, full);
				const whenEmpty = empty === full ? entry : this.#orSkip(node, iteration, empty);
				const required = new Array<RegexpNode>(node.min).fill(node.of);
				return this.#sequence(required, whenEmpty, entry, (_, ...next) => this.#iteration(node, ...next));
			}
		}
	}

	/**
	 * Compiles nodes one after the other. Where the two continuations differ, each node that can match nothing is compiled
	 * twice: for when something has been consumed before it, and for when nothing has.
	 */
	#sequence(
		nodes: readonly RegexpNode[],
		empty: number,
		full: number,
		compile: (at: number, empty: number, full: number) => number,
	): number {
		let [whenEmpty, whenFull] = [empty, full];
		for (let at = nodes.length - 1; at >= 0; at--) {
			const next = whenFull;
			const alike = whenEmpty === next || !isNullable(nodes[at]!);
			if (alike || at > 0) whenFull = compile(at, next, next);
			whenEmpty = alike ? whenFull : compile(at, whenEmpty, next);
		}
		return whenEmpty;
	}

	/**
	 * Compiles the iterations after the required ones. The result is reused for the same `full`, since otherwise nested
	 * repetitions
	 * would multiply.
	 */
	#optional(node: Repeat, full: number): OptionalPart {
		const parts = this.#optionalParts.get(node) ?? new Map<number, OptionalPart>();
		this.#optionalParts.set(node, parts);
		let part = parts.get(full);
		if (part) return part;
		part = { entry: full, iteration: FAIL };
		if (node.max === Infinity) {
			const targets: number[] = [];
			const entry = this.#add({ op: 'choice', targets });
			const iteration = this.#iteration(node, FAIL, entry);
			targets.push(...(node.lazy ? [full, iteration] : [iteration, full]));
			part = { entry, iteration };
		} else {
			for (let left = node.max - node.min; left > 0; left--) {
				const iteration = this.#iteration(node, FAIL, part.entry);
				part = { entry: this.#orSkip(node, iteration, full), iteration };
			}
		}
		parts.set(full, part);
		return part;
	}

	#orSkip(node: Repeat, iteration: number, next: number): number {
		return this.#choice(node.lazy ? [next, iteration] : [iteration, next]);
	}

	/** Compiles one iteration, which first clears the captures of the iteration before it. */
	#iteration(node: Repeat, empty: number, full: number): number {
		const start = this.#either(node.of, empty, full);
		const [first, end] = node.groups;
		if (first === end || start === FAIL) return start;
		return this.#add({ op: 'clear', from: 2 * first, to: 2 * end, next: start });
	}

	/** Returns the index of a set. Equal sets share one index. */
	#numberOf(ranges: CharacterSet): number {
		let number = this.#setNumbers.get(ranges);
		if (number !== undefined) return number;
		const text = ranges.join();
		number = this.#setNumbers.get(text) ?? this.sets.push(ranges) - 1;
		this.#setNumbers.set(ranges, number).set(text, number);
		return number;
	}
}
