/**
 * Finds the subject length up to which a backtracking engine, such as that of `RegExp`, is fast with an expression.
 *
 * In the worst case, such an engine tries every possible path through the expression. This analysis lengthens prefixes of
 * subjects character by character. For each prefix, it computes which states can follow and how many paths lead to each. If there
 * are few such combinations of states, each with few paths, no subject can make the engine try more than that many paths per
 * character.
 */
import { Alphabet } from './alphabet.ts';
import { ANY_CHARACTER, NOT_NEWLINE } from './character-sets.ts';
import { GlushkovAutomaton } from './glushkov.ts';
import type { RegexpNode } from './regexp-node.ts';

/**
 * Maximum number of paths: per character of a long subject, and in total for a short subject. The engine takes 1 or 2 ns for
 * each.
 */
const MAX_WAYS = 250;
const MAX_WAYS_OF_SHORT = 20_000;
/** Nesting depth of most expressions. The engine is slower on deeper ones. */
const USUAL_DEPTH = 4;
/** Number of steps after which the analysis stops. */
const MAX_STEPS = 200_000;

/**
 * Where an expression can start to match. One that begins with `.*` needs to be tried only at the start of a line, and one that
 * begins with `(?s).*` only at the start of the text.
 */
export type MatchStarts = 'anywhere' | 'lines' | 'text';

/** Returns where a search for the expression has to start an attempt. */
export function matchStartsOf(node: RegexpNode): MatchStarts {
	switch (node.kind) {
		case 'cat':
			return node.of.length > 0 ? matchStartsOf(node.of[0]!) : 'anywhere';
		case 'group':
			return matchStartsOf(node.of);
		case 'repeat':
			if (node.max !== Infinity || node.of.kind !== 'set') return 'anywhere';
			if (node.of.ranges === NOT_NEWLINE) return 'lines';
			return node.of.ranges === ANY_CHARACTER ? 'text' : 'anywhere';
		default:
			return 'anywhere';
	}
}

/**
 * Returns the length of subject, in UTF-16 units, up to which `RegExp` is fast with an expression. The result is Infinity if
 * `RegExp` never takes more than 1 µs per character, and otherwise the length for which it takes at most about 50 µs in total.
 * It is -1 if the expression is so large that even compiling it could take long.
 */
export function maxFastSubjectLength(root: RegexpNode, starts: MatchStarts): number {
	let automaton = new GlushkovAutomaton(root, 'all');
	if (automaton.tooLarge) automaton = new GlushkovAutomaton(root, 'small');
	if (automaton.tooLarge) return -1;
	const { sets, follow, whole } = automaton;
	const depth = Math.max(USUAL_DEPTH, depthOf(root)) / USUAL_DEPTH;
	const alphabet = new Alphabet([...sets, NOT_NEWLINE]);
	const isLineFeed = alphabet.members.at(-1)!.map(inside => 1 - inside);
	const links = follow.map(ways => [...ways]);
	const first = [...whole.first];
	/** The prefixes found so far, except those that another prefix covers (see {@link leadsOnLike}). */
	let found: Beginning[] = [];
	const scratch = new Float64Array(sets.length);
	let steps = 0;
	/** Maximum number of paths that any prefix so far has. */
	let most = 0;
	/** The sum of this maximum over all lengths. */
	let altogether = 0;
	let fast: number | undefined;
	/** New prefixes of the current length. */
	let beginnings = [beginningOf([...first, ...whole.firstAtStart], scratch)];
	for (let length = 0; ; length++) {
		for (const { total } of beginnings) most = Math.max(most, depth * total);
		altogether += most;
		if (altogether > MAX_WAYS_OF_SHORT) fast ??= length - 1;
		if (steps > MAX_STEPS || (fast !== undefined && most > MAX_WAYS)) return fast ?? length;
		const longer: Beginning[] = [];
		for (const { states, ways } of beginnings) {
			for (let of = 0; of < alphabet.size; of++) {
				const next = starts === 'anywhere' || (starts === 'lines' && isLineFeed[of] === 1) ? [...first] : [];
				for (let at = 0; at < states.length; at++) {
					const state = states[at]!;
					if (alphabet.members[state]![of] === 0) continue;
					for (const [to, count] of links[state]!) next.push([to, count * ways[at]!]);
				}
				const beginning = beginningOf(next, scratch);
				steps += states.length + next.length + found.length;
				if (found.some(known => leadsOnLike(known, beginning))) continue;
				found = found.filter(known => !leadsOnLike(beginning, known));
				found.push(beginning);
				longer.push(beginning);
			}
		}
		if (longer.length === 0) {
			return most <= MAX_WAYS ? Infinity : length + Math.floor((MAX_WAYS_OF_SHORT - altogether) / most);
		}
		beginnings = longer.filter(one => !longer.some(other => other !== one && leadsOnLike(other, one)));
	}
}

/** The prefixes of subjects after which the same states can follow, with the same number of paths to each. */
interface Beginning {
	/** The states that can follow, in ascending order. */
	readonly states: readonly number[];
	/** The number of paths to each of these states. */
	readonly ways: readonly number[];
	readonly total: number;
}

function beginningOf(counted: readonly (readonly [state: number, ways: number])[], scratch: Float64Array): Beginning {
	const states: number[] = [];
	let total = 0;
	for (const [state, count] of counted) {
		if (scratch[state] === 0) states.push(state);
		scratch[state]! += count;
		total += count;
	}
	states.sort((a, b) => a - b);
	const ways = states.map(state => scratch[state]!);
	for (const state of states) scratch[state] = 0;
	return { states, ways, total };
}

/**
 * Reports whether `other` covers a prefix: every state that can follow the prefix can also follow `other`, by at least as many
 * paths.
 */
function leadsOnLike(other: Beginning, { states, ways, total }: Beginning): boolean {
	if (other.total < total || other.states.length < states.length) return false;
	let at = 0;
	for (let i = 0; i < states.length; i++) {
		while (at < other.states.length && other.states[at]! < states[i]!) at++;
		if (other.states[at] !== states[i] || other.ways[at]! < ways[i]!) return false;
	}
	return true;
}

function depthOf(node: RegexpNode): number {
	switch (node.kind) {
		case 'cat':
		case 'alt':
			return node.of.reduce((deepest, child) => Math.max(deepest, depthOf(child)), 0);
		case 'group':
		case 'repeat':
			return 1 + depthOf(node.of);
		default:
			return 0;
	}
}
