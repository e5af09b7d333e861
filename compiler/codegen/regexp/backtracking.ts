/**
 * Finds the subject length up to which a backtracking engine, such as the engine of `RegExp`, is fast for an expression.
 *
 * In the worst case, such an engine tries every possible path through the expression. This analysis lengthens prefixes of subjects
 * character by character. For each prefix, it computes which states can follow, and how many paths lead to each state. If no
 * longer prefix gives a new result, all results are known: the largest number of paths in any of them is the most that the engine
 * tries per character, whatever the subject.
 */
import { Alphabet } from './alphabet.ts';
import { ANY_CHARACTER, NOT_NEWLINE } from './character-sets.ts';
import { GlushkovAutomaton } from './glushkov.ts';
import type { RegexpNode } from './regexp-node.ts';

/**
 * `RegExp` is fast if it tries no more paths than this: per character of a long subject, or in total for a short one. It takes 1
 * or 2 ns per path.
 */
const MAX_CHARACTER_PATHS = 250;
const MAX_SHORT_SUBJECT_PATHS = 20_000;
/** Nesting depth of an expression up to which a path takes 1 or 2 ns. On deeper expressions, paths take proportionally longer. */
const USUAL_DEPTH = 4;
/**
 * Number of steps after which the analysis stops. `RegExp` is then assumed to be slow for subjects longer than those analyzed.
 */
const MAX_ANALYSIS_STEPS = 200_000;

/**
 * Where a search must try to match: at every position, only at the start of each line (if the expression begins with `.*`), or
 * only at the start of the text (if it begins with `(?s).*`).
 */
export type MatchStarts = 'anywhere' | 'lines' | 'text';

/** Returns where a search for the expression must attempt a match. */
export function matchStartsOf(node: RegexpNode): MatchStarts {
	switch (node.kind) {
		case 'cat':
			return node.children.length > 0 ? matchStartsOf(node.children[0]!) : 'anywhere';
		case 'group':
			return matchStartsOf(node.child);
		case 'repeat':
			if (node.max !== Infinity || node.child.kind !== 'set') return 'anywhere';
			if (node.child.ranges === NOT_NEWLINE) return 'lines';
			return node.child.ranges === ANY_CHARACTER ? 'text' : 'anywhere';
		default:
			return 'anywhere';
	}
}

/**
 * Returns the length of subjects, in UTF-16 units, up to which `RegExp` is fast for an expression. The result is Infinity if
 * `RegExp` never takes more than 1 µs per character; otherwise it is the length for which `RegExp` takes about 50 µs in total. The
 * result is −1 if the expression is so large that even compiling it could take long.
 */
