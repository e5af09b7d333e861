/** What the connections of one server share: limits, parser, clock and the watch over deadlines. */
import { performance } from 'node:perf_hooks';
import { SocketRelay } from '../../sockets/socket-relay.ts';
import type { Closable, ProtocolHost, ProtocolLimits } from '../protocol.ts';
import { expectedNames } from './expected-names.ts';
import { RequestHeadParser } from './head-parser.ts';
import { JoinedWrites } from './joined-writes.ts';
import { TICK } from './limits.ts';
import { PieceMemory } from './piece-memory.ts';
import { RepeatedAnswers } from './repeated-answers.ts';
import { DateLine, FieldWriter } from './response-head.ts';
import type { SocketInfo } from './socket-info.ts';
import { ReadMemory, type SocketInput } from './socket-input.ts';
import { type Timed, TimerWheel } from './timer-wheel.ts';

/** A connection as the engine keeps it. */
export interface EngineConnection extends Closable {
	/** Its deadlines. */
	readonly clock: Timed;
	readonly info: SocketInfo;
	/** Closes at once if idle; `alone` makes it close after its exchange, though its server goes on. */
	drain(alone?: boolean): void;
	/** Ends at once. */
	destroy(): void;
}

/**
 * Takes a connection that begins as HTTP/2 does (RFC 9113 §3.3); `bytes` are its first, for the call alone. False when the
 * listener has no such protocol.
 */
export type TakeOver = (input: SocketInput, info: SocketInfo, bytes: Buffer) => boolean;

/** The shared part of one server on one thread. */
export class Engine {
	readonly host: ProtocolHost;
	readonly takeOver: TakeOver | undefined;
	/** Those of the host as they were when the last connection came or the clock last struck. */
	limits: ProtocolLimits;
	readonly parser: RequestHeadParser;
	readonly fieldWriter: FieldWriter;
	readonly answers: RepeatedAnswers = new RepeatedAnswers();
	readonly connections: Set<EngineConnection> = new Set();
	#readMemory: ReadMemory | undefined = undefined;
	#joinedWrites: JoinedWrites | undefined = undefined;
	#pieceMemory: PieceMemory | undefined = undefined;
	/** Null where there is none. */
	#relay: SocketRelay | null | undefined = undefined;
	/** `performance.now()` of the last event: exact at the start of an exchange, a tick old at worst. */
	now: number = performance.now();
	draining = false;
	readonly #dateLine = new DateLine();
	#tick: number;
	#wheel: TimerWheel<Timed>;
	#timer: NodeJS.Timeout | undefined = undefined;

	constructor(host: ProtocolHost, takeOver?: TakeOver) {
		this.host = host;
		this.takeOver = takeOver;
		const limits = host.limits;
		this.limits = limits;
		this.parser = new RequestHeadParser(limits.maxHeaderCount);
		this.parser.fields.expected = expectedNames(limits);
		this.fieldWriter = new FieldWriter(() => host.refused('invalid_response_field'));
		this.#tick = tickFor(limits);
		this.#wheel = new TimerWheel(this.#tick, this.now);
	}

	/** Made for the first connection: most listeners of a large configuration have none. */
	get readMemory(): ReadMemory {
		this.#readMemory ??= new ReadMemory();
		return this.#readMemory;
	}

	/** For answers of middle size; made for the first one. */
	get joinedWrites(): JoinedWrites {
		this.#joinedWrites ??= new JoinedWrites();
		return this.#joinedWrites;
	}

	/** For pieces of bodies; made for the first one. */
	get pieceMemory(): PieceMemory {
		this.#pieceMemory ??= new PieceMemory();
		return this.#pieceMemory;
	}

	/** Moves large bodies past this program; opened for the first one. */
	readonly relay = (): SocketRelay | undefined => {
		if (this.#relay === undefined) this.#relay = SocketRelay.open() ?? null;
		return this.#relay ?? undefined;
	};

	/** The `Date` line of now. */
	date(): string {
		return this.#dateLine.at(this.now);
	}

	/** The time a bound of so many milliseconds from now is over; Infinity for a bound of 0. */
	after(milliseconds: number): number {
		return milliseconds === 0 ? Infinity : this.now + milliseconds;
	}

	/** Takes over what a load has changed. */
	refresh(): void {
		const { limits } = this.host;
		if (limits === this.limits) return;
		this.limits = limits;
		this.parser.fields.maxCount = limits.maxHeaderCount;
		this.parser.fields.expected = expectedNames(limits);
		this.parser.repeated.clear();
		const tick = tickFor(limits);
		if (tick === this.#tick) return;
		this.#tick = tick;
		this.#wheel = new TimerWheel(tick, performance.now());
		for (const connection of this.connections) this.#wheel.add(connection.clock);
		if (this.#timer === undefined) return;
		clearInterval(this.#timer);
		this.#timer = this.#clock();
	}

	add(connection: EngineConnection): void {
		// Without a connection the wheel has stood still.
		if (this.connections.size === 0) this.#wheel.begin(this.now);
		this.connections.add(connection);
		this.#wheel.add(connection.clock);
		this.host.opened();
		this.#timer ??= this.#clock();
	}

	/** A connection goes on with another protocol, and counts as before. */
	release(connection: EngineConnection): void {
		if (this.connections.delete(connection)) this.#without(connection);
	}

	/** A deadline of a connection has been set that may be its earliest. */
	sooner(clock: Timed, deadline: number): void {
		this.#wheel.sooner(clock, deadline);
	}

	remove(connection: EngineConnection): void {
		if (!this.connections.delete(connection)) return;
		this.host.closed();
		this.#without(connection);
	}

	#without(connection: EngineConnection): void {
		this.#wheel.remove(connection.clock);
		if (this.connections.size > 0) return;
		clearInterval(this.#timer);
		this.#timer = undefined;
	}

	/** One timer for all connections; none when there is no connection. */
	#clock(): NodeJS.Timeout {
		return setInterval(() => {
			const now = performance.now();
			this.now = now;
			this.#wheel.advance(now);
			this.refresh();
		}, this.#tick).unref();
	}
}

/** Milliseconds between two looks: a quarter of the shortest time-out, so that each is met with little to spare. */
function tickFor(limits: ProtocolLimits): number {
	let shortest = TICK * 4;
	const { headTimeout, idleTimeout, bodyTimeout, bodyIdleTimeout, writeTimeout, writeIdleTimeout } = limits;
	for (const time of [headTimeout, idleTimeout, bodyTimeout, bodyIdleTimeout, writeTimeout, writeIdleTimeout]) {
		if (time > 0 && time < shortest) shortest = time;
	}
	return Math.max(10, shortest / 4);
}
