/** A program in the form in which it runs from the end of a subject to its beginning: a graph with reversed edges. */
import { Alphabet } from './alphabet.ts';
import { NOT_NEWLINE, WORD_CHARACTERS } from './character-sets.ts';
import { MATCH_INSTRUCTION, type RegexpInstruction, type RegexpProgram } from './program.ts';
import type { RegexpAssertion } from './regexp-node.ts';

/** The contexts of a position on which assertions depend: no character, or the kind of the character on one side of it. */
export const NO_CONTEXT = 0;
const LINE_FEED = 1;
const WORD_CHARACTER = 2;
const OTHER_CHARACTER = 3;
export const CONTEXT_COUNT = 4;

const LOOK_BEHIND_ASSERTIONS: readonly RegexpAssertion[] = [
	'text-start',
	'line-start',
	'word-boundary',
	'no-word-boundary',
];

/** The edges of a graph. The edges of node n are `targets[offsets[n]]` up to, but not including, `targets[offsets[n + 1]]`. */
export interface GraphEdges {
	readonly offsets: Int32Array;
	readonly targets: Int32Array;
}

/** The reversed graph of a program. Its nodes stand for the program's instructions. */
export class ReverseProgram {
	/** The node for each instruction. An instruction that saves or clears captures shares the node of the instruction after it. */
	readonly nodeOf: Int32Array;
	/** Number of nodes. */
	readonly size: number;
	/** The node of the first instruction. */
	readonly start: number;
	/** The node of the instruction that ends a match. */
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
	/** For each class of characters, an array with 1 at the nodes that consume a character of the class. */
	readonly consumesByClass: readonly Uint8Array[];
	/** The assertion of each node; undefined if the node is not an assertion. */
	readonly assertions: readonly (RegexpAssertion | undefined)[];
	/**
	 * The end node and the nodes that lead to it without consuming a character; undefined if one of them is the start node or can
	 * follow a character. If a state contains no other nodes, no match can begin earlier in the subject.
	 */
	readonly idleNodes: ReadonlySet<number> | undefined;

	constructor({ instructions, start, sets }: RegexpProgram) {
		const nodes: RegexpInstruction[] = [];
		this.nodeOf = new Int32Array(instructions.length);
		for (const [index, instruction] of instructions.entries()) {
			// The instruction after a capture instruction was compiled before it, so its node is already known.
			const follower = instruction.op === 'save' || instruction.op === 'clear' ? instruction.next : undefined;
			this.nodeOf[index] = follower === undefined ? nodes.push(instruction) - 1 : this.nodeOf[follower]!;
		}
		this.size = nodes.length;
		this.start = this.nodeOf[start]!;
		this.end = this.nodeOf[MATCH_INSTRUCTION]!;
		this.assertions = nodes.map(instruction => (instruction.op === 'assert' ? instruction.assertion : undefined));
		this.looksBack = LOOK_BEHIND_ASSERTIONS.some(assertion => this.assertions.includes(assertion));
		const hasAssertions = this.assertions.some(assertion => assertion !== undefined);
		this.alphabet = new Alphabet(hasAssertions ? [...sets, NOT_NEWLINE, WORD_CHARACTERS] : sets);
		const { classFlags: members } = this.alphabet;
		this.contexts = new Uint8Array(this.alphabet.size).fill(OTHER_CHARACTER);
		if (hasAssertions) {
			const [notNewline, wordCharacters] = members.slice(-2);
			this.contexts.forEach((_, characterClass) => {
				if (notNewline![characterClass] === 0) this.contexts[characterClass] = LINE_FEED;
				else if (wordCharacters![characterClass] === 1) this.contexts[characterClass] = WORD_CHARACTER;
			});
		}
		this.consumesByClass = Array.from({ length: this.alphabet.size }, (_, characterClass) =>
			Uint8Array.from(nodes, instruction =>
				instruction.op === 'set' ? members[instruction.set]![characterClass]! : 0,
			),
		);
		const consumers: number[][] = nodes.map(() => []);
		const passers: number[][] = nodes.map(() => []);
		for (const [node, instruction] of nodes.entries()) {
			if (instruction.op === 'set') consumers[this.nodeOf[instruction.next]!]!.push(node);
			else if (instruction.op === 'assert') passers[this.nodeOf[instruction.next]!]!.push(node);
			else if (instruction.op === 'choice')
				for (const target of instruction.targets) passers[this.nodeOf[target]!]!.push(node);
		}
		this.consumers = edgesOf(consumers);
		this.passers = edgesOf(passers);
		this.idleNodes = this.#findIdleNodes();
	}

	/** Reports whether an assertion holds between two contexts. */
	assertionHolds(assertion: RegexpAssertion, contextBefore: number, contextAfter: number): boolean {
		switch (assertion) {
			case 'text-start':
				return contextBefore === NO_CONTEXT;
			case 'text-end':
				return contextAfter === NO_CONTEXT;
			case 'line-start':
				return contextBefore === NO_CONTEXT || contextBefore === LINE_FEED;
			case 'line-end':
				return contextAfter === NO_CONTEXT || contextAfter === LINE_FEED;
			case 'word-boundary':
				return (contextBefore === WORD_CHARACTER) !== (contextAfter === WORD_CHARACTER);
			case 'no-word-boundary':
				return (contextBefore === WORD_CHARACTER) === (contextAfter === WORD_CHARACTER);
		}
	}

	#findIdleNodes(): ReadonlySet<number> | undefined {
		const idleNodes = new Set([this.end]);
		for (const node of idleNodes) {
			const { offsets } = this.consumers;
			if (node === this.start || offsets[node] !== offsets[node + 1]) return undefined;
			for (let edge = this.passers.offsets[node]!; edge < this.passers.offsets[node + 1]!; edge++) {
				const passer = this.passers.targets[edge]!;
				if (this.assertions[passer] !== 'text-end') idleNodes.add(passer);
			}
		}
		return idleNodes;
	}
}

function edgesOf(lists: readonly (readonly number[])[]): GraphEdges {
	const offsets = new Int32Array(lists.length + 1);
	lists.forEach((list, index) => {
		offsets[index + 1] = offsets[index]! + list.length;
	});
	return { offsets, targets: Int32Array.from(lists.flat()) };
}
