/**
 * Compares matchers by their settings: whether one matches every request that another one matches, and whether no request can match
 * both.
 */
import { canonicalJson } from '../../document/canonical-json.ts';
import type { Matcher } from '../../document/document.ts';
import { hostMatches } from '../../exchange/authority.ts';
import type { ListedValue } from '../../modules/contract/matcher.ts';
import { listedValuesOf } from '../../modules/registry/matchers.ts';

/**
 * Returns true only if `wide` is certain to match every request that `narrow` matches. An undefined matcher matches every request.
 */
export function coversMatcher(wide: Matcher | undefined, narrow: Matcher | undefined): boolean {
	if (wide === undefined) return true;
	if (narrow === undefined) return matchesEverything(wide);
	if (keyOf(wide) === keyOf(narrow)) return true;
	if (narrow.type === 'any') return operandsOf(narrow).every(part => coversMatcher(wide, part));
	if (wide.type === 'all') return operandsOf(wide).every(part => coversMatcher(part, narrow));
	if (wide.type === 'any' && operandsOf(wide).some(part => coversMatcher(part, narrow))) return true;
	if (narrow.type === 'all' && operandsOf(narrow).some(part => coversMatcher(wide, part))) return true;
	const [wideValues, narrowValues] = [valuesOf(wide), valuesOf(narrow)];
	if (!wideValues || !narrowValues || wideValues.kind !== narrowValues.kind) return matchesEverything(wide);
	const coversValue = COVERS_BY_KIND[wideValues.kind];
	return narrowValues.values.every(value => wideValues.values.some(other => coversValue(other, value)));
}

/** Returns true only if it is certain that no request can match both matchers. */
export function areDisjoint(first: Matcher, second: Matcher): boolean {
	const [firstValues, secondValues] = [valuesOf(first), valuesOf(second)];
	if (!firstValues || !secondValues || firstValues.kind !== secondValues.kind) return false;
	const areValuesDisjoint = DISJOINT_BY_KIND[firstValues.kind];
	return firstValues.values.every(a => secondValues.values.every(b => areValuesDisjoint(a, b)));
}

/** Returns true only if it is certain that no request for `path`, which has no placeholders, can match. */
export function excludesPath(matcher: Matcher, path: string): boolean {
	if (matcher.type === 'all') return operandsOf(matcher).some(part => excludesPath(part, path));
	const list = valuesOf(matcher);
	return list?.kind === 'path' && list.values.every(pattern => arePathsDisjoint(pattern, path.toLowerCase()));
}

/**
 * Returns the values of a matcher that lists alternatives, in lower case if it ignores case. Returns undefined for other matchers,
 * and if a value has placeholders.
 */
function valuesOf(matcher: Matcher): ListedValues | undefined {
	const facts = factsOf(matcher);
	if (facts.listedValues === undefined) facts.listedValues = findValues(matcher) ?? null;
	return facts.listedValues ?? undefined;
}

interface ListedValues {
	readonly kind: ListedValue;
	readonly values: readonly string[];
}

function findValues(matcher: Matcher): ListedValues | undefined {
	const listedValues = listedValuesOf(matcher);
	if (!listedValues || listedValues.values.some(value => value.includes('{'))) return undefined;
	const { kind, values } = listedValues;
	return { kind, values: kind === 'method' ? values : values.map(value => value.toLowerCase()) };
}

/** Properties of a matcher that are determined only once, because it is compared with many others. */
interface MatcherFacts {
	key?: string;
	/** The values that the matcher lists; `null` if it lists none, undefined if this has not been determined yet. */
	listedValues?: ListedValues | null;
}

const factsByMatcher = new WeakMap<Matcher, MatcherFacts>();

function factsOf(matcher: Matcher): MatcherFacts {
	let facts = factsByMatcher.get(matcher);
	if (!facts) {
		facts = {};
		factsByMatcher.set(matcher, facts);
	}
	return facts;
}

/** Returns a text that is equal for equal matchers. */
function keyOf(matcher: Matcher): string {
	const facts = factsOf(matcher);
	facts.key ??= canonicalJson(matcher);
	return facts.key;
}

