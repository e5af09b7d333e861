/** The response bodies of the health checks `live` and `ready`, which a site and the Admin API answer alike. */

/** The response body of `live`. */
export const LIVE_ANSWER = '{"live":true}';

/** The response body of `ready` while the server is ready. */
export const READY_ANSWER = '{"ready":true}';

/** Returns the response body of `ready` while the server is not ready. `message` says why it is not. */
export function notReadyAnswer(message: string): string {
	return JSON.stringify({ error: { code: 'not_ready', message, diagnostics: [] } });
}
