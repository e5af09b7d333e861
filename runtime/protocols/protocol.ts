/** What a protocol is to the runtime: a small interface, so that HTTP/1.1, HTTP/2 and HTTP/3 are each one folder behind it. */
import type { Socket } from 'node:net';
import type { Exchange } from '../../compiler/exchange/exchange.ts';

/** What the runtime is to a protocol. */
export interface ProtocolHost {
	/** Runs the handler graph of the current generation. Never throws and never rejects: errors have become responses. */
	handle(x: Exchange): void | Promise<void>;
	/** The exchange has ended: its response was written, cut short, or its connection dropped. Called exactly once per exchange. */
	finished(x: Exchange): void;
	/**
	 * A message was refused before it became an exchange (`bad_field_name`, `head_too_large`, `header_timeout`, …), or a field
	 * of a response was left out because it could not be sent (`invalid_response_field`). For counters: the reasons are few.
	 */
	refused(reason: string): void;
	/** A connection was opened or closed, for gauges. */
	opened(): void;
	closed(): void;
	/** Limits and time-outs, in bytes and milliseconds. */
	readonly limits: ProtocolLimits;
	/** True once draining: answers carry `Connection: close`. */
	readonly draining: boolean;
}

/** Bounds on everything a client controls. 0 turns a time-out off. */
export interface ProtocolLimits {
	/** Bytes of request line and fields: 16384. */
	readonly maxHeadSize: number;
	/** Fields in a head: 100. */
	readonly maxHeaderCount: number;
	/** From the first byte of a head to its end: 60 s. */
	readonly headTimeout: number;
	/** Between exchanges of a connection: 300 s. */
	readonly idleTimeout: number;
	/** Without a byte of a request's body read: 60 s. */
	readonly bodyIdleTimeout: number;
	/** Without a byte of a response taken by the client: 60 s. */
	readonly writeIdleTimeout: number;
	/** Bytes of an unread request body that are discarded to keep the connection: 262144. */
	readonly maxDrain: number;
	/** Requests served on one connection, 0 for no bound. */
	readonly maxRequestsPerConnection: number;
}

/** One protocol on accepted sockets. One instance per listener and thread. */
export interface ProtocolServer {
	/** Takes over a connected socket; bytes already read have been put back with `unshift`. */
	accept(socket: Socket, scheme: 'http' | 'https'): void;
	/** Stops keep-alive: idle connections close at once, busy ones after their exchange. */
	drain(): void;
	/** Open connections. */
	readonly connections: number;
	/** Ends every connection at once. */
	close(): void;
}
