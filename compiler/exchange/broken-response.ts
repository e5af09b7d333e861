/** The error of a request whose upstream failed in the middle of its response. */
import { HttpError } from './http-error.ts';
import { UpstreamError } from './leases.ts';

/**
 * Converts the error of an upstream that failed while a handler was reading its response, for example to compress it. The status is
 * the one that the client gets if the upstream fails before its response. Returns other errors unchanged.
 */
export function asBrokenResponse(thrown: unknown): unknown {
	if (!(thrown instanceof UpstreamError)) return thrown;
	if (thrown.phase === 'timeout')
		return new HttpError(504, 'The upstream did not complete its response in time.', { cause: thrown });
	return new HttpError(502, 'The upstream closed the connection before its response was complete.', { cause: thrown });
}
