/** Conditions in their order, to find the first one that covers another. */
import type { Matcher } from '../../document/document.ts';
import { coversMatcher, literalPathsOf } from './coverage.ts';

/**
 * A list of conditions, of which an undefined one always holds. Among thousands of literal paths, as in a list of redirects, the first one that covers a path is found without
 * comparing it with all of them.
 */
export class CoveringMatchers<Owner> {
	readonly #entries: { readonly matcher: Matcher | undefined; readonly owner: Owner }[] = [];
	/** For each literal path, the positions of the matchers that list it and only literal paths. */
	readonly #positionsByPath = new Map<string, number[]>();
	/** The positions of all other matchers. */
	readonly #otherPositions: number[] = [];

	add(matcher: Matcher | undefined, owner: Owner): void {
		const position = this.#entries.push({ matcher, owner }) - 1;
		const paths = matcher && literalPathsOf(matcher);
		if (!paths) this.#otherPositions.push(position);
		for (const path of paths ?? []) {
			const positions = this.#positionsByPath.get(path);
			if (positions) positions.push(position);
			else this.#positionsByPath.set(path, [position]);
		}
	}

	/** Returns the owner of the first matcher that is certain to match every request that `narrow` matches. */
	firstCovering(narrow: Matcher | undefined): Owner | undefined {
		const [path] = (narrow && literalPathsOf(narrow)) ?? [];
		// A list of literal paths covers only lists of the same paths.
		const candidates =
			path === undefined
				? this.#entries.keys()
				: [...(this.#positionsByPath.get(path) ?? []), ...this.#otherPositions].sort((a, b) => a - b);
		for (const position of candidates) {
			const { matcher, owner } = this.#entries[position]!;
			if (coversMatcher(matcher, narrow)) return owner;
		}
		return undefined;
	}
}
