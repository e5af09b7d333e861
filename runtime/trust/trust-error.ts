/** Why a trust store was not changed. */

/** A trust store was not changed. The message is a sentence for whoever typed the command. */
export class TrustError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'TrustError';
	}
}
