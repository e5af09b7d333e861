/** Why an archive was not written or not restored. */

/** An archive of the store is refused. The message is a sentence for whoever typed the command. */
export class ArchiveError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'ArchiveError';
	}
}
