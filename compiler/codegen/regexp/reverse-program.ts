/** A program in the form in which it runs from the end of a subject to its beginning: a graph with reversed edges. */
import { Alphabet } from './alphabet.ts';
import { NOT_NEWLINE, WORD_CHARACTERS } from './character-sets.ts';
import { MATCH_INSTRUCTION, type RegexpInstruction, type RegexpProgram } from './program.ts';
import type { RegexpAssertion } from './regexp-node.ts';

/** What assertions need to know about the character on one side of a position: there is none (`NO_CONTEXT`), or its kind. */
export const NO_CONTEXT = 0;
const LINE_FEED_CONTEXT = 1;
const WORD_CONTEXT = 2;
const OTHER_CONTEXT = 3;
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
	readonly nodeByInstruction: Int32Array;
	readonly nodeCount: number;
	/** The node of the first instruction. */
	readonly startNode: number;
	/** The node of the instruction that ends a match. */
	readonly endNode: number;
	readonly alphabet: Alphabet;
	/** For each class of characters, the context that such a character provides to the positions beside it. */
	readonly contextByClass: Uint8Array;
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

	constructor({ instructions, startInstruction, sets }: RegexpProgram) {
		const nodes: RegexpInstruction[] = [];
		this.nodeByInstruction = new Int32Array(instructions.length);
		for (const [index, instruction] of instructions.entries()) {
			// Programs are built backward, so the node of the instruction after a capture instruction is already known.
			const nextInstruction = instruction.op === 'save' || instruction.op === 'clear' ? instruction.next : undefined;
			this.nodeByInstruction[index] =
				nextInstruction === undefined ? nodes.push(instruction) - 1 : this.nodeByInstruction[nextInstruction]!;
		}
		this.nodeCount = nodes.length;
		this.startNode = this.nodeByInstruction[startInstruction]!;
		this.endNode = this.nodeByInstruction[MATCH_INSTRUCTION]!;
		this.assertions = nodes.map(instruction => (instruction.op === 'assert' ? instruction.assertion : undefined));
		this.looksBack = LOOK_BEHIND_ASSERTIONS.some(assertion => this.assertions.includes(assertion));
		const hasAssertions = this.assertions.some(assertion => assertion !== undefined);
		this.alphabet = new Alphabet(hasAssertions ? [...sets, NOT_NEWLINE, WORD_CHARACTERS] : sets);
		const { classFlags } = this.alphabet;
		this.contextByClass = new Uint8Array(this.alphabet.classCount).fill(OTHER_CONTEXT);
		if (hasAssertions) {
			const [notNewline, wordCharacters] = classFlags.slice(-2);
			this.contextByClass.forEach((_, characterClass) => {
				if (notNewline![characterClass] === 0) this.contextByClass[characterClass] = LINE_FEED_CONTEXT;
				else if (wordCharacters![characterClass] === 1) this.contextByClass[characterClass] = WORD_CONTEXT;
			});
		}
		this.consumesByClass = Array.from({ length: this.alphabet.classCount }, (_, characterClass) =>
			Uint8Array.from(nodes, instruction =>
				instruction.op === 'set' ? classFlags[instruction.set]![characterClass]! : 0,
			),
		);
		const consumersByNode: number[][] = nodes.map(() => []);
		const passersByNode: number[][] = nodes.map(() => []);
		for (const [node, instruction] of nodes.entries()) {
			if (instruction.op === 'set') consumersByNode[this.nodeByInstruction[instruction.next]!]!.push(node);
			else if (instruction.op === 'assert') passersByNode[this.nodeByInstruction[instruction.next]!]!.push(node);
			else if (instruction.op === 'choice')
				for (const target of instruction.targets) passersByNode[this.nodeByInstruction[target]!]!.push(node);
		}
		this.consumers = edgesOf(consumersByNode);
		this.passers = edgesOf(passersByNode);
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
				return contextBefore === NO_CONTEXT || contextBefore === LINE_FEED_CONTEXT;
			case 'line-end':
				return contextAfter === NO_CONTEXT || contextAfter === LINE_FEED_CONTEXT;
			case 'word-boundary':
				return (contextBefore === WORD_CONTEXT) !== (contextAfter === WORD_CONTEXT);
			case 'no-word-boundary':
				return (contextBefore === WORD_CONTEXT) === (contextAfter === WORD_CONTEXT);
		}
	}

	#findIdleNodes(): ReadonlySet<number> | undefined {
		const idleNodes = new Set([this.endNode]);
		for (const node of idleNodes) {
			const { offsets } = this.consumers;
			if (node === this.startNode || offsets[node] !== offsets[node + 1]) return undefined;
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
