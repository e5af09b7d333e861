/**
 * Runs a program over a subject from its end to its beginning, to determine which of the program's nodes can lead to a match from
 * each position. Each distinct set of such nodes is a state of an automaton, which is built as subjects need it. A character
 * therefore usually costs one lookup.
 */
import type { RegexpProgram } from './program.ts';
import { CONTEXT_COUNT, type GraphEdges, NO_CONTEXT, ReverseProgram } from './reverse-program.ts';

/** Maximum number of states that an automaton caches by default. */
const MAX_STATES = 2048;
/** Maximum number of cached states of an automaton that {@link ReverseAutomaton.complete} has completed. */
const MAX_COMPLETE = 16_384;
/** Maximum number of entries in the transition table. */
const MAX_TABLE = 1 << 20;
/** Maximum number of positions for which memory is kept between subjects. */
const KEPT_POSITIONS = 65_536;
/** Marks a position inside a surrogate pair, which has no state. */
const INSIDE = 0x7fffffff;

/** Flags of a state. `STARTS`: a match can start here. `DEAD`: no match can start here or at any earlier position. */
const STARTS = 1;
const DEAD = 2;

/** Determines the positions at which a program can match, for one subject at a time. */
export class ReverseAutomaton {
	readonly #program: ReverseProgram;
	/**
	 * Number of transitions per state: one for each class of characters or, if an assertion looks back, for each class and
	 * preceding context.
	 */
	readonly #width: number;
	#maxStates: number;
	/** Nodes of each state, ascending. */
	#states: Int32Array[] = [];
	#flags = new Uint8Array(64);
	readonly #byHash = new Map<number, number[]>();
	/** The number of the next state plus 1, by state and transition; 0 if not computed yet. */
	#table: Int32Array;
	/** States at the end of a subject, by the context before it. */
	readonly #ends: (number | undefined)[] = [];
	/**
	 * States that are not cached, as bit sets that are valid for one subject only. Their numbers are negative, beginning with -1.
	 */
	#rows = new Uint32Array(0);
	#rowCount = 0;
	/** The nodes of the state being made, as bits. */
	readonly #marks: Uint32Array;
	/** The nodes of the state being made, in the order in which they were found. */
	readonly #marked: Int32Array;
	#count = 0;
	/** The states at the positions of the last subject, from {@link #floor} on. */
	#positions = new Int32Array(0);
	#floor = 0;
	/** The subject of the last {@link findNext}. */
	#subject: string | undefined = undefined;
	/** The position from which the last {@link findNext} searched. */
	#from = 0;
	/** Incremented whenever all states are discarded. */
	generation = 0;

	/** Number of nodes. A character can take time proportional to it, unless {@link complete} has succeeded. */
	get size(): number {
		return this.#program.size;
	}

	constructor(program: RegexpProgram) {
		this.#program = new ReverseProgram(program);
		const { alphabet, looksBack, size } = this.#program;
		this.#width = alphabet.size * (looksBack ? CONTEXT_COUNT : 1);
		this.#maxStates = Math.min(MAX_STATES, Math.floor(MAX_TABLE / this.#width));
		this.#table = new Int32Array(16 * this.#width);
		this.#marks = new Uint32Array((size + 31) >>> 5);
		this.#marked = new Int32Array(size);
	}

	/** Reports whether a subject has a match. */
	test(subject: string): boolean {
		return this.#scan(subject, 0, true) !== -1;
	}

	/** Returns the first position of a match, or -1. */
	find(subject: string): number {
		return this.#scan(subject, 0, false);
	}

