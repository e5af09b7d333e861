/** The interface between the runtime and the protocols. Each protocol has its own folder. */
import type { Socket } from 'node:net';
import type { Exchange, TlsInfo } from '../../compiler/exchange/exchange.ts';
import type { DirectSocket } from '../sockets/direct-socket.ts';

/** What protocols need from the runtime. */
export interface ProtocolHost {
	/** Runs the handler graph of the current generation. Never throws or rejects: errors become responses. */
	handle(x: Exchange): void | Promise<void>;
	/**
	 * Called exactly once per exchange, when it has ended: its response was sent or cut short, or its connection closed.
	 */
	onExchangeFinished(x: Exchange): void;
	/**
	 * Counts a problem; `reason` is from a fixed set (runtime/metrics/refusals.ts). Either a message was
	 * rejected before it became an exchange (`bad_field_name`, `head_too_large`, `header_timeout`, …), or its body or response took
	 * too long (`body_timeout`, `write_timeout`), or a response field was dropped because it could not be sent
	 * (`invalid_response_field`).
	 */
	countRefusal(reason: string): void;
	/** Called when a connection has been opened. Used for gauges. */
	onConnectionOpened(): void;
	/** Called when a connection has been closed. Used for gauges. */
	onConnectionClosed(): void;
	/** Limits and timeouts, in bytes and milliseconds. Replaced by a new object if a reload changes them. */
	readonly limits: ProtocolLimits;
	/** True while the server is being drained. Responses then have `Connection: close`. */
	readonly draining: boolean;
	readonly http2?: Http2Counters | undefined;
	readonly http3?: Http3Counters | undefined;
}

/** Counters of HTTP/3 connections and their requests. */
export interface Http3Counters {
	connectionOpened(): void;
	connectionClosed(): void;
	/** Counts a stream that carries a request. */
	streamOpened(): void;
	/** Counts a stream that was reset, by the client or by us. */
	streamReset(byClient: boolean): void;
	/** Counts a connection that was closed because of its client's behavior. The reasons are a fixed set (http2/flood-guard.ts). */
	connectionCut(reason: string): void;
}

/** Counters of HTTP/2 connections and streams. */
export interface Http2Counters {
	sessionOpened(): void;
	sessionClosed(): void;
	streamOpened(): void;
	/** Counts a stream that was reset, by the client or by us. */
	streamReset(byClient: boolean): void;
	/** Counts a connection that was closed because of its client's behavior. The reasons are a fixed set (http2/flood-guard.ts). */
	connectionCut(reason: string): void;
}

/** Limits on everything that a client controls. Times are in milliseconds; 0 disables a timeout. */
export interface ProtocolLimits {
	/** Maximum bytes of the request line and fields. Default: 32768. */
	readonly maxHeadSize: number;
	/** Maximum fields in a head. Default: 100. */
	readonly maxHeaderCount: number;
	/** Maximum time from the first byte of a head to its end. Default: 60 s. */
	readonly headTimeout: number;
	/** Maximum time between exchanges of a connection. Default: 300 s. */
	readonly idleTimeout: number;
	/** Maximum time from the end of a head to the end of its body. Only time spent waiting for the body counts. Default: none. */
	readonly bodyTimeout: number;
	/** Maximum time without a byte of a request body while a handler waits for it. Default: 60 s. */
	readonly bodyIdleTimeout: number;
	/**
	 * Minimum bytes per second of a request body while a handler waits for it, with a tolerance of `bodyIdleTimeout`. Default: 0, no
	 * minimum.
	 */
	readonly bodyRate: number;
	/** Maximum time from the end of a head to the end of its response. Default: none. */
	readonly writeTimeout: number;
	/** Maximum time during which the client accepts nothing of a response. Default: 60 s. */
	readonly writeIdleTimeout: number;
	/** Minimum bytes per second of a response, with a tolerance of `writeIdleTimeout`. Default: 0, no minimum. */
	readonly writeRate: number;
	/** Maximum bytes of a complete body that are passed to the socket at a time. Default: 65536. */
	readonly writeChunk: number;
	/** Maximum bytes of chunk extensions in a body. Default: 4096. */
	readonly maxChunkExtensions: number;
	/** Request fields with `_` or `.` in their names that are kept. A name that ends in `*` is a prefix. Default: none. */
	readonly expectedHeaders?: { readonly underscore: readonly string[]; readonly dot: readonly string[] } | undefined;
	/** Maximum bytes of an unread request body that are discarded in order to keep the connection open. Default: 262144. */
	readonly maxDrain: number;
	/** Maximum requests per connection; 0 for no limit. */
	readonly maxRequestsPerConnection: number;
}

/** The addresses of both ends of a connection, as a load balancer reports them, without brackets. '' and 0 for a Unix socket. */
export interface ConnectionPeer {
	readonly remoteAddress: string;
	readonly remotePort: number;
	readonly localAddress: string;
	readonly localPort: number;
}

/** The peer of a connection over a Unix socket, which has no addresses. */
export const UNIX_PEER: ConnectionPeer = { remoteAddress: '', remotePort: 0, localAddress: '', localPort: 0 };

/** After this many milliseconds, a connection that has sent nothing may be closed to make room for others. */
export const UNUSED_GRACE_MS = 5000;

/** A connection that may be closed to make room for another one. */
export interface ClosableConnection {
	/** The time, by `performance.now()`, since which the connection has been idle; Infinity while it is busy. */
	readonly idleSince: number;
	/** Closes the connection at once. */
	giveWay(): void;
}

/**
 * How long an idle HTTP/1 connection that is being drained may still send a request. A request that is already in transit when
 * its connection closes would be lost.
 */
export interface RequestWaits {
	/** Milliseconds for connections that have had a request; 0 closes all idle connections at once. */
	readonly nextRequestMs: number;
	/** Milliseconds for connections without a request so far; at most their usual time limits. */
	readonly firstRequestMs: number;
}

/** Closes idle connections at once. */
export const NO_WAIT: RequestWaits = { nextRequestMs: 0, firstRequestMs: 0 };

/** A protocol's server for accepted sockets. One instance per listener and thread. */
export interface ProtocolServer {
	/** True for a server that performs TLS and passes connections to the servers of other protocols. */
	readonly performsTls?: true;
	/**
	 * Takes over a connected socket. Bytes that have been read from it must have been put back with `unshift`. `peer` overrides the
	 * socket's addresses with those of a PROXY header.
	 */
	accept(socket: Socket | DirectSocket, scheme: 'http' | 'https', peer?: ConnectionPeer): void;
	/**
	 * Stops keep-alive. Idle connections close at once, unless `requestWaits` lets them wait for a request; busy connections close
	 * after their exchange.
	 * @param requestWaits Default {@link NO_WAIT}.
	 */
	drain(requestWaits?: RequestWaits): void;
	/**
	 * Drains the connections of matching clients: idle connections close at once, busy ones after their exchange. Upgraded
	 * connections continue.
	 */
	retire(matches: (tls: TlsInfo | undefined) => boolean): void;
	/** Number of open connections. */
	readonly connections: number;
	/** Number of open connections that share a socket with others, so that they do not use one file descriptor each. */
	readonly connectionsWithoutSocket?: number;
	/** Returns all open connections, including those that have not been passed to their protocol yet. */
	closable(): Iterable<ClosableConnection>;
	/** Closes every connection at once. */
	close(): void;
}
