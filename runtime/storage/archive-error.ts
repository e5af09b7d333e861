/** The error for a failed export or import of an archive. */

/** Thrown if an archive could not be written or restored. The message is a full sentence for the user of the command. */
export class ArchiveError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'ArchiveError';
	}
}
