/**
 * Finds the first position at which an unfinished match could begin while a text arrives in pieces. A match is unfinished if it
 * needs more of the text. Everything before that position can be searched without waiting.
 */
import { Alphabet } from './alphabet.ts';
import { compileProgram, type RegexpProgram } from './program.ts';
import { CONFIGURED_REGEXP_BOUNDS } from './regexp-bounds.ts';
import type { ParsedRegexp, RegexpAssertion } from './regexp-node.ts';

/** Assertions that depend on the character after a position, which may not have arrived yet. */
const LOOK_AHEAD_ASSERTIONS: ReadonlySet<RegexpAssertion> = new Set([
	'text-end',
	'line-end',
	'word-boundary',
	'no-word-boundary',
]);

/** What an instruction can lead to without consuming a character, assuming that all assertions hold. */
interface Closure {
	/** The instructions that consume the next character. */
	readonly consumers: readonly number[];
	/** True if an assertion depends on the next character. */
	readonly looksAhead: boolean;
}

/** A regular expression that is prepared for {@link UnfinishedMatches}. The object can be used for any number of texts. */
export class FollowedRegexp {
	readonly #program: RegexpProgram;
	readonly #closureByInstruction: (Closure | undefined)[] = [];
	readonly alphabet: Alphabet;
	/** For each class of characters, the instructions that can begin a match by consuming such a character. */
	readonly firstConsumers: readonly (readonly number[])[];

