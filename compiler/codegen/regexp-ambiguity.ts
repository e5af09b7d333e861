/**
 * Finds regular expressions that a backtracking engine can need exponential time for: those in which one text can be
 * taken through a loop in two ways (exponential ambiguity of the position automaton). Ambiguity that is only
 * polynomial, such as `.*a.*b`, is let through: subjects are bounded by the size of a request's head.
 */

/** Inclusive ranges of code points. */
export type Ranges = readonly (readonly [low: number, high: number])[];

/** An expression as the check sees it: groups and assertions are gone. */
export type RegexpNode =
	| { readonly kind: 'empty' }
	| { readonly kind: 'set'; readonly ranges: Ranges }
	| { readonly kind: 'cat' | 'alt'; readonly of: readonly RegexpNode[] }
	| { readonly kind: 'repeat'; readonly of: RegexpNode; readonly min: number; readonly max: number };

/** Bounded repeats are unrolled this far; what is beyond counts as unbounded. */
const UNROLL = 4;
/** Positions in one loop, and in the whole expression, up to which the check is made. */
const MAX_LOOP = 160;
const MAX_POSITIONS = 4000;

/** Steps of the check, so that an expression made of many alternatives does not itself take long. */
const MAX_STEPS = 4_000_000;

/** Says in words why the expression is refused, or undefined when it is not. */
export function ambiguousLoop(node: RegexpNode): string | undefined {
	const automaton = new Automaton();
	automaton.add(node);
	if (automaton.tooLarge) return 'it is too large to be checked';
	for (const loop of loops(automaton.follow)) {
		if (loop.length > MAX_LOOP) return 'a repetition in it is too large to be checked';
		switch (isAmbiguous(automaton, loop)) {
			case true:
				return 'a repetition in it can match the same text in more than one way';
			case undefined:
				return 'a repetition in it is too large to be checked';
		}
	}
	return undefined;
}

/**
 * True if two repetitions of the expression can share one text in many ways, and what stands behind them can fail: then
 * an engine tries all of them, and takes time with the square of the text's length or worse. `toTheEnd`: it has to match
 * up to the end of the text. Looks at repetitions of one character set, which are nearly all.
 */
export function sharedLoops(node: RegexpNode, toTheEnd: boolean): boolean {
	const automaton = new Automaton();
	const { last } = automaton.add(node);
	if (automaton.tooLarge) return false;
	const { sets, follow } = automaton;
	const loops = sets.flatMap((_, position) => (follow[position]!.has(position) ? [position] : []));
	for (const second of loops) {
		const ends = last.includes(second);
		if (ends && (!toTheEnd || takesNearlyAll(sets[second]!))) continue;
		for (const first of loops) {
			if (first === second || !intersect(sets[first]!, sets[second]!)) continue;
			const both = intersection(sets[first]!, sets[second]!);
			if (leads(automaton, first, second, both)) return true;
		}
	}
	return false;
}

/** True if a text of these characters leads from one position to another. */
function leads({ sets, follow }: Automaton, from: number, to: number, characters: Ranges): boolean {
	const seen = new Set([from]);
	const queue = [from];
	for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
		for (const next of follow[at]!.keys()) {
			if (next === to) return true;
			if (seen.has(next) || !intersect(sets[next]!, characters)) continue;
			seen.add(next);
			queue.push(next);
		}
	}
	return false;
}

function intersection(a: Ranges, b: Ranges): Ranges {
	return a.flatMap(([low, high]) =>
		b.flatMap(([otherLow, otherHigh]) => {
			const [from, to] = [Math.max(low, otherLow), Math.min(high, otherHigh)];
			return from <= to ? [[from, to] as const] : [];
		}),
	);
}

function takesNearlyAll(ranges: Ranges): boolean {
	return ranges.reduce((sum, [low, high]) => sum + high - low + 1, 0) > 0x10ff00;
}

interface Part {
	readonly nullable: boolean;
	readonly first: readonly number[];
	readonly last: readonly number[];
}

const NOTHING: Part = { nullable: true, first: [], last: [] };

/** Glushkov's automaton: a state for each character set; `follow` counts in how many ways one can come after another. */
class Automaton {
	readonly sets: Ranges[] = [];
	readonly follow: Map<number, number>[] = [];
	tooLarge = false;

	add(node: RegexpNode): Part {
		if (this.sets.length > MAX_POSITIONS) this.tooLarge = true;
		if (this.tooLarge) return NOTHING;
		switch (node.kind) {
			case 'empty':
				return NOTHING;
			case 'set': {
				const position = this.sets.push(node.ranges) - 1;
				this.follow.push(new Map());
				return { nullable: false, first: [position], last: [position] };
			}
			case 'cat':
				return node.of.reduce<Part>((before, child) => this.#join(before, this.add(child)), NOTHING);
			case 'alt': {
				const parts = node.of.map(child => this.add(child));
				return {
					nullable: parts.some(part => part.nullable),
					first: parts.flatMap(part => part.first),
					last: parts.flatMap(part => part.last),
				};
			}
			case 'repeat':
				return this.#repeat(node.of, node.min, node.max);
		}
	}

	#join(a: Part, b: Part): Part {
		for (const from of a.last) for (const to of b.first) this.#link(from, to);
		return {
			nullable: a.nullable && b.nullable,
			first: a.nullable ? [...a.first, ...b.first] : a.first,
			last: b.nullable ? [...a.last, ...b.last] : b.last,
		};
	}

