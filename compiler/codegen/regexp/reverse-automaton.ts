/**
 * Runs a program over a subject from its end to its beginning, to determine which nodes of the program can lead to a match from
 * each position. Each distinct set of such nodes is a state of an automaton. States are created when a subject needs them, so a
 * character usually costs one lookup.
 */
import type { RegexpProgram } from './program.ts';
import { CONTEXT_COUNT, type GraphEdges, NO_CONTEXT, ReverseProgram } from './reverse-program.ts';

/** Maximum number of states that an automaton caches, unless it has been completed. */
const MAX_STATES = 2048;
/** Maximum number of cached states of an automaton that {@link ReverseAutomaton.complete} has completed. */
const MAX_COMPLETE_STATES = 16_384;
/** Maximum number of entries in the transition table of an automaton. */
const MAX_TABLE_ENTRIES = 1 << 20;
/** Number of positions above which memory is released after a subject. */
const MAX_KEPT_POSITIONS = 65_536;
/** Marks a position inside a surrogate pair, which has no state. */
const INSIDE_PAIR = 0x7fffffff;

/** Flags of a state. `STARTS_FLAG` means that a match can start here, and `DEAD_FLAG` that no match can start here or earlier. */
const STARTS_FLAG = 1;
const DEAD_FLAG = 2;

/** Determines the positions at which a program can match, for one subject at a time. */
export class ReverseAutomaton {
	readonly #program: ReverseProgram;
	/**
	 * Number of transitions per state: one for each class of characters or, if an assertion looks back, for each class and
	 * preceding context.
	 */
	readonly #width: number;
	#maxStates: number;
	/** The nodes of each state, in ascending order. */
	#states: Int32Array[] = [];
	#flags = new Uint8Array(64);
	readonly #statesByHash = new Map<number, number[]>();
	/** For each state and transition, the number of the next state plus 1; 0 if it has not been computed yet. */
	#table: Int32Array;
	/** The states at the end of a subject, by the context before it. */
	readonly #endStates: (number | undefined)[] = [];
	/**
	 * States beyond the maximum number, as bit sets of nodes. They are valid for one subject only. State ~n is row n, so their
	 * numbers are negative.
	 */
	#rows = new Uint32Array(0);
	#rowCount = 0;
	/** Bit set of the nodes in the state that is being computed. */
	readonly #markBits: Uint32Array;
	/** The nodes in the state that is being computed, in the order in which they were found. */
	readonly #markedNodes: Int32Array;
	#markedCount = 0;
	/** The states at the positions of the last subject, from {@link #lowestPosition} on. */
	#stateByPosition = new Int32Array(0);
	#lowestPosition = 0;
	/** The subject of the last {@link findNext}. */
	#subject: string | undefined = undefined;
	/** The position from which the last {@link findNext} searched. */
	#searchStart = 0;
	/** Incremented whenever all states are discarded. */
	generation = 0;

	/** Number of nodes. Unless {@link complete} has succeeded, a character can take time proportional to it. */
	get size(): number {
		return this.#program.size;
	}

	constructor(program: RegexpProgram) {
		this.#program = new ReverseProgram(program);
		const { alphabet, looksBack, size } = this.#program;
		this.#width = alphabet.size * (looksBack ? CONTEXT_COUNT : 1);
		this.#maxStates = Math.min(MAX_STATES, Math.floor(MAX_TABLE_ENTRIES / this.#width));
		this.#table = new Int32Array(16 * this.#width);
		this.#markBits = new Uint32Array((size + 31) >>> 5);
		this.#markedNodes = new Int32Array(size);
	}

	/** Reports whether a subject has a match. */
	test(subject: string): boolean {
		return this.#scan(subject, 0, true) !== -1;
	}

	/** Returns the first position at which a match starts; −1 if there is none. */
	find(subject: string): number {
		return this.#scan(subject, 0, false);
	}

