/** The response of an exchange whose graph has failed: no error route answered, or the error routes failed too. */
import { isStream } from './body.ts';
import type { Exchange } from './exchange.ts';
import { HttpError } from './http-error.ts';

/** Fields that tell of the content that is not sent (RFC 9110 §8). */
const OF_CONTENT: ReadonlySet<string> = new Set([
	...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-location', 'content-range'],
	...['content-disposition', 'accept-ranges', 'etag', 'last-modified', 'transfer-encoding', 'trailer'],
]);

/**
 * Leaves the status of the error, 500 for what is no HttpError, without a body. Fields that were set before stay, as they do
 * for an error route, for a policy of the site holds for its errors too; those of the error are set over them.
 */
export function failResponse(x: Exchange, error: unknown): void {
	const { response } = x;
	if (isStream(response.body)) response.body.cancel(error);
	response.headers.filter(name => !OF_CONTENT.has(name.toLowerCase()));
	response.body = null;
	response.trailers = undefined;
	x.upgraded = undefined;
	if (error instanceof HttpError) {
		response.status = error.status;
		for (const [name, value] of error.headers) response.headers.set(name, value);
	} else response.status = 500;
	x.error ??= { status: response.status, message: error instanceof Error ? error.message : String(error) };
}
