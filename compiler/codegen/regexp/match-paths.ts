/** The paths through a program that a match takes from one character to the next. */
import type { RegexpInstruction, RegexpProgram } from './program.ts';
import type { ReverseAutomaton } from './reverse-automaton.ts';

/** A path from an instruction to the next instruction that consumes a character, or to the end of the match. */
export interface MatchPath {
	/** The instruction after the consumed character; −1 at the end of the match. */
	readonly nextInstruction: number;
	/** Capture slots that are set to the position of the character. */
	readonly savedSlots: readonly number[];
	/** Capture slots that are cleared. */
	readonly clearedSlots: readonly number[];
}

const MAX_CACHED_PATHS = 16_384;

/** Finds the path that a match takes from each position: the first one, in order of priority, that can lead to a match. */
export class MatchPaths {
	readonly #instructions: readonly RegexpInstruction[];
	readonly #automaton: ReverseAutomaton;
	/** Cached paths. The key combines a state of the automaton and an instruction. */
	readonly #pathsByKey = new Map<number, MatchPath>();
	/** The value of `generation` in the automaton for which the cached paths are valid. */
	#automatonGeneration = 0;

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
		if (this.#automatonGeneration !== this.#automaton.generation || this.#pathsByKey.size >= MAX_CACHED_PATHS) {
			this.#pathsByKey.clear();
			this.#automatonGeneration = this.#automaton.generation;
		}
		const key = state * this.#instructions.length + instruction;
		let path = this.#pathsByKey.get(key);
		if (!path) {
			path = this.#walk(instruction, position);
			this.#pathsByKey.set(key, path);
		}
		return path;
	}

	#walk(firstInstruction: number, position: number): MatchPath {
		const isSavedBySlot = new Map<number, boolean>();
		for (let index = firstInstruction; ; ) {
			const instruction = this.#instructions[index]!;
			switch (instruction.op) {
				case 'choice':
					index = this.#automaton.firstLeadingToMatch(instruction.targets, position);
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
					const nextInstruction = instruction.op === 'set' ? instruction.next : -1;
					return { nextInstruction, savedSlots: slotsWhere(true), clearedSlots: slotsWhere(false) };
				}
			}
			index = instruction.next;
		}
	}
}

/** Returns the maximum number of instructions that a path from one character to the next visits. */
export function maxPathLength({ instructions }: RegexpProgram): number {
	const pathLengths = new Int32Array(instructions.length);
	for (let firstInstruction = 0; firstInstruction < instructions.length; firstInstruction++) {
		const stack = [firstInstruction];
		for (let index = stack.at(-1); index !== undefined; index = stack.at(-1)) {
			const instruction = instructions[index]!;
			const targets = nextInstructions(instruction);
			const unmeasuredTarget = targets.find(target => pathLengths[target] === 0);
			if (unmeasuredTarget !== undefined) {
				stack.push(unmeasuredTarget);
				continue;
			}
			// Choosing among many targets takes time as well, so every eight targets add one to the length.
			pathLengths[index] =
				1 + (targets.length >>> 3) + targets.reduce((longest, target) => Math.max(longest, pathLengths[target]!), 0);
			stack.pop();
		}
	}
	return pathLengths.reduce((longest, length) => Math.max(longest, length), 0);
}

/**
 * Returns the instructions that can follow an instruction without consuming a character. Following them always ends, because every
 * iteration of a repetition consumes a character.
 */
function nextInstructions(instruction: RegexpInstruction): readonly number[] {
	if (instruction.op === 'choice') return instruction.targets;
	return instruction.op === 'set' || !('next' in instruction) ? [] : [instruction.next];
}
