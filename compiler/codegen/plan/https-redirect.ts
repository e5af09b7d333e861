/** The response that redirects a client to HTTPS. */
import type { Exchange } from '../../exchange/exchange.ts';

/** Name of the answering handler, for logs and metrics. */
export const HTTPS_REDIRECT_HANDLER = 'https_redirect';

/** Answers with a redirect to the same URL over HTTPS. If `port` is 0, the URL has no port. */
export function redirectToHttps(x: Exchange, port: number): void {
	const { request, received, response } = x;
	const host = request.host.includes(':') ? `[${request.host}]` : request.host;
	const query = received.query === undefined ? '' : `?${received.query}`;
	const path = received.path === '*' ? '/' : received.path;
	x.answeredBy = HTTPS_REDIRECT_HANDLER;
	response.status = 308;
	response.headers.set('Location', `https://${host}${port === 0 ? '' : `:${port}`}${path}${query}`);
	response.headers.set('Connection', 'close');
}
