/** The error that reaches a site's error routes. */

/** A failure with the status it deserves. `message` may stand in logs and in `{http.error.message}`; it never holds a secret. */
export class HttpError extends Error {
	/** 400 to 599. */
	readonly status: number;
	/** Response fields that belong to the status (`Allow` of a 405, `Retry-After` of a 503). */
	readonly headers: readonly (readonly [name: string, value: string])[];
	/** Whether nobody has foreseen what it stands for: it may have left anything half done. */
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
