/** The response of an exchange whose graph has failed: no error route answered, or the error routes failed too. */
import { isStream } from './body.ts';
import type { Exchange } from './exchange.ts';
import { HeaderList } from './header-list.ts';
import { HttpError } from './http-error.ts';

/** Leaves the bare status of the error, 500 for what is no HttpError, with the fields that the error brings. */
export function failResponse(x: Exchange, error: unknown): void {
	const { response } = x;
	if (isStream(response.body)) response.body.cancel(error);
	response.headers = new HeaderList();
	response.body = null;
	response.trailers = undefined;
	x.upgraded = undefined;
	if (error instanceof HttpError) {
		response.status = error.status;
		for (const [name, value] of error.headers) response.headers.add(name, value);
	} else response.status = 500;
	x.error ??= { status: response.status, message: error instanceof Error ? error.message : String(error) };
}
