/**
 * Compiles an expression to a graph of instructions, in which priorities, captures and assertions are explicit. No repetition in it
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
	/** Consumes a character that is in a set. `set` is the index of the set. */
	| { readonly op: 'set'; readonly set: number; readonly next: number }
	/** Tries the targets in order. */
	| { readonly op: 'choice'; readonly targets: number[] }
	/** Stores the position: slot 2n is the start of group n, slot 2n + 1 its end. */
	| { readonly op: 'save'; readonly slot: number; readonly next: number }
	/** Clears the slots from `firstSlot` up to, but not including, `endSlot`. */
	| { readonly op: 'clear'; readonly firstSlot: number; readonly endSlot: number; readonly next: number }
	| { readonly op: 'assert'; readonly assertion: RegexpAssertion; readonly next: number };

/** A compiled expression. */
export interface RegexpProgram {
	readonly instructions: readonly RegexpInstruction[];
	readonly start: number;
	/** The character sets that instructions refer to by index. */
	readonly sets: readonly CharacterSet[];
}

/** The instruction that never succeeds. */
const FAIL_INSTRUCTION = 0;
/** The instruction that ends a match. */
export const MATCH_INSTRUCTION = 1;
/**
 * Maximum number of visits to nodes, per permitted instruction. It is greater than 1, because some nodes produce no instruction.
 */
const VISITS_PER_INSTRUCTION = 5;

/** Compiles an expression to a program. Throws RegexpTooLarge. */
export function compileProgram({ root }: ParsedRegexp, bounds: RegexpBounds): RegexpProgram {
	const builder = new Builder(bounds);
	const start = builder.compileNode(root, MATCH_INSTRUCTION);
	return { instructions: builder.instructions, start, sets: builder.sets };
}

type Repeat = Extract<RegexpNode, { kind: 'repeat' }>;

/**
 * The optional iterations of a repetition. `entry` is the instruction at which they begin or are skipped, and `iteration` the
 * instruction at which one iteration begins.
 */
interface OptionalPart {
	readonly entry: number;
	readonly iteration: number;
}

