/** An HTTP/3 client that sends one request after another, and opens another connection when the server asks for this. */
import { INTERNAL_ERROR } from '../../runtime/sockets/quic/internal-error.ts';
import { framesOf, headers, openControlStream, REQUEST, response } from '../runtime/protocols/http3/frames.ts';
import { connect, type QuicClient } from '../runtime/protocols/http3/quic-client.ts';

const GOAWAY_FRAME_TYPE = 7;
const REJECTED_CODE = 0x10b;

/** Returns the HEADERS frame of a GET request. */
export function getRequest(to: string): Buffer {
	return headers(REQUEST.map(([name, value]) => [name, name === ':path' ? to : value]));
}

/** Reports whether the server has asked the client to open another connection. */
export function isLeaving(client: QuicClient): boolean {
	const stream = client.stream(3);
	return stream !== undefined && framesOf(stream.bytes, 1).some(({ type }) => type === GOAWAY_FRAME_TYPE);
}

/** A client with at most one connection at a time. */
export class Visitor {
	readonly answers: string[] = [];
	readonly failures: string[] = [];
	connections = 0;
	/** The longest time in milliseconds for which an open connection received nothing of an expected response. */
	longestWait = 0;
	readonly #port: number;
	#client: QuicClient | undefined;

	constructor(port: number) {
		this.#port = port;
	}

	/** Sends a request, by default for `/`. */
	async visit(request: Uint8Array = getRequest('/')): Promise<void> {
		try {
			if (this.#client === undefined || this.isLeaving) {
				this.#client?.close();
				this.#client = undefined;
				this.#client = await connect(this.#port);
				this.connections++;
				openControlStream(this.#client);
			}
			const stream = this.#client.open().write(request, true);
			const { body } = await response(this.#client, stream).catch(error => {
				// A request that the server has rejected is sent again on another connection (RFC 9114 §4.1.1).
				if (stream.resetCode !== REJECTED_CODE) throw error;
				this.close();
				return { body: undefined };
			});
			if (body !== undefined) this.answers.push(body);
			this.longestWait = Math.max(this.longestWait, stream.longestWait);
			if (this.#client !== undefined) stream.stop();
		} catch (error) {
			const closed = this.#client?.closed;
			this.close();
			// OpenSSL's client has the fault that the server avoids (see loss-probes.ts), and closes its connection.
			if (closed?.transport === true && !closed.byServer && closed.code === INTERNAL_ERROR) await this.visit(request);
			else this.failures.push((error as Error).message);
		}
	}

	/** True if the connection is closed, or if the server has asked the client to open another one. */
	get isLeaving(): boolean {
		return this.#client !== undefined && (this.#client.closed !== undefined || isLeaving(this.#client));
	}

	/** Closes the connection. The next request opens another one. */
	close(): void {
		this.#client?.close();
		this.#client = undefined;
	}
}
