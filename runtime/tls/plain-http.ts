/** Answers plain HTTP requests on a TLS port, with 400 or a redirect to HTTPS. */
import type { Socket } from 'node:net';
import { parseAuthority } from '../../compiler/exchange/authority.ts';

/** Maximum bytes of a request head that is read for a redirect. */
const MAX_HEAD_BYTES = 16 * 1024;
/** Milliseconds within which the head must arrive. */
const HEAD_TIMEOUT_MS = 5000;

const METHOD_PATTERN = /^[A-Z]{2,20} /;
const EXPLANATION = 'Client sent an HTTP request to an HTTPS server.\n';

/** Reports whether the first bytes of a connection look like an HTTP request. */
export function looksLikeHttp(bytes: Buffer): boolean {
	return METHOD_PATTERN.test(bytes.toString('latin1', 0, 24));
}

/**
 * Answers a request and closes the connection: with 308 to HTTPS if `redirects` is true and the host is known, and
 * with 400 if not.
 * @param firstBytes The bytes read so far.
 */
export function answerPlainHttp(socket: Socket, firstBytes: Buffer, redirects: boolean, port: number): void {
	if (!redirects) {
		sendResponse(socket, '400 Bad Request', '', EXPLANATION);
		return;
	}
	let head = firstBytes.toString('latin1');
	const timer = setTimeout(() => socket.destroy(), HEAD_TIMEOUT_MS).unref();
	const answerWhenComplete = (): void => {
		const headEnd = head.indexOf('\r\n\r\n');
		if (headEnd === -1 && head.length <= MAX_HEAD_BYTES) return;
		clearTimeout(timer);
		socket.off('data', onData);
		const target = headEnd === -1 ? undefined : redirectTarget(head.slice(0, headEnd), port);
		if (target === undefined) sendResponse(socket, '400 Bad Request', '', EXPLANATION);
		else sendResponse(socket, '308 Permanent Redirect', `Location: ${target}\r\n`, '');
	};
	const onData = (bytes: Buffer): void => {
		head += bytes.toString('latin1');
		answerWhenComplete();
	};
	socket.once('close', () => clearTimeout(timer));
	socket.on('data', onData);
	socket.resume();
	answerWhenComplete();
}

/** Returns the target of the redirect, or undefined if the head is not a request with one valid host. */
function redirectTarget(head: string, port: number): string | undefined {
	const [line = '', ...fields] = head.split('\r\n');
	const target = /^[A-Z]+ (\/[\x21-\x7e]*) HTTP\/1\.[01]$/.exec(line)?.[1];
	const hosts = fields.filter(field => /^host:/i.test(field));
	if (target === undefined || hosts.length !== 1) return undefined;
	const authority = parseAuthority(hosts[0]!.slice(5).trim());
	if (!authority || authority.host === '') return undefined;
	const host = authority.host.includes(':') ? `[${authority.host}]` : authority.host;
	return `https://${host}${port === 443 ? '' : `:${port}`}${target}`;
}

function sendResponse(socket: Socket, status: string, fields: string, body: string): void {
	const contentTypeField = body === '' ? '' : 'Content-Type: text/plain; charset=utf-8\r\n';
	socket.end(
		`HTTP/1.1 ${status}\r\n${fields}${contentTypeField}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
		'latin1',
	);
	// Further input is discarded for a second, because closing a connection with unread input would reset it, and the client could
	// lose the response.
	socket.resume();
	setTimeout(() => socket.destroy(), 1000).unref();
}