	/**
	 * Returns the first position of a match from `from` on, or -1. Further calls with the same subject do not scan it again.
	 */
	findNext(subject: string, from: number): number {
		if (subject !== this.#subject || from < this.#from) {
			this.#scan(subject, from, false);
			this.#subject = subject;
			this.#from = from;
		}
		for (let at = Math.max(from, this.#floor); at <= subject.length; at++) {
			const state = this.#positions[at]!;
			if (state !== INSIDE && this.#isStart(state)) return at;
		}
		return -1;
	}

	/** Forgets the subject of {@link findNext}. */
	forget(): void {
		this.#subject = undefined;
		if (this.#positions.length > KEPT_POSITIONS) this.#positions = new Int32Array(0);
	}

	/** Returns the state at a position of the last subject; negative if it is not cached. */
	stateAt(position: number): number {
		return this.#positions[position]!;
	}

	/**
	 * Returns the first of some instructions that can lead to a match from a position of the last subject. At least one of them
	 * must
	 * be able to.
	 */
	firstThatLeadsOn(instructions: readonly number[], position: number): number {
		const { nodeOf } = this.#program;
		const state = this.#positions[position]!;
		const last = instructions.length - 1;
		for (let at = 0; at < last; at++) {
			const node = nodeOf[instructions[at]!]!;
			if (state < 0 ? this.#rowHas(~state, node) : includes(this.#states[state]!, node)) return instructions[at]!;
		}
		return instructions[last]!;
	}

	/** Returns the position after the character at a position of the last subject. */
	after(position: number): number {
		return this.#positions[position + 1] === INSIDE ? position + 2 : position + 1;
	}

	#scan(subject: string, from: number, any: boolean): number {
		this.#begin(subject.length);
		const { alphabet, contexts, looksBack } = this.#program;
		const { latin1 } = alphabet;
		const positions = this.#positions;
		const width = this.#width;
		let table = this.#table;
		let at = subject.length;
		let found = -1;
		let state = this.#endState(looksBack ? this.#contextBefore(subject, at) : NO_CONTEXT);
		for (;;) {
			positions[at] = state;
			const flags = state < 0 ? (this.#isStart(state) ? STARTS : 0) : this.#flags[state]!;
			if ((flags & STARTS) !== 0) {
				found = at;
				if (any) break;
			} else if ((flags & DEAD) !== 0) break;
			if (at <= from) break;
			const unit = subject.charCodeAt(--at);
			let ofCharacter: number;
			if (unit < 256) ofCharacter = latin1[unit]!;
			else {
				const code = codeBefore(subject, at + 1);
				if (code > 0xffff) positions[at--] = INSIDE;
				ofCharacter = alphabet.classOf(code);
			}
			const before = looksBack ? this.#contextBefore(subject, at) : NO_CONTEXT;
			const transition = looksBack ? ofCharacter * CONTEXT_COUNT + before : ofCharacter;
			const known = state < 0 ? 0 : table[state * width + transition]!;
			if (known > 0) state = known - 1;
			else {
				const next = this.#step(state, ofCharacter, before, contexts[ofCharacter]!);
				table = this.#table;
				if (state >= 0 && next >= 0) table[state * width + transition] = next + 1;
				state = next;
			}
		}
		this.#floor = at;
		return found;
	}

	/**
	 * Computes all states in advance, so that every character costs a single lookup. Returns false if there are too many to
	 * cache, or
	 * if it takes more than `maxSteps`.
	 */
	complete(maxSteps: number): boolean {
		this.#maxStates = Math.min(MAX_COMPLETE, Math.floor(MAX_TABLE / this.#width));
		const { alphabet, contexts, end, looksBack } = this.#program;
		const fromEnd = this.#taken([end]);
		const fromEndOnly: (number | undefined)[] = [];
		const befores = looksBack ? [0, 1, 2, 3] : [NO_CONTEXT];
		for (const before of befores) if (this.#endState(before) < 0) return false;
		let steps = 0;
		for (let state = 0; state < this.#states.length; state++) {
			const taken = this.#taken(this.#states[state]!.filter(member => member !== end));
			for (let of = 0; of < alphabet.size; of++) {
				for (const before of befores) {
					// Every state contains the end node. For most characters, only that node has predecessors, so the next state
					// is the same.
					const key = of * CONTEXT_COUNT + before;
					let next = taken[of] ? undefined : fromEndOnly[key];
					if (next === undefined) {
						for (const consumer of fromEnd[of] ?? []) this.#mark(consumer);
						for (const consumer of taken[of] ?? []) this.#mark(consumer);
						next = this.#close(before, contexts[of]!);
						if (next < 0) return false;
						steps += this.#states[next]!.length;
						if (!taken[of]) fromEndOnly[key] = next;
					}
					if (steps > maxSteps) return false;
					this.#table[state * this.#width + (looksBack ? of * CONTEXT_COUNT + before : of)] = next + 1;
				}
			}
		}
		return true;
	}

	/** Returns the nodes that lead to some other nodes by consuming a character, by the character's class. */
	#taken(nodes: Iterable<number>): (number[] | undefined)[] {
		const { consumers, takes } = this.#program;
		const taken: (number[] | undefined)[] = [];
		for (const node of nodes) {
			for (let at = consumers.from[node]!; at < consumers.from[node + 1]!; at++) {
				const consumer = consumers.to[at]!;
				for (let of = 0; of < takes.length; of++) {
					if (takes[of]![consumer] === 0) continue;
					const others = taken[of];
					if (others) others.push(consumer);
					else taken[of] = [consumer];
				}
			}
		}
		return taken;
	}

	/** Makes room for a subject. Discards all states if the last subject led to more than can be cached. */
	#begin(length: number): void {
		this.#subject = undefined;
		if (this.#positions.length <= length) {
			this.#positions = new Int32Array(Math.max(256, length + 1, Math.min(2 * length, KEPT_POSITIONS)));
		}
		if (this.#rowCount === 0) return;
		this.#rowCount = 0;
		this.generation++;
		if (this.#rows.length > KEPT_POSITIONS) this.#rows = new Uint32Array(0);
		this.#states = [];
		this.#byHash.clear();
		this.#ends.length = 0;
		this.#table = new Int32Array(16 * this.#width);
	}

	#contextBefore(subject: string, position: number): number {
		if (position === 0) return NO_CONTEXT;
		const { alphabet, contexts } = this.#program;
		const unit = subject.charCodeAt(position - 1);
		return contexts[unit < 256 ? alphabet.latin1[unit]! : alphabet.classOf(codeBefore(subject, position))]!;
	}

	#endState(before: number): number {
		let state = this.#ends[before];
		if (state === undefined) {
			state = this.#close(before, NO_CONTEXT);
			if (state >= 0) this.#ends[before] = state;
		}
		return state;
	}

	/** Returns the state before a character, given the state after it. */
	#step(state: number, ofCharacter: number, before: number, after: number): number {
		const { consumers, takes } = this.#program;
		const taken = takes[ofCharacter]!;
		const words = this.#marks.length;
		if (state >= 0) {
			const members = this.#states[state]!;
			for (let at = 0; at < members.length; at++) this.#consume(members[at]!, consumers, taken);
		} else {
			for (let word = 0, from = ~state * words; word < words; word++) {
				for (let bits = this.#rows[from + word]!; bits !== 0; bits &= bits - 1) {
					this.#consume(32 * word + 31 - Math.clz32(bits & -bits), consumers, taken);
				}
			}
		}
		return this.#close(before, after);
	}

	/** Marks the nodes that lead to another node by consuming a character. */
	#consume(node: number, { from, to }: GraphEdges, taken: Uint8Array): void {
		for (let at = from[node]!, end = from[node + 1]!; at < end; at++) {
			if (taken[to[at]!] === 1) this.#mark(to[at]!);
		}
	}

	#mark(node: number): void {
		const marks = this.#marks;
		const word = node >>> 5;
		const bit = 1 << (node & 31);
		if ((marks[word]! & bit) !== 0) return;
		marks[word]! |= bit;
		this.#marked[this.#count++] = node;
	}

