/** What is answered before any site: challenges over HTTP, and hosts that do not go with the handshake. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { HttpError } from '../../compiler/exchange/http-error.ts';
import type { ThreadTls } from './thread-tls.ts';

const CHALLENGE = '/.well-known/acme-challenge/';

/** Tokens that can be one (RFC 8555 §8.1). */
const TOKEN = /^[A-Za-z0-9_-]{1,512}$/;

/** What answering needs of a thread. */
interface AnsweringThread {
	readonly tls: ThreadTls;
	/** Address of the client behind trusted proxies. */
	clientIp(x: Exchange): string;
}

/** Answers an HTTP-01 challenge (RFC 8555 §8.3), whatever host it is for; false when the path is none of those that stand. */
export function answerChallenge(x: Exchange, thread: AnsweringThread): boolean | Promise<boolean> {
	const { tls } = thread;
	const { path, method } = x.request;
	if (!path.startsWith(CHALLENGE) || (method !== 'GET' && method !== 'HEAD')) return false;
	const token = path.slice(CHALLENGE.length);
	const authorization = tls.keyAuthorization(token);
	if (authorization !== undefined) return answerWith(x, authorization);
	if (!tls.sharesChallenges || !TOKEN.test(token)) return false;
	return tls.sharedAnswer({ type: 'http-01', token }, thread.clientIp(x)).then(found => {
		return found !== undefined && 'authorization' in found && answerWith(x, found.authorization);
	});
}

function answerWith(x: Exchange, authorization: string): true {
	x.response.status = 200;
	x.response.headers.set('Content-Type', 'text/plain');
	x.response.body = authorization;
	return true;
}

/**
 * Throws HttpError 421 for a request whose host is not the name of its handshake: else a client could reach, by the
 * handshake of a site that asks nothing of it, a site that wants a certificate (RFC 9110 §15.5.20).
 */
export function requireSameHost(x: Exchange): void {
	const { tls } = x.connection;
	if (tls === undefined || tls.serverName === x.request.host) return;
	throw new HttpError(421, 'The host of the request is not the server name of its TLS handshake.');
}
