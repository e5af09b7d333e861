/** Finds the first condition in a list that holds for every request for which a given condition holds. */
import type { Matcher } from '../../document/document.ts';
import { coversMatcher, pathValuesOf } from './coverage.ts';
import { PathPatternIndex } from './path-pattern-index.ts';

/**
 * A list of conditions with their owners, such as steps. An undefined condition always holds. An index by path avoids comparing a
 * condition with thousands of others, as in a list of redirects.
 */
export class CoveringMatchers<Owner> {
	readonly #entries: { readonly matcher: Matcher | undefined; readonly owner: Owner }[] = [];
	readonly #positionsByPattern = new PathPatternIndex<number>();
	/** The positions of the conditions that are not in the index. */
	readonly #otherPositions: number[] = [];

	add(matcher: Matcher | undefined, owner: Owner): void {
		const position = this.#entries.push({ matcher, owner }) - 1;
		if (!matcher || !this.#positionsByPattern.add(matcher, position)) this.#otherPositions.push(position);
	}

	/** Returns the owner of the first condition that is certain to hold for every request for which `narrow` holds. */
	firstCovering(narrow: Matcher | undefined): Owner | undefined {
		const paths = narrow && pathsToCover(narrow);
		const candidates = paths
			? [...paths.flatMap(path => [...this.#positionsByPattern.ownersFor(path)]), ...this.#otherPositions].sort(
					(a, b) => a - b,
				)
			: this.#entries.keys();
		for (const position of candidates) {
			const { matcher, owner } = this.#entries[position]!;
			if (coversMatcher(matcher, narrow)) return owner;
		}
		return undefined;
	}
}

/**
 * Returns path texts to look up in the index. A condition in the index can cover `matcher` only if one of its patterns equals one
 * of these texts or is a prefix of it. Returns undefined if all conditions must be compared.
 */
function pathsToCover(matcher: Matcher): readonly string[] | undefined {
	if (matcher.type === 'any') return undefined;
	if (matcher.type !== 'all') {
		const values = pathValuesOf(matcher);
		if (!values) return [];
		// A list without values matches no request, so every other list covers it.
		return values[0] === undefined ? undefined : [values[0]];
	}
	const paths: string[] = [];
	for (const part of matcher.of as readonly Matcher[]) {
		const partPaths = pathsToCover(part);
		if (!partPaths) return undefined;
		paths.push(...partPaths);
	}
	return paths;
}
