/** The error type that a site's error routes handle. */

/** An error with an HTTP status. `message` may appear in logs and in `{http.error.message}`, so it never contains a secret. */
export class HttpError extends Error {
	/** The status to answer with, from 400 to 599. */
	readonly status: number;
	/** Response fields that the status requires, such as `Allow` with 405. */
	readonly headers: readonly (readonly [name: string, value: string])[];
	/** True for an unexpected error, after which operations may be half done. */
	readonly unforeseen: boolean;

	constructor(
		status: number,
		message: string,
		options?: {
			cause?: unknown;
			headers?: readonly (readonly [name: string, value: string])[];
			unforeseen?: boolean;
		},
	) {
		super(message, options?.cause === undefined ? undefined : { cause: options.cause });
		this.name = 'HttpError';
		this.status = status;
		this.headers = options?.headers ?? [];
		this.unforeseen = options?.unforeseen === true;
	}
}
