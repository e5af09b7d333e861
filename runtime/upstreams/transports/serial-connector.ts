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
 * Milliseconds for which idle connections beyond the limit are kept. Requests come in bursts: each burst reuses the connections of
 * the last one, because connecting costs more than a request.
 */
const SURPLUS_IDLE = 1000;

export interface SerialSettings {
	/** Creates a connection on a socket. */
	readonly open: (socket: UpstreamSocket, keeper: ConnectionKeeper) => KeptConnection;
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
	#idle: KeptConnection[] = [];
	/** Number of connections, including those being opened. */
	#open = 0;
	/** Number of connections being opened. */
	#dialing = 0;
	/** Requests that wait because no more connections may be opened. */
	readonly #waiting = new CallQueue();
	#closed = false;

	constructor(dialer: Dialer, settings: SerialSettings) {
		this.#dialer = dialer;
		this.#settings = settings;
	}

	get idle(): number {
		return this.#idle.length;
	}

	get unused(): boolean {
		return this.#open === 0;
	}

	send(call: ClientCall, fresh: boolean): void {
		if (!fresh) {
			for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
				if (!connection.usable) continue;
				connection.send(call);
				return;
			}
		}
		const { maxConnections } = this.#settings;
		if (maxConnections > 0 && this.#open >= maxConnections) {
			const [oldest] = this.#idle;
			if (!oldest) {
				this.#waiting.add(call);
				return;
			}
			oldest.destroy();
		}
		this.#dial(call);
	}

	/** Sends a request on a socket dialed by another connector. */
	adopt(socket: UpstreamSocket, call: ClientCall): void {
		this.#open++;
		this.#dialing++;
		this.connected(socket, call);
	}

	/** Implements DialedFor. */
	connected(socket: UpstreamSocket, call: ClientCall): void {
		this.#dialing--;
		this.#settings.open(socket, this).send(call);
	}

	/** Implements DialedFor. */
	notConnected(error: UpstreamError | undefined): void {
		this.#open--;
		this.#dialing--;
		// If there is no open connection either, waiting requests fail with the same error, instead of each waiting for its own
		// timeout.
		if (error === undefined || this.#open > this.#dialing) this.#serveWaiting();
		else if (this.#dialing === 0) this.#waiting.fail(error);
	}

	sweep(now: number): void {
		const idle = this.#idle;
		const oldest = now - this.#settings.limits.timeout;
		let expired = 0;
		while (expired < idle.length && idle[expired]!.idleSince <= oldest) expired++;
		const surplus = idle.length - this.#settings.limits.count;
		while (expired < surplus && idle[expired]!.idleSince <= now - SURPLUS_IDLE) expired++;
		if (expired === 0) return;
		for (const connection of idle.splice(0, expired)) connection.destroy();
	}

	close(): void {
		this.#closed = true;
		const idle = this.#idle;
		this.#idle = [];
		for (const connection of idle) connection.destroy();
	}

	/** Implements ConnectionKeeper: the connection is free. */
	connectionIdle(connection: KeptConnection): void {
		if (this.#waiting.size > 0) {
			connection.send(this.#waiting.shift()!);
			return;
		}
		const { limits, onIdle } = this.#settings;
		if (this.#closed || limits.timeout <= 0 || limits.count <= 0) {
			connection.destroy();
			return;
		}
		connection.idleSince = performance.now();
		this.#idle.push(connection);
		if (!onIdle()) connection.destroy();
	}

	/** Implements ConnectionKeeper: the connection has ended. */
	connectionLost(connection: KeptConnection): void {
		const at = this.#idle.indexOf(connection);
		if (at !== -1) this.#idle.splice(at, 1);
		this.#open--;
		this.#serveWaiting();
	}

	#dial(call: ClientCall): void {
		this.#open++;
		this.#dialing++;
		new WaitingCall(this.#dialer, call, this);
	}

	#serveWaiting(): void {
		const { maxConnections } = this.#settings;
		while (this.#waiting.size > 0 && this.#open < maxConnections) this.#dial(this.#waiting.shift()!);
	}
}
