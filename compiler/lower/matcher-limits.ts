/** Limits on matchers: names that refer to names could expand a small text into a document that exceeds memory or the stack. */

/** Maximum nesting of `not`, parentheses and references to named matchers. */
export const MAX_MATCHER_DEPTH = 64;

/** Maximum matchers in a configuration, each counted as often as it is referenced. */
const MAX_MATCHERS = 2_000_000;

/** Counts the matchers made by the lowering of one tree. */
export class MatcherLimits {
	/** Open levels. */
	depth = 0;
	/** Matchers made; each reference to a named matcher counts as everything it expands to. */
	made = 0;
	/** True once an exceeded limit has been reported. */
	reported = false;

	/** Counts matchers; returns false if there are too many. */
	make(count: number): boolean {
		this.made += count;
		return this.made <= MAX_MATCHERS;
	}

	/** Runs a function one level deeper; returns undefined without running it if that is too deep. */
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
