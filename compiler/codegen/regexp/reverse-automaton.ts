/**
 * Runs a program over a subject from its end to its beginning, to determine which nodes of the program can lead to a match from
 * each position. Each distinct set of such nodes is a state of an automaton. States are created when a subject needs them, so a
 * character usually costs one lookup.
 */
import type { RegexpProgram } from './program.ts';
import { CONTEXT_COUNT, type GraphEdges, NO_CONTEXT, ReverseProgram } from './reverse-program.ts';

/** Maximum number of states that an automaton caches, unless {@link ReverseAutomaton.complete} has completed it. */
const MAX_CACHED_STATES = 2048;
/** Maximum number of cached states of an automaton that {@link ReverseAutomaton.complete} has completed. */
const MAX_COMPLETE_STATES = 16_384;
/** Maximum number of entries in the transition table of an automaton. */
const MAX_TABLE_ENTRIES = 1 << 20;
/** Maximum length of an array whose memory is kept for the next subject. */
const MAX_KEPT_POSITIONS = 65_536;
/** Marks a position inside a surrogate pair, which has no state. */
const INSIDE_PAIR = 0x7fffffff;

/** Flags of a state: a match can start at its position (`MATCH_START_FLAG`); none can start there or earlier (`DEAD_FLAG`). */
const MATCH_START_FLAG = 1;
const DEAD_FLAG = 2;

/** Determines the positions at which a program can match, for one subject at a time. */
export class ReverseAutomaton {
	readonly #program: ReverseProgram;
	/**
	 * Number of transitions per state: one for each class of characters or, if an assertion looks back, for each class and
	 * preceding context.
	 */
	readonly #transitionsPerState: number;
	#maxStates: number;
	/** The nodes of each state, in ascending order. */
	#nodesByState: Int32Array[] = [];
	#flagsByState = new Uint8Array(64);
	readonly #statesByHash = new Map<number, number[]>();
	/** For each state and transition, the number of the next state plus 1; 0 if it has not been computed yet. */
	#transitionTable: Int32Array;
	/** The states at the end of a subject, by the context that the last character provides. */
	readonly #endStates: (number | undefined)[] = [];
	/**
	 * States beyond the maximum number, as bit sets of nodes. They are valid for one subject only. State ~n is row n, so their
	 * numbers are negative.
	 */
	#overflowRows = new Uint32Array(0);
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
	#scannedSubject: string | undefined = undefined;
	/** The position from which the last {@link findNext} searched. */
	#searchStart = 0;
	/** Incremented whenever all states are discarded. Caches of other objects that refer to states are then invalid. */
	generation = 0;

	/** Number of nodes. Unless {@link complete} has succeeded, processing a character can take time proportional to this number. */
	get nodeCount(): number {
		return this.#program.nodeCount;
	}

