/** The state shared by the HTTP/2 connections of one server: limits, coders, memory, clock and deadlines. */

import { ConnectionTimer } from '../connection-timer.ts';
import { expectedNames } from '../http1/expected-names.ts';
import { PieceMemory } from '../http1/piece-memory.ts';
import type { SocketInfo } from '../http1/socket-info.ts';
import { ReadMemory } from '../http1/socket-input.ts';
import type { ClosableConnection, Http2Counters, ProtocolHost, ProtocolLimits } from '../protocol.ts';
import { StringMemory } from './hpack-decoder.ts';
import { MAX_BLOCK_FACTOR } from './limits.ts';
import { OutputMemory } from './output-memory.ts';
import { RequestFields } from './request-fields.ts';
import { ResponseFields } from './response-fields.ts';

/** What the engine needs from a connection. */
export interface EngineSession extends ClosableConnection {
	readonly info: SocketInfo;
	/** Handles expired deadlines. `now` is from `performance.now()`. */
	checkDeadlines(now: number): void;
	/** Starts a graceful shutdown. */
	drain(): void;
	/** Closes the connection at once. */
	destroy(): void;
}

/**
 * Encoders, decoders and buffers that all connections share. They are created for the first connection, because most listeners of
 * a large configuration never have one.
 */
export class Http2Coders {
	readonly requestFields: RequestFields;
	readonly responseFields: ResponseFields;
	readonly stringMemory: StringMemory;
	readonly outputMemory: OutputMemory = new OutputMemory();
	readonly readMemory: ReadMemory = new ReadMemory();

	constructor(host: ProtocolHost) {
		const { maxHeadSize, maxHeaderCount } = host.limits;
		this.requestFields = new RequestFields(maxHeadSize, maxHeaderCount, expectedNames(host.limits));
		this.responseFields = new ResponseFields(() => host.countRefusal('invalid_response_field'));
		// The shortest Huffman codes have five bits, so a string can become 8/5 times as long.
		this.stringMemory = new StringMemory(Math.ceil((maxHeadSize * MAX_BLOCK_FACTOR * 8) / 5));
	}
}

/** The state that all HTTP/2 connections of one server share on one thread. */
export class Http2Engine {
	readonly host: ProtocolHost;
	/** `host.limits`, as it was at the last new connection or clock tick. */
	limits: ProtocolLimits;
	readonly counters: Http2Counters | undefined;
	readonly sessions: Set<EngineSession> = new Set();
	/** `performance.now()` at the last event. Exact at the start of an exchange, otherwise at most one tick old. */
	now: number = performance.now();
	draining = false;
	#coders: Http2Coders | undefined = undefined;
	#pieceMemory: PieceMemory | undefined = undefined;
	readonly #timer: ConnectionTimer;

	constructor(host: ProtocolHost) {
		this.host = host;
		this.limits = host.limits;
		this.counters = host.http2;
		this.#timer = new ConnectionTimer(host.limits, () => this.#onTick());
	}

	get coders(): Http2Coders {
		this.#coders ??= new Http2Coders(this.host);
		return this.#coders;
	}

	/** Memory for chunks of request bodies. Created on first use. */
	get pieceMemory(): PieceMemory {
		this.#pieceMemory ??= new PieceMemory();
		return this.#pieceMemory;
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
		// Existing connections keep their coders, because they announced the old limits to their clients.
		this.#coders = undefined;
		this.#timer.adapt(limits);
	}

	/** Adds a connection. `isCounted` is true if it began with another protocol and has been counted already. */
	add(session: EngineSession, isCounted: boolean): void {
		this.sessions.add(session);
		if (!isCounted) this.host.onConnectionOpened();
		this.counters?.sessionOpened();
		this.#timer.start();
	}

	remove(session: EngineSession): void {
		if (!this.sessions.delete(session)) return;
		this.counters?.sessionClosed();
		this.host.onConnectionClosed();
	}

	#onTick(): boolean {
		const now = performance.now();
		this.now = now;
		for (const session of this.sessions) session.checkDeadlines(now);
		this.refreshLimits();
		return this.sessions.size > 0;
	}
}
