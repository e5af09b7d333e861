/** One upstream on one thread: its idle connections and its count of requests in flight. */
import type { UpstreamAddress } from '../../compiler/directives/reverse-proxy/upstream-address.ts';
import type { Upstream } from '../../compiler/exchange/leases.ts';
import type { ClientOptions, ClientTarget } from '../protocols/http1/client-call.ts';
import { ClientConnection } from '../protocols/http1/client-connection.ts';
import type { UpstreamCounts } from './shared-counts.ts';

/** How idle connections are kept. */
export interface IdleLimits {
	/** Milliseconds that a connection may be idle; 0 keeps none. */
	readonly timeout: number;
	/** Connections kept; 0 keeps none. More than these stay for SURPLUS_IDLE. */
	readonly count: number;
}

/**
 * Milliseconds that idle connections beyond the limit are kept. Requests come in bursts: what one leaves idle the next takes
 * again, and to connect anew costs more than a request.
 */
const SURPLUS_IDLE = 1000;

/** An upstream with the connections that this thread keeps to it. */
export class PooledUpstream implements Upstream {
	readonly address: string;
	readonly host: string;
	readonly port: number;
	readonly #target: ClientTarget;
	readonly #options: ClientOptions;
	readonly #limits: IdleLimits;
	/** Slot in the shared counts; undefined for an address that placeholders made. */
	readonly #slot: number | undefined;
	readonly #counts: UpstreamCounts;
	#localActive = 0;
	/** The one used last stands last and is taken first: so the others can age and go. */
	#idle: ClientConnection[] = [];
	#closed = false;

	constructor(
		address: UpstreamAddress,
		options: ClientOptions,
		limits: IdleLimits,
		counts: UpstreamCounts,
		slot: number | undefined,
	) {
		this.address = address.address;
		this.host = address.host;
		this.port = address.port;
		this.#target = address.path === undefined ? { host: address.host, port: address.port } : { path: address.path };
		this.#options = options;
		this.#limits = limits;
		this.#counts = counts;
		this.#slot = slot;
	}

	get active(): number {
		return this.#slot === undefined ? this.#localActive : this.#counts.active(this.#slot);
	}

	/** Requests in flight of this thread. */
	get localActive(): number {
		return this.#localActive;
	}

	/** Idle connections of this thread. */
	get idle(): number {
		return this.#idle.length;
	}

	/** Counts a request that begins or ends. */
	count(by: 1 | -1): void {
		this.#localActive += by;
		if (this.#slot !== undefined) this.#counts.add(this.#slot, by);
	}

	/** A connection that can take a request: an idle one, else a new one, which may still be connecting. */
	take(): ClientConnection {
		for (;;) {
			const connection = this.#idle.pop();
			if (connection === undefined) return this.open();
			if (connection.usable) return connection;
		}
	}

	/** A connection that has not been used before. */
	open(): ClientConnection {
		return new ClientConnection(this.#target, this.#options, this.#forget);
	}

	/** Takes a connection back. */
	give(connection: ClientConnection, now: number): void {
		if (this.#closed || this.#limits.timeout <= 0 || this.#limits.count <= 0) {
			connection.destroy();
			return;
		}
		connection.idleSince = now;
		this.#idle.push(connection);
	}

	/** Ends connections that have been idle for too long. */
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

	/** Ends idle connections; those in use end after their request. */
	close(): void {
		this.#closed = true;
		const idle = this.#idle;
		this.#idle = [];
		for (const connection of idle) connection.destroy();
	}

	readonly #forget = (connection: ClientConnection): void => {
		const at = this.#idle.indexOf(connection);
		if (at !== -1) this.#idle.splice(at, 1);
	};
}
