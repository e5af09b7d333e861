/** Limits on matchers. Names that refer to names could expand a small file to a document that exceeds memory or the stack. */

/** Maximum nesting of `not`, parentheses and references to named matchers. */
export const MAX_MATCHER_DEPTH = 64;

/** Maximum number of matchers in a configuration. Each is counted as often as it is referenced. */
const MAX_MATCHERS = 2_000_000;

/** Counts the matchers that the lowering of one tree creates. */
export class MatcherLimits {
	/** Current nesting depth. */
	depth = 0;
	/** Number of matchers created. Each reference to a named matcher counts as everything to which it expands. */
	made = 0;
	/** True once an exceeded limit has been reported. */
	reported = false;

	/** Adds to the number of matchers. Returns false if there are now too many. */
	make(count: number): boolean {
		this.made += count;
		return this.made <= MAX_MATCHERS;
	}

	/** Calls a function one level deeper. Returns undefined without calling it if that is too deep. */
	deeper<T>(run: () => T): T | undefined {
		if (this.depth >= MAX_MATCHER_DEPTH) return undefined;
		this.depth++;
		try {
			return run();
		} finally {
			this.depth--;
		}
	}
}
