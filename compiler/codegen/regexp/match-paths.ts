/** The paths through a program that a match takes from one character to the next. */
import type { RegexpInstruction, RegexpProgram } from './program.ts';
import type { ReverseAutomaton } from './reverse-automaton.ts';

/** A path from an instruction to the next instruction that consumes a character, or to the end of the match. */
export interface MatchPath {
	/** The instruction after the consumed character; −1 at the end of the match. */
	readonly next: number;
	/** Capture slots that are set to the position of the character. */
	readonly savedSlots: readonly number[];
	/** Capture slots that are cleared. */
	readonly clearedSlots: readonly number[];
}

/** Maximum number of cached paths. */
const MAX_PATHS = 16_384;

/** Finds the path that a match takes from each position: the first one, in order of priority, that can lead to a match. */
export class MatchPaths {
	readonly #instructions: readonly RegexpInstruction[];
	readonly #automaton: ReverseAutomaton;
	/** Cached paths. The key combines a state of the automaton and an instruction. */
	readonly #paths = new Map<number, MatchPath>();
	/** The generation of the automaton's states for which the cached paths are valid. */
	#generation = 0;

	constructor({ instructions }: RegexpProgram, automaton: ReverseAutomaton) {
		this.#instructions = instructions;
		this.#automaton = automaton;
	}

	/**
	 * Returns the path from an instruction at a position in the subject. The caller ensures that the instruction leads to a match
	 * from there.
	 */
	pathFrom(instruction: number, position: number): MatchPath {
		const state = this.#automaton.stateAt(position);
		if (state < 0) return this.#walk(instruction, position);
		if (this.#generation !== this.#automaton.generation || this.#paths.size >= MAX_PATHS) {
			this.#paths.clear();
			this.#generation = this.#automaton.generation;
		}
		const key = state * this.#instructions.length + instruction;
		let path = this.#paths.get(key);
		if (!path) {
			path = this.#walk(instruction, position);
			this.#paths.set(key, path);
		}
		return path;
	}

	#walk(firstInstruction: number, position: number): MatchPath {
		const isSavedBySlot = new Map<number, boolean>();
		for (let index = firstInstruction; ; ) {
			const instruction = this.#instructions[index]!;
			switch (instruction.op) {
				case 'choice':
					index = this.#automaton.firstThatLeadsOn(instruction.targets, position);
					continue;
				case 'save':
					isSavedBySlot.set(instruction.slot, true);
					break;
				case 'clear':
					for (let slot = instruction.firstSlot; slot < instruction.endSlot; slot++) isSavedBySlot.set(slot, false);
					break;
				case 'assert':
					break;
				default: {
					const slotsWhere = (isSaved: boolean) =>
						[...isSavedBySlot].flatMap(([slot, isSlotSaved]) => (isSlotSaved === isSaved ? [slot] : []));
					const next = instruction.op === 'set' ? instruction.next : -1;
					return { next, savedSlots: slotsWhere(true), clearedSlots: slotsWhere(false) };
				}
			}
			index = instruction.next;
		}
	}
}

/** Returns the maximum number of instructions that a path from one character to the next visits. */
export function maxPathLength({ instructions }: RegexpProgram): number {
	const lengths = new Int32Array(instructions.length);
	for (let first = 0; first < instructions.length; first++) {
		const stack = [first];
		for (let index = stack.at(-1); index !== undefined; index = stack.at(-1)) {
			const instruction = instructions[index]!;
			const targets = nextInstructions(instruction);
			const unmeasured = targets.find(target => lengths[target] === 0);
			if (unmeasured !== undefined) {
				stack.push(unmeasured);
				continue;
			}
			// Choosing among many targets takes time as well, so every eight targets count as one more instruction.
			lengths[index] =
				1 + (targets.length >>> 3) + targets.reduce((longest, target) => Math.max(longest, lengths[target]!), 0);
			stack.pop();
		}
	}
	return lengths.reduce((longest, length) => Math.max(longest, length), 0);
}

/**
 * Returns the instructions that can follow an instruction without consuming a character. Following them always ends, because every
 * iteration of a repetition consumes a character.
 */
function nextInstructions(instruction: RegexpInstruction): readonly number[] {
	if (instruction.op === 'choice') return instruction.targets;
	return instruction.op === 'set' || !('next' in instruction) ? [] : [instruction.next];
}
