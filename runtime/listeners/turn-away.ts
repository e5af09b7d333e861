/** The last word to connections that are one too many. */
import type { Socket } from 'node:net';
import { SERVER_NAME } from '../protocols/http1/response-head.ts';

/** Milliseconds that such a connection may take to read its answer. */
const PATIENCE = 1000;
/** Connections that are given that time at once; others are closed as soon as the answer is out. */
const MOST_PATIENT = 32;

/** Turns connections of one listener away. */
export class TurnAway {
	readonly #leaving = new Set<Socket>();

	/**
	 * Answers 503 without having read a request, and closes. A client that has not sent one yet takes it for the answer to its
	 * first; a connection that was to carry TLS is closed without a word, for it could not read one.
	 */
	refuse(socket: Socket, scheme: 'http' | 'https', retryAfter: string): void {
		socket.on('error', ignore);
		if (scheme === 'https') {
			socket.destroy();
			return;
		}
		socket.write(
			`HTTP/1.1 503 Service Unavailable\r\nServer: ${SERVER_NAME}\r\nDate: ${new Date().toUTCString()}\r\n` +
				`Retry-After: ${retryAfter}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
			'latin1',
		);
		if (this.#leaving.size >= MOST_PATIENT) {
			socket.destroySoon();
			return;
		}
		const timer = setTimeout(() => socket.destroy(), PATIENCE).unref();
		this.#leaving.add(socket);
		socket.once('close', () => {
			clearTimeout(timer);
			this.#leaving.delete(socket);
		});
		// What the client has sent is read, for else the system would answer it with a reset that overtakes our answer.
		socket.resume();
		socket.once('end', () => socket.destroySoon());
		socket.end();
	}

	/** Ends those that are still leaving. */
	close(): void {
		for (const socket of this.#leaving) socket.destroy();
	}
}

function ignore(): void {}
