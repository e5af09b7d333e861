/** Thrown if a handover cannot begin. The message is a full sentence. */

export class HandoverImpossible extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'HandoverImpossible';
	}
}
