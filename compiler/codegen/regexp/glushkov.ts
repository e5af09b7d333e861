/**
 * The Glushkov automaton of an expression, which has one state per character set in the expression. It counts the links from one
 * state to another, because a backtracking engine tries each of them separately.
 */
import type { CharacterSet } from './character-sets.ts';
import { isNullable, type RegexpNode } from './regexp-node.ts';

/** States, with the number of paths to each. */
export type PathCounts = ReadonlyMap<number, number>;

/** How a part of an expression can begin and end. */
export interface AutomatonPart {
	/** Number of ways to match the empty string at any position. */
	readonly nullable: number;
	/** Number of ways to match the empty string that exist only at the beginning of the subject. */
	readonly nullableAtStart: number;
	/** States that can come first at any position. */
	readonly first: PathCounts;
	/** States that can come first only at the beginning of the subject. */
	readonly firstAtStart: PathCounts;
	readonly last: PathCounts;
}

const NO_WAYS: PathCounts = new Map();
const NOTHING: AutomatonPart = {
	nullable: 1,
	nullableAtStart: 0,
	first: NO_WAYS,
	firstAtStart: NO_WAYS,
	last: NO_WAYS,
};
/** Size limits. The automaton of an expression beyond them is incomplete. */
const MAX_STATES = 500;
const MAX_RANGES = 20_000;
const MAX_WORK = 100_000;
const LARGE_COUNT = 8;

/** The automaton. Assertions other than the beginning of the text are assumed to hold everywhere. */
export class GlushkovAutomaton {
	readonly sets: CharacterSet[] = [];
	/** For each state, the states that can follow it. */
	readonly follow: Map<number, number>[] = [];
	readonly whole: AutomatonPart;
	/** True if the expression was too large, so that the automaton is incomplete. */
	tooLarge = false;
	readonly #largest: number;
	#work = 0;
	#ranges = 0;

	/**
	 * With `all`, every repetition is written out, which can take many states. With `small`, repetitions of more than
	 * {@link LARGE_COUNT} are treated as unlimited: the automaton then accepts more texts, and each by at least as many paths.
	 */
	constructor(root: RegexpNode, counts: 'all' | 'small') {
		this.#largest = counts === 'all' ? Infinity : LARGE_COUNT;
		// The engine has to try the end of the expression as it tries a character.
		const end: RegexpNode = { kind: 'set', ranges: [] };
		this.whole = this.#part({ kind: 'cat', of: [root, end] });
	}

	#part(node: RegexpNode): AutomatonPart {
		if (this.sets.length > MAX_STATES || this.#ranges > MAX_RANGES || this.#work > MAX_WORK) this.tooLarge = true;
		if (this.tooLarge) return NOTHING;
		switch (node.kind) {
			case 'assert':
				return node.assertion === 'text-start' ? { ...NOTHING, nullable: 0, nullableAtStart: 1 } : NOTHING;
			case 'set': {
				const only = new Map([[this.sets.push(node.ranges) - 1, 1]]);
				this.follow.push(new Map());
				this.#ranges += node.ranges.length;
				return { ...NOTHING, nullable: 0, first: only, last: only };
			}
			case 'group':
				return this.#part(node.of);
			case 'cat':
				return node.of.reduce<AutomatonPart>((before, child) => this.#join(before, this.#part(child)), NOTHING);
			case 'alt':
				return node.of.map(child => this.#part(child)).reduce((a, b) => this.#both(a, b));
			case 'repeat':
				// Each iteration that can be empty adds another path, so their number matters.
				if (node.max <= this.#largest || isNullable(node.of)) return this.#repeat(node.of, node.min, node.max);
				return this.#repeat(node.of, Math.min(node.min, 1), Infinity);
		}
	}

	#both(a: AutomatonPart, b: AutomatonPart): AutomatonPart {
		return {
			nullable: a.nullable + b.nullable,
			nullableAtStart: a.nullableAtStart + b.nullableAtStart,
			first: this.#sum(a.first, b.first),
			firstAtStart: this.#sum(a.firstAtStart, b.firstAtStart),
			last: this.#sum(a.last, b.last),
		};
	}

	#join(a: AutomatonPart, b: AutomatonPart): AutomatonPart {
		this.#link(a.last, b.first, 1);
		return {
			nullable: a.nullable * b.nullable,
			nullableAtStart: a.nullable * b.nullableAtStart + a.nullableAtStart * (b.nullable + b.nullableAtStart),
			first: this.#sum(a.first, b.first, a.nullable),
			firstAtStart: this.#sum(
				this.#sum(a.firstAtStart, b.firstAtStart, a.nullable + a.nullableAtStart),
				b.first,
				a.nullableAtStart,
			),
			last: this.#sum(b.last, a.last, b.nullable),
		};
	}

	#repeat(node: RegexpNode, min: number, max: number): AutomatonPart {
		let required = NOTHING;
		for (let i = 0; i < min && !this.tooLarge; i++) required = this.#join(required, this.#part(node));
		if (max !== Infinity) {
			// `x{0,2}` is `(?:x(?:x)?)?`.
			let optional = NOTHING;
			for (let i = min; i < max && !this.tooLarge; i++) {
				const { nullable, ...rest } = this.#join(this.#part(node), optional);
				optional = { ...rest, nullable: nullable + 1 };
			}
			return this.#join(required, optional);
		}
		const { nullable, ...loop } = this.#part(node);
		// The engine tries an empty iteration, too, before it gives up.
		this.#link(loop.last, loop.first, 1 + nullable);
		return this.#join(required, { ...loop, nullable: nullable + 1 });
	}

	#sum(a: PathCounts, b: PathCounts, factor = 1): PathCounts {
		if (factor === 0 || b.size === 0) return a;
		if (a.size === 0 && factor === 1) return b;
		this.#work += a.size + b.size;
		const sum = new Map(a);
		for (const [state, ways] of b) sum.set(state, (sum.get(state) ?? 0) + factor * ways);
		return sum;
	}

	#link(from: PathCounts, to: PathCounts, factor: number): void {
		this.#work += from.size * to.size;
		if (this.#work > MAX_WORK) return;
		for (const [before, waysBefore] of from) {
			const follow = this.follow[before]!;
			for (const [after, ways] of to) follow.set(after, (follow.get(after) ?? 0) + factor * waysBefore * ways);
		}
	}
}
