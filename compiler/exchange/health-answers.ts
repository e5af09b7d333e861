/** The bodies of the answers to `live` and `ready`, which are the same on a site and in the Admin API. */

/** The body of the answer to `live`. */
export const LIVE_ANSWER = '{"live":true}';

/** The body of the answer to `ready` while the server is ready. */
export const READY_ANSWER = '{"ready":true}';

/** Returns the body of the answer to `ready` while the server is not ready. `message` says why. */
export function notReadyAnswer(message: string): string {
	return JSON.stringify({ error: { code: 'not_ready', message, diagnostics: [] } });
}
