/** The errors for rejected regular expressions. */

/** The error for a rejected expression. The message is one sentence that says why it was rejected. */
export class RegexpError extends Error {}

/** The error for an expression that could take too much time or memory. */
export class RegexpTooLarge extends RegexpError {
	/** How to change the expression. */
	readonly hint = 'Use smaller repeat counts, or several expressions.';

	constructor() {
		super('The regular expression is too large: searching 16 KiB for it could take more than 50 ms.');
	}
}
