/** The response to a request whose handlers failed: no error route answered, or the error routes failed, too. */
import { isStream } from './body.ts';
import type { Exchange } from './exchange.ts';
import type { HeaderList } from './header-list.ts';
import { HttpError } from './http-error.ts';

/** Fields that describe the content, which is not sent (RFC 9110 §8). */
const CONTENT_FIELDS: ReadonlySet<string> = new Set([
	...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-location', 'content-range'],
	...['content-disposition', 'accept-ranges', 'etag', 'last-modified', 'transfer-encoding', 'trailer'],
]);

/** Removes the fields that describe the content of a response. */
export function dropContentFields(headers: HeaderList): void {
	headers.filter(name => !CONTENT_FIELDS.has(name.toLowerCase()));
}

/**
 * Sets the error's status, or 500 for anything other than an HttpError, with an empty body. As for error routes, fields set
 * earlier are kept, because a site's policies apply to its errors, too. The error's own fields replace them.
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
