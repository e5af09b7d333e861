/**
 * Follows a text that arrives in pieces, to find the first position at which a match could begin that needs more of the text.
 * Everything before that position can be searched without waiting.
 */
import { Alphabet } from './alphabet.ts';
import { compileProgram, type RegexpProgram } from './program.ts';
import { CONFIGURED_REGEXP_BOUNDS } from './regexp-bounds.ts';
import type { ParsedRegexp, RegexpAssertion } from './regexp-node.ts';

/** Assertions that depend on the character after a position, which may not have arrived. */
const LOOKING_AHEAD: ReadonlySet<RegexpAssertion> = new Set([
	'text-end',
	'line-end',
	'word-boundary',
	'no-word-boundary',
]);

/** What can follow an instruction without consuming a character, if all assertions hold. */
interface Closure {
	/** The instructions that consume the next character. */
	readonly consuming: readonly number[];
	/** True if the outcome depends on whether an assertion about the next character holds. */
	readonly looksAhead: boolean;
}

/** The expression in the form in which it is followed; shared by all texts. */
export class FollowedRegexp {
	readonly #program: RegexpProgram;
	readonly #closures: (Closure | undefined)[] = [];
	readonly alphabet: Alphabet;
	/** By class of characters: what consumes a character with which a match can begin. */
	readonly beginnings: readonly (readonly number[])[];

	constructor(parsed: ParsedRegexp) {
		this.#program = compileProgram(parsed, CONFIGURED_REGEXP_BOUNDS);
		this.alphabet = new Alphabet(this.#program.sets);
		const first = this.closureOf(this.#program.start).consuming;
		this.beginnings = Array.from({ length: this.alphabet.size }, (_, of) => first.filter(one => this.takes(one, of)));
	}

	get size(): number {
		return this.#program.instructions.length;
	}

	/** Reports whether an instruction consumes characters of a class. */
	takes(instruction: number, ofCharacter: number): boolean {
		const one = this.#program.instructions[instruction]!;
		return one.op === 'set' && this.alphabet.members[one.set]![ofCharacter] === 1;
	}

	/** Returns what can follow after an instruction has consumed a character. */
	after(instruction: number): Closure {
		const one = this.#program.instructions[instruction]!;
		return this.closureOf(one.op === 'set' ? one.next : instruction);
	}

	closureOf(instruction: number): Closure {
		const known = this.#closures[instruction];
		if (known) return known;
		const consuming: number[] = [];
		let looksAhead = false;
		const seen = new Set([instruction]);
		for (const at of seen) {
			const one = this.#program.instructions[at]!;
			if (one.op === 'set') consuming.push(at);
			else if (one.op === 'choice') for (const target of one.targets) seen.add(target);
			else if (one.op === 'save' || one.op === 'clear' || one.op === 'assert') {
				if (one.op === 'assert' && LOOKING_AHEAD.has(one.assertion)) looksAhead = true;
				seen.add(one.next);
			}
		}
		const closure = { consuming, looksAhead };
		this.#closures[instruction] = closure;
		return closure;
	}
}

/** Follows one text. Positions count UTF-16 units from the beginning of the text. */
export class UnfinishedMatches {
	readonly #regexp: FollowedRegexp;
	/** Maximum number of units that a match may have. */
	readonly #longest: number;
	/** Instructions that consume the next character, in ascending order of `#starts`. */
	#active: number[] = [];
	/** For each of them, the first position at which a match that has reached it begins. */
	#starts: number[] = [];
	#nextActive: number[] = [];
	#nextStarts: number[] = [];
	/** For each instruction, the position at which it was last added. */
	readonly #added: Float64Array;
	#position = 0;
	/** The result of the last {@link read}. */
	#unfinished = 0;

	constructor(regexp: FollowedRegexp, longest: number) {
		this.#regexp = regexp;
		this.#longest = longest;
		this.#added = new Float64Array(regexp.size).fill(-1);
	}

	/**
	 * Reads on, from index `from` of `text` to its end. Returns the first position at which a match could begin that needs more
	 * text, or the position of the end. It is never more than the maximum length of a match before the end. It may be lower than
	 * necessary, because assertions are assumed to hold.
	 */
	read(text: string, from: number): number {
		let at = from;
		if (from === text.length) return this.#unfinished;
		const skipped = text.length - from - this.#longest;
		if (skipped > 0) {
			// Matches that began before that cannot be unfinished any more.
			at = from + skipped;
			if (isInsidePair(text, at)) at++;
			this.#active.length = 0;
			this.#starts.length = 0;
		}
		const base = this.#position - from;
		let first = Infinity;
		while (at < text.length) {
			const code = text.codePointAt(at)!;
			const end = at + (code > 0xffff ? 2 : 1);
			first = this.#step(this.#regexp.alphabet.classOf(code), base + at, base + end);
			at = end;
		}
		this.#position = base + text.length;
		this.#unfinished = Math.min(first, this.#position);
		return this.#unfinished;
	}

	/** Consumes a character. Returns the first position from which a match is unfinished. */
	#step(ofCharacter: number, position: number, end: number): number {
		const regexp = this.#regexp;
		const active = this.#nextActive;
		const starts = this.#nextStarts;
		let first = Infinity;
		const follow = (instruction: number, start: number): void => {
			const { consuming, looksAhead } = regexp.after(instruction);
			if (looksAhead && start < first) first = start;
			for (let i = 0; i < consuming.length; i++) {
				const next = consuming[i]!;
				if (this.#added[next] === end) continue;
				this.#added[next] = end;
				active.push(next);
				starts.push(start);
			}
		};
		for (let i = 0; i < this.#active.length; i++) {
			const instruction = this.#active[i]!;
			// Longer matches are not waited for.
			if (end - this.#starts[i]! > this.#longest) continue;
			if (regexp.takes(instruction, ofCharacter)) follow(instruction, this.#starts[i]!);
		}
		const beginnings = regexp.beginnings[ofCharacter]!;
		for (let i = 0; i < beginnings.length; i++) follow(beginnings[i]!, position);
		this.#nextActive = this.#active;
		this.#nextStarts = this.#starts;
		this.#nextActive.length = 0;
		this.#nextStarts.length = 0;
		this.#active = active;
		this.#starts = starts;
		return Math.min(first, starts[0] ?? Infinity);
	}
}

/** Reports whether an index is between the two halves of a surrogate pair. */
function isInsidePair(text: string, index: number): boolean {
	return (text.charCodeAt(index) & 0xfc00) === 0xdc00 && (text.charCodeAt(index - 1) & 0xfc00) === 0xd800;
}