	#repeat(node: RegexpNode, min: number, max: number): Part {
		if (max === 0) return NOTHING;
		let whole = NOTHING;
		const required = Math.min(min, UNROLL);
		const unbounded = max - min > UNROLL;
		// The last of the required copies carries the loop, as in `x+`.
		for (let i = 0; i < required - (unbounded && required > 0 ? 1 : 0); i++) whole = this.#join(whole, this.add(node));
		if (unbounded) {
			const loop = this.add(node);
			for (const from of loop.last) for (const to of loop.first) this.#link(from, to);
			return this.#join(whole, required > 0 ? loop : { ...loop, nullable: true });
		}
		// `x{0,2}` is `(x(x)?)?`: only the first optional copy can be left out with those after it.
		let optional = NOTHING;
		for (let i = 0; i < max - min; i++) {
			const copy = this.add(node);
			optional = { ...this.#join(copy, optional), nullable: true };
		}
		return this.#join(whole, optional);
	}

	#link(from: number, to: number): void {
		const follow = this.follow[from]!;
		follow.set(to, (follow.get(to) ?? 0) + 1);
	}
}

/** Strongly connected sets of positions that hold a cycle. */
function loops(follow: readonly Map<number, number>[]): number[][] {
	const index = new Int32Array(follow.length).fill(-1);
	const low = new Int32Array(follow.length);
	const onStack = new Uint8Array(follow.length);
	const stack: number[] = [];
	const found: number[][] = [];
	let next = 0;
	for (let root = 0; root < follow.length; root++) {
		if (index[root] !== -1) continue;
		const work: { position: number; rest: Iterator<number> }[] = [];
		const enter = (position: number) => {
			index[position] = low[position] = next++;
			stack.push(position);
			onStack[position] = 1;
			work.push({ position, rest: follow[position]!.keys() });
		};
		enter(root);
		while (work.length > 0) {
			const { position, rest } = work.at(-1)!;
			const step = rest.next();
			if (!step.done) {
				if (index[step.value] === -1) enter(step.value);
				else if (onStack[step.value]) low[position] = Math.min(low[position]!, index[step.value]!);
				continue;
			}
			work.pop();
			const parent = work.at(-1);
			if (parent) low[parent.position] = Math.min(low[parent.position]!, low[position]!);
			if (low[position] !== index[position]) continue;
			const members = stack.splice(stack.lastIndexOf(position));
			for (const member of members) onStack[member] = 0;
			if (members.length > 1 || follow[position]!.has(position)) found.push(members);
		}
	}
	return found;
}

/** True if some text leads from a position of the loop back to itself on two different ways; undefined when that takes too long to tell. */
function isAmbiguous(automaton: Automaton, loop: readonly number[]): boolean | undefined {
	const size = loop.length;
	const indexOf = new Map(loop.map((position, i) => [position, i]));
	const edges: number[][] = [];
	for (const position of loop) {
		const targets: number[] = [];
		for (const [target, ways] of automaton.follow[position]!) {
			const at = indexOf.get(target);
			if (at === undefined) continue;
			if (ways > 1) return true;
			targets.push(at);
		}
		edges.push(targets);
	}
	const overlap = new Uint8Array(size * size);
	for (let a = 0; a < size; a++) {
		for (let b = 0; b < size; b++) {
			overlap[a * size + b] = intersect(automaton.sets[loop[a]!]!, automaton.sets[loop[b]!]!) ? 1 : 0;
		}
	}
	const backward = edges.map((): number[] => []);
	edges.forEach((targets, from) => {
		for (const to of targets) backward[to]!.push(from);
	});
	const forth = reachable(edges, size, (a, b) => overlap[a * size + b] === 1);
	// Walking back, it is the pair one comes from that has to read the same text; pairs off the diagonal all do.
	const back = reachable(backward, size, (a, b) => overlap[a * size + b] === 1);
	if (!forth || !back) return undefined;
	for (let a = 0; a < size; a++) {
		for (let b = 0; b < size; b++) if (a !== b && forth[a * size + b] && back[a * size + b]) return true;
	}
	return false;
}

/** Pairs of positions that can be reached together from a pair of equal ones; undefined past the bound of steps. */
function reachable(
	edges: readonly number[][],
	size: number,
	allowed: (a: number, b: number) => boolean,
): Uint8Array | undefined {
	let steps = 0;
	const seen = new Uint8Array(size * size);
	const queue: number[] = [];
	for (let i = 0; i < size; i++) {
		seen[i * size + i] = 1;
		queue.push(i * size + i);
	}
	for (let pair = queue.pop(); pair !== undefined; pair = queue.pop()) {
		const a = Math.floor(pair / size);
		steps += edges[a]!.length * edges[pair % size]!.length;
		if (steps > MAX_STEPS) return undefined;
		for (const nextA of edges[a]!) {
			for (const nextB of edges[pair % size]!) {
				const next = nextA * size + nextB;
				if (seen[next] || !allowed(nextA, nextB)) continue;
				seen[next] = 1;
				queue.push(next);
			}
		}
	}
	return seen;
}

function intersect(a: Ranges, b: Ranges): boolean {
	return a.some(([low, high]) => b.some(([otherLow, otherHigh]) => low <= otherHigh && otherLow <= high));
}
