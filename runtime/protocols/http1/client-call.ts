/** The interface between connections to upstreams and the code that sends requests on them. */
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { UpstreamError, UpstreamRequest, UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import type { PieceMemory } from './piece-memory.ts';
import type { CachedHeads, FieldLineCache } from './remembered-heads.ts';

/** Limits and timeouts of connections to one upstream. Times are in milliseconds; 0 means no timeout. */
export interface ClientOptions {
	/** Timeout, in milliseconds, from the end of the request to the end of the response head. */
	readonly responseHeaderTimeout: number;
	/** Timeout, in milliseconds, between two reads of a response. */
	readonly readTimeout: number;
	/** Timeout, in milliseconds, of each write of a streamed body. */
	readonly writeTimeout: number;
	/**
	 * Maximum milliseconds to wait for 100 (Continue) before sending the body of a request with `Expect: 100-continue` (RFC 9110
	 * §10.1.1).
	 */
	readonly continueTimeout: number;
	/** Maximum bytes of a response head. */
	readonly maxResponseHead: number;
	/** If false, every request has `Connection: close`. */
	readonly keepAlive: boolean;
	/** Memory into which chunks of bodies are copied. */
	readonly pieceMemory: PieceMemory;
	/** Returns the relay that forwards the rest of large bodies inside the kernel; undefined if not available. */
	readonly openRelay?: (() => SocketRelay | undefined) | undefined;
	/** Cache of the field lines of repeated requests. */
	readonly lineCache: FieldLineCache;
	/** Cache of the parsed heads of repeated responses. */
	readonly headCache: CachedHeads;
}

/** The object that is currently responsible for a request: a connection or a queue. */
export interface CallCarrier {
	/** Cancels a request if this carrier is still responsible for it. Its response, if any, ends with an error. */
	cancel(call: ClientCall): void;
}

/**
 * A request and its callbacks. Either `onFailure` is called, or `onResponse` and later `onReleased`; nothing is called after
 * that.
 */
export interface ClientCall {
	readonly request: UpstreamRequest;
	/** Number of bytes of the response body that can be forwarded now. If undefined, any number of bytes may be read. */
	readonly roomBytes?: number;
	/** The object that is currently responsible for the request. A new carrier sets this field before it invokes any callback. */
	carrier: CallCarrier;
	/** Milliseconds that it took to open the connection, including TLS; -1 for a reused connection. */
	connectTime: number;
	/** Called when the whole request has been sent, which may be after the response head has arrived. */
	onRequestSent?(): void;
	/** Receives an interim response other than 101. */
	onInterimResponse(status: number, headers: HeaderList): void;
	/**
	 * Reports whether the whole body of a response with these fields may be lent, that is, be valid only until `onResponse` returns.
	 * If this function is missing, no body may be lent.
	 */
	canLendBody?(length: number, headers: HeaderList): boolean;
	/**
	 * Called when the response head has been received; the body may still be incomplete. If `canWriteNow`, the body contains
	 * everything received so far and the carrier is done with this read, so the response may be written during this call.
	 */
	onResponse(response: UpstreamResponse, canWriteNow?: boolean): void;
	/**
	 * Called when there will be no response. `canRetry` means that a retry is safe: a reused connection closed before any byte of a
	 * response arrived, and before any byte of a streamed body was consumed (the keep-alive race, RFC 9112 §9.3.1).
	 */
	onFailure(error: UpstreamError, canRetry: boolean): void;
	/** Called when the exchange with the upstream has ended. `failure` is set if the response was cut short but not canceled. */
	onReleased(failure?: UpstreamError): void;
}

/** An upstream connection that carries one request at a time, and is kept open between requests. */
export interface KeptConnection extends CallCarrier {
	/** The time, by `performance.now()`, when the connection last became idle. Set by the {@link ConnectionKeeper}. */
	idleSince: number;
	/** True if a request can be sent on the connection now. */
	readonly usable: boolean;
	/** Sends a request. Allowed only if `usable`. */
	send(call: ClientCall): void;
	/** Closes the connection at once. */
	destroy(): void;
}

/** The owner of idle connections. */
export interface ConnectionKeeper {
	/** Called when the connection is free for another request. */
	onConnectionIdle(connection: KeptConnection): void;
	/** Called once when the connection has closed, in whatever state. */
	onConnectionLost(connection: KeptConnection): void;
}
