/** The state shared by the connections of one server: limits, parser, clock and deadlines. */
import { performance } from 'node:perf_hooks';
import { DenseSet, type DenseSetMember } from '../../sockets/dense-set.ts';
import { SocketRelay } from '../../sockets/socket-relay.ts';
import { ConnectionTimer } from '../connection-timer.ts';
import {
	type ClosableConnection,
	NO_WAIT,
	type ProtocolHost,
	type ProtocolLimits,
	type RequestWaits,
} from '../protocol.ts';
import { expectedNames } from './expected-names.ts';
import { RequestHeadParser } from './head-parser.ts';
import { JoinedWrites } from './joined-writes.ts';
import { PieceMemory } from './piece-memory.ts';
import { RepeatedAnswers } from './repeated-answers.ts';
import { DateLine, FieldWriter } from './response-head.ts';
import type { SocketInfo } from './socket-info.ts';
import { ReadMemory, type SocketInput } from './socket-input.ts';
import { type TimedItem, TimerWheel } from './timer-wheel.ts';

/** What the engine needs from a connection. */
export interface EngineConnection extends ClosableConnection, DenseSetMember {
	/** The connection's deadlines. */
	readonly clock: TimedItem;
	readonly info: SocketInfo;
	/**
	 * Closes the connection after the exchange in progress. An idle connection closes at once, or after one more request if the
	 * engine waits for one. `onlyThisConnection` means that only this connection is drained, not its server.
	 */
	drain(onlyThisConnection?: boolean): void;
	/** Closes the connection at once, whether or not an exchange is in progress. */
	destroy(): void;
}

/**
 * Takes over a connection that begins with the HTTP/2 preface (RFC 9113 §3.4). `bytes` are the first bytes received, valid only
 * during the call. Returns false if the listener does not support HTTP/2.
 */
export type Http2TakeOver = (input: SocketInput, info: SocketInfo, bytes: Buffer) => boolean;

/** The state that all connections of one server share on one thread. */
export class Http1Engine {
	readonly host: ProtocolHost;
	readonly takeOver: Http2TakeOver | undefined;
	/** `host.limits`, as it was at the last new connection or clock tick. */
	limits: ProtocolLimits;
	readonly parser: RequestHeadParser;
	readonly fieldWriter: FieldWriter;
	readonly responseCache: RepeatedAnswers = new RepeatedAnswers();
	readonly connections: DenseSet<EngineConnection> = new DenseSet();
	#readMemory: ReadMemory | undefined = undefined;
	#joinedWrites: JoinedWrites | undefined = undefined;
	#pieceMemory: PieceMemory | undefined = undefined;
	/** The relay between sockets: undefined until first needed, null if not available. */
	#relay: SocketRelay | null | undefined = undefined;
	/** `performance.now()` at the last event. Exact at the start of an exchange, otherwise at most one tick old. */
	now: number = performance.now();
	draining = false;
	/** How long clients may send another request on an idle connection while the server drains. */
	drainWaits: RequestWaits = NO_WAIT;
	readonly #dateLine = new DateLine();
	#timerWheel: TimerWheel<TimedItem>;
	readonly #timer: ConnectionTimer;

	constructor(host: ProtocolHost, takeOver?: Http2TakeOver) {
		this.host = host;
		this.takeOver = takeOver;
		const limits = host.limits;
		this.limits = limits;
		this.parser = new RequestHeadParser(limits.maxHeaderCount);
		this.parser.fields.expectedNames = expectedNames(limits);
		this.fieldWriter = new FieldWriter(() => host.countRefusal('invalid_response_field'));
		this.#timer = new ConnectionTimer(limits, () => this.#onTick());
		this.#timerWheel = new TimerWheel(this.#timer.periodMs, this.now);
	}

	/**
	 * Memory into which sockets are read. Created for the first connection, because most listeners of a large configuration never
	 * have one.
	 */
	get readMemory(): ReadMemory {
		this.#readMemory ??= new ReadMemory();
		return this.#readMemory;
	}

	/** Buffer for writing a head and a medium-sized body at once. Created on first use. */
	get joinedWrites(): JoinedWrites {
		this.#joinedWrites ??= new JoinedWrites();
		return this.#joinedWrites;
	}

	/** Memory for chunks of bodies. Created on first use. */
	get pieceMemory(): PieceMemory {
		this.#pieceMemory ??= new PieceMemory();
		return this.#pieceMemory;
	}

	/** Returns the relay that moves large bodies from socket to socket. Opened on first use. */
	readonly relay = (): SocketRelay | undefined => {
		if (this.#relay === undefined) this.#relay = SocketRelay.open() ?? null;
		return this.#relay ?? undefined;
	};

	/** Returns the line of the `Date` field for the current second, with its CRLF. */
	dateLine(): string {
		return this.#dateLine.lineAt(this.now);
	}

	/** Returns the deadline that is `milliseconds` from now; Infinity for 0. */
	deadlineIn(milliseconds: number): number {
		return milliseconds === 0 ? Infinity : this.now + milliseconds;
	}

	/** Applies changes of the limits after a reload of the configuration. */
	refreshLimits(): void {
		const { limits } = this.host;
		if (limits === this.limits) return;
		this.limits = limits;
		this.parser.fields.maxCount = limits.maxHeaderCount;
		this.parser.fields.expectedNames = expectedNames(limits);
		this.parser.headCache.clear();
		if (!this.#timer.adapt(limits)) return;
		const previousWheel = this.#timerWheel;
		this.#timerWheel = new TimerWheel(this.#timer.periodMs, performance.now());
		for (const { clock } of this.connections) {
			previousWheel.remove(clock);
			this.#timerWheel.add(clock);
		}
	}

	add(connection: EngineConnection): void {
		// The timer wheel does not advance while there are no connections, because the timer is stopped.
		if (this.connections.size === 0) this.#timerWheel.restart(this.now);
		this.connections.add(connection);
		this.#timerWheel.add(connection.clock);
		this.host.onConnectionOpened();
		this.#timer.start();
	}

	/** Removes a connection that continues with another protocol. It stays open, so `host.onConnectionClosed` is not called. */
	release(connection: EngineConnection): void {
		if (this.connections.delete(connection)) this.#timerWheel.remove(connection.clock);
	}

	/** Must be called when a deadline has been set that may be the earliest of its connection. */
	deadlineAdvanced(clock: TimedItem, deadline: number): void {
		this.#timerWheel.deadlineAdvanced(clock, deadline);
	}

	remove(connection: EngineConnection): void {
		if (!this.connections.delete(connection)) return;
		this.host.onConnectionClosed();
		this.#timerWheel.remove(connection.clock);
	}

	#onTick(): boolean {
		const now = performance.now();
		this.now = now;
		this.#timerWheel.advance(now);
		this.refreshLimits();
		return this.connections.size > 0;
	}
}