	constructor(parsed: ParsedRegexp) {
		this.#program = compileProgram(parsed, CONFIGURED_REGEXP_BOUNDS);
		this.alphabet = new Alphabet(this.#program.sets);
		const initialConsumers = this.closureOf(this.#program.startInstruction).consumers;
		this.firstConsumers = Array.from({ length: this.alphabet.classCount }, (_, characterClass) =>
			initialConsumers.filter(candidate => this.consumesClass(candidate, characterClass)),
		);
	}

	get instructionCount(): number {
		return this.#program.instructions.length;
	}

	consumesClass(instruction: number, characterClass: number): boolean {
		const compiledInstruction = this.#program.instructions[instruction]!;
		return compiledInstruction.op === 'set' && this.alphabet.classFlags[compiledInstruction.set]![characterClass] === 1;
	}

	/** Returns the closure of the instruction that runs after `instruction` has consumed a character. */
	closureAfter(instruction: number): Closure {
		const compiledInstruction = this.#program.instructions[instruction]!;
		return this.closureOf(compiledInstruction.op === 'set' ? compiledInstruction.next : instruction);
	}

	closureOf(instruction: number): Closure {
		const cachedClosure = this.#closureByInstruction[instruction];
		if (cachedClosure) return cachedClosure;
		const consumers: number[] = [];
		let looksAhead = false;
		const reachable = new Set([instruction]);
		for (const index of reachable) {
			const compiledInstruction = this.#program.instructions[index]!;
			if (compiledInstruction.op === 'set') consumers.push(index);
			else if (compiledInstruction.op === 'choice')
				for (const target of compiledInstruction.targets) reachable.add(target);
			else if (
				compiledInstruction.op === 'save' ||
				compiledInstruction.op === 'clear' ||
				compiledInstruction.op === 'assert'
			) {
				if (compiledInstruction.op === 'assert' && LOOK_AHEAD_ASSERTIONS.has(compiledInstruction.assertion))
					looksAhead = true;
				reachable.add(compiledInstruction.next);
			}
		}
		const closure = { consumers, looksAhead };
		this.#closureByInstruction[instruction] = closure;
		return closure;
	}
}

/** Follows one text as it arrives. Positions count UTF-16 units from the beginning of the text. */
export class UnfinishedMatches {
	readonly #regexp: FollowedRegexp;
	/** Maximum number of units that a match may have. */
	readonly #maxMatchLength: number;
	/** Instructions that can consume the next character, in ascending order of `#activeStarts`. */
	#activeInstructions: number[] = [];
	/** For each instruction in `#activeInstructions`, the first position at which a match that has reached it began. */
	#activeStarts: number[] = [];
	#nextActive: number[] = [];
	#nextActiveStarts: number[] = [];
	/** For each instruction, the position at which it was last added to `#activeInstructions`. */
	readonly #addedAtPosition: Float64Array;
	#position = 0;
	/** The result of the last {@link read}. */
	#unfinishedStart = 0;

	constructor(regexp: FollowedRegexp, maxMatchLength: number) {
		this.#regexp = regexp;
		this.#maxMatchLength = maxMatchLength;
		this.#addedAtPosition = new Float64Array(regexp.instructionCount).fill(-1);
	}

	/**
	 * Continues with `text`, from index `start` to its end. Returns the first position at which an unfinished match could begin; if
	 * there is none, the position of the text's end. The result is never further from the end than the maximum length of a match.
	 * It may be lower than necessary, because assertions are assumed to hold.
	 */
	read(text: string, start: number): number {
		let index = start;
		if (start === text.length) return this.#unfinishedStart;
		const skippedUnits = text.length - start - this.#maxMatchLength;
		if (skippedUnits > 0) {
			// No unfinished match can begin before this position, because it would be too long.
			index = start + skippedUnits;
			if (isInsidePair(text, index)) index++;
			this.#activeInstructions.length = 0;
			this.#activeStarts.length = 0;
		}
		const positionOffset = this.#position - start;
		let firstUnfinishedStart = Infinity;
		while (index < text.length) {
			const code = text.codePointAt(index)!;
			const characterEnd = index + (code > 0xffff ? 2 : 1);
			firstUnfinishedStart = this.#step(
				this.#regexp.alphabet.classOf(code),
				positionOffset + index,
				positionOffset + characterEnd,
			);
			index = characterEnd;
		}
		this.#position = positionOffset + text.length;
		this.#unfinishedStart = Math.min(firstUnfinishedStart, this.#position);
		return this.#unfinishedStart;
	}

	/** Consumes a character. Returns the first position at which an unfinished match begins; Infinity if there is none. */
	#step(characterClass: number, position: number, characterEnd: number): number {
		const regexp = this.#regexp;
		const nextActive = this.#nextActive;
		const nextStarts = this.#nextActiveStarts;
		let firstUnfinishedStart = Infinity;
		const followInstruction = (instruction: number, start: number): void => {
			const { consumers, looksAhead } = regexp.closureAfter(instruction);
			if (looksAhead && start < firstUnfinishedStart) firstUnfinishedStart = start;
			for (let i = 0; i < consumers.length; i++) {
				const next = consumers[i]!;
				if (this.#addedAtPosition[next] === characterEnd) continue;
				this.#addedAtPosition[next] = characterEnd;
				nextActive.push(next);
				nextStarts.push(start);
			}
		};
		for (let i = 0; i < this.#activeInstructions.length; i++) {
			const instruction = this.#activeInstructions[i]!;
			// Matches beyond the maximum length are given up.
			if (characterEnd - this.#activeStarts[i]! > this.#maxMatchLength) continue;
			if (regexp.consumesClass(instruction, characterClass)) followInstruction(instruction, this.#activeStarts[i]!);
		}
		const firstConsumers = regexp.firstConsumers[characterClass]!;
		for (let i = 0; i < firstConsumers.length; i++) followInstruction(firstConsumers[i]!, position);
		this.#nextActive = this.#activeInstructions;
		this.#nextActiveStarts = this.#activeStarts;
		this.#nextActive.length = 0;
		this.#nextActiveStarts.length = 0;
		this.#activeInstructions = nextActive;
		this.#activeStarts = nextStarts;
		return Math.min(firstUnfinishedStart, nextStarts[0] ?? Infinity);
	}
}

/** Reports whether an index is between the two halves of a surrogate pair. */
function isInsidePair(text: string, index: number): boolean {
	return (text.charCodeAt(index) & 0xfc00) === 0xdc00 && (text.charCodeAt(index - 1) & 0xfc00) === 0xd800;
}
