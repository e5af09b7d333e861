/** The state shared by the HTTP/3 connections of one server: limits, coders, clock and deadlines. */
import type { ConnectionInfo } from '../../../compiler/exchange/exchange.ts';
import { ConnectionTimer } from '../connection-timer.ts';
import { expectedNames } from '../http1/expected-names.ts';
import { PieceMemory } from '../http1/piece-memory.ts';
import { StringMemory } from '../http2/hpack-decoder.ts';
import { RequestFields } from '../http2/request-fields.ts';
import { ResponseFields } from '../http2/response-fields.ts';
import type { ClosableConnection, Http3Counters, ProtocolHost, ProtocolLimits } from '../protocol.ts';
import { MAX_SECTION_FACTOR } from './limits.ts';
import { QpackDecoder } from './qpack-decoder.ts';
import { QPACK_FIELD_FORMAT } from './qpack-encoder.ts';

/** What the engine needs from each of its connections. */
export interface EngineConnection extends ClosableConnection {
	readonly info: ConnectionInfo;
	/** Handles expired deadlines. `now` is from `performance.now()`. */
	checkDeadlines(now: number): void;
	/** Starts a graceful shutdown. */
	drain(): void;
	/** Closes the connection at once. */
	destroy(): void;
}

/** The decoders of requests and the encoder of responses, which all connections share. Created for the first connection. */
export class Http3Coders {
	readonly requestFields: RequestFields;
	readonly decoder: QpackDecoder;
	readonly responseFields: ResponseFields;

	constructor(host: ProtocolHost) {
		const { maxHeadSize, maxHeaderCount } = host.limits;
		this.requestFields = new RequestFields(maxHeadSize, maxHeaderCount, expectedNames(host.limits));
		// The shortest Huffman codes have five bits, so a string can become 8/5 times as long.
		this.decoder = new QpackDecoder(new StringMemory(Math.ceil((maxHeadSize * MAX_SECTION_FACTOR * 8) / 5)));
		this.responseFields = new ResponseFields(() => host.countRefusal('invalid_response_field'), QPACK_FIELD_FORMAT);
	}
}

/** The state that all HTTP/3 connections of one server share on one thread. */
export class Http3Engine {
	readonly host: ProtocolHost;
	/** The host's limits at the time of the last new connection or clock tick. */
	limits: ProtocolLimits;
	readonly counters: Http3Counters | undefined;
	readonly connections: Set<EngineConnection> = new Set();
	/** `performance.now()` at the last event. Exact at the start of an exchange, otherwise at most one clock tick old. */
	now: number = performance.now();
	draining = false;
	#coders: Http3Coders | undefined = undefined;
	readonly #timer: ConnectionTimer;
	#pieceMemory: PieceMemory | undefined = undefined;

	constructor(host: ProtocolHost) {
		this.host = host;
		this.limits = host.limits;
		this.counters = host.http3;
		this.#timer = new ConnectionTimer(host.limits, () => this.#onTick());
	}

	/** Memory for chunks of request bodies. Created on first use. */
	get pieceMemory(): PieceMemory {
		this.#pieceMemory ??= new PieceMemory();
		return this.#pieceMemory;
	}

	get coders(): Http3Coders {
		this.#coders ??= new Http3Coders(this.host);
		return this.#coders;
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

	add(connection: EngineConnection): void {
		this.connections.add(connection);
		this.host.onConnectionOpened();
		this.counters?.connectionOpened();
		this.#timer.start();
	}

	remove(connection: EngineConnection): void {
		if (!this.connections.delete(connection)) return;
		this.counters?.connectionClosed();
		this.host.onConnectionClosed();
	}

	#onTick(): boolean {
		const now = performance.now();
		this.now = now;
		for (const connection of this.connections) connection.checkDeadlines(now);
		this.refreshLimits();
		return this.connections.size > 0;
	}
}
