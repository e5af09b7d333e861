/**
 * The Glushkov automaton of a regular expression, which has one state per character set in the expression. It counts the links from
 * one state to another, because a backtracking engine tries each link separately.
 */
import type { CharacterSet } from './character-sets.ts';
import { isNullable, type RegexpNode } from './regexp-node.ts';

/** The number of paths to each state. */
export type PathCounts = ReadonlyMap<number, number>;

/** How the matches of one part of an expression can begin and end. */
export interface AutomatonPart {
	/** Number of ways to match the empty string at any position. */
	readonly emptyMatches: number;
	/** Number of ways to match the empty string only at the beginning of the subject. */
	readonly emptyMatchesAtStart: number;
	/** States that can come first at any position. */
	readonly firstStates: PathCounts;
	/** States that can come first only at the beginning of the subject. */
	readonly firstAtStart: PathCounts;
	readonly lastStates: PathCounts;
}

const NO_PATHS: PathCounts = new Map();
const EMPTY_PART: AutomatonPart = {
	emptyMatches: 1,
	emptyMatchesAtStart: 0,
	firstStates: NO_PATHS,
	firstAtStart: NO_PATHS,
	lastStates: NO_PATHS,
};
/** Maximum number of states, and of ranges in their character sets. Beyond them, the automaton is incomplete. */
const MAX_STATES = 500;
const MAX_RANGES = 20_000;
const MAX_WORK_STEPS = 100_000;
const LARGE_REPEAT_COUNT = 8;

/** The Glushkov automaton. Assertions other than the beginning of the text are assumed to hold everywhere. */
export class GlushkovAutomaton {
	readonly sets: CharacterSet[] = [];
	/** For each state, the states that can follow it, with the number of links to each. */
	readonly followersByState: Map<number, number>[] = [];
	readonly rootPart: AutomatonPart;
	/** True if the expression was too large, so that the automaton is incomplete. */
	isTooLarge = false;
	readonly #maxRepeatCount: number;
	#workSteps = 0;
	#rangeCount = 0;

	/**
	 * With `all`, every repetition is written out, which can take many states. With `small`, repetitions of more than {@link
	 * LARGE_REPEAT_COUNT} are treated as unlimited: the automaton then accepts more texts, and each of them by at least as many
	 * paths.
	 */
	constructor(root: RegexpNode, repetitions: 'all' | 'small') {
		this.#maxRepeatCount = repetitions === 'all' ? Infinity : LARGE_REPEAT_COUNT;
		// The end of the expression gets a state of its own, with an empty character set, because the engine has to try it as well.
		const endNode: RegexpNode = { kind: 'set', ranges: [] };
		this.rootPart = this.#buildPart({ kind: 'cat', children: [root, endNode] });
	}

	#buildPart(node: RegexpNode): AutomatonPart {
		if (this.sets.length > MAX_STATES || this.#rangeCount > MAX_RANGES || this.#workSteps > MAX_WORK_STEPS)
			this.isTooLarge = true;
		if (this.isTooLarge) return EMPTY_PART;
		switch (node.kind) {
			case 'assert':
				return node.assertion === 'text-start'
					? { ...EMPTY_PART, emptyMatches: 0, emptyMatchesAtStart: 1 }
					: EMPTY_PART;
			case 'set': {
				const singleState = new Map([[this.sets.push(node.ranges) - 1, 1]]);
				this.followersByState.push(new Map());
				this.#rangeCount += node.ranges.length;
				return { ...EMPTY_PART, emptyMatches: 0, firstStates: singleState, lastStates: singleState };
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
				if (node.max <= this.#maxRepeatCount || isNullable(node.child))
					return this.#repeat(node.child, node.min, node.max);
				return this.#repeat(node.child, Math.min(node.min, 1), Infinity);
		}
	}

	#alternate(a: AutomatonPart, b: AutomatonPart): AutomatonPart {
		return {
			emptyMatches: a.emptyMatches + b.emptyMatches,
			emptyMatchesAtStart: a.emptyMatchesAtStart + b.emptyMatchesAtStart,
			firstStates: this.#addCounts(a.firstStates, b.firstStates),
			firstAtStart: this.#addCounts(a.firstAtStart, b.firstAtStart),
			lastStates: this.#addCounts(a.lastStates, b.lastStates),
		};
	}

	#concatenate(a: AutomatonPart, b: AutomatonPart): AutomatonPart {
		this.#addLinks(a.lastStates, b.firstStates, 1);
		return {
			emptyMatches: a.emptyMatches * b.emptyMatches,
			emptyMatchesAtStart:
				a.emptyMatches * b.emptyMatchesAtStart + a.emptyMatchesAtStart * (b.emptyMatches + b.emptyMatchesAtStart),
			firstStates: this.#addCounts(a.firstStates, b.firstStates, a.emptyMatches),
			firstAtStart: this.#addCounts(
				this.#addCounts(a.firstAtStart, b.firstAtStart, a.emptyMatches + a.emptyMatchesAtStart),
				b.firstStates,
				a.emptyMatchesAtStart,
			),
			lastStates: this.#addCounts(b.lastStates, a.lastStates, b.emptyMatches),
		};
	}

	#repeat(node: RegexpNode, min: number, max: number): AutomatonPart {
		let requiredPart = EMPTY_PART;
		for (let i = 0; i < min && !this.isTooLarge; i++)
			requiredPart = this.#concatenate(requiredPart, this.#buildPart(node));
		if (max !== Infinity) {
			// `x{0,2}` is `(?:x(?:x)?)?`.
			let optionalPart = EMPTY_PART;
			for (let i = min; i < max && !this.isTooLarge; i++) {
				const { emptyMatches, ...otherFields } = this.#concatenate(this.#buildPart(node), optionalPart);
				optionalPart = { ...otherFields, emptyMatches: emptyMatches + 1 };
			}
			return this.#concatenate(requiredPart, optionalPart);
		}
		const { emptyMatches: nullable, ...loopPart } = this.#buildPart(node);
		// The engine also tries an empty iteration before it gives up.
		this.#addLinks(loopPart.lastStates, loopPart.firstStates, 1 + nullable);
		return this.#concatenate(requiredPart, { ...loopPart, emptyMatches: nullable + 1 });
	}

	#addCounts(a: PathCounts, b: PathCounts, factor = 1): PathCounts {
		if (factor === 0 || b.size === 0) return a;
		if (a.size === 0 && factor === 1) return b;
		this.#workSteps += a.size + b.size;
		const summedCounts = new Map(a);
		for (const [state, paths] of b) summedCounts.set(state, (summedCounts.get(state) ?? 0) + factor * paths);
		return summedCounts;
	}

	#addLinks(sources: PathCounts, targets: PathCounts, factor: number): void {
		this.#workSteps += sources.size * targets.size;
		if (this.#workSteps > MAX_WORK_STEPS) return;
		for (const [source, sourcePaths] of sources) {
			const followers = this.followersByState[source]!;
			for (const [target, paths] of targets)
				followers.set(target, (followers.get(target) ?? 0) + factor * sourcePaths * paths);
		}
	}
}
