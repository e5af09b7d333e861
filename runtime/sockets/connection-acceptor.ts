/**
 * Accepts the connections of a listening socket with the thread's poller, and reads from each connection immediately. Most
 * clients have sent their request by then, so a connection that carries a single request is never registered with the poller.
 *
 * Node opens and closes the listening socket, but Node's event loop does not watch it while the poller does.
 */
import { closeSync, openSync } from 'node:fs';
import { getSystemErrorName } from 'node:util';
import { type ConnectionCalls, connectionCalls } from './connection-calls.ts';
import { DescriptorHandle, TcpDescriptorHandle } from './descriptor-handle.ts';
import { DirectSocket } from './direct-socket.ts';
import type { ListeningOwner } from './listening-socket.ts';
import { OWNED_DESCRIPTOR_LIMIT } from './owned-descriptors.ts';
import type { PolledSocket } from './socket-poller.ts';

/** Maximum connections accepted in a row before other sockets are served. */
const MAX_ACCEPTS_PER_TURN = 16;
/**
 * A turn that accepts at least this many connections is a burst: in the next turn, `accept` is called until no connection is
 * waiting. Otherwise, `poll` checks for a waiting connection before each `accept` except the first, because an `accept` that
 * finds none takes as long as eight calls of `poll`.
 */
const MIN_BURST_CONNECTIONS = 8;
/** Maximum turns without a pause in {@link ConnectionAcceptor.acceptAll}. They accept more connections than the longest queue has. */
const MAX_TURNS_IN_A_ROW = 512;
/** Milliseconds for which no connections are accepted after the system has run out of memory or descriptors. */
const BACK_OFF_MS = 100;
/** Maximum attempts to take over the listening socket from Node's event loop. Each turn of the loop allows one attempt. */
const MAX_TAKEOVER_ATTEMPTS = 50;

const WOULD_BLOCK_ERROR = -11;
const NO_DESCRIPTOR_ERRORS = [-24, -23];
/**
 * Errors after which the next `accept` would fail, too: ENOMEM, ENOBUFS, EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP. All other errors
 * concern a single connection.
 */
const LASTING_ERRORS = [-12, -105, -9, -22, -88, -95];

/** Accepts the connections of one listening socket. */
export class ConnectionAcceptor implements PolledSocket {
	registrationNumber = 0;
	readonly #descriptor: number;
	readonly #owner: ListeningOwner;
	readonly #isUnix: boolean;
	#calls: ConnectionCalls | undefined;
	#attemptCount = 0;
	/** True if the previous turn accepted at least {@link MIN_BURST_CONNECTIONS}. */
	#isInBurst = false;
	#isClosed = false;
	/**
	 * A spare descriptor; −1 if there is none. When the process has no free descriptors, the spare one is closed, so that a
	 * connection can be accepted and then closed.
	 */
	#spareDescriptor = -1;
	#backOffTimer: NodeJS.Timeout | undefined;

	/**
	 * Takes over the listening socket from Node as soon as possible. Until then, or if that is never possible, Node accepts
	 * connections.
	 */
	constructor(descriptor: number, owner: ListeningOwner, isUnix: boolean) {
		this.#descriptor = descriptor;
		this.#owner = owner;
		this.#isUnix = isUnix;
		setImmediate(attemptTakeOver, this);
	}

