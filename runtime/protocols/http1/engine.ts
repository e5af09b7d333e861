/** What the connections of one server share: limits, parser, clock and the watch over deadlines. */
import type { ProtocolHost, ProtocolLimits } from '../protocol.ts';
import { RequestHeadParser } from './head-parser.ts';
import { TICK } from './limits.ts';
import { DateLine, FieldWriter } from './response-head.ts';
import { ReadMemory } from './socket-input.ts';

/** A connection as the engine keeps it. */
export interface EngineConnection {
	/** Acts on deadlines that have passed; `now` is `performance.now()`. */
	check(now: number): void;
	/** Closes at once if idle. */
	drain(): void;
	/** Ends at once. */
	destroy(): void;
}

/** The shared part of one server on one thread. */
export class Engine {
	readonly host: ProtocolHost;
	readonly limits: ProtocolLimits;
	readonly parser: RequestHeadParser;
	readonly fieldWriter: FieldWriter;
	readonly connections: Set<EngineConnection> = new Set();
	#readMemory: ReadMemory | undefined = undefined;
	/** `performance.now()` of the last event: exact at the start of an exchange, a tick old at worst. */
	now: number = performance.now();
	draining = false;
	readonly #dateLine = new DateLine();
	readonly #tick: number;
	#timer: NodeJS.Timeout | undefined = undefined;

	constructor(host: ProtocolHost) {
		this.host = host;
		const limits = host.limits;
		this.limits = limits;
		this.parser = new RequestHeadParser(limits.maxHeaderCount);
		this.fieldWriter = new FieldWriter(() => host.refused('invalid_response_field'));
		let shortest = TICK * 4;
		for (const time of [limits.headTimeout, limits.idleTimeout, limits.bodyIdleTimeout, limits.writeIdleTimeout]) {
			if (time > 0 && time < shortest) shortest = time;
		}
		this.#tick = Math.max(10, shortest / 4);
	}

	/** Made for the first connection: most listeners of a large configuration have none. */
	get readMemory(): ReadMemory {
		this.#readMemory ??= new ReadMemory();
		return this.#readMemory;
	}

	/** The `Date` line of now. */
	date(): string {
		return this.#dateLine.at(this.now);
	}

	/** The time a bound of so many milliseconds from now is over; Infinity for a bound of 0. */
	after(milliseconds: number): number {
		return milliseconds === 0 ? Infinity : this.now + milliseconds;
	}

	add(connection: EngineConnection): void {
		this.connections.add(connection);
		this.host.opened();
		// One timer for all connections; none when there is no connection.
		this.#timer ??= setInterval(() => this.#look(), this.#tick).unref();
	}

	remove(connection: EngineConnection): void {
		if (!this.connections.delete(connection)) return;
		this.host.closed();
		if (this.connections.size > 0) return;
		clearInterval(this.#timer);
		this.#timer = undefined;
	}

	#look(): void {
		const now = performance.now();
		this.now = now;
		for (const connection of this.connections) connection.check(now);
	}
}
