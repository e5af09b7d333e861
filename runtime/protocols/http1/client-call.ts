/** What a connection to an upstream is given, and what it tells whoever sends a request on it. */
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { UpstreamError, UpstreamRequest, UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import type { PieceMemory } from './piece-memory.ts';
import type { KnownHeads, RememberedLines } from './remembered-heads.ts';

/** Limits and time-outs of connections to one upstream; times in milliseconds, 0 for no bound. */
export interface ClientOptions {
	/** From the end of the request to the end of the response's head. */
	readonly responseHeaderTimeout: number;
	/** Between two reads of a response. */
	readonly readTimeout: number;
	/** Of a write of a streamed body. */
	readonly writeTimeout: number;
	/** How long the body waits for 100 (Continue) after an `Expect: 100-continue` (RFC 9110 §10.1.1). */
	readonly continueTimeout: number;
	/** Bytes of one response head. */
	readonly maxResponseHead: number;
	/** False: every request says `Connection: close`. */
	readonly keepAlive: boolean;
	/** What pieces of bodies are copied into. */
	readonly pieces: PieceMemory;
	/** What moves the rest of large bodies; undefined where nothing does. */
	readonly relay?: (() => SocketRelay | undefined) | undefined;
	/** Field lines of requests that are sent again and again. */
	readonly lines: RememberedLines;
	/** Heads of responses that come again and again. */
	readonly heads: KnownHeads;
}

/** What a call is on, from its sending to its end. */
export interface CallCarrier {
	/** Gives a call up, if it is still carried here. Its response, if any, ends in an error. */
	cancel(call: ClientCall): void;
}

/** One request as its sender sees it. Either `failed` is called, or `answered` and later `released`; then no more. */
export interface ClientCall {
	readonly request: UpstreamRequest;
	/** Bytes of a response's body that can be passed on now; left out where that is not known, and then any number is read. */
	readonly room?: number;
	/** Where it can be cancelled; whoever carries it sets this, before anything else is called. */
	carrier: CallCarrier;
	/** Milliseconds that its connection took to be made, TLS included; -1 when it was there already. */
	connectTime: number;
	/** A 1xx but 101. */
	informed(status: number, headers: HeaderList): void;
	/**
	 * Whether the whole body, of so many bytes, of a response with these fields may be the connection's again once `answered`
	 * has returned; left out: it may not.
	 */
	lendable?(length: number, headers: HeaderList): boolean;
	/**
	 * The response's head has come, its body perhaps not. `ready`: what has come of it is in the body already, and whoever
	 * tells is done: the answer can be written within this call.
	 */
	answered(response: UpstreamResponse, ready?: boolean): void;
	/**
	 * No response will come. `untouched` is true when the connection had been used before, closed before any byte of a
	 * response, and nothing of a streamed body was taken: the race that keep-alive brings (RFC 9112 §9.3.1).
	 */
	failed(error: UpstreamError, untouched: boolean): void;
	/** The exchange on the wire has ended, whole or not: `failure` says how the response broke off that was not given up. */
	released(failure?: UpstreamError): void;
}

/** A connection that carries one call at a time. */
export interface KeptConnection extends CallCarrier {
	/** `performance.now()` at which it last became idle; the keeper's. */
	idleSince: number;
	/** True while a call can be sent on it. */
	readonly usable: boolean;
	/** Sends a call; only when `usable`. */
	send(call: ClientCall): void;
	/** Ends the connection at once. */
	destroy(): void;
}

/** Who keeps connections while nothing is on them. */
export interface ConnectionKeeper {
	/** Its exchange has ended, and it takes another. */
	connectionIdle(connection: KeptConnection): void;
	/** It has ended, whatever was on it. Called once. */
	connectionLost(connection: KeptConnection): void;
}
