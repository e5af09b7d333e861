/** Connections to one upstream that carry one request at a time and are kept alive: HTTP/1.1 and FastCGI. */
import { performance } from 'node:perf_hooks';
import type { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { ClientCall, ConnectionKeeper, KeptConnection } from '../../protocols/http1/client-call.ts';
import type { Dialer } from '../../sockets/dialer.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';
import { CallQueue } from './call-queue.ts';
import type { IdleLimits, UpstreamConnector } from './connector.ts';
import { type ConnectionRequester, WaitingCall } from './waiting-call.ts';

/**
 * Milliseconds for which idle connections beyond the limit are kept. Requests come in bursts: each burst reuses the connections
 * of the previous one, because connecting costs more than a request.
 */
const SURPLUS_IDLE_MS = 1000;

export interface SerialSettings {
	readonly createConnection: (socket: UpstreamSocket, keeper: ConnectionKeeper) => KeptConnection;
	readonly limits: IdleLimits;
	/** Maximum connections of this thread, including those being opened; 0 for no limit. */
	readonly maxConnections: number;
	/** Called when a connection has become idle. If it returns false, the connection is closed. */
	readonly onIdle: () => boolean;
}

export class SerialConnector implements UpstreamConnector, ConnectionKeeper, ConnectionRequester {
	readonly #dialer: Dialer;
	readonly #settings: SerialSettings;
	/** The idle connections, ordered by last use. The most recently used one is reused first, so that the others can expire. */
	#idleConnections: KeptConnection[] = [];
	/** Number of connections, including those being opened. */
	#openCount = 0;
	/** Number of connections being opened. */
	#dialingCount = 0;
	/** Requests that wait because no more connections may be opened. */
	readonly #waitingCalls = new CallQueue();
	#isClosed = false;

	constructor(dialer: Dialer, settings: SerialSettings) {
		this.#dialer = dialer;
		this.#settings = settings;
	}

	get idleCount(): number {
		return this.#idleConnections.length;
	}

	get isUnused(): boolean {
		return this.#openCount === 0;
	}

	send(call: ClientCall, wantsNewConnection: boolean): void {
		if (!wantsNewConnection) {
			for (
				let connection = this.#idleConnections.pop();
				connection !== undefined;
				connection = this.#idleConnections.pop()
			) {
				if (!connection.usable) continue;
				connection.send(call);
				return;
			}
		}
		const { maxConnections } = this.#settings;
		if (maxConnections > 0 && this.#openCount >= maxConnections) {
			const [oldestConnection] = this.#idleConnections;
			if (!oldestConnection) {
				this.#waitingCalls.add(call);
				return;
			}
			oldestConnection.destroy();
		}
		this.#dial(call);
	}

	/** Sends a request on a socket dialed by another connector. */
	adopt(socket: UpstreamSocket, call: ClientCall): void {
		this.#openCount++;
		this.#dialingCount++;
		this.onConnected(socket, call);
	}

	/** Implements ConnectionRequester: a connection is open. */
	onConnected(socket: UpstreamSocket, call: ClientCall): void {
		this.#dialingCount--;
		this.#settings.createConnection(socket, this).send(call);
	}

	/** Implements ConnectionRequester: no connection could be opened, or the request that opened it was canceled. */
	onNotConnected(error: UpstreamError | undefined): void {
		this.#openCount--;
		this.#dialingCount--;
		// If there is no open connection either, waiting requests fail with the same error, instead of each waiting for its own
		// timeout.
		if (error === undefined || this.#openCount > this.#dialingCount) this.#serveWaiting();
		else if (this.#dialingCount === 0) this.#waitingCalls.failAll(error);
	}

	sweep(now: number): void {
		const idleConnections = this.#idleConnections;
		const expiryTime = now - this.#settings.limits.timeoutMs;
		let expiredCount = 0;
		while (expiredCount < idleConnections.length && idleConnections[expiredCount]!.idleSince <= expiryTime)
			expiredCount++;
		const surplusCount = idleConnections.length - this.#settings.limits.maxCount;
		while (expiredCount < surplusCount && idleConnections[expiredCount]!.idleSince <= now - SURPLUS_IDLE_MS)
			expiredCount++;
		if (expiredCount === 0) return;
		for (const connection of idleConnections.splice(0, expiredCount)) connection.destroy();
	}

	close(): void {
		this.#isClosed = true;
		const idleConnections = this.#idleConnections;
		this.#idleConnections = [];
		for (const connection of idleConnections) connection.destroy();
	}

	/** Implements ConnectionKeeper: the connection is free. */
	onConnectionIdle(connection: KeptConnection): void {
		if (this.#waitingCalls.size > 0) {
			connection.send(this.#waitingCalls.shift()!);
			return;
		}
		const { limits, onIdle } = this.#settings;
		if (this.#isClosed || limits.timeoutMs <= 0 || limits.maxCount <= 0) {
			connection.destroy();
			return;
		}
		connection.idleSince = performance.now();
		this.#idleConnections.push(connection);
		if (!onIdle()) connection.destroy();
	}

	/** Implements ConnectionKeeper: the connection has ended. */
	onConnectionLost(connection: KeptConnection): void {
		const at = this.#idleConnections.indexOf(connection);
		if (at !== -1) this.#idleConnections.splice(at, 1);
		this.#openCount--;
		this.#serveWaiting();
	}

	#dial(call: ClientCall): void {
		this.#openCount++;
		this.#dialingCount++;
		new WaitingCall(this.#dialer, call, this);
	}

	#serveWaiting(): void {
		const { maxConnections } = this.#settings;
		while (this.#waitingCalls.size > 0 && this.#openCount < maxConnections) this.#dial(this.#waitingCalls.shift()!);
	}
}
