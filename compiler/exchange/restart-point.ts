/** Lets a handler run the handlers after it a second time, as if they had not run. */
import { isStream } from './body.ts';
import type { Exchange } from './exchange.ts';

/**
 * Records what later handlers may change in an exchange. Returns a function that discards their response and undoes their changes
 * to the request, so that a second run does not repeat a rewrite or add a field twice. Variables are not restored.
 */
export function restartPoint(x: Exchange): () => void {
	const { request, response, stepBase, exclusiveGroups, answeredBy } = x;
	const { method, host, authority, path, query } = request;
	const requestHeaders = request.headers.clone();
	const responseHeaders = response.headers.clone();
	return () => {
		if (isStream(response.body)) response.body.cancel();
		response.body = null;
		response.status = 0;
		response.trailers = undefined;
		response.headers = responseHeaders.clone();
		Object.assign(request, { method, host, authority, path, query });
		request.headers.clear();
		for (const [name, value] of requestHeaders) request.headers.add(name, value);
		x.stepBase = stepBase;
		x.exclusiveGroups = exclusiveGroups;
		x.answeredBy = answeredBy;
	};
}