	/** Tries to take over the listening socket from Node's event loop. */
	tryTakeOver(): void {
		if (this.#isClosed) return;
		const calls = connectionCalls();
		// Node's event loop registers a new socket only in its next turn, so the first attempts may be too early.
		if (calls?.poller.takeFromLoop(this.#descriptor) !== true) {
			if (++this.#attemptCount < MAX_TAKEOVER_ATTEMPTS) setImmediate(attemptTakeOver, this);
			return;
		}
		if (!calls.poller.addListening(this.#descriptor, this)) {
			calls.poller.returnToLoop(this.#descriptor);
			return;
		}
		this.#calls = calls;
		this.#openSpare();
	}

	/** True if Node no longer accepts the connections. */
	get hasTakenOver(): boolean {
		return this.#calls !== undefined;
	}

	/** Stops accepting. Must be called before the socket is closed. */
	close(): void {
		if (this.#isClosed) return;
		this.#isClosed = true;
		clearTimeout(this.#backOffTimer);
		if (this.#calls !== undefined) this.#calls.poller.remove(this.#descriptor);
		if (this.#spareDescriptor >= 0) closeSync(this.#spareDescriptor);
		this.#spareDescriptor = -1;
	}

	onReadable(): void {
		this.#isInBurst = this.#acceptConnections(this.#calls!) >= MIN_BURST_CONNECTIONS;
	}

	/** Accepts all waiting connections. */
	acceptAll(): void {
		const calls = this.#calls;
		if (calls === undefined) return;
		for (let turns = 0; turns < MAX_TURNS_IN_A_ROW && !this.#isClosed; turns++)
			if (!calls.hasWaitingConnection(this.#descriptor) || this.#acceptConnections(calls) === 0) return;
	}

	/** Accepts the waiting connections, at most {@link MAX_ACCEPTS_PER_TURN}. Returns how many were accepted or rejected. */
	#acceptConnections(calls: ConnectionCalls): number {
		for (let acceptCount = 0; acceptCount < MAX_ACCEPTS_PER_TURN && !this.#isClosed; acceptCount++) {
			const mayBeLast = acceptCount > 0 && !this.#isInBurst;
			if (mayBeLast && !calls.hasWaitingConnection(this.#descriptor)) return acceptCount;
			const descriptor = calls.accept(this.#descriptor);
			if (descriptor >= 0) this.#handleConnection(descriptor, calls);
			else if (descriptor === WOULD_BLOCK_ERROR || this.#handleError(descriptor, calls)) return acceptCount;
		}
		return MAX_ACCEPTS_PER_TURN;
	}

	#handleConnection(descriptor: number, calls: ConnectionCalls): void {
		if (descriptor >= OWNED_DESCRIPTOR_LIMIT) {
			this.#takeNodeHandle(descriptor, calls);
			return;
		}
		const handle = this.#isUnix
			? new DescriptorHandle(descriptor, calls)
			: new TcpDescriptorHandle(descriptor, calls, calls.peer);
		const socket = new DirectSocket(handle, true);
		const owner = this.#owner;
		if (owner.needsStream) owner.onAccepted(socket.toSocket());
		else {
			owner.onAccepted(socket);
			socket.readFirst();
		}
	}

	#takeNodeHandle(descriptor: number, calls: ConnectionCalls): void {
		const handle = calls.createNodeHandle(descriptor, this.#isUnix);
		if (handle === undefined) {
			calls.close(descriptor);
			return;
		}
		const socket = new DirectSocket(handle);
		const owner = this.#owner;
		owner.onAccepted(owner.needsStream ? socket.toSocket() : socket);
	}

	/** Handles a failed `accept`. Returns true if no further connection can be accepted for now. */
	#handleError(status: number, calls: ConnectionCalls): boolean {
		if (NO_DESCRIPTOR_ERRORS.includes(status)) return this.#refuseConnection(status, calls);
		if (!LASTING_ERRORS.includes(status)) return false;
		this.#owner.onAcceptFailed(acceptError(status));
		return this.#backOff(calls);
	}

	/**
	 * Frees the spare descriptor to accept a connection, which is closed at once, so that the client need not wait until a
	 * descriptor becomes free.
	 */
	#refuseConnection(status: number, calls: ConnectionCalls): boolean {
		if (this.#spareDescriptor < 0) {
			this.#owner.onAcceptFailed(acceptError(status));
			return this.#backOff(calls);
		}
		closeSync(this.#spareDescriptor);
		this.#spareDescriptor = -1;
		// The first `accept` may have failed although no connection was waiting: without free descriptors, the system does not check.
		const refusedDescriptor = calls.accept(this.#descriptor);
		if (refusedDescriptor >= 0) {
			calls.close(refusedDescriptor);
			this.#owner.onAcceptFailed(acceptError(status));
		}
		this.#openSpare();
		return refusedDescriptor < 0;
	}

	#backOff(calls: ConnectionCalls): true {
		calls.poller.remove(this.#descriptor);
		this.#backOffTimer = setTimeout(() => {
			this.#openSpare();
			if (!calls.poller.addListening(this.#descriptor, this)) this.#backOff(calls);
		}, BACK_OFF_MS).unref();
		return true;
	}

	#openSpare(): void {
		if (this.#spareDescriptor >= 0) return;
		try {
			this.#spareDescriptor = openSync('/dev/null', 'r');
		} catch {
			// No descriptor is free, so there is no spare one for now.
		}
	}
}

function acceptError(status: number): NodeJS.ErrnoException {
	const code = getSystemErrorName(status);
	return Object.assign(new Error(`accept ${code}`), { errno: status, code, syscall: 'accept' });
}

function attemptTakeOver(acceptor: ConnectionAcceptor): void {
	acceptor.tryTakeOver();
}
