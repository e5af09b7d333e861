/** Limits on matchers. Names that refer to names could expand a small file to a document that exceeds memory or the stack. */

/** Maximum nesting of `not`, parentheses and references to named matchers. */
export const MAX_MATCHER_DEPTH = 64;

/** Maximum number of matchers in a configuration. A named matcher counts once per reference. */
const MAX_MATCHERS = 2_000_000;

/** Counts the matchers that are created while one tree is lowered. */
export class MatcherLimits {
	/** Current nesting depth. */
	depth = 0;
	/** Number of matchers created. A reference to a named matcher adds the number of matchers to which it expands. */
	count = 0;
	/** True once an exceeded limit has been reported. */
	reported = false;

	/** Adds to the number of matchers. Returns false if there are now too many. */
	addMatchers(count: number): boolean {
		this.count += count;
		return this.count <= MAX_MATCHERS;
	}

	/** Calls a function one nesting level deeper. Returns undefined without calling it if the maximum depth is reached. */
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
