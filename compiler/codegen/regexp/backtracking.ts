/**
 * Finds out up to which length of a subject an engine that backtracks, such as that of `RegExp`, is fast with an expression.
 *
 * In the worst case such an engine tries every way to read a subject. The combinations of states are visited to which the
 * beginnings of subjects can lead, by the length of these, each state counted with the number of ways to it. Where there are
 * few combinations, and few ways to go on from each, no subject makes the engine try more than so many ways a character.
 */
import { Alphabet } from './alphabet.ts';
import { ANY, NOT_NEWLINE } from './character-sets.ts';
import { GlushkovAutomaton } from './glushkov.ts';
import type { RegexpNode } from './regexp-node.ts';

/** Most ways to go on at any place of a long subject, and most ways altogether with a short one. The engine takes 1 or 2 ns each. */
const MAX_WAYS = 250;
const MAX_WAYS_OF_SHORT = 20_000;
/** Nesting of most expressions. The engine takes longer where it is deeper. */
const USUAL_DEPTH = 4;
/** Steps after which the check ends. */
const MAX_STEPS = 200_000;

/**
 * Where an expression can start to match. One that begins with `.*` needs to be tried only where a line begins, and with
 * `(?s).*` only where the text begins.
 */
export type Starts = 'anywhere' | 'lines' | 'text';

/** Returns where a search for the expression has to try. */
export function startsOf(node: RegexpNode): Starts {
	switch (node.kind) {
		case 'cat':
			return node.of.length > 0 ? startsOf(node.of[0]!) : 'anywhere';
		case 'group':
			return startsOf(node.of);
		case 'repeat':
			if (node.max !== Infinity || node.of.kind !== 'set') return 'anywhere';
			if (node.of.ranges === NOT_NEWLINE) return 'lines';
			return node.of.ranges === ANY ? 'text' : 'anywhere';
		default:
			return 'anywhere';
	}
}

/**
 * Returns the length of subject up to which `RegExp` is fast with an expression, in UTF-16 units: Infinity if it never takes
 * more than a microsecond for a character, otherwise so many that it never takes more than some 50 microseconds for them all,
 * and -1 if the expression is so large that even its compilation could take long.
 */
export function fastLength(root: RegexpNode, starts: Starts): number {
	let automaton = new GlushkovAutomaton(root, 'all');
	if (automaton.tooLarge) automaton = new GlushkovAutomaton(root, 'small');
	if (automaton.tooLarge) return -1;
	const { sets, follow, whole } = automaton;
	const depth = Math.max(USUAL_DEPTH, depthOf(root)) / USUAL_DEPTH;
	const alphabet = new Alphabet([...sets, NOT_NEWLINE]);
	const isLineFeed = alphabet.members.at(-1)!.map(inside => 1 - inside);
	const links = follow.map(ways => [...ways]);
	const first = [...whole.first];
	/** The beginnings that have been found, without those that lead on in no more ways than another one. */
	let found: Beginning[] = [];
	const scratch = new Float64Array(sets.length);
	let steps = 0;
	/** Most ways to go on after any beginning so far, and the sum of these for every length. */
	let most = 0;
	let altogether = 0;
	let fast: number | undefined;
	/** Beginnings of one length that are new. */
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

/** The beginnings of a subject after which the same states can follow in as many ways. */
interface Beginning {
	/** The states that can follow, ascending, the ways to each, and the sum of these. */
	readonly states: readonly number[];
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

/** Reports whether every state that can follow a beginning can follow another one, in no fewer ways. */
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
