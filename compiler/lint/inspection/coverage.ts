/**
 * Compares matchers, judging by their form alone: whether one matches every request that another does, and whether no request can
 * match both.
 */
import { canonicalJson } from '../../document/canonical-json.ts';
import type { Matcher } from '../../document/document.ts';
import { hostMatches } from '../../exchange/authority.ts';
import type { ListedValue } from '../../modules/contract/matcher.ts';
import { listedValuesOf } from '../../modules/registry/matchers.ts';

/** Returns true only if `wide` certainly matches whenever `narrow` does. Undefined matches every request. */
export function coversMatcher(wide: Matcher | undefined, narrow: Matcher | undefined): boolean {
	if (wide === undefined) return true;
	if (narrow === undefined) return takesEverything(wide);
	if (canonicalJson(wide) === canonicalJson(narrow)) return true;
	if (narrow.type === 'any') return partsOf(narrow).every(part => coversMatcher(wide, part));
	if (wide.type === 'all') return partsOf(wide).every(part => coversMatcher(part, narrow));
	if (wide.type === 'any' && partsOf(wide).some(part => coversMatcher(part, narrow))) return true;
	if (narrow.type === 'all' && partsOf(narrow).some(part => coversMatcher(wide, part))) return true;
	const [wider, narrower] = [valuesOf(wide), valuesOf(narrow)];
	if (!wider || !narrower || wider.kind !== narrower.kind) return takesEverything(wide);
	const covering = COVERING[wider.kind];
	return narrower.values.every(value => wider.values.some(other => covering(other, value)));
}

/** Returns true only if no request can match both. */
export function areDisjoint(one: Matcher, other: Matcher): boolean {
	const [left, right] = [valuesOf(one), valuesOf(other)];
	if (!left || !right || left.kind !== right.kind) return false;
	const disjoint = DISJOINT[left.kind];
	return left.values.every(a => right.values.every(b => disjoint(a, b)));
}

/**
 * Returns the values of a matcher that lists alternatives, in lower case if it ignores case. Returns undefined for other
 * matchers, and for values with placeholders.
 */
function valuesOf(matcher: Matcher): { readonly kind: ListedValue; readonly values: readonly string[] } | undefined {
	const list = listedValuesOf(matcher);
	if (!list || list.values.some(value => value.includes('{'))) return undefined;
	const { kind, values } = list;
	return { kind, values: kind === 'method' ? values : values.map(value => value.toLowerCase()) };
}

function partsOf(matcher: Matcher): readonly Matcher[] {
	return matcher.of as readonly Matcher[];
}

function takesEverything(matcher: Matcher): boolean {
	const list = valuesOf(matcher);
	return list?.kind === 'path' && list.values.some(pattern => pattern === '*' || pattern === '/*');
}

function isWild(host: string): boolean {
	return host.includes('*');
}

/** Reports whether the pattern `wide` matches every host that `narrow` matches. */
export function coversHost(wide: string, narrow: string): boolean {
	return wide === narrow || (!isWild(narrow) && isWild(wide) && hostMatches(narrow, wide));
}

const PLAIN = /^[^*?[\]%\\]*$/;

/** Reports whether the pattern `wide` matches every path that `narrow` matches. */
export function coversPath(wide: string, narrow: string): boolean {
	if (wide === narrow || wide === '*' || wide === '/*') return true;
	if (wide.includes('//') || wide.includes('%') || narrow.includes('%')) return false;
	if (wide.endsWith('*') && PLAIN.test(wide.slice(0, -1))) {
		const literal = /^[^*?[\]\\]*/.exec(narrow)![0];
		return literal.startsWith(wide.slice(0, -1));
	}
	if (wide.startsWith('*') && PLAIN.test(wide.slice(1))) {
		const literal = PLAIN.test(narrow)
			? narrow
			: narrow.startsWith('*') && PLAIN.test(narrow.slice(1))
				? narrow.slice(1)
				: '';
		return literal.endsWith(wide.slice(1)) && literal !== '';
	}
	return false;
}

function disjointPaths(a: string, b: string): boolean {
	const [left, right] = [a, b].map(pattern => {
		if (PLAIN.test(pattern)) return { text: pattern, prefix: false };
		return pattern.endsWith('*') && PLAIN.test(pattern.slice(0, -1))
			? { text: pattern.slice(0, -1), prefix: true }
			: undefined;
	}) as [{ text: string; prefix: boolean } | undefined, { text: string; prefix: boolean } | undefined];
	if (!left || !right) return false;
	if (left.prefix && right.prefix) return !left.text.startsWith(right.text) && !right.text.startsWith(left.text);
	if (left.prefix) return !right.text.startsWith(left.text);
	if (right.prefix) return !left.text.startsWith(right.text);
	return left.text !== right.text;
}

/** Functions that report whether every request that `narrow` matches is also matched by `wide`. */
const COVERING: { readonly [of in ListedValue]: (wide: string, narrow: string) => boolean } = {
	path: coversPath,
	host: coversHost,
	method: (wide, narrow) => wide === narrow,
};

/** Functions that report whether no request can match both. */
const DISJOINT: { readonly [of in ListedValue]: (a: string, b: string) => boolean } = {
	path: disjointPaths,
	host: (a, b) => !(coversHost(a, b) || coversHost(b, a) || (isWild(a) && isWild(b))),
	method: (a, b) => a !== b,
};
