/** The interface between connections to upstreams and the senders of requests. */
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { UpstreamError, UpstreamRequest, UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import type { PieceMemory } from './piece-memory.ts';
import type { KnownHeads, RememberedLines } from './remembered-heads.ts';

/** Limits and timeouts of connections to one upstream; times in milliseconds, 0 for none. */
export interface ClientOptions {
	/** From the end of the request to the end of the response head. */
	readonly responseHeaderTimeout: number;
	/** Between two reads of a response. */
	readonly readTimeout: number;
	/** For a write of a streamed body. */
	readonly writeTimeout: number;
	/** How long the body waits for 100 (Continue) after `Expect: 100-continue` (RFC 9110 §10.1.1). */
	readonly continueTimeout: number;
	/** Maximum bytes of a response head. */
	readonly maxResponseHead: number;
	/** If false, every request has `Connection: close`. */
	readonly keepAlive: boolean;
	/** Memory into which pieces of bodies are copied. */
	readonly pieces: PieceMemory;
	/** Relays the rest of large bodies; undefined if not available. */
	readonly relay?: (() => SocketRelay | undefined) | undefined;
	/** Cached field lines of repeated requests. */
	readonly lines: RememberedLines;
	/** Cached heads of repeated responses. */
	readonly heads: KnownHeads;
}

/** What currently carries a request: a connection or a queue. */
export interface CallCarrier {
	/** Cancels a request if it is still carried here. Its response, if any, ends with an error. */
	cancel(call: ClientCall): void;
}

/** A request and its callbacks: either `failed`, or `answered` and later `released`; then no more. */
export interface ClientCall {
	readonly request: UpstreamRequest;
	/** Bytes of the response body that can be forwarded now; if undefined, any number may be read. */
	readonly room?: number;
	/** The current carrier, which sets this before any callback. */
	carrier: CallCarrier;
	/** Milliseconds that opening the connection took, including TLS; -1 for a reused connection. */
	connectTime: number;
	/** An interim response other than 101. */
	informed(status: number, headers: HeaderList): void;
	/**
	 * Reports whether the whole body of a response with these fields may be lent, valid only until `answered` returns. If
	 * undefined, it may not.
	 */
	lendable?(length: number, headers: HeaderList): boolean;
	/**
	 * The response head has been received, its body perhaps not. With `ready`, everything received is in the body already and
	 * the carrier has finished, so the response can be written during this call.
	 */
	answered(response: UpstreamResponse, ready?: boolean): void;
	/**
	 * There will be no response. `untouched` is true if the connection had been used before, was closed before any byte of a
	 * response, and nothing of a streamed body was consumed: the keep-alive race (RFC 9112 §9.3.1).
	 */
	failed(error: UpstreamError, untouched: boolean): void;
	/** The exchange with the upstream has ended; `failure` is set if the response was cut short without being canceled. */
	released(failure?: UpstreamError): void;
}

/** A connection that carries one request at a time. */
export interface KeptConnection extends CallCarrier {
	/** Time at which it last became idle, by `performance.now()`; set by the keeper. */
	idleSince: number;
	/** True while a request can be sent on it. */
	readonly usable: boolean;
	/** Sends a request; only if `usable`. */
	send(call: ClientCall): void;
	/** Closes the connection at once. */
	destroy(): void;
}

/** The owner of idle connections. */
export interface ConnectionKeeper {
	/** The connection is free for another request. */
	connectionIdle(connection: KeptConnection): void;
	/** The connection has closed, whatever was on it. Called once. */
	connectionLost(connection: KeptConnection): void;
}
