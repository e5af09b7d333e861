/**
 * The Glushkov automaton of a regular expression, which has one state per character set in the expression. It counts the links from
 * one state to another, because a backtracking engine tries each link separately.
 */
import type { CharacterSet } from './character-sets.ts';
import { isNullable, type RegexpNode } from './regexp-node.ts';

/** The number of paths to each state. */
export type PathCounts = ReadonlyMap<number, number>;

/** Describes how the matches of a part of an expression can begin and end. */
export interface AutomatonPart {
	/** Number of ways to match the empty string at any position. */
	readonly nullable: number;
	/** Number of ways to match the empty string only at the beginning of the subject. */
	readonly nullableAtStart: number;
	/** States that can come first at any position. */
	readonly firstStates: PathCounts;
	/** States that can come first only at the beginning of the subject. */
	readonly firstAtStart: PathCounts;
	readonly lastStates: PathCounts;
}

const NO_PATHS: PathCounts = new Map();
const EMPTY_PART: AutomatonPart = {
	nullable: 1,
	nullableAtStart: 0,
	firstStates: NO_PATHS,
	firstAtStart: NO_PATHS,
	lastStates: NO_PATHS,
};
/** Size limits. If an expression exceeds one of them, its automaton is incomplete. */
const MAX_STATES = 500;
const MAX_RANGES = 20_000;
const MAX_WORK_STEPS = 100_000;
const LARGE_COUNT = 8;

/** The automaton. Assertions other than the beginning of the text are assumed to hold everywhere. */
export class GlushkovAutomaton {
	readonly sets: CharacterSet[] = [];
	/** For each state, the states that can follow it, with the number of links to each. */
	readonly followers: Map<number, number>[] = [];
	readonly rootPart: AutomatonPart;
	/** True if the expression was too large, so that the automaton is incomplete. */
	tooLarge = false;
	readonly #maxCount: number;
	#workSteps = 0;
	#rangeCount = 0;

	/**
	 * With `all`, every repetition is written out, which can take many states. With `small`, repetitions of more than {@link
	 * LARGE_COUNT} are treated as unlimited: the automaton then accepts more texts, and each of them by at least as many paths.
	 */
	constructor(root: RegexpNode, repetitions: 'all' | 'small') {
		this.#maxCount = repetitions === 'all' ? Infinity : LARGE_COUNT;
		// The end of the expression counts as a character set, because the engine has to try it as well.
		const endNode: RegexpNode = { kind: 'set', ranges: [] };
		this.rootPart = this.#buildPart({ kind: 'cat', children: [root, endNode] });
	}

	#buildPart(node: RegexpNode): AutomatonPart {
		if (this.sets.length > MAX_STATES || this.#rangeCount > MAX_RANGES || this.#workSteps > MAX_WORK_STEPS)
			this.tooLarge = true;
		if (this.tooLarge) return EMPTY_PART;
		switch (node.kind) {
			case 'assert':
				return node.assertion === 'text-start' ? { ...EMPTY_PART, nullable: 0, nullableAtStart: 1 } : EMPTY_PART;
			case 'set': {
				const singleState = new Map([[this.sets.push(node.ranges) - 1, 1]]);
				this.followers.push(new Map());
				this.#rangeCount += node.ranges.length;
				return { ...EMPTY_PART, nullable: 0, firstStates: singleState, lastStates: singleState };
			}
			case 'group':
				return this.#buildPart(node.child);
			case 'cat':
				return node.children.reduce<AutomatonPart>(
					(precedingPart, child) => this.#concatenate(precedingPart, this.#buildPart(child)),
					EMPTY_PART,
				);
			case 'alt':
				return node.children.map(child => this.#buildPart(child)).reduce((a, b) => this.#alternate(a, b));
			case 'repeat':
				// Each iteration that can be empty adds another path, so the number of iterations matters.
				if (node.max <= this.#maxCount || isNullable(node.child)) return this.#repeat(node.child, node.min, node.max);
				return this.#repeat(node.child, Math.min(node.min, 1), Infinity);
		}
	}

	#alternate(a: AutomatonPart, b: AutomatonPart): AutomatonPart {
		return {
			nullable: a.nullable + b.nullable,
			nullableAtStart: a.nullableAtStart + b.nullableAtStart,
			firstStates: this.#addCounts(a.firstStates, b.firstStates),
			firstAtStart: this.#addCounts(a.firstAtStart, b.firstAtStart),
			lastStates: this.#addCounts(a.lastStates, b.lastStates),
		};
	}

	#concatenate(a: AutomatonPart, b: AutomatonPart): AutomatonPart {
		this.#addLinks(a.lastStates, b.firstStates, 1);
		return {
			nullable: a.nullable * b.nullable,
			nullableAtStart: a.nullable * b.nullableAtStart + a.nullableAtStart * (b.nullable + b.nullableAtStart),
			firstStates: this.#addCounts(a.firstStates, b.firstStates, a.nullable),
			firstAtStart: this.#addCounts(
				this.#addCounts(a.firstAtStart, b.firstAtStart, a.nullable + a.nullableAtStart),
				b.firstStates,
				a.nullableAtStart,
			),
			lastStates: this.#addCounts(b.lastStates, a.lastStates, b.nullable),
		};
	}

	#repeat(node: RegexpNode, min: number, max: number): AutomatonPart {
		let required = EMPTY_PART;
		for (let i = 0; i < min && !this.tooLarge; i++) required = this.#concatenate(required, this.#buildPart(node));
		if (max !== Infinity) {
			// `x{0,2}` is `(?:x(?:x)?)?`.
			let optional = EMPTY_PART;
			for (let i = min; i < max && !this.tooLarge; i++) {
				const { nullable, ...otherFields } = this.#concatenate(this.#buildPart(node), optional);
				optional = { ...otherFields, nullable: nullable + 1 };
			}
			return this.#concatenate(required, optional);
		}
		const { nullable, ...loop } = this.#buildPart(node);
		// The engine also tries an empty iteration before it gives up.
		this.#addLinks(loop.lastStates, loop.firstStates, 1 + nullable);
		return this.#concatenate(required, { ...loop, nullable: nullable + 1 });
	}

	#addCounts(a: PathCounts, b: PathCounts, factor = 1): PathCounts {
		if (factor === 0 || b.size === 0) return a;
		if (a.size === 0 && factor === 1) return b;
		this.#workSteps += a.size + b.size;
		const sum = new Map(a);
		for (const [state, paths] of b) sum.set(state, (sum.get(state) ?? 0) + factor * paths);
		return sum;
	}

	#addLinks(sources: PathCounts, targets: PathCounts, factor: number): void {
		this.#workSteps += sources.size * targets.size;
		if (this.#workSteps > MAX_WORK_STEPS) return;
		for (const [source, pathsBefore] of sources) {
			const followers = this.followers[source]!;
			for (const [target, paths] of targets)
				followers.set(target, (followers.get(target) ?? 0) + factor * pathsBefore * paths);
		}
	}
}