/**
 * Builds a program backward: every method receives the next instruction and returns the instruction at which its own part begins.
 */
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
	compileNode(node: RegexpNode, next: number): number {
		return this.#compileEither(node, next, next);
	}

	#addInstruction(instruction: RegexpInstruction): number {
		if (this.instructions.length >= this.#bounds.maxInstructions) throw new RegexpTooLarge();
		return this.instructions.push(instruction) - 1;
	}

	#choice(targets: readonly number[]): number {
		const liveTargets = targets.filter(target => target !== FAIL_INSTRUCTION);
		return liveTargets.length < 2
			? (liveTargets[0] ?? FAIL_INSTRUCTION)
			: this.#addInstruction({ op: 'choice', targets: liveTargets });
	}

	/**
	 * Compiles a node that continues with `nextIfConsumed` if it has consumed a character, and with `nextIfEmpty` if it has not. As
	 * in JavaScript, an optional iteration must consume a character, so `nextIfEmpty` is FAIL_INSTRUCTION for it.
	 */
	#compileEither(node: RegexpNode, nextIfEmpty: number, nextIfConsumed: number): number {
		if (++this.#visits > VISITS_PER_INSTRUCTION * this.#bounds.maxInstructions) throw new RegexpTooLarge();
		switch (node.kind) {
			case 'assert':
				return nextIfEmpty === FAIL_INSTRUCTION
					? FAIL_INSTRUCTION
					: this.#addInstruction({ op: 'assert', assertion: node.assertion, next: nextIfEmpty });
			case 'set':
				return this.#addInstruction({ op: 'set', set: this.#numberOf(node.ranges), next: nextIfConsumed });
			case 'group': {
				const saveEnd = (next: number): number =>
					next === FAIL_INSTRUCTION
						? FAIL_INSTRUCTION
						: this.#addInstruction({ op: 'save', slot: 2 * node.index + 1, next });
				const saveEndIfConsumed = saveEnd(nextIfConsumed);
				const inner = this.#compileEither(
					node.child,
					nextIfEmpty === nextIfConsumed ? saveEndIfConsumed : saveEnd(nextIfEmpty),
					saveEndIfConsumed,
				);
				return inner === FAIL_INSTRUCTION
					? FAIL_INSTRUCTION
					: this.#addInstruction({ op: 'save', slot: 2 * node.index, next: inner });
			}
			case 'alt':
				return this.#choice(node.children.map(child => this.#compileEither(child, nextIfEmpty, nextIfConsumed)));
			case 'cat':
				return this.#sequence(node.children, nextIfEmpty, nextIfConsumed, (index, ...next) =>
					this.#compileEither(node.children[index]!, ...next),
				);
			case 'repeat': {
				const { entry, iteration } = this.#optional(node, nextIfConsumed);
				const entryIfEmpty = nextIfEmpty === nextIfConsumed ? entry : this.#orSkip(node, iteration, nextIfEmpty);
				const required = new Array<RegexpNode>(node.min).fill(node.child);
				return this.#sequence(required, entryIfEmpty, entry, (_, ...next) => this.#iteration(node, ...next));
			}
		}
	}

	/**
	 * Compiles nodes in sequence. Where the two continuations differ, a node that can match nothing is compiled twice: for the case
	 * that a character has been consumed before it, and for the case that none has.
	 */
	#sequence(
		nodes: readonly RegexpNode[],
		nextIfEmpty: number,
		nextIfConsumed: number,
		compile: (index: number, nextIfEmpty: number, nextIfConsumed: number) => number,
	): number {
		let [entryIfEmpty, entryIfConsumed] = [nextIfEmpty, nextIfConsumed];
		for (let index = nodes.length - 1; index >= 0; index--) {
			const next = entryIfConsumed;
			const isSameEntry = entryIfEmpty === next || !isNullable(nodes[index]!);
			if (isSameEntry || index > 0) entryIfConsumed = compile(index, next, next);
			entryIfEmpty = isSameEntry ? entryIfConsumed : compile(index, entryIfEmpty, next);
		}
		return entryIfEmpty;
	}

	/**
	 * Compiles the iterations after the required ones. The result is cached for each `nextIfConsumed`, because the iterations of
	 * nested repetitions would otherwise multiply.
	 */
	#optional(node: Repeat, nextIfConsumed: number): OptionalPart {
		const parts = this.#optionalParts.get(node) ?? new Map<number, OptionalPart>();
		this.#optionalParts.set(node, parts);
		let part = parts.get(nextIfConsumed);
		if (part) return part;
		part = { entry: nextIfConsumed, iteration: FAIL_INSTRUCTION };
		if (node.max === Infinity) {
			const targets: number[] = [];
			const entry = this.#addInstruction({ op: 'choice', targets });
			const iteration = this.#iteration(node, FAIL_INSTRUCTION, entry);
			targets.push(...(node.lazy ? [nextIfConsumed, iteration] : [iteration, nextIfConsumed]));
			part = { entry, iteration };
		} else {
			for (let remaining = node.max - node.min; remaining > 0; remaining--) {
				const iteration = this.#iteration(node, FAIL_INSTRUCTION, part.entry);
				part = { entry: this.#orSkip(node, iteration, nextIfConsumed), iteration };
			}
		}
		parts.set(nextIfConsumed, part);
		return part;
	}

	#orSkip(node: Repeat, iteration: number, next: number): number {
		return this.#choice(node.lazy ? [next, iteration] : [iteration, next]);
	}

	/** Compiles one iteration, which first clears the captures of the previous iteration. */
	#iteration(node: Repeat, nextIfEmpty: number, nextIfConsumed: number): number {
		const start = this.#compileEither(node.child, nextIfEmpty, nextIfConsumed);
		const [firstGroup, endGroup] = node.groups;
		if (firstGroup === endGroup || start === FAIL_INSTRUCTION) return start;
		return this.#addInstruction({ op: 'clear', firstSlot: 2 * firstGroup, endSlot: 2 * endGroup, next: start });
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