	/**
	 * Returns the first position, from `start` on, at which a match starts; −1 if there is none. Further calls for the same subject
	 * do not scan it again.
	 */
	findNext(subject: string, start: number): number {
		if (subject !== this.#subject || start < this.#searchStart) {
			this.#scan(subject, start, false);
			this.#subject = subject;
			this.#searchStart = start;
		}
		for (let position = Math.max(start, this.#lowestPosition); position <= subject.length; position++) {
			const state = this.#stateByPosition[position]!;
			if (state !== INSIDE_PAIR && this.#isStart(state)) return position;
		}
		return -1;
	}

	/** Forgets the subject of {@link findNext}. */
	forget(): void {
		this.#subject = undefined;
		if (this.#stateByPosition.length > MAX_KEPT_POSITIONS) this.#stateByPosition = new Int32Array(0);
	}

	/** Returns the state at a position of the last subject; negative if it is not cached. */
	stateAt(position: number): number {
		return this.#stateByPosition[position]!;
	}

	/**
	 * Returns the first of the given instructions that can lead to a match from a position of the last subject. The caller ensures
	 * that one of them can.
	 */
	firstThatLeadsOn(instructions: readonly number[], position: number): number {
		const { nodeOf } = this.#program;
		const state = this.#stateByPosition[position]!;
		const lastIndex = instructions.length - 1;
		for (let index = 0; index < lastIndex; index++) {
			const node = nodeOf[instructions[index]!]!;
			if (state < 0 ? this.#rowHas(~state, node) : includesSorted(this.#states[state]!, node))
				return instructions[index]!;
		}
		return instructions[lastIndex]!;
	}

	/** Returns the position after the character that begins at a position of the last subject. */
	positionAfter(position: number): number {
		return this.#stateByPosition[position + 1] === INSIDE_PAIR ? position + 2 : position + 1;
	}

	#scan(subject: string, searchStart: number, anyMatch: boolean): number {
		this.#prepare(subject.length);
		const { alphabet, contexts, looksBack } = this.#program;
		const { latin1 } = alphabet;
		const positions = this.#stateByPosition;
		const width = this.#width;
		let table = this.#table;
		let position = subject.length;
		let matchStart = -1;
		let state = this.#endState(looksBack ? this.#contextBefore(subject, position) : NO_CONTEXT);
		for (;;) {
			positions[position] = state;
			const flags = state < 0 ? (this.#isStart(state) ? STARTS_FLAG : 0) : this.#flags[state]!;
			if ((flags & STARTS_FLAG) !== 0) {
				matchStart = position;
				if (anyMatch) break;
			} else if ((flags & DEAD_FLAG) !== 0) break;
			if (position <= searchStart) break;
			const unit = subject.charCodeAt(--position);
			let characterClass: number;
			if (unit < 256) characterClass = latin1[unit]!;
			else {
				const code = codeBefore(subject, position + 1);
				if (code > 0xffff) positions[position--] = INSIDE_PAIR;
				characterClass = alphabet.classOf(code);
			}
			const contextBefore = looksBack ? this.#contextBefore(subject, position) : NO_CONTEXT;
			const transition = looksBack ? characterClass * CONTEXT_COUNT + contextBefore : characterClass;
			const cachedNext = state < 0 ? 0 : table[state * width + transition]!;
			if (cachedNext > 0) state = cachedNext - 1;
			else {
				const next = this.#step(state, characterClass, contextBefore, contexts[characterClass]!);
				table = this.#table;
				if (state >= 0 && next >= 0) table[state * width + transition] = next + 1;
				state = next;
			}
		}
		this.#lowestPosition = position;
		return matchStart;
	}

	/**
	 * Computes all states in advance, so that every character costs a single lookup. Returns false if there are too many states to
	 * cache, or if computing them takes more than `maxSteps` steps.
	 */
	complete(maxSteps: number): boolean {
		this.#maxStates = Math.min(MAX_COMPLETE_STATES, Math.floor(MAX_TABLE_ENTRIES / this.#width));
		const { alphabet, contexts, end, looksBack } = this.#program;
		const endConsumers = this.#consumersByClass([end]);
		const nextFromEndOnly: (number | undefined)[] = [];
		const contextsBefore = looksBack ? [0, 1, 2, 3] : [NO_CONTEXT];
		for (const contextBefore of contextsBefore) if (this.#endState(contextBefore) < 0) return false;
		let steps = 0;
		for (let state = 0; state < this.#states.length; state++) {
			const stateConsumers = this.#consumersByClass(this.#states[state]!.filter(member => member !== end));
			for (let characterClass = 0; characterClass < alphabet.size; characterClass++) {
				for (const contextBefore of contextsBefore) {
					// Every state contains the end node. For most classes of characters, no other node has predecessors, so the
					// next state is the same for all states.
					const key = characterClass * CONTEXT_COUNT + contextBefore;
					let next = stateConsumers[characterClass] ? undefined : nextFromEndOnly[key];
					if (next === undefined) {
						for (const consumer of endConsumers[characterClass] ?? []) this.#mark(consumer);
						for (const consumer of stateConsumers[characterClass] ?? []) this.#mark(consumer);
						next = this.#close(contextBefore, contexts[characterClass]!);
						if (next < 0) return false;
						steps += this.#states[next]!.length;
						if (!stateConsumers[characterClass]) nextFromEndOnly[key] = next;
					}
					if (steps > maxSteps) return false;
					this.#table[
						state * this.#width + (looksBack ? characterClass * CONTEXT_COUNT + contextBefore : characterClass)
					] = next + 1;
				}
			}
		}
		return true;
	}

	/**
	 * Returns, for each class of characters, the nodes that lead to one of the given nodes by consuming a character of the class.
	 */
	#consumersByClass(nodes: Iterable<number>): (number[] | undefined)[] {
		const { consumers, consumesByClass } = this.#program;
		const byClass: (number[] | undefined)[] = [];
		for (const node of nodes) {
			for (let edge = consumers.offsets[node]!; edge < consumers.offsets[node + 1]!; edge++) {
				const consumer = consumers.targets[edge]!;
				for (let characterClass = 0; characterClass < consumesByClass.length; characterClass++) {
					if (consumesByClass[characterClass]![consumer] === 0) continue;
					const classConsumers = byClass[characterClass];
					if (classConsumers) classConsumers.push(consumer);
					else byClass[characterClass] = [consumer];
				}
			}
		}
		return byClass;
	}

	/**
	 * Makes room for a subject of a given length. Discards all states if the last subject led to more states than can be cached.
	 */
	#prepare(length: number): void {
		this.#subject = undefined;
		if (this.#stateByPosition.length <= length) {
			this.#stateByPosition = new Int32Array(Math.max(256, length + 1, Math.min(2 * length, MAX_KEPT_POSITIONS)));
		}
		if (this.#rowCount === 0) return;
		this.#rowCount = 0;
		this.generation++;
		if (this.#rows.length > MAX_KEPT_POSITIONS) this.#rows = new Uint32Array(0);
		this.#states = [];
		this.#statesByHash.clear();
		this.#endStates.length = 0;
		this.#table = new Int32Array(16 * this.#width);
	}

	#contextBefore(subject: string, position: number): number {
		if (position === 0) return NO_CONTEXT;
		const { alphabet, contexts } = this.#program;
		const unit = subject.charCodeAt(position - 1);
		return contexts[unit < 256 ? alphabet.latin1[unit]! : alphabet.classOf(codeBefore(subject, position))]!;
	}

	#endState(contextBefore: number): number {
		let state = this.#endStates[contextBefore];
		if (state === undefined) {
			state = this.#close(contextBefore, NO_CONTEXT);
			if (state >= 0) this.#endStates[contextBefore] = state;
		}
		return state;
	}

	/** Returns the state before a character. `state` is the state after the character. */
	#step(state: number, characterClass: number, contextBefore: number, contextAfter: number): number {
		const { consumers, consumesByClass } = this.#program;
		const consumesCharacter = consumesByClass[characterClass]!;
		const wordsPerRow = this.#markBits.length;
		if (state >= 0) {
			const members = this.#states[state]!;
			for (let index = 0; index < members.length; index++) this.#consume(members[index]!, consumers, consumesCharacter);
		} else {
			for (let word = 0, rowStart = ~state * wordsPerRow; word < wordsPerRow; word++) {
				for (let bits = this.#rows[rowStart + word]!; bits !== 0; bits &= bits - 1) {
					this.#consume(32 * word + 31 - Math.clz32(bits & -bits), consumers, consumesCharacter);
				}
			}
		}
		return this.#close(contextBefore, contextAfter);
	}

	/** Marks the nodes that lead to `node` by consuming the current character. */
	#consume(node: number, { offsets: from, targets: to }: GraphEdges, consumesCharacter: Uint8Array): void {
		for (let edge = from[node]!, end = from[node + 1]!; edge < end; edge++) {
			if (consumesCharacter[to[edge]!] === 1) this.#mark(to[edge]!);
		}
	}

