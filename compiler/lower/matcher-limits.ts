/** Bounds of matchers: names that refer to names would make a small text a document that fits into no memory, or no stack. */

/** Deepest nesting of `not`, parentheses and references to named matchers. */
export const DEEPEST_MATCHER = 64;

/** Most matchers of a configuration, each counted as often as it is referred to. */
const MOST_MATCHERS = 2_000_000;

/** What the lowering of one tree has made of matchers so far. */
export class MatcherLimits {
	/** Levels that are open. */
	depth = 0;
	/** Matchers, each reference to a named one counted as all that it stands for. */
	made = 0;
	/** A limit was passed, which is reported once. */
	reported = false;

	/** Counts matchers; false when there are too many. */
	make(count: number): boolean {
		this.made += count;
		return this.made <= MOST_MATCHERS;
	}

	/** Runs something one level deeper; undefined, without running it, when that is too deep. */
	deeper<T>(run: () => T): T | undefined {
		if (this.depth >= DEEPEST_MATCHER) return undefined;
		this.depth++;
		try {
			return run();
		} finally {
			this.depth--;
		}
	}
}
