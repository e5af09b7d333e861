/** A program in the form in which it runs from the end of a subject to its beginning: a graph of nodes with reversed edges. */
import { Alphabet } from './alphabet.ts';
import { NOT_NEWLINE, WORD_CHARACTERS } from './character-sets.ts';
import { MATCH_INSTRUCTION, type RegexpInstruction, type RegexpProgram } from './program.ts';
import type { RegexpAssertion } from './regexp-node.ts';

/** The context of a position, as far as assertions depend on it: nothing, or the kind of character next to it. */
export const NO_CONTEXT = 0;
const LINE_FEED = 1;
const WORD_CHARACTER = 2;
const OTHER = 3;
/** Number of contexts. */
export const CONTEXT_COUNT = 4;

const LOOKING_BACK: readonly RegexpAssertion[] = ['text-start', 'line-start', 'word-boundary', 'no-word-boundary'];

/** The edges of a graph: those of node n are `to[from[n]]` up to, but not including, `to[from[n + 1]]`. */
export interface GraphEdges {
	readonly from: Int32Array;
	readonly to: Int32Array;
}

/** The reversed graph of a program. */
export class ReverseProgram {
	/** The node of each instruction. A capture instruction shares the node of the instruction that follows it. */
	readonly nodeOf: Int32Array;
	/** Number of nodes. */
	readonly size: number;
	/** The node of the first instruction. */
	readonly start: number;
	/** The node of the end. */
	readonly end: number;
	readonly alphabet: Alphabet;
	/** The context that a character of each class provides. */
	readonly contexts: Uint8Array;
	/** True if an assertion depends on the character before a position. */
	readonly looksBack: boolean;
	/** For each node, the nodes that lead to it by consuming a character. */
	readonly consumers: GraphEdges;
	/** For each node, the nodes that lead to it without consuming a character. */
	readonly passers: GraphEdges;
	/** By class and node: 1 if the node consumes a character of the class. */
	readonly takes: readonly Uint8Array[];
	/** For each node, the assertion that it stands for; undefined if it is no assertion. */
	readonly assertions: readonly (RegexpAssertion | undefined)[];
	/**
	 * The end node and those that lead to it without consuming a character. Undefined if one of them is the start or can follow a
	 * character. If a state contains no other nodes, the rest of the subject need not be examined.
	 */
	readonly idle: ReadonlySet<number> | undefined;

	constructor({ instructions, start, sets }: RegexpProgram) {
		const nodes: RegexpInstruction[] = [];
		this.nodeOf = new Int32Array(instructions.length);
		for (const [at, one] of instructions.entries()) {
			// The instruction that follows a capture instruction was compiled before it, so its node is known.
			const follower = one.op === 'save' || one.op === 'clear' ? one.next : undefined;
			this.nodeOf[at] = follower === undefined ? nodes.push(one) - 1 : this.nodeOf[follower]!;
		}
		this.size = nodes.length;
		this.start = this.nodeOf[start]!;
		this.end = this.nodeOf[MATCH_INSTRUCTION]!;
		this.assertions = nodes.map(one => (one.op === 'assert' ? one.assertion : undefined));
		this.looksBack = LOOKING_BACK.some(assertion => this.assertions.includes(assertion));
		const asserts = this.assertions.some(assertion => assertion !== undefined);
		this.alphabet = new Alphabet(asserts ? [...sets, NOT_NEWLINE, WORD_CHARACTERS] : sets);
		const { members } = this.alphabet;
		this.contexts = new Uint8Array(this.alphabet.size).fill(OTHER);
		if (asserts) {
			const [notNewline, word] = members.slice(-2);
			this.contexts.forEach((_, of) => {
				if (notNewline![of] === 0) this.contexts[of] = LINE_FEED;
				else if (word![of] === 1) this.contexts[of] = WORD_CHARACTER;
			});
		}
		this.takes = Array.from({ length: this.alphabet.size }, (_, of) =>
			Uint8Array.from(nodes, one => (one.op === 'set' ? members[one.set]![of]! : 0)),
		);
		const consumers: number[][] = nodes.map(() => []);
		const passers: number[][] = nodes.map(() => []);
		for (const [node, one] of nodes.entries()) {
			if (one.op === 'set') consumers[this.nodeOf[one.next]!]!.push(node);
			else if (one.op === 'assert') passers[this.nodeOf[one.next]!]!.push(node);
			else if (one.op === 'choice') for (const target of one.targets) passers[this.nodeOf[target]!]!.push(node);
		}
		this.consumers = edgesOf(consumers);
		this.passers = edgesOf(passers);
		this.idle = this.#findIdle();
	}

	/** Reports whether an assertion holds between two contexts. */
	holds(assertion: RegexpAssertion, before: number, after: number): boolean {
		switch (assertion) {
			case 'text-start':
				return before === NO_CONTEXT;
			case 'text-end':
				return after === NO_CONTEXT;
			case 'line-start':
				return before === NO_CONTEXT || before === LINE_FEED;
			case 'line-end':
				return after === NO_CONTEXT || after === LINE_FEED;
			case 'word-boundary':
				return (before === WORD_CHARACTER) !== (after === WORD_CHARACTER);
			case 'no-word-boundary':
				return (before === WORD_CHARACTER) === (after === WORD_CHARACTER);
		}
	}

	#findIdle(): ReadonlySet<number> | undefined {
		const found = new Set([this.end]);
		for (const node of found) {
			const { from } = this.consumers;
			if (node === this.start || from[node] !== from[node + 1]) return undefined;
			for (let at = this.passers.from[node]!; at < this.passers.from[node + 1]!; at++) {
				const passer = this.passers.to[at]!;
				if (this.assertions[passer] !== 'text-end') found.add(passer);
			}
		}
		return found;
	}
}

function edgesOf(lists: readonly (readonly number[])[]): GraphEdges {
	const from = new Int32Array(lists.length + 1);
	lists.forEach((list, at) => {
		from[at + 1] = from[at]! + list.length;
	});
	return { from, to: Int32Array.from(lists.flat()) };
}
