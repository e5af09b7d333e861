/** Connections of HTTP/1.1 to one upstream: one call at a time on each, idle ones kept for the next. */
import type { ClientCall, ClientOptions } from '../../protocols/http1/client-call.ts';
import { ClientConnection, type ConnectionKeeper } from '../../protocols/http1/client-connection.ts';
import type { Wire } from '../../protocols/wire.ts';
import type { Dialer } from './dialer.ts';
import type { IdleLimits, UpstreamLink } from './link.ts';
import { WaitingCall } from './waiting-call.ts';

/**
 * Milliseconds that idle connections beyond the limit are kept. Requests come in bursts: what one leaves idle the next takes
 * again, and to connect anew costs more than a request.
 */
const SURPLUS_IDLE = 1000;

/** The connections. */
export class Http1Link implements UpstreamLink, ConnectionKeeper {
	readonly #dialer: Dialer;
	readonly #options: ClientOptions;
	readonly #limits: IdleLimits;
	readonly #idled: () => void;
	/** The one used last stands last and is taken first: so the others can age and go. */
	#idle: ClientConnection[] = [];
	#closed = false;

	/** @param idled Called when a connection has become idle. */
	constructor(dialer: Dialer, options: ClientOptions, limits: IdleLimits, idled: () => void) {
		this.#dialer = dialer;
		this.#options = options;
		this.#limits = limits;
		this.#idled = idled;
	}

	get idle(): number {
		return this.#idle.length;
	}

	send(call: ClientCall, fresh: boolean): void {
		if (!fresh) {
			for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
				if (!connection.usable) continue;
				connection.send(call);
				return;
			}
		}
		new WaitingCall(this.#dialer, call, this.#connected);
	}

	/** Puts a call on a wire that speaks HTTP/1.1. */
	begin(wire: Wire, call: ClientCall): void {
		new ClientConnection(wire, this.#options, this).send(call);
	}

	sweep(now: number): void {
		const idle = this.#idle;
		const oldest = now - this.#limits.timeout;
		let expired = 0;
		while (expired < idle.length && idle[expired]!.idleSince <= oldest) expired++;
		const surplus = idle.length - this.#limits.count;
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
	connectionIdle(connection: ClientConnection): void {
		if (this.#closed || this.#limits.timeout <= 0 || this.#limits.count <= 0) {
			connection.destroy();
			return;
		}
		connection.idleSince = performance.now();
		this.#idle.push(connection);
		this.#idled();
	}

	/** ConnectionKeeper: it has ended while nothing was on it. */
	connectionLost(connection: ClientConnection): void {
		const at = this.#idle.indexOf(connection);
		if (at !== -1) this.#idle.splice(at, 1);
	}

	readonly #connected = (wire: Wire, call: ClientCall): void => this.begin(wire, call);
}
