/** Conditions in their order, to find the first one that covers another. */
import type { Matcher } from '../../document/document.ts';
import { coversMatcher, pathValuesOf } from './coverage.ts';
import { PathPatternIndex } from './path-pattern-index.ts';

/**
 * A list of conditions, of which an undefined one always holds. Among thousands of paths, as in a list of redirects, the first
 * condition that covers a path is found without comparing it with all of them.
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
 * Returns the literal beginnings of paths, one of which must match the patterns of a matcher that covers `matcher`; undefined if that
 * is not known.
 */
function pathsToCover(matcher: Matcher): readonly string[] | undefined {
	if (matcher.type === 'any') return undefined;
	if (matcher.type !== 'all') {
		const values = pathValuesOf(matcher);
		if (!values) return [];
		// A list without values is covered by any list.
		return values[0] === undefined ? undefined : [values[0], literalBeginning(values[0])];
	}
	const paths: string[] = [];
	for (const part of matcher.of as readonly Matcher[]) {
		const partPaths = pathsToCover(part);
		if (!partPaths) return undefined;
		paths.push(...partPaths);
	}
	return paths;
}

function literalBeginning(pattern: string): string {
	return /^[^*?[\]\\]*/.exec(pattern)![0];
}
