/** The 503 response to connections beyond the limit. */
import type { Socket } from 'node:net';
import { SERVER_NAME } from '../protocols/http1/response-head.ts';

/** Milliseconds that a rejected client has for reading the response. */
const PATIENCE = 1000;
/** Maximum connections given that time concurrently; others are closed as soon as the response is sent. */
const MAX_PATIENT = 32;

/** Rejects connections of one listener. */
export class ConnectionRejecter {
	readonly #leaving = new Set<Socket>();

	/**
	 * Responds with 503 without reading a request, and closes the connection. The client takes it for the response to its first request.
	 * A TLS connection is closed without a response, because the client could not read it.
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
		if (this.#leaving.size >= MAX_PATIENT) {
			socket.destroySoon();
			return;
		}
		const timer = setTimeout(() => socket.destroy(), PATIENCE).unref();
		this.#leaving.add(socket);
		socket.once('close', () => {
			clearTimeout(timer);
			this.#leaving.delete(socket);
		});
		// Reads what the client has sent. Otherwise, the system would reset the connection, which could discard our response.
		socket.resume();
		socket.once('end', () => socket.destroySoon());
		socket.end();
	}

	/** Closes the connections that are still open. */
	close(): void {
		for (const socket of this.#leaving) socket.destroy();
	}
}

function ignore(): void {}
