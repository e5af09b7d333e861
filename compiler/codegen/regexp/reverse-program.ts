/** A program as it is run from the end of a subject to its beginning: a graph of nodes whose edges lead backward. */
import { Alphabet } from './alphabet.ts';
import { NOT_NEWLINE, WORD } from './character-sets.ts';
import { type Instruction, MATCH, type Program } from './program.ts';
import type { Assertion } from './regexp-node.ts';

/** What is next to a position, as far as assertions ask. */
export const NOTHING = 0;
const LINE_FEED = 1;
const WORD_CHARACTER = 2;
const OTHER = 3;
/** Number of these contexts. */
export const CONTEXTS = 4;

const LOOKING_BACK: readonly Assertion[] = ['text-start', 'line-start', 'word-boundary', 'no-word-boundary'];

/** Edges of a graph: those of node n are `to[from[n]]` up to `to[from[n + 1]]`, which is not among them. */
export interface Edges {
	readonly from: Int32Array;
	readonly to: Int32Array;
}

/** The reversed graph of a program. */
export class ReverseProgram {
	/** The node of each instruction. Instructions about captures share that of the one that follows them. */
	readonly nodeOf: Int32Array;
	/** Number of nodes. */
	readonly size: number;
	/** The nodes of the first instruction and of the end. */
	readonly start: number;
	readonly end: number;
	readonly alphabet: Alphabet;
	/** For each class of characters, the context that it is. */
	readonly contexts: Uint8Array;
	/** True if an assertion depends on the character before a position. */
	readonly looksBack: boolean;
	/** For each node, those that lead to it by consuming a character, and those that do so without. */
	readonly consumers: Edges;
	readonly passers: Edges;
	/** By class and node: 1 if the node consumes a character of the class. */
	readonly takes: readonly Uint8Array[];
	/** For each node that is an assertion: which one. */
	readonly assertions: readonly (Assertion | undefined)[];
	/**
	 * The nodes from which the end can be reached at any position, if none of them is the first one or can be led to by a
	 * character. Where only these can lead to a match, the rest of the subject need not be looked at.
	 */
	readonly idle: ReadonlySet<number> | undefined;

	constructor({ instructions, start, sets }: Program) {
		const nodes: Instruction[] = [];
		this.nodeOf = new Int32Array(instructions.length);
		for (const [at, one] of instructions.entries()) {
			// What follows an instruction about captures was compiled before it.
			const follower = one.op === 'save' || one.op === 'clear' ? one.next : undefined;
			this.nodeOf[at] = follower === undefined ? nodes.push(one) - 1 : this.nodeOf[follower]!;
		}
		this.size = nodes.length;
		this.start = this.nodeOf[start]!;
		this.end = this.nodeOf[MATCH]!;
		this.assertions = nodes.map(one => (one.op === 'assert' ? one.assertion : undefined));
		this.looksBack = LOOKING_BACK.some(assertion => this.assertions.includes(assertion));
		const asserts = this.assertions.some(assertion => assertion !== undefined);
		this.alphabet = new Alphabet(asserts ? [...sets, NOT_NEWLINE, WORD] : sets);
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
	holds(assertion: Assertion, before: number, after: number): boolean {
		switch (assertion) {
			case 'text-start':
				return before === NOTHING;
			case 'text-end':
				return after === NOTHING;
			case 'line-start':
				return before === NOTHING || before === LINE_FEED;
			case 'line-end':
				return after === NOTHING || after === LINE_FEED;
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

function edgesOf(lists: readonly (readonly number[])[]): Edges {
	const from = new Int32Array(lists.length + 1);
	lists.forEach((list, at) => {
		from[at + 1] = from[at]! + list.length;
	});
	return { from, to: Int32Array.from(lists.flat()) };
}
