/** Connections to one upstream that carry one call at a time, idle ones kept for the next: HTTP/1.1 and FastCGI. */
import { performance } from 'node:perf_hooks';
import type { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { ClientCall, ConnectionKeeper, KeptConnection } from '../../protocols/http1/client-call.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';
import { CallQueue } from './call-queue.ts';
import type { IdleLimits, UpstreamConnector } from './connector.ts';
import type { Dialer } from './dialer.ts';
import { type DialedFor, WaitingCall } from './waiting-call.ts';

/**
 * Milliseconds that idle connections beyond the limit are kept. Requests come in bursts: what one leaves idle the next takes
 * again, and to connect anew costs more than a request.
 */
const SURPLUS_IDLE = 1000;

/** Settings of the connections. */
export interface SerialSettings {
	/** Makes a connection of a wire. */
	readonly open: (wire: UpstreamSocket, keeper: ConnectionKeeper) => KeptConnection;
	readonly limits: IdleLimits;
	/** Connections of this thread, those under way included; 0 for no bound. */
	readonly maxConnections: number;
	/** Called when a connection has become idle; false: it is not to be kept. */
	readonly idled: () => boolean;
}

/** The connections. */
export class SerialConnector implements UpstreamConnector, ConnectionKeeper, DialedFor {
	readonly #dialer: Dialer;
	readonly #settings: SerialSettings;
	/** The one used last stands last and is taken first: so the others can age and go. */
	#idle: KeptConnection[] = [];
	/** Connections, those under way included. */
	#open = 0;
	/** Those under way. */
	#dialing = 0;
	/** Calls that wait for one of as many connections as there may be. */
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

	/** Puts a call on a wire that was dialed elsewhere. */
	adopt(wire: UpstreamSocket, call: ClientCall): void {
		this.#open++;
		this.#dialing++;
		this.connected(wire, call);
	}

	/** DialedFor */
	connected(wire: UpstreamSocket, call: ClientCall): void {
		this.#dialing--;
		this.#settings.open(wire, this).send(call);
	}

	/** DialedFor */
	notConnected(error: UpstreamError | undefined): void {
		this.#open--;
		this.#dialing--;
		// Where nothing is connected, those that wait share what others found out: each would wait for a time-out of its own.
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

	/** ConnectionKeeper: it takes another call. */
	connectionIdle(connection: KeptConnection): void {
		if (this.#waiting.size > 0) {
			connection.send(this.#waiting.shift()!);
			return;
		}
		const { limits, idled } = this.#settings;
		if (this.#closed || limits.timeout <= 0 || limits.count <= 0) {
			connection.destroy();
			return;
		}
		connection.idleSince = performance.now();
		this.#idle.push(connection);
		if (!idled()) connection.destroy();
	}

	/** ConnectionKeeper: it has ended. */
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
