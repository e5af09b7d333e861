/** The errors for rejected regular expressions. */

/** A rejected expression. The message is one sentence that says why. */
export class RegexpError extends Error {}

/** An expression whose time or memory could not be kept within bounds. */
export class RegexpTooLarge extends RegexpError {
	/** How to change the expression. */
	readonly hint = 'Use smaller repeat counts, or several expressions.';

	constructor() {
		super('The regular expression is too large: searching 16 KiB for it could take more than 50 ms.');
	}
}