/**
 * Returns the patterns of a matcher that is a list of paths, in lower case; undefined for other matchers, or if a pattern has
 * placeholders.
 */
export function pathValuesOf(matcher: Matcher): readonly string[] | undefined {
	const list = valuesOf(matcher);
	return list?.kind === 'path' ? list.values : undefined;
}

/** Returns the patterns of {@link pathValuesOf}, parsed; undefined if one of them is neither a path nor a prefix of paths. */
export function parsedPathsOf(matcher: Matcher): readonly ParsedPathPattern[] | undefined {
	const patterns = pathValuesOf(matcher)?.map(parsePathPattern);
	return patterns?.every(pattern => pattern !== undefined) ? patterns : undefined;
}

function operandsOf(matcher: Matcher): readonly Matcher[] {
	return matcher.of as readonly Matcher[];
}

function matchesEverything(matcher: Matcher): boolean {
	const list = valuesOf(matcher);
	return list?.kind === 'path' && list.values.some(pattern => pattern === '*' || pattern === '/*');
}

function isWildcard(host: string): boolean {
	return host.includes('*');
}

/** Reports whether the pattern `wide` matches every host that `narrow` matches. */
export function coversHost(wide: string, narrow: string): boolean {
	return wide === narrow || (!isWildcard(narrow) && isWildcard(wide) && hostMatches(narrow, wide));
}

const LITERAL_PATTERN = /^[^*?[\]%\\]*$/;

/** Reports whether the pattern `wide` matches every path that `narrow` matches. */
export function coversPath(wide: string, narrow: string): boolean {
	if (wide === narrow || wide === '*' || wide === '/*') return true;
	if (wide.includes('//') || wide.includes('%') || narrow.includes('%')) return false;
	if (wide.endsWith('*') && LITERAL_PATTERN.test(wide.slice(0, -1))) {
		const literal = /^[^*?[\]\\]*/.exec(narrow)![0];
		return literal.startsWith(wide.slice(0, -1));
	}
	if (wide.startsWith('*') && LITERAL_PATTERN.test(wide.slice(1))) {
		const literal = LITERAL_PATTERN.test(narrow)
			? narrow
			: narrow.startsWith('*') && LITERAL_PATTERN.test(narrow.slice(1))
				? narrow.slice(1)
				: '';
		return literal.endsWith(wide.slice(1)) && literal !== '';
	}
	return false;
}

function arePathsDisjoint(a: string, b: string): boolean {
	const [left, right] = [parsePathPattern(a), parsePathPattern(b)];
	if (!left || !right) return false;
	if (left.isPrefix && right.isPrefix) return !left.text.startsWith(right.text) && !right.text.startsWith(left.text);
	if (left.isPrefix) return !right.text.startsWith(left.text);
	if (right.isPrefix) return !left.text.startsWith(right.text);
	return left.text !== right.text;
}

interface ParsedPathPattern {
	readonly text: string;
	readonly isPrefix: boolean;
}

/** Parses a pattern that is a path or a prefix of paths; returns undefined for other patterns. */
function parsePathPattern(pattern: string): ParsedPathPattern | undefined {
	if (LITERAL_PATTERN.test(pattern)) return { text: pattern, isPrefix: false };
	const text = pattern.slice(0, -1);
	return pattern.endsWith('*') && LITERAL_PATTERN.test(text) ? { text, isPrefix: true } : undefined;
}

/** By kind of value, a function that reports whether `wide` matches every request that `narrow` matches. */
const COVERS_BY_KIND: { readonly [of in ListedValue]: (wide: string, narrow: string) => boolean } = {
	path: coversPath,
	host: coversHost,
	method: (wide, narrow) => wide === narrow,
};

/** By kind of value, a function that reports whether no request can match both patterns. */
const DISJOINT_BY_KIND: { readonly [of in ListedValue]: (a: string, b: string) => boolean } = {
	path: arePathsDisjoint,
	host: (a, b) => !(coversHost(a, b) || coversHost(b, a) || (isWildcard(a) && isWildcard(b))),
	method: (a, b) => a !== b,
};
