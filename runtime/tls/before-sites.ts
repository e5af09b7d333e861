/** Requests that are handled before routing: HTTP-01 challenges, and hosts that do not match the TLS server name. */
import type { Exchange, TlsInfo } from '../../compiler/exchange/exchange.ts';
import { HttpError } from '../../compiler/exchange/http-error.ts';
import type { ThreadTls } from './thread-tls.ts';

const CHALLENGE_PREFIX = '/.well-known/acme-challenge/';

/** The syntax of challenge tokens (RFC 8555 §8.1). */
const TOKEN_PATTERN = /^[A-Za-z0-9_-]{1,512}$/;

/** What answering a challenge needs from the worker thread. */
interface AnsweringThread {
	readonly tls: ThreadTls;
	/** Returns the client's address, as reported by trusted proxies. */
	clientIp(x: Exchange): string;
}

/** The checks that the TLS settings of a listener require of requests. */
export interface RequestChecks {
	/** True if the host of a request must match the server name of the TLS handshake. */
	readonly requiresSameHost: boolean;
	/** Reports whether a connection must not serve any more requests; undefined if there are no such connections. */
	readonly isOutdated: ((tls: TlsInfo) => boolean) | undefined;
}

/** Answers an HTTP-01 challenge (RFC 8555 §8.3) for any host. Returns false if the request is not for a pending challenge. */
export function answerChallenge(x: Exchange, thread: AnsweringThread): boolean | Promise<boolean> {
	const { tls } = thread;
	const { path, method } = x.request;
	if (!path.startsWith(CHALLENGE_PREFIX) || (method !== 'GET' && method !== 'HEAD')) return false;
	const token = path.slice(CHALLENGE_PREFIX.length);
	const authorization = tls.keyAuthorization(token);
	if (authorization !== undefined) return respondWith(x, authorization);
	if (!tls.sharesChallenges || !TOKEN_PATTERN.test(token)) return false;
	return tls.lookUpSharedAnswer({ type: 'http-01', token }, thread.clientIp(x)).then(answer => {
		return answer !== undefined && 'authorization' in answer && respondWith(x, answer.authorization);
	});
}

function respondWith(x: Exchange, authorization: string): true {
	x.response.status = 200;
	x.response.headers.set('Content-Type', 'text/plain');
	x.response.body = authorization;
	return true;
}

/**
 * Throws HttpError 421 if the host of the request is not the TLS server name (RFC 9110 §15.5.20). Without this check, a client
 * could reach a site that requires client certificates through the handshake of a site that does not.
 */
export function requireSameHost(x: Exchange): void {
	const { tls } = x.connection;
	if (tls === undefined || tls.serverName === x.request.host) return;
	throw new HttpError(421, 'The host of the request differs from the server name of the TLS handshake.');
}

/**
 * Throws HttpError 421 if the site now demands more of the client than the handshake of its connection did; see
 * `ConnectionTerms.isOutdated`. The connection is being retired, but requests may still arrive on it.
 */
export function requireCurrentTerms(x: Exchange, isOutdated: (tls: TlsInfo) => boolean): void {
	const { tls } = x.connection;
	if (tls === undefined || !isOutdated(tls)) return;
	throw new HttpError(421, 'The client must connect again, because the site now requires another client certificate.');
}
