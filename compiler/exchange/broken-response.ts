/** Describes failures in the middle of a response. */
import { HttpError } from './http-error.ts';
import { UpstreamError } from './leases.ts';

/**
 * Converts the error of an upstream that failed while a handler was reading its response, for example to compress it. As for a
 * failure before the response, the status is 504 after a timeout and 502 otherwise. Returns other errors unchanged.
 */
export function asBrokenResponse(thrown: unknown): unknown {
	if (!(thrown instanceof UpstreamError)) return thrown;
	if (thrown.phase === 'timeout')
		return new HttpError(504, 'The upstream did not complete its response in time.', { cause: thrown });
	return new HttpError(502, 'The upstream closed the connection before its response was complete.', { cause: thrown });
}

/** What is logged about a body with fewer or more bytes than its announced length. */
export const WRONG_LENGTH: string = 'the body does not have the announced length';

/** Returns what is logged about the error of a body that was being sent. */
export function bodyFailureText(error: unknown): string {
	if (!(error instanceof Error)) return String(error);
	return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
