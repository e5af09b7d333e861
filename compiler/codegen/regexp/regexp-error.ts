/** The errors for regular expressions that are refused. */

/** An expression that is refused. The message is one sentence about it. */
export class RegexpError extends Error {}

/** An expression whose time or memory could not be kept within bounds. */
export class RegexpTooLarge extends RegexpError {
	/** What to do about it. */
	readonly hint = 'Use smaller repeat counts, or several expressions.';

	constructor() {
		super('The regular expression is too large: searching 16 KiB for it could take more than 50 ms.');
	}
}
