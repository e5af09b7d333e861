/** A listening socket that uses only `node:net`. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { AcceptedSocket } from './direct-socket.ts';
import { canDuplicateDescriptors, closeDuplicate, descriptorOf, duplicateDescriptor } from './duplicate-descriptor.ts';
import type {
	ListeningOwner,
	ListeningSocket,
	ListenTarget,
	SocketDescriptors,
	TcpKeepAlive,
} from './listening-socket.ts';
import { receiveServer } from './pass-socket.ts';

/** Maximum connections that the kernel queues while the thread is busy. */
export const LISTEN_BACKLOG = 2048;
/** Maximum turns of the event loop in {@link ListeningSocket.acceptWaiting}. In each, Node accepts at least one waiting connection. */
const MAX_ACCEPTING_TURNS = 2 * LISTEN_BACKLOG;

/** The listening socket of the `node` I/O mode, and the base class of `DirectListeningSocket`. */
export class NodeListeningSocket implements ListeningSocket {
	protected readonly owner: ListeningOwner;
	#server: Server;
	#isUnix = false;
	#keepAlive: TcpKeepAlive | undefined = undefined;
	/** Number of connections that Node has accepted. */
	#acceptedCount = 0;

	constructor(owner: ListeningOwner) {
		this.owner = owner;
		// Sockets are half-open, because a client may close its side after its last request and still read the response (RFC 9112
		// §9.6).
		this.#server = createServer({ allowHalfOpen: true, noDelay: true }, socket => this.passOn(socket));
	}

	/** Passes a connection that Node has accepted to the owner. */
	protected passOn(socket: AcceptedSocket): void {
		this.#acceptedCount++;
		this.owner.onAccepted(socket);
	}

	protected get server(): Server {
		return this.#server;
	}

	get isUnix(): boolean {
		return this.#isUnix;
	}

	get address(): AddressInfo | undefined {
		const address = this.#server.address();
		return typeof address === 'string' ? undefined : (address ?? undefined);
	}

	async listen(target: ListenTarget): Promise<void> {
		if (!('descriptor' in target)) await this.#listenOn(target);
		else if (canDuplicateDescriptors()) await this.#listenOnDuplicate(target.descriptor);
		else await this.#listenOnReceived(target.descriptor);
		// `net.Server` reports errors of `accept` as events. Without a listener, such an event would terminate the thread.
		this.#server.on('error', error => this.owner.onAcceptFailed(error));
		const address = this.#server.address();
		this.#isUnix = address === null || typeof address === 'string';
	}

	configure(keepAlive: TcpKeepAlive | undefined): void {
		this.#keepAlive = keepAlive;
	}

	prepare(socket: AcceptedSocket): void {
		// Node's method accepts the idle time, but neither the interval nor the number of the keep-alive probes.
		if (this.#keepAlive) (socket as Socket).setKeepAlive(true, this.#keepAlive.idleMs);
	}

	duplicate(): SocketDescriptors | undefined {
		try {
			const own = descriptorOf(this.#server);
			return { own, copy: duplicateDescriptor(own) };
		} catch {
			// Duplicates are not available here, or no descriptor is free.
			return undefined;
		}
	}

	async acceptWaiting(): Promise<void> {
		let countBefore = -1;
		// The first turn may be the rest of the present one, in which the event loop does not look for connections any more.
		for (let turn = 0; turn < MAX_ACCEPTING_TURNS && (turn < 2 || this.#acceptedCount > countBefore); turn++) {
			countBefore = this.#acceptedCount;
			await new Promise(resolve => setImmediate(resolve));
		}
	}

	close(): void {
		this.#server.close();
	}

	#listenOn(address: { readonly port: number } | { readonly fd: number }): Promise<void> {
		const server = this.#server;
		return new Promise((resolve, reject) => {
			server.once('error', reject);
			server.listen({ ...address, exclusive: true, backlog: LISTEN_BACKLOG }, () => {
				server.off('error', reject);
				resolve();
			});
		});
	}

	async #listenOnDuplicate(descriptor: number): Promise<void> {
		const fd = duplicateDescriptor(descriptor);
		try {
			await this.#listenOn({ fd });
		} catch (error) {
			closeDuplicate(fd, descriptor);
			throw error;
		}
	}

	async #listenOnReceived(descriptor: number): Promise<void> {
		this.#server = await receiveServer(descriptor);
		this.#server.on('connection', socket => {
			socket.allowHalfOpen = true;
			socket.setNoDelay(true);
			this.passOn(socket);
		});
	}
}
