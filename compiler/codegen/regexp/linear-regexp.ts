/** Regular expressions whose matching time is linear in the length of the subject, whatever the subject contains. */
import type { MatchPaths } from './match-paths.ts';
import type { RegexpProgram } from './program.ts';
import type { ReverseAutomaton } from './reverse-automaton.ts';

/** The components of a {@link LinearRegExp}. */
export interface LinearRegExpSource {
	/** Source of the expression for `RegExp`. */
	readonly jsSource: string;
	/** Maximum length of a subject, in UTF-16 units, for which `RegExp` is fast; −1 if it is never fast. */
	readonly maxFastLength: number;
	readonly program: RegexpProgram;
	readonly groupCount: number;
	/** The numbers of the named groups, by name. */
	readonly groupsByName: ReadonlyMap<string, number>;
	readonly automaton: ReverseAutomaton;
	readonly matchPaths: MatchPaths;
}

/**
 * A `RegExp` with the flag `u` that does not backtrack on long subjects. A first pass, from the end of the subject to its
 * beginning, determines which instructions can lead to a match at which positions. A second pass follows the match forward and,
 * where several paths are possible, takes the first that can lead to a match. The flags `g` and `y` work as usual, including in
 * `replace`, `matchAll` and `split`, and all matches in one subject share the first pass.
 */
export class LinearRegExp extends RegExp {
	readonly #source: LinearRegExpSource;
	readonly #automaton: ReverseAutomaton;

	/** `source` is another object when a string method, such as `split`, constructs a copy with additional flags. */
	constructor(source: LinearRegExpSource | LinearRegExp, flags: string) {
		const components = source instanceof LinearRegExp ? source.#source : source;
		super(components.jsSource, flags.includes('u') ? flags : `${flags}u`);
		this.#source = components;
		this.#automaton = components.automaton;
	}

	override test(subject: string): boolean {
		if (subject.length <= this.#source.maxFastLength) return super.test(subject);
		if (this.global || this.sticky) return this.exec(subject) !== null;
		return this.#automaton.test(subject);
	}

	override exec(subject: string): RegExpExecArray | null {
		if (subject.length <= this.#source.maxFastLength) return super.exec(subject);
		if (!this.global && !this.sticky) {
			const start = this.#automaton.find(subject);
			return start === -1 ? null : this.#matchFrom(subject, start);
		}
		const searchStart = this.lastIndex;
		const start = searchStart > subject.length ? -1 : this.#automaton.findNext(subject, searchStart);
		if (start === -1 || (this.sticky && start !== searchStart)) {
			if (start === -1) this.#automaton.forget();
			this.lastIndex = 0;
			return null;
		}
		const match = this.#matchFrom(subject, start);
		this.lastIndex = start + match[0].length;
		return match;
	}

	#matchFrom(subject: string, start: number): RegExpExecArray {
		const { groupCount, groupsByName, program } = this.#source;
		const slots = new Int32Array(2 * groupCount + 2).fill(-1);
		slots[0] = start;
		slots[1] = this.#followPath(program.startInstruction, start, slots);
		const match = [] as unknown as RegExpExecArray;
		for (let slot = 0; slot < slots.length; slot += 2) {
			// As in the results of JavaScript's own `exec`, a group that took no part in the match is undefined.
			match.push(slots[slot + 1]! < 0 ? (undefined as never) : subject.slice(slots[slot], slots[slot + 1]));
		}
		match.index = start;
		match.input = subject;
		if (groupsByName.size > 0) {
			match.groups = Object.create(null) as { [name: string]: string };
			for (const [name, group] of groupsByName) match.groups[name] = match[group]!;
		}
		return match;
	}

	/** Follows a match from its first position and fills `slots` with the positions of groups. Returns the end of the match. */
	#followPath(firstInstruction: number, start: number, slots: Int32Array): number {
		const { automaton, matchPaths } = this.#source;
		let position = start;
		for (let instruction = firstInstruction; ; ) {
			const { nextInstruction, savedSlots, clearedSlots } = matchPaths.pathFrom(instruction, position);
			for (let i = 0; i < savedSlots.length; i++) slots[savedSlots[i]!] = position;
			for (let i = 0; i < clearedSlots.length; i++) slots[clearedSlots[i]!] = -1;
			if (nextInstruction < 0) return position;
			position = automaton.positionAfter(position);
			instruction = nextInstruction;
		}
	}
}