	constructor(program: RegexpProgram) {
		this.#program = new ReverseProgram(program);
		const { alphabet, looksBack, nodeCount } = this.#program;
		this.#transitionsPerState = alphabet.classCount * (looksBack ? CONTEXT_COUNT : 1);
		this.#maxStates = Math.min(MAX_CACHED_STATES, Math.floor(MAX_TABLE_ENTRIES / this.#transitionsPerState));
		this.#transitionTable = new Int32Array(16 * this.#transitionsPerState);
		this.#markBits = new Uint32Array((nodeCount + 31) >>> 5);
		this.#markedNodes = new Int32Array(nodeCount);
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
		if (subject !== this.#scannedSubject || start < this.#searchStart) {
			this.#scan(subject, start, false);
			this.#scannedSubject = subject;
			this.#searchStart = start;
		}
		for (let position = Math.max(start, this.#lowestPosition); position <= subject.length; position++) {
			const state = this.#stateByPosition[position]!;
			if (state !== INSIDE_PAIR && this.#isMatchStart(state)) return position;
		}
		return -1;
	}

	/** Forgets the subject of {@link findNext}. */
	forget(): void {
		this.#scannedSubject = undefined;
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
	firstLeadingToMatch(instructions: readonly number[], position: number): number {
		const { nodeByInstruction } = this.#program;
		const state = this.#stateByPosition[position]!;
		const lastIndex = instructions.length - 1;
		for (let index = 0; index < lastIndex; index++) {
			const node = nodeByInstruction[instructions[index]!]!;
			if (state < 0 ? this.#rowHas(~state, node) : includesSorted(this.#nodesByState[state]!, node))
				return instructions[index]!;
		}
		return instructions[lastIndex]!;
	}

	/** Returns the position after the character that begins at a position of the last subject. */
	positionAfter(position: number): number {
		return this.#stateByPosition[position + 1] === INSIDE_PAIR ? position + 2 : position + 1;
	}

	#scan(subject: string, searchStart: number, stopsAtMatch: boolean): number {
		this.#prepareScan(subject.length);
		const { alphabet, contextByClass, looksBack } = this.#program;
		const { latin1Classes: latin1 } = alphabet;
		const positions = this.#stateByPosition;
		const width = this.#transitionsPerState;
		let table = this.#transitionTable;
		let position = subject.length;
		let matchStart = -1;
		let state = this.#endState(looksBack ? this.#contextBefore(subject, position) : NO_CONTEXT);
		for (;;) {
			positions[position] = state;
			const flags = state < 0 ? (this.#isMatchStart(state) ? MATCH_START_FLAG : 0) : this.#flagsByState[state]!;
			if ((flags & MATCH_START_FLAG) !== 0) {
				matchStart = position;
				if (stopsAtMatch) break;
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
				const next = this.#nextState(state, characterClass, contextBefore, contextByClass[characterClass]!);
				table = this.#transitionTable;
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
		this.#maxStates = Math.min(MAX_COMPLETE_STATES, Math.floor(MAX_TABLE_ENTRIES / this.#transitionsPerState));
		const { alphabet, contextByClass, endNode, looksBack } = this.#program;
		const endConsumers = this.#consumersByClass([endNode]);
		const nextFromEndOnly: (number | undefined)[] = [];
		const contextsBefore = looksBack ? [0, 1, 2, 3] : [NO_CONTEXT];
		for (const contextBefore of contextsBefore) if (this.#endState(contextBefore) < 0) return false;
		let stepCount = 0;
		for (let state = 0; state < this.#nodesByState.length; state++) {
			const stateConsumers = this.#consumersByClass(this.#nodesByState[state]!.filter(member => member !== endNode));
			for (let characterClass = 0; characterClass < alphabet.classCount; characterClass++) {
				for (const contextBefore of contextsBefore) {
					// Every state contains the end node. For most classes of characters, no other node has predecessors, so the
					// next state is the same for all states.
					const classAndContext = characterClass * CONTEXT_COUNT + contextBefore;
					let next = stateConsumers[characterClass] ? undefined : nextFromEndOnly[classAndContext];
					if (next === undefined) {
						for (const consumer of endConsumers[characterClass] ?? []) this.#mark(consumer);
						for (const consumer of stateConsumers[characterClass] ?? []) this.#mark(consumer);
						next = this.#close(contextBefore, contextByClass[characterClass]!);
						if (next < 0) return false;
						stepCount += this.#nodesByState[next]!.length;
						if (!stateConsumers[characterClass]) nextFromEndOnly[classAndContext] = next;
					}
					if (stepCount > maxSteps) return false;
					this.#transitionTable[
						state * this.#transitionsPerState +
							(looksBack ? characterClass * CONTEXT_COUNT + contextBefore : characterClass)
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
		const consumersByClass: (number[] | undefined)[] = [];
		for (const node of nodes) {
			for (let edge = consumers.offsets[node]!; edge < consumers.offsets[node + 1]!; edge++) {
				const consumer = consumers.targets[edge]!;
				for (let characterClass = 0; characterClass < consumesByClass.length; characterClass++) {
					if (consumesByClass[characterClass]![consumer] === 0) continue;
					const classConsumers = consumersByClass[characterClass];
					if (classConsumers) classConsumers.push(consumer);
					else consumersByClass[characterClass] = [consumer];
				}
			}
		}
		return consumersByClass;
	}

	/**
	 * Makes room for a subject of a given length. Discards all states if the last subject led to more states than can be cached.
	 */
	#prepareScan(subjectLength: number): void {
		this.#scannedSubject = undefined;
		if (this.#stateByPosition.length <= subjectLength) {
			this.#stateByPosition = new Int32Array(
				Math.max(256, subjectLength + 1, Math.min(2 * subjectLength, MAX_KEPT_POSITIONS)),
			);
		}
		if (this.#rowCount === 0) return;
		this.#rowCount = 0;
		this.generation++;
		if (this.#overflowRows.length > MAX_KEPT_POSITIONS) this.#overflowRows = new Uint32Array(0);
		this.#nodesByState = [];
		this.#statesByHash.clear();
		this.#endStates.length = 0;
		this.#transitionTable = new Int32Array(16 * this.#transitionsPerState);
	}

	#contextBefore(subject: string, position: number): number {
		if (position === 0) return NO_CONTEXT;
		const { alphabet, contextByClass } = this.#program;
		const unit = subject.charCodeAt(position - 1);
		return contextByClass[
			unit < 256 ? alphabet.latin1Classes[unit]! : alphabet.classOf(codeBefore(subject, position))
		]!;
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
	#nextState(state: number, characterClass: number, contextBefore: number, contextAfter: number): number {
		const { consumers, consumesByClass } = this.#program;
		const consumesCharacter = consumesByClass[characterClass]!;
		const wordsPerRow = this.#markBits.length;
		if (state >= 0) {
			const members = this.#nodesByState[state]!;
			for (let index = 0; index < members.length; index++) this.#consume(members[index]!, consumers, consumesCharacter);
		} else {
			for (let wordIndex = 0, rowStart = ~state * wordsPerRow; wordIndex < wordsPerRow; wordIndex++) {
				for (let bits = this.#overflowRows[rowStart + wordIndex]!; bits !== 0; bits &= bits - 1) {
					this.#consume(32 * wordIndex + 31 - Math.clz32(bits & -bits), consumers, consumesCharacter);
				}
			}
		}
		return this.#close(contextBefore, contextAfter);
	}

	/** Marks the nodes that lead to `node` by consuming the current character. */
	#consume(
		node: number,
		{ offsets: edgeOffsets, targets: edgeTargets }: GraphEdges,
		consumesCharacter: Uint8Array,
	): void {
		for (let edge = edgeOffsets[node]!, end = edgeOffsets[node + 1]!; edge < end; edge++) {
			if (consumesCharacter[edgeTargets[edge]!] === 1) this.#mark(edgeTargets[edge]!);
		}
	}

	#mark(node: number): void {
		const markBits = this.#markBits;
		const wordIndex = node >>> 5;
		const bit = 1 << (node & 31);
		if ((markBits[wordIndex]! & bit) !== 0) return;
		markBits[wordIndex]! |= bit;
		this.#markedNodes[this.#markedCount++] = node;
	}

	/**
	 * Marks the end node and, repeatedly, all nodes that lead to a marked node without consuming a character. Returns the resulting
	 * state.
	 */
	#close(contextBefore: number, contextAfter: number): number {
		const { passers, assertions } = this.#program;
		const { offsets: edgeOffsets, targets: edgeTargets } = passers;
		const markedNodes = this.#markedNodes;
		this.#mark(this.#program.endNode);
		for (let next = 0; next < this.#markedCount; next++) {
			const node = markedNodes[next]!;
			for (let edge = edgeOffsets[node]!, end = edgeOffsets[node + 1]!; edge < end; edge++) {
				const assertion = assertions[edgeTargets[edge]!];
				if (assertion === undefined || this.#program.assertionHolds(assertion, contextBefore, contextAfter))
					this.#mark(edgeTargets[edge]!);
			}
		}
		return this.#internMarkedState();
	}

	/** Returns the number of the state that consists of the marked nodes, adding the state if it is new. Clears the marks. */
	#internMarkedState(): number {
		const markedCount = this.#markedCount;
		// The hash must not depend on the order in which nodes were found.
		let hash = markedCount;
		for (let index = 0; index < markedCount; index++)
			hash = (hash + Math.imul(this.#markedNodes[index]! + 1, 0x9e3779b1)) | 0;
		const sameHashStates = this.#statesByHash.get(hash);
		let state = sameHashStates?.find(number => this.#equalsMarked(number));
		if (state === undefined) {
			if (this.#nodesByState.length < this.#maxStates) {
				state = this.#addState();
				if (sameHashStates) sameHashStates.push(state);
				else this.#statesByHash.set(hash, [state]);
			} else state = this.#addRow();
		}
		for (let index = 0; index < markedCount; index++) this.#markBits[this.#markedNodes[index]! >>> 5] = 0;
		this.#markedCount = 0;
		return state;
	}

	#equalsMarked(state: number): boolean {
		const members = this.#nodesByState[state]!;
		if (members.length !== this.#markedCount) return false;
		for (let index = 0; index < members.length; index++) {
			if ((this.#markBits[members[index]! >>> 5]! & (1 << (members[index]! & 31))) === 0) return false;
		}
		return true;
	}

	#addState(): number {
		const members = this.#markedNodes.slice(0, this.#markedCount).sort();
		const state = this.#nodesByState.push(members) - 1;
		if (state >= this.#flagsByState.length) this.#flagsByState = enlarge(this.#flagsByState);
		const { startNode, idleNodes } = this.#program;
		const startFlag = members.includes(startNode) ? MATCH_START_FLAG : 0;
		this.#flagsByState[state] =
			startFlag | (idleNodes && members.every(member => idleNodes.has(member)) ? DEAD_FLAG : 0);
		while (this.#nodesByState.length * this.#transitionsPerState > this.#transitionTable.length)
			this.#transitionTable = enlarge(this.#transitionTable);
		return state;
	}

	#addRow(): number {
		const rowStart = this.#rowCount * this.#markBits.length;
		while (rowStart + this.#markBits.length > this.#overflowRows.length)
			this.#overflowRows = enlarge(this.#overflowRows);
		this.#overflowRows.set(this.#markBits, rowStart);
		return ~this.#rowCount++;
	}

	#isMatchStart(state: number): boolean {
		return state < 0
			? this.#rowHas(~state, this.#program.startNode)
			: (this.#flagsByState[state]! & MATCH_START_FLAG) !== 0;
	}

	#rowHas(row: number, node: number): boolean {
		return (this.#overflowRows[row * this.#markBits.length + (node >>> 5)]! & (1 << (node & 31))) !== 0;
	}
}

/** Returns the code point that ends at a position, even if it takes two units (a surrogate pair). */
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
