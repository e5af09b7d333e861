/**
 * Accepts the connections of a listening socket with the thread's poller, and reads from each connection immediately. Most
 * clients have sent their request by then, so a connection that carries a single request is never registered with the poller.
 *
 * Node opens and closes the listening socket, but Node's event loop does not watch it meanwhile.
 */
import { closeSync, openSync } from 'node:fs';
import { getSystemErrorName } from 'node:util';
import { type ConnectionCalls, connectionCalls } from './connection-calls.ts';
import { DescriptorHandle, TcpDescriptorHandle } from './descriptor-handle.ts';
import { DirectSocket } from './direct-socket.ts';
import type { ListeningOwner } from './listening-socket.ts';
import { MAX_OWNED } from './owned-descriptors.ts';
import type { PolledSocket } from './socket-poller.ts';

/** Maximum connections accepted in a row before other sockets are served. */
const ACCEPTS_A_TURN = 16;
/** Milliseconds for which no connections are accepted after the system has run out of memory or descriptors. */
const BACK_OFF = 100;
/** Maximum attempts to take over the listening socket from Node's event loop. Each turn of the loop allows one attempt. */
const MAX_ATTEMPTS = 50;

const WOULD_BLOCK = -11;
const NO_DESCRIPTOR = [-24, -23];
/**
 * Errors after which the next `accept` would fail, too: ENOMEM, ENOBUFS, EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP. All other errors
 * concern a single connection.
 */
const LASTING = [-12, -105, -9, -22, -88, -95];

/** Accepts the connections of one listening socket. */
export class ConnectionAcceptor implements PolledSocket {
	/** Implements PolledSocket. */
	pollTurn = 0;
	readonly #descriptor: number;
	readonly #owner: ListeningOwner;
	readonly #isUnix: boolean;
	#calls: ConnectionCalls | undefined;
	#attempts = 0;
	#closed = false;
	/**
	 * A spare descriptor; −1 if there is none. When the process has no free descriptors, the spare one is closed, so that a
	 * connection can be accepted and then closed.
	 */
	#reserve = -1;
	#pause: NodeJS.Timeout | undefined;

	/**
	 * Takes over the listening socket from Node as soon as possible. Until then, or if that is never possible, Node accepts
	 * connections.
	 */
	constructor(descriptor: number, owner: ListeningOwner, isUnix: boolean) {
		this.#descriptor = descriptor;
		this.#owner = owner;
		this.#isUnix = isUnix;
		setImmediate(attempt, this);
	}

	/** Tries to take over the listening socket from Node's event loop. */
	attempt(): void {
		if (this.#closed) return;
		const calls = connectionCalls();
		// Node's event loop registers a new socket only in its next turn, so the first attempts may be too early.
		if (calls?.poller.takeFromLoop(this.#descriptor) !== true) {
			if (++this.#attempts < MAX_ATTEMPTS) setImmediate(attempt, this);
			return;
		}
		if (!calls.poller.addListening(this.#descriptor, this)) {
			calls.poller.returnToLoop(this.#descriptor);
			return;
		}
		this.#calls = calls;
		this.#reserveOne();
	}

	/** True if Node no longer accepts the connections. */
	get hasTakenOver(): boolean {
		return this.#calls !== undefined;
	}

	/** Stops accepting. Must be called before the socket is closed. */
	close(): void {
		if (this.#closed) return;
		this.#closed = true;
		clearTimeout(this.#pause);
		if (this.#calls !== undefined) this.#calls.poller.remove(this.#descriptor);
		if (this.#reserve >= 0) closeSync(this.#reserve);
		this.#reserve = -1;
	}

	/** Implements PolledSocket. */
	readable(): void {
		const calls = this.#calls!;
		for (let accepted = 0; accepted < ACCEPTS_A_TURN && !this.#closed; accepted++) {
			const descriptor = calls.accept(this.#descriptor);
			if (descriptor >= 0) this.#take(descriptor, calls);
			else if (descriptor === WOULD_BLOCK || this.#failed(descriptor, calls)) return;
		}
	}

	#take(descriptor: number, calls: ConnectionCalls): void {
		if (descriptor >= MAX_OWNED) {
			this.#takeNodeHandle(descriptor, calls);
			return;
		}
		const handle = this.#isUnix
			? new DescriptorHandle(descriptor, calls)
			: new TcpDescriptorHandle(descriptor, calls, calls.peer());
		const socket = new DirectSocket(handle, true);
		const owner = this.#owner;
		if (owner.needsStream) owner.accepted(socket.toSocket());
		else {
			owner.accepted(socket);
			socket.readFirst();
		}
	}

	#takeNodeHandle(descriptor: number, calls: ConnectionCalls): void {
		const handle = calls.nodeHandle(descriptor, this.#isUnix);
		if (handle === undefined) {
			calls.close(descriptor);
			return;
		}
		const socket = new DirectSocket(handle);
		const owner = this.#owner;
		owner.accepted(owner.needsStream ? socket.toSocket() : socket);
	}

	/** Handles a failed `accept`. Returns true if no further connection can be accepted for now. */
	#failed(status: number, calls: ConnectionCalls): boolean {
		if (NO_DESCRIPTOR.includes(status)) return this.#turnAway(status, calls);
		if (!LASTING.includes(status)) return false;
		this.#owner.acceptFailed(acceptError(status));
		return this.#backOff(calls);
	}

	/**
	 * Frees the spare descriptor to accept a connection, which is closed at once, so that the client need not wait until a
	 * descriptor becomes free.
	 */
	#turnAway(status: number, calls: ConnectionCalls): boolean {
		if (this.#reserve < 0) {
			this.#owner.acceptFailed(acceptError(status));
			return this.#backOff(calls);
		}
		closeSync(this.#reserve);
		this.#reserve = -1;
		// The first `accept` may have failed although no connection was waiting: without free descriptors, the system does not check.
		const refused = calls.accept(this.#descriptor);
		if (refused >= 0) {
			calls.close(refused);
			this.#owner.acceptFailed(acceptError(status));
		}
		this.#reserveOne();
		return refused < 0;
	}

	#backOff(calls: ConnectionCalls): true {
		calls.poller.remove(this.#descriptor);
		this.#pause = setTimeout(() => {
			this.#reserveOne();
			calls.poller.addListening(this.#descriptor, this);
		}, BACK_OFF).unref();
		return true;
	}

	#reserveOne(): void {
		if (this.#reserve >= 0) return;
		try {
			this.#reserve = openSync('/dev/null', 'r');
		} catch {
			// No descriptor is free, so there is no spare one for now.
		}
	}
}

function acceptError(status: number): NodeJS.ErrnoException {
	const code = getSystemErrorName(status);
	return Object.assign(new Error(`accept ${code}`), { errno: status, code, syscall: 'accept' });
}

function attempt(acceptor: ConnectionAcceptor): void {
	acceptor.attempt();
}
