/**
 * Limits on matchers. Because names can refer to other names, a small file could expand to a document that exceeds memory or the
 * stack.
 */

/** Maximum nesting of `not`, parentheses and references to named matchers. */
export const MAX_MATCHER_DEPTH = 64;

/** Maximum number of matchers in a configuration. A named matcher counts once for each reference to it. */
const MAX_MATCHERS = 2_000_000;

/** Counts the matchers that are created while a tree is lowered. */
export class MatcherLimits {
	depth = 0;
	/** Number of matchers created so far. A reference to a named matcher adds the number of matchers to which the name expands. */
	matcherCount = 0;
	/** True if an exceeded limit has been reported. */
	isReported = false;

	/** Adds to the number of matchers. Returns false if there are now more than the maximum. */
	addMatchers(count: number): boolean {
		this.matcherCount += count;
		return this.matcherCount <= MAX_MATCHERS;
	}

	/** Calls a function one nesting level deeper. If the maximum depth has been reached, returns undefined without calling it. */
	runDeeper<T>(run: () => T): T | undefined {
		if (this.depth >= MAX_MATCHER_DEPTH) return undefined;
		this.depth++;
		try {
			return run();
		} finally {
			this.depth--;
		}
	}
}
