/** The interface between protocols and the runtime, behind which HTTP/1.1 and HTTP/2 are a folder each. */
import type { Socket } from 'node:net';
import type { Exchange, TlsInfo } from '../../compiler/exchange/exchange.ts';
import type { DirectSocket } from '../sockets/direct-socket.ts';

/** The runtime, for a protocol. */
export interface ProtocolHost {
	/** Runs the handler graph of the current generation. Never throws or rejects: errors become responses. */
	handle(x: Exchange): void | Promise<void>;
	/** The exchange has ended: its response was sent or cut short, or its connection closed. Called exactly once per exchange. */
	finished(x: Exchange): void;
	/**
	 * A message was rejected before it became an exchange (`bad_field_name`, `head_too_large`, `header_timeout`, …), its body or
	 * response took too long (`body_timeout`, `write_timeout`), or a response field was dropped because it could not be sent
	 * (`invalid_response_field`). For counters; the reasons are a fixed set (runtime/metrics/refusals.ts).
	 */
	refused(reason: string): void;
	/** A connection was opened or closed, for gauges. */
	opened(): void;
	closed(): void;
	/** Limits and timeouts, in bytes and milliseconds; a new object after a load has changed them. */
	readonly limits: ProtocolLimits;
	/** True while draining: responses have `Connection: close`. */
	readonly draining: boolean;
	/** Counters specific to HTTP/2. */
	readonly http2?: Http2Counters | undefined;
	/** Counters specific to HTTP/3. */
	readonly http3?: Http3Counters | undefined;
}

/** Counters of HTTP/3 connections and requests. */
export interface Http3Counters {
	connectionOpened(): void;
	connectionClosed(): void;
	/** A stream carried a request. */
	streamOpened(): void;
	/** A stream was reset, by the client or by us. */
	streamReset(byClient: boolean): void;
	/** A connection was ended for what its client did (http2/flood-guard.ts). */
	cut(reason: string): void;
}

/** Counters of HTTP/2 connections and streams. */
export interface Http2Counters {
	sessionOpened(): void;
	sessionClosed(): void;
	streamOpened(): void;
	/** A stream was reset, by the client or by us. */
	streamReset(byClient: boolean): void;
	/** A connection was closed because of its client's behavior; the reasons are a fixed set (http2/flood-guard.ts). */
	cut(reason: string): void;
}

/** Limits on everything that a client controls. 0 disables a timeout. */
export interface ProtocolLimits {
	/** Maximum bytes of request line and fields. Default: 32768. */
	readonly maxHeadSize: number;
	/** Maximum fields in a head. Default: 100. */
	readonly maxHeaderCount: number;
	/** From the first byte of a head to its end. Default: 60 s. */
	readonly headTimeout: number;
	/** Between exchanges of a connection. Default: 300 s. */
	readonly idleTimeout: number;
	/** From the end of a head to the end of its body, counting only time spent waiting for the body. Default: none. */
	readonly bodyTimeout: number;
	/** Between bytes of a request body that is waited for. Default: 60 s. */
	readonly bodyIdleTimeout: number;
	/** Minimum bytes per second of a body that is waited for, with a tolerance of `bodyIdleTimeout`. Default: 0, none. */
	readonly bodyRate: number;
	/** From the end of a head to the end of its response. Default: none. */
	readonly writeTimeout: number;
	/** Without the client accepting any of a response. Default: 60 s. */
	readonly writeIdleTimeout: number;
	/** Minimum bytes per second of a response, with a tolerance of `writeIdleTimeout`. Default: 0, none. */
	readonly writeRate: number;
	/** Bytes of a complete body that are passed to the socket at a time. Default: 65536. */
	readonly writeChunk: number;
	/** Maximum bytes of chunk extensions in a body. Default: 4096. */
	readonly maxChunkExtensions: number;
	/** Request fields with `_` or `.` in their names that are kept; a trailing `*` makes a prefix. Default: none. */
	readonly expectedHeaders?: { readonly underscore: readonly string[]; readonly dot: readonly string[] } | undefined;
	/** Maximum bytes of an unread request body that are discarded to keep the connection. Default: 262144. */
	readonly maxDrain: number;
	/** Maximum requests per connection; 0 for no limit. */
	readonly maxRequestsPerConnection: number;
}

/** Both ends of a connection as named by a load balancer. Addresses have no brackets; '' and 0 for a Unix socket. */
export interface ConnectionPeer {
	readonly remoteAddress: string;
	readonly remotePort: number;
	readonly localAddress: string;
	readonly localPort: number;
}

/** The ends of a Unix socket, which have no address. */
export const UNIX_PEER: ConnectionPeer = { remoteAddress: '', remotePort: 0, localAddress: '', localPort: 0 };

/** Milliseconds after which a connection that has sent nothing may be closed to make room for others. */
export const UNUSED_GRACE = 5000;

/** A connection that can be closed to make room for another one. */
export interface Closable {
	/** Time of `performance.now()` since when it has been idle; Infinity while it is busy. */
	readonly idleSince: number;
	/** Closes it at once. */
	giveWay(): void;
}

/** A protocol on accepted sockets. One instance per listener and thread. */
export interface ProtocolServer {
	/**
	 * Takes over a connected socket; bytes already read have been put back with `unshift`. `peer` overrides the socket's addresses
	 * with those of a PROXY header.
	 */
	accept(socket: Socket | DirectSocket, scheme: 'http' | 'https', peer?: ConnectionPeer): void;
	/**
	 * Stops keep-alive: idle connections close at once, busy ones after their exchange.
	 * @param gently Idle HTTP/1 connections may send one more request for a few seconds: a request that is already on its way to a
	 * connection that closes would be lost.
	 */
	drain(gently?: boolean): void;
	/**
	 * Drains the connections of matching clients: idle ones close at once, busy ones after their exchange. Upgraded ones continue.
	 */
	retire(which: (tls: TlsInfo | undefined) => boolean): void;
	/** Number of open connections. */
	readonly connections: number;
	/** Number of those that have no socket of their own, and so no file descriptor. */
	readonly withoutSocket?: number;
	/** Returns them, including those that have not reached their protocol yet. */
	closable(): Iterable<Closable>;
	/** Closes every connection at once. */
	close(): void;
}
