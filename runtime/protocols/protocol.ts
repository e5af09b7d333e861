/** What a protocol is to the runtime: a small interface, so that HTTP/1.1, HTTP/2 and HTTP/3 are each one folder behind it. */
import type { Socket } from 'node:net';
import type { Exchange, TlsInfo } from '../../compiler/exchange/exchange.ts';
import type { DirectSocket } from '../sockets/direct-socket.ts';

/** What the runtime is to a protocol. */
export interface ProtocolHost {
	/** Runs the handler graph of the current generation. Never throws and never rejects: errors have become responses. */
	handle(x: Exchange): void | Promise<void>;
	/** The exchange has ended: its response was written, cut short, or its connection dropped. Called exactly once per exchange. */
	finished(x: Exchange): void;
	/**
	 * A message was refused before it became an exchange (`bad_field_name`, `head_too_large`, `header_timeout`, …), its body or
	 * response took too long (`body_timeout`, `write_timeout`), or a field of a response was left out because it could not be
	 * sent (`invalid_response_field`). For counters: the reasons are few (runtime/metrics/refusals.ts).
	 */
	refused(reason: string): void;
	/** A connection was opened or closed, for gauges. */
	opened(): void;
	closed(): void;
	/** Limits and time-outs, in bytes and milliseconds: another object once a load has changed them. */
	readonly limits: ProtocolLimits;
	/** True once draining: answers carry `Connection: close`. */
	readonly draining: boolean;
	/** What only HTTP/2 counts. */
	readonly http2?: Http2Counters | undefined;
}

/** Counters of HTTP/2 connections and streams. */
export interface Http2Counters {
	sessionOpened(): void;
	sessionClosed(): void;
	streamOpened(): void;
	/** A stream was reset, by the client or by us. */
	streamReset(byClient: boolean): void;
	/** A connection was ended for what its client did; the reasons are few (http2/calm-meter.ts). */
	cut(reason: string): void;
}

/** Bounds on everything a client controls. 0 turns a time-out off. */
export interface ProtocolLimits {
	/** Bytes of request line and fields: 32768. */
	readonly maxHeadSize: number;
	/** Fields in a head: 100. */
	readonly maxHeaderCount: number;
	/** From the first byte of a head to its end: 60 s. */
	readonly headTimeout: number;
	/** Between exchanges of a connection: 300 s. */
	readonly idleTimeout: number;
	/** From the end of a head to the end of its body, as far as the body is waited for: none. */
	readonly bodyTimeout: number;
	/** Without a byte of a request's body that is waited for: 60 s. */
	readonly bodyIdleTimeout: number;
	/** Bytes a second at which a body that is waited for must come, `bodyIdleTimeout` apart: 0, none. */
	readonly bodyRate: number;
	/** From the end of a head to the end of its response: none. */
	readonly writeTimeout: number;
	/** Without a byte of a response taken by the client: 60 s. */
	readonly writeIdleTimeout: number;
	/** Bytes a second at which a client must take a response, `writeIdleTimeout` apart: 0, none. */
	readonly writeRate: number;
	/** Bytes of a whole body that are given to the socket at once: 65536. */
	readonly writeChunk: number;
	/** Bytes of chunk extensions in one body: 4096. */
	readonly maxChunkExtensions: number;
	/** Request fields with `_` or `.` in their names that are kept, a last `*` for a prefix: none. */
	readonly expectedHeaders?: { readonly underscore: readonly string[]; readonly dot: readonly string[] } | undefined;
	/** Bytes of an unread request body that are discarded to keep the connection: 262144. */
	readonly maxDrain: number;
	/** Requests served on one connection, 0 for no bound. */
	readonly maxRequestsPerConnection: number;
}

/** Both ends of a connection as a load balancer names them. Addresses are without brackets; '' and 0 for a unix socket. */
export interface ConnectionPeer {
	readonly remoteAddress: string;
	readonly remotePort: number;
	readonly localAddress: string;
	readonly localPort: number;
}

/** Both ends of a unix socket have no address. */
export const UNIX_PEER: ConnectionPeer = { remoteAddress: '', remotePort: 0, localAddress: '', localPort: 0 };

/** Milliseconds after which a connection that has not sent anything may be closed for others to have its place. */
export const UNUSED_GRACE = 5000;

/** A connection that can be closed when there is no room for another one. */
export interface Closable {
	/** `performance.now()` since when nothing has been under way on it; Infinity while something is. */
	readonly idleSince: number;
	/** Closes it at once. */
	giveWay(): void;
}

/** One protocol on accepted sockets. One instance per listener and thread. */
export interface ProtocolServer {
	/**
	 * Takes over a connected socket; bytes already read have been put back with `unshift`. `peer` is who is at its other end
	 * when that is not what the socket says: a PROXY header has named it.
	 */
	accept(socket: Socket | DirectSocket, scheme: 'http' | 'https', peer?: ConnectionPeer): void;
	/** Stops keep-alive: idle connections close at once, busy ones after their exchange. */
	drain(): void;
	/**
	 * Ends the connections of clients that are meant, as draining does: idle ones at once, busy ones after their exchange. What
	 * has been upgraded goes on.
	 */
	retire(which: (tls: TlsInfo | undefined) => boolean): void;
	/** Open connections. */
	readonly connections: number;
	/** The same, those included that have not reached their protocol yet. */
	closable(): Iterable<Closable>;
	/** Ends every connection at once. */
	close(): void;
}
