/** The 503 response to connections beyond the limit. */
import type { Socket } from 'node:net';
import { SERVER_NAME } from '../protocols/http1/response-head.ts';

/** Milliseconds that a rejected client has for reading the response before the connection is closed. */
const MAX_READING_MS = 1000;
/**
 * Maximum number of rejected connections that wait at the same time for their clients to read. Any others are closed as soon as
 * the response is sent.
 */
const MAX_WAITING_CLIENTS = 32;

/** Rejects connections of one listener. */
export class ConnectionRejecter {
	readonly #waitingClients = new Set<Socket>();

	/**
	 * Responds with 503 without reading a request, and closes the connection. The client takes this for the response to its first
	 * request. A TLS connection is closed without a response, because the client could not read it.
	 */
	refuse(socket: Socket, scheme: 'http' | 'https', retryAfterSeconds: string): void {
		socket.on('error', ignoreError);
		if (scheme === 'https') {
			socket.destroy();
			return;
		}
		socket.write(
			`HTTP/1.1 503 Service Unavailable\r\nServer: ${SERVER_NAME}\r\nDate: ${new Date().toUTCString()}\r\n` +
				`Retry-After: ${retryAfterSeconds}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
			'latin1',
		);
		if (this.#waitingClients.size >= MAX_WAITING_CLIENTS) {
			socket.destroySoon();
			return;
		}
		const timer = setTimeout(() => socket.destroy(), MAX_READING_MS).unref();
		this.#waitingClients.add(socket);
		socket.once('close', () => {
			clearTimeout(timer);
			this.#waitingClients.delete(socket);
		});
		// The bytes that the client has sent are read. If they were not, the system would reset the connection, which could discard
		// our response.
		socket.resume();
		socket.once('end', () => socket.destroySoon());
		socket.end();
	}

	/** Closes the connections that are still open. */
	close(): void {
		for (const socket of this.#waitingClients) socket.destroy();
	}
}

function ignoreError(): void {}
