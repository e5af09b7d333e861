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

/** What can follow after an instruction without consuming a character, assuming that all assertions hold. */
interface Closure {
	/** The instructions that consume the next character. */
	readonly consumers: readonly number[];
	/** True if an assertion depends on the next character. */
	readonly looksAhead: boolean;
}

/** A regular expression that is prepared for {@link UnfinishedMatches}. The object can be used for any number of texts. */
export class FollowedRegexp {
	readonly #program: RegexpProgram;
	readonly #closures: (Closure | undefined)[] = [];
	readonly alphabet: Alphabet;
	/** For each class of characters, the instructions that can begin a match by consuming such a character. */
	readonly firstConsumers: readonly (readonly number[])[];

	constructor(parsed: ParsedRegexp) {
		this.#program = compileProgram(parsed, CONFIGURED_REGEXP_BOUNDS);
		this.alphabet = new Alphabet(this.#program.sets);
		const initialConsumers = this.closureOf(this.#program.start).consumers;
		this.firstConsumers = Array.from({ length: this.alphabet.size }, (_, characterClass) =>
			initialConsumers.filter(candidate => this.consumesClass(candidate, characterClass)),
		);
	}

	get size(): number {
		return this.#program.instructions.length;
	}

	/** Reports whether an instruction consumes characters of a class. */
	consumesClass(instruction: number, characterClass: number): boolean {
		const compiled = this.#program.instructions[instruction]!;
		return compiled.op === 'set' && this.alphabet.classFlags[compiled.set]![characterClass] === 1;
	}

	/** Returns the closure for the position after an instruction has consumed a character. */
	closureAfter(instruction: number): Closure {
		const compiled = this.#program.instructions[instruction]!;
		return this.closureOf(compiled.op === 'set' ? compiled.next : instruction);
	}

	closureOf(instruction: number): Closure {
		const cached = this.#closures[instruction];
		if (cached) return cached;
		const consumers: number[] = [];
		let looksAhead = false;
		const reachable = new Set([instruction]);
		for (const index of reachable) {
			const compiled = this.#program.instructions[index]!;
			if (compiled.op === 'set') consumers.push(index);
			else if (compiled.op === 'choice') for (const target of compiled.targets) reachable.add(target);
			else if (compiled.op === 'save' || compiled.op === 'clear' || compiled.op === 'assert') {
				if (compiled.op === 'assert' && LOOK_AHEAD_ASSERTIONS.has(compiled.assertion)) looksAhead = true;
				reachable.add(compiled.next);
			}
		}
		const closure = { consumers, looksAhead };
		this.#closures[instruction] = closure;
		return closure;
	}
}

/** Follows one text as it arrives. Positions count UTF-16 units from the beginning of the text. */
export class UnfinishedMatches {
	readonly #regexp: FollowedRegexp;
	/** Maximum number of units that a match may have. */
	readonly #maxLength: number;
	/** Instructions that can consume the next character, in ascending order of `#activeStarts`. */
	#active: number[] = [];
	/** For each instruction in `#active`, the first position from which a match has reached the instruction. */
	#activeStarts: number[] = [];
	#nextActive: number[] = [];
	#nextStarts: number[] = [];
	/** For each instruction, the position at which it was last added to `#active`. */
	readonly #addedAt: Float64Array;
	#position = 0;
	/** The result of the last {@link read}. */
	#unfinished = 0;

	constructor(regexp: FollowedRegexp, maxLength: number) {
		this.#regexp = regexp;
		this.#maxLength = maxLength;
		this.#addedAt = new Float64Array(regexp.size).fill(-1);
	}

	/**
	 * Continues with `text`, from index `start` to its end. Returns the first position at which an unfinished match could begin; if
	 * there is none, the position of the text's end. The result is never further from the end than the maximum length of a match.
	 * It may be lower than necessary, because assertions are assumed to hold.
	 */
	read(text: string, start: number): number {
		let index = start;
		if (start === text.length) return this.#unfinished;
		const skippedUnits = text.length - start - this.#maxLength;
		if (skippedUnits > 0) {
			// No unfinished match can begin before this position, because it would be too long.
			index = start + skippedUnits;
			if (isInsidePair(text, index)) index++;
			this.#active.length = 0;
			this.#activeStarts.length = 0;
		}
		const positionOffset = this.#position - start;
		let firstUnfinished = Infinity;
		while (index < text.length) {
			const code = text.codePointAt(index)!;
			const end = index + (code > 0xffff ? 2 : 1);
			firstUnfinished = this.#step(this.#regexp.alphabet.classOf(code), positionOffset + index, positionOffset + end);
			index = end;
		}
		this.#position = positionOffset + text.length;
		this.#unfinished = Math.min(firstUnfinished, this.#position);
		return this.#unfinished;
	}

	/** Consumes a character. Returns the first position at which an unfinished match begins; Infinity if there is none. */
	#step(characterClass: number, position: number, end: number): number {
		const regexp = this.#regexp;
		const active = this.#nextActive;
		const starts = this.#nextStarts;
		let firstUnfinished = Infinity;
		const follow = (instruction: number, start: number): void => {
			const { consumers, looksAhead } = regexp.closureAfter(instruction);
			if (looksAhead && start < firstUnfinished) firstUnfinished = start;
			for (let i = 0; i < consumers.length; i++) {
				const next = consumers[i]!;
				if (this.#addedAt[next] === end) continue;
				this.#addedAt[next] = end;
				active.push(next);
				starts.push(start);
			}
		};
		for (let i = 0; i < this.#active.length; i++) {
			const instruction = this.#active[i]!;
			// Matches beyond the maximum length are given up.
			if (end - this.#activeStarts[i]! > this.#maxLength) continue;
			if (regexp.consumesClass(instruction, characterClass)) follow(instruction, this.#activeStarts[i]!);
		}
		const firstConsumers = regexp.firstConsumers[characterClass]!;
		for (let i = 0; i < firstConsumers.length; i++) follow(firstConsumers[i]!, position);
		this.#nextActive = this.#active;
		this.#nextStarts = this.#activeStarts;
		this.#nextActive.length = 0;
		this.#nextStarts.length = 0;
		this.#active = active;
		this.#activeStarts = starts;
		return Math.min(firstUnfinished, starts[0] ?? Infinity);
	}
}

/** Reports whether an index is between the two halves of a surrogate pair. */
function isInsidePair(text: string, index: number): boolean {
	return (text.charCodeAt(index) & 0xfc00) === 0xdc00 && (text.charCodeAt(index - 1) & 0xfc00) === 0xd800;
}
