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
	readonly startInstruction: number;
	/** The character sets that instructions refer to by index. */
	readonly sets: readonly CharacterSet[];
}

/** The instruction that never succeeds. */
const FAIL_INSTRUCTION = 0;
/** The instruction that ends a match. */
export const MATCH_INSTRUCTION = 1;
/**
 * Maximum number of nodes that are visited per permitted instruction. It is greater than 1, because some nodes produce no
 * instruction.
 */
const VISITS_PER_INSTRUCTION = 5;

/** Compiles an expression to a program. Throws RegexpTooLarge. */
export function compileProgram({ root }: ParsedRegexp, bounds: RegexpBounds): RegexpProgram {
	const builder = new ProgramBuilder(bounds);
	const startInstruction = builder.compileNode(root, MATCH_INSTRUCTION);
	return { instructions: builder.instructions, startInstruction, sets: builder.sets };
}

type RepeatNode = Extract<RegexpNode, { kind: 'repeat' }>;

/**
 * The compiled optional iterations of a repetition. `entry` is the instruction that chooses whether to iterate, and `iteration`
 * the instruction at which an iteration begins.
 */
interface OptionalPart {
	readonly entry: number;
	readonly iteration: number;
}

/**
 * Builds a program backward: every method receives the next instruction and returns the instruction at which its own part begins.
 */
class ProgramBuilder {
	readonly instructions: RegexpInstruction[] = [{ op: 'fail' }, { op: 'match' }];
	readonly sets: CharacterSet[] = [];
	readonly #setNumbers = new Map<CharacterSet | string, number>();
	readonly #optionalParts = new Map<RepeatNode, Map<number, OptionalPart>>();
	readonly #bounds: RegexpBounds;
	#visitCount = 0;

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

	#addChoice(targets: readonly number[]): number {
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
		if (++this.#visitCount > VISITS_PER_INSTRUCTION * this.#bounds.maxInstructions) throw new RegexpTooLarge();
		switch (node.kind) {
			case 'assert':
				return nextIfEmpty === FAIL_INSTRUCTION
					? FAIL_INSTRUCTION
					: this.#addInstruction({ op: 'assert', assertion: node.assertion, next: nextIfEmpty });
			case 'set':
				return this.#addInstruction({ op: 'set', set: this.#setNumberOf(node.ranges), next: nextIfConsumed });
			case 'group': {
				const saveEnd = (next: number): number =>
					next === FAIL_INSTRUCTION
						? FAIL_INSTRUCTION
						: this.#addInstruction({ op: 'save', slot: 2 * node.index + 1, next });
				const saveEndIfConsumed = saveEnd(nextIfConsumed);
				const groupEntry = this.#compileEither(
					node.child,
					nextIfEmpty === nextIfConsumed ? saveEndIfConsumed : saveEnd(nextIfEmpty),
					saveEndIfConsumed,
				);
				return groupEntry === FAIL_INSTRUCTION
					? FAIL_INSTRUCTION
					: this.#addInstruction({ op: 'save', slot: 2 * node.index, next: groupEntry });
			}
			case 'alt':
				return this.#addChoice(node.children.map(child => this.#compileEither(child, nextIfEmpty, nextIfConsumed)));
			case 'cat':
				return this.#compileSequence(node.children, nextIfEmpty, nextIfConsumed, (index, ...next) =>
					this.#compileEither(node.children[index]!, ...next),
				);
			case 'repeat': {
				const { entry, iteration } = this.#compileOptional(node, nextIfConsumed);
				const entryIfEmpty = nextIfEmpty === nextIfConsumed ? entry : this.#addSkipChoice(node, iteration, nextIfEmpty);
				const requiredNodes = new Array<RegexpNode>(node.min).fill(node.child);
				return this.#compileSequence(requiredNodes, entryIfEmpty, entry, (_, ...next) =>
					this.#compileIteration(node, ...next),
				);
			}
		}
	}

	/**
	 * Compiles nodes in sequence. Where the two continuations differ, a node that can match nothing is compiled twice: for the case
	 * that a character has been consumed before it, and for the case that none has.
	 */
	#compileSequence(
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
	 * Compiles the optional iterations, which follow the required ones. The result is cached for each `nextIfConsumed`. Otherwise,
	 * every nested repetition would be compiled several times, and its iterations again several times each.
	 */
	#compileOptional(node: RepeatNode, nextIfConsumed: number): OptionalPart {
		const partsByNext = this.#optionalParts.get(node) ?? new Map<number, OptionalPart>();
		this.#optionalParts.set(node, partsByNext);
		let optionalPart = partsByNext.get(nextIfConsumed);
		if (optionalPart) return optionalPart;
		optionalPart = { entry: nextIfConsumed, iteration: FAIL_INSTRUCTION };
		if (node.max === Infinity) {
			const targets: number[] = [];
			const entry = this.#addInstruction({ op: 'choice', targets });
			const iteration = this.#compileIteration(node, FAIL_INSTRUCTION, entry);
			targets.push(...(node.lazy ? [nextIfConsumed, iteration] : [iteration, nextIfConsumed]));
			optionalPart = { entry, iteration };
		} else {
			for (let remaining = node.max - node.min; remaining > 0; remaining--) {
				const iteration = this.#compileIteration(node, FAIL_INSTRUCTION, optionalPart.entry);
				optionalPart = { entry: this.#addSkipChoice(node, iteration, nextIfConsumed), iteration };
			}
		}
		partsByNext.set(nextIfConsumed, optionalPart);
		return optionalPart;
	}

	#addSkipChoice(node: RepeatNode, iteration: number, next: number): number {
		return this.#addChoice(node.lazy ? [next, iteration] : [iteration, next]);
	}

	/** Compiles one iteration, which first clears the captures of the previous iteration. */
	#compileIteration(node: RepeatNode, nextIfEmpty: number, nextIfConsumed: number): number {
		const iterationStart = this.#compileEither(node.child, nextIfEmpty, nextIfConsumed);
		const [firstGroup, endGroup] = node.groups;
		if (firstGroup === endGroup || iterationStart === FAIL_INSTRUCTION) return iterationStart;
		return this.#addInstruction({
			op: 'clear',
			firstSlot: 2 * firstGroup,
			endSlot: 2 * endGroup,
			next: iterationStart,
		});
	}

	/** Returns the index of a set. Equal sets share one index. */
	#setNumberOf(ranges: CharacterSet): number {
		let setNumber = this.#setNumbers.get(ranges);
		if (setNumber !== undefined) return setNumber;
		const rangesText = ranges.join();
		setNumber = this.#setNumbers.get(rangesText) ?? this.sets.push(ranges) - 1;
		this.#setNumbers.set(ranges, setNumber).set(rangesText, setNumber);
		return setNumber;
	}
}