export function maxFastSubjectLength(root: RegexpNode, starts: MatchStarts): number {
	let automaton = new GlushkovAutomaton(root, 'all');
	if (automaton.isTooLarge) automaton = new GlushkovAutomaton(root, 'small');
	if (automaton.isTooLarge) return -1;
	const { sets, followersByState, rootPart } = automaton;
	const depthFactor = Math.max(USUAL_DEPTH, nestingDepthOf(root)) / USUAL_DEPTH;
	const alphabet = new Alphabet([...sets, NOT_NEWLINE]);
	const isLineFeed = alphabet.classFlags.at(-1)!.map(isInSet => 1 - isInSet);
	const linksByState = followersByState.map(followers => [...followers]);
	const firstStates = [...rootPart.firstStates];
	/** The prefixes found so far, except those that another prefix covers (see {@link covers}). */
	let knownPrefixes: PrefixStates[] = [];
	const countsByState = new Float64Array(sets.length);
	let stepCount = 0;
	/** Maximum number of paths that any prefix so far has. */
	let maxPaths = 0;
	/** The sum of `maxPaths` over all lengths so far. */
	let totalPaths = 0;
	let maxFastLength: number | undefined;
	/** New prefixes of the current length. */
	let prefixes = [prefixStatesOf([...firstStates, ...rootPart.firstAtStart], countsByState)];
	for (let length = 0; ; length++) {
		for (const { totalPaths: total } of prefixes) maxPaths = Math.max(maxPaths, depthFactor * total);
		totalPaths += maxPaths;
		if (totalPaths > MAX_SHORT_SUBJECT_PATHS) maxFastLength ??= length - 1;
		if (stepCount > MAX_ANALYSIS_STEPS || (maxFastLength !== undefined && maxPaths > MAX_CHARACTER_PATHS))
			return maxFastLength ?? length;
		const longerPrefixes: PrefixStates[] = [];
		for (const { states, pathCounts } of prefixes) {
			for (let characterClass = 0; characterClass < alphabet.classCount; characterClass++) {
				const nextCounts =
					starts === 'anywhere' || (starts === 'lines' && isLineFeed[characterClass] === 1) ? [...firstStates] : [];
				for (let index = 0; index < states.length; index++) {
					const state = states[index]!;
					if (alphabet.classFlags[state]![characterClass] === 0) continue;
					for (const [target, count] of linksByState[state]!) nextCounts.push([target, count * pathCounts[index]!]);
				}
				const prefix = prefixStatesOf(nextCounts, countsByState);
				stepCount += states.length + nextCounts.length + knownPrefixes.length;
				if (knownPrefixes.some(knownPrefix => covers(knownPrefix, prefix))) continue;
				knownPrefixes = knownPrefixes.filter(knownPrefix => !covers(prefix, knownPrefix));
				knownPrefixes.push(prefix);
				longerPrefixes.push(prefix);
			}
		}
		if (longerPrefixes.length === 0) {
			return maxPaths <= MAX_CHARACTER_PATHS
				? Infinity
				: length + Math.floor((MAX_SHORT_SUBJECT_PATHS - totalPaths) / maxPaths);
		}
		prefixes = longerPrefixes.filter(
			candidate => !longerPrefixes.some(other => other !== candidate && covers(other, candidate)),
		);
	}
}

/** A group of prefixes of subjects after which the same states can follow, with the same number of paths to each state. */
interface PrefixStates {
	/** The states that can follow, in ascending order. */
	readonly states: readonly number[];
	/** The number of paths to each state in `states`. */
	readonly pathCounts: readonly number[];
	readonly totalPaths: number;
}

function prefixStatesOf(
	counts: readonly (readonly [state: number, paths: number])[],
	countsByState: Float64Array,
): PrefixStates {
	const states: number[] = [];
	let totalPaths = 0;
	for (const [state, count] of counts) {
		if (countsByState[state] === 0) states.push(state);
		countsByState[state]! += count;
		totalPaths += count;
	}
	states.sort((a, b) => a - b);
	const pathCounts = states.map(state => countsByState[state]!);
	for (const state of states) countsByState[state] = 0;
	return { states, pathCounts, totalPaths };
}

/**
 * Reports whether `other` covers a prefix: every state that can follow the prefix can also follow `other`, by at least as many
 * paths.
 */
function covers(other: PrefixStates, { states, pathCounts, totalPaths: total }: PrefixStates): boolean {
	if (other.totalPaths < total || other.states.length < states.length) return false;
	let otherIndex = 0;
	for (let i = 0; i < states.length; i++) {
		while (otherIndex < other.states.length && other.states[otherIndex]! < states[i]!) otherIndex++;
		if (other.states[otherIndex] !== states[i] || other.pathCounts[otherIndex]! < pathCounts[i]!) return false;
	}
	return true;
}

function nestingDepthOf(node: RegexpNode): number {
	switch (node.kind) {
		case 'cat':
		case 'alt':
			return node.children.reduce((deepest, child) => Math.max(deepest, nestingDepthOf(child)), 0);
		case 'group':
		case 'repeat':
			return 1 + nestingDepthOf(node.child);
		default:
			return 0;
	}
}
