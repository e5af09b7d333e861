/** The error for failed changes of trust stores. */

/** Thrown if a trust store could not be changed. The message is a full sentence for the user of the command. */
export class TrustError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'TrustError';
	}
}
