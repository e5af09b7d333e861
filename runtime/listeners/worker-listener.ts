/** One listening socket of one data-plane thread. Every thread binds the same address; the kernel spreads connections. */
import { createServer, type Server, type Socket } from 'node:net';
import type { ProtocolServer } from '../protocols/protocol.ts';
import type { ListenerAddress } from '../threads/messages.ts';

/** Connections that the kernel keeps for a thread that is busy. */
const BACKLOG = 2048;

/** A listener: bound first, accepting once the generation that it belongs to is served. */
export class WorkerListener {
	readonly address: ListenerAddress;
	readonly protocol: ProtocolServer;
	readonly #server: Server;
	#held: Socket[] | undefined = [];

	constructor(address: ListenerAddress, protocol: ProtocolServer) {
		this.address = address;
		this.protocol = protocol;
		// Half-open, because a client may end its side after its last request and still read the answer (RFC 9112 §9.6).
		this.#server = createServer({ allowHalfOpen: true, noDelay: true }, socket => {
			if (!this.#held) {
				protocol.accept(socket, address.scheme);
				return;
			}
			socket.on('error', ignore);
			this.#held.push(socket);
		});
	}

	/** Binds. Rejects with the system's error. `shared`: other threads bind the same address. */
	bind(shared: boolean): Promise<void> {
		const { host, port } = this.address;
		return new Promise((resolve, reject) => {
			this.#server.once('error', reject);
			this.#server.listen(
				{ port, exclusive: true, reusePort: shared, backlog: BACKLOG, ...(host === '' ? {} : { host }) },
				() => {
					this.#server.off('error', reject);
					// A failing accept (EMFILE) is reported here and must not end the thread.
					this.#server.on('error', ignore);
					resolve();
				},
			);
		});
	}

	/** Accepts connections, those that have come in since binding first. */
	open(): void {
		const held = this.#held;
		this.#held = undefined;
		for (const socket of held ?? []) {
			socket.off('error', ignore);
			this.protocol.accept(socket, this.address.scheme);
		}
	}

	/** No new connections; those open end after their exchange. */
	drain(): void {
		this.#stopListening();
		this.protocol.drain();
	}

	/** Ends the listener and every connection at once. */
	close(): void {
		this.#stopListening();
		this.protocol.close();
	}

	#stopListening(): void {
		this.#server.close();
		for (const socket of this.#held ?? []) socket.destroy();
		this.#held = undefined;
	}
}

function ignore(): void {}
