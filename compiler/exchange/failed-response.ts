/** Creates the response to a request whose handlers failed, if no error route answered or the error routes failed as well. */
import { isStream } from './body.ts';
import type { Exchange } from './exchange.ts';
import type { HeaderList } from './header-list.ts';
import { HttpError } from './http-error.ts';

/** Fields that describe the content (RFC 9110 §8), which is not sent with an error. */
const CONTENT_FIELDS: ReadonlySet<string> = new Set([
	...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-location', 'content-range'],
	...['content-disposition', 'accept-ranges', 'etag', 'last-modified', 'transfer-encoding', 'trailer'],
]);

/** Removes the fields that describe the content of a response. */
export function dropContentFields(headers: HeaderList): void {
	headers.filter(name => !CONTENT_FIELDS.has(name.toLowerCase()));
}

/**
 * Answers with an empty body and the status of an HttpError, or 500 for any other error. Fields that were set earlier are kept,
 * because a site's policies also apply to its errors. Fields of the error replace fields of the same name.
 */
export function failResponse(x: Exchange, error: unknown): void {
	const { response } = x;
	if (isStream(response.body)) response.body.cancel(error);
	dropContentFields(response.headers);
	response.body = null;
	response.trailers = undefined;
	x.upgradeCallback = undefined;
	if (error instanceof HttpError) {
		response.status = error.status;
		for (const [name, value] of error.headers) response.headers.set(name, value);
	} else response.status = 500;
	x.error ??= { status: response.status, message: error instanceof Error ? error.message : String(error) };
}
