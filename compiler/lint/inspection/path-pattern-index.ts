/** A set of path patterns, to find those that may match a path without comparing all of them. */
import type { Matcher } from '../../document/document.ts';
import { parsedPathsOf } from './coverage.ts';

/**
 * An index of matchers by their path patterns, which are literal paths or prefixes. It returns the owners of matchers, such as
 * steps.
 */
export class PathPatternIndex<Owner> {
	readonly #ownersByPath = new Map<string, Owner[]>();
	readonly #ownersByPrefix = new Map<string, Owner[]>();

	/**
	 * Adds the owner of a matcher. Returns false, and adds nothing, if the matcher does not require one of a list of literal paths and
	 * prefixes, or if one of these is a prefix of every path.
	 */
	add(matcher: Matcher, owner: Owner): boolean {
		const patterns = requiredPatterns(matcher);
		if (!patterns || patterns.some(({ text, isPrefix }) => isPrefix && text.length <= 1)) return false;
		for (const { text, isPrefix } of patterns) {
			const ownersByText = isPrefix ? this.#ownersByPrefix : this.#ownersByPath;
			const owners = ownersByText.get(text);
			if (owners) owners.push(owner);
			else ownersByText.set(text, [owner]);
		}
		return true;
	}

	/** Yields the owners with a pattern that equals the lower-case `path` or is its prefix. May yield an owner several times. */
	*ownersFor(path: string): Generator<Owner> {
		yield* this.#ownersByPath.get(path) ?? [];
		for (let length = 2; length <= path.length; length++) yield* this.#ownersByPrefix.get(path.slice(0, length)) ?? [];
	}
}

function requiredPatterns(matcher: Matcher): ReturnType<typeof parsedPathsOf> {
	if (matcher.type !== 'all') return parsedPathsOf(matcher);
	for (const part of matcher.of as readonly Matcher[]) {
		const patterns = requiredPatterns(part);
		if (patterns) return patterns;
	}
	return undefined;
}