	#mark(node: number): void {
		const markBits = this.#markBits;
		const word = node >>> 5;
		const bit = 1 << (node & 31);
		if ((markBits[word]! & bit) !== 0) return;
		markBits[word]! |= bit;
		this.#markedNodes[this.#markedCount++] = node;
	}

	/**
	 * Marks the end node and, repeatedly, all nodes that lead to a marked node without consuming a character. Returns the resulting
	 * state.
	 */
	#close(contextBefore: number, contextAfter: number): number {
		const { passers, assertions } = this.#program;
		const { offsets: from, targets: to } = passers;
		const markedNodes = this.#markedNodes;
		this.#mark(this.#program.end);
		for (let next = 0; next < this.#markedCount; next++) {
			const node = markedNodes[next]!;
			for (let edge = from[node]!, end = from[node + 1]!; edge < end; edge++) {
				const assertion = assertions[to[edge]!];
				if (assertion === undefined || this.#program.assertionHolds(assertion, contextBefore, contextAfter))
					this.#mark(to[edge]!);
			}
		}
		return this.#intern();
	}

	/** Returns the number of the state that consists of the marked nodes, adding the state if it is new. Clears the marks. */
	#intern(): number {
		const count = this.#markedCount;
		// The hash must not depend on the order in which nodes were found.
		let hash = count;
		for (let index = 0; index < count; index++)
			hash = (hash + Math.imul(this.#markedNodes[index]! + 1, 0x9e3779b1)) | 0;
		const sameHashStates = this.#statesByHash.get(hash);
		let state = sameHashStates?.find(number => this.#isMarked(number));
		if (state === undefined) {
			if (this.#states.length < this.#maxStates) {
				state = this.#addState();
				if (sameHashStates) sameHashStates.push(state);
				else this.#statesByHash.set(hash, [state]);
			} else state = this.#addRow();
		}
		for (let index = 0; index < count; index++) this.#markBits[this.#markedNodes[index]! >>> 5] = 0;
		this.#markedCount = 0;
		return state;
	}

	#isMarked(state: number): boolean {
		const members = this.#states[state]!;
		if (members.length !== this.#markedCount) return false;
		for (let index = 0; index < members.length; index++) {
			if ((this.#markBits[members[index]! >>> 5]! & (1 << (members[index]! & 31))) === 0) return false;
		}
		return true;
	}

	#addState(): number {
		const members = this.#markedNodes.slice(0, this.#markedCount).sort();
		const state = this.#states.push(members) - 1;
		if (state >= this.#flags.length) this.#flags = enlarge(this.#flags);
		const { start, idleNodes } = this.#program;
		const starts = members.includes(start) ? STARTS_FLAG : 0;
		this.#flags[state] = starts | (idleNodes && members.every(member => idleNodes.has(member)) ? DEAD_FLAG : 0);
		while (this.#states.length * this.#width > this.#table.length) this.#table = enlarge(this.#table);
		return state;
	}

	#addRow(): number {
		const rowStart = this.#rowCount * this.#markBits.length;
		while (rowStart + this.#markBits.length > this.#rows.length) this.#rows = enlarge(this.#rows);
		this.#rows.set(this.#markBits, rowStart);
		return ~this.#rowCount++;
	}

	#isStart(state: number): boolean {
		return state < 0 ? this.#rowHas(~state, this.#program.start) : (this.#flags[state]! & STARTS_FLAG) !== 0;
	}

	#rowHas(row: number, node: number): boolean {
		return (this.#rows[row * this.#markBits.length + (node >>> 5)]! & (1 << (node & 31))) !== 0;
	}
}

/** Returns the code point that ends at a position. It may be a surrogate pair. */
function codeBefore(subject: string, position: number): number {
	const unit = subject.charCodeAt(position - 1);
	if ((unit & 0xfc00) !== 0xdc00 || position < 2) return unit;
	const high = subject.charCodeAt(position - 2);
	return (high & 0xfc00) === 0xd800 ? ((high - 0xd800) << 10) + (unit - 0xdc00) + 0x10000 : unit;
}

/** Reports whether an ascending list contains a number. */
function includesSorted(numbers: Int32Array, number: number): boolean {
	let low = 0;
	let high = numbers.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (numbers[middle]! < number) low = middle + 1;
		else high = middle;
	}
	return numbers[low] === number;
}

function enlarge<T extends Int32Array | Uint32Array | Uint8Array>(array: T): T {
	const larger = new (array.constructor as new (length: number) => T)(Math.max(64, 2 * array.length));
	larger.set(array);
	return larger;
}
