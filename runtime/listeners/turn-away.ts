/** The last word to a connection that is one too many. */
import type { Socket } from 'node:net';
import { SERVER_NAME } from '../protocols/http1/response-head.ts';

/** Milliseconds that such a connection may take to read its answer. */
const PATIENCE = 1000;

/**
 * Answers 503 without having read a request, and closes. A client that has not sent one yet takes it for the answer to its
 * first; a connection that was to carry TLS is closed without a word, for it could not read one.
 */
export function turnAway(socket: Socket, scheme: 'http' | 'https', retryAfter: string): void {
	socket.on('error', ignore);
	if (scheme === 'https') {
		socket.destroy();
		return;
	}
	const timer = setTimeout(() => socket.destroy(), PATIENCE).unref();
	socket.once('close', () => clearTimeout(timer));
	// What the client has sent is read, for else the system would answer it with a reset that overtakes our answer.
	socket.resume();
	socket.once('end', () => socket.destroySoon());
	socket.end(
		`HTTP/1.1 503 Service Unavailable\r\nServer: ${SERVER_NAME}\r\nDate: ${new Date().toUTCString()}\r\n` +
			`Retry-After: ${retryAfter}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
		'latin1',
	);
}

function ignore(): void {}