	/**
	 * Marks the end and all nodes that lead to it or to marked nodes without consuming a character. Returns the resulting state.
	 */
	#close(before: number, after: number): number {
		const { passers, assertions } = this.#program;
		const { from, to } = passers;
		const marked = this.#marked;
		this.#mark(this.#program.end);
		for (let next = 0; next < this.#count; next++) {
			const node = marked[next]!;
			for (let at = from[node]!, end = from[node + 1]!; at < end; at++) {
				const assertion = assertions[to[at]!];
				if (assertion === undefined || this.#program.holds(assertion, before, after)) this.#mark(to[at]!);
			}
		}
		return this.#intern();
	}

	/** Returns the number of the state that consists of the marked nodes, and clears the marks. */
	#intern(): number {
		const count = this.#count;
		// The hash must not depend on the order in which nodes were found.
		let hash = count;
		for (let at = 0; at < count; at++) hash = (hash + Math.imul(this.#marked[at]! + 1, 0x9e3779b1)) | 0;
		const alike = this.#byHash.get(hash);
		let state = alike?.find(number => this.#isMarked(number));
		if (state === undefined) {
			if (this.#states.length < this.#maxStates) {
				state = this.#keep();
				if (alike) alike.push(state);
				else this.#byHash.set(hash, [state]);
			} else state = this.#addRow();
		}
		for (let at = 0; at < count; at++) this.#marks[this.#marked[at]! >>> 5] = 0;
		this.#count = 0;
		return state;
	}

	#isMarked(state: number): boolean {
		const members = this.#states[state]!;
		if (members.length !== this.#count) return false;
		for (let at = 0; at < members.length; at++) {
			if ((this.#marks[members[at]! >>> 5]! & (1 << (members[at]! & 31))) === 0) return false;
		}
		return true;
	}

	#keep(): number {
		const members = this.#marked.slice(0, this.#count).sort();
		const state = this.#states.push(members) - 1;
		if (state >= this.#flags.length) this.#flags = enlarged(this.#flags);
		const { start, idle } = this.#program;
		const starts = members.includes(start) ? STARTS : 0;
		this.#flags[state] = starts | (idle && members.every(member => idle.has(member)) ? DEAD : 0);
		while (this.#states.length * this.#width > this.#table.length) this.#table = enlarged(this.#table);
		return state;
	}

	#addRow(): number {
		const from = this.#rowCount * this.#marks.length;
		while (from + this.#marks.length > this.#rows.length) this.#rows = enlarged(this.#rows);
		this.#rows.set(this.#marks, from);
		return ~this.#rowCount++;
	}

	#isStart(state: number): boolean {
		return state < 0 ? this.#rowHas(~state, this.#program.start) : (this.#flags[state]! & STARTS) !== 0;
	}

	#rowHas(row: number, node: number): boolean {
		return (this.#rows[row * this.#marks.length + (node >>> 5)]! & (1 << (node & 31))) !== 0;
	}
}

/** Returns the code point that ends at a position: that of a surrogate pair, or a single unit. */
function codeBefore(subject: string, position: number): number {
	const unit = subject.charCodeAt(position - 1);
	if ((unit & 0xfc00) !== 0xdc00 || position < 2) return unit;
	const high = subject.charCodeAt(position - 2);
	return (high & 0xfc00) === 0xd800 ? ((high - 0xd800) << 10) + (unit - 0xdc00) + 0x10000 : unit;
}

/** Reports whether an ascending list contains a number. */
function includes(numbers: Int32Array, number: number): boolean {
	let from = 0;
	let to = numbers.length;
	while (from < to) {
		const middle = (from + to) >>> 1;
		if (numbers[middle]! < number) from = middle + 1;
		else to = middle;
	}
	return numbers[from] === number;
}

function enlarged<T extends Int32Array | Uint32Array | Uint8Array>(array: T): T {
	const larger = new (array.constructor as new (length: number) => T)(Math.max(64, 2 * array.length));
	larger.set(array);
	return larger;
}
