/** The log entries about following the publications of a cluster. */

export type WriteLogEntry = (
	level: 'info' | 'warn' | 'error',
	message: string,
	fields: { readonly [name: string]: unknown },
) => void;

/** Writes log entries, and unexpected errors only once, because each attempt may fail again. */
export class PublicationLog {
	readonly write: WriteLogEntry;
	#hasLoggedUnexpected = false;

	constructor(write: WriteLogEntry) {
		this.write = write;
	}

	/**
	 * Logs an unexpected error, for example because another release wrote the state in another form. Only the first one is logged.
	 * The server must not end because of it.
	 */
	unexpected(error: unknown): void {
		if (this.#hasLoggedUnexpected) return;
		this.#hasLoggedUnexpected = true;
		const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
		this.write('error', 'following the publications failed', { cause });
	}
}
