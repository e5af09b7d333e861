/** The interface for connecting to an upstream, independent of the protocol. */
import type { LookupFunction } from 'node:net';
import type { UpstreamError } from '../../compiler/exchange/leases.ts';
import type { UpstreamSocket } from './upstream-socket.ts';

/** Callbacks of a connection attempt. Exactly one is called, unless the attempt is abandoned. */
export interface DialOwner {
	/** The socket is ready for the protocol's first byte; its owner must be replaced at once. */
	dialed(socket: UpstreamSocket): void;
	/** The error has phase `connect` or `timeout`; nothing of the request has been sent. */
	dialFailed(error: UpstreamError): void;
}

/** A connection attempt. */
export interface Dialing {
	/** Cancels the attempt; no callback is called any more. */
	abandon(): void;
}

/** Opens connections to one upstream. */
export interface Dialer {
	dial(owner: DialOwner): Dialing;
}

/** The address to connect to. */
export type ClientTarget = { readonly host: string; readonly port: number } | { readonly path: string };

/** Options of connecting; times in milliseconds. */
export interface SocketOptions {
	/** 0 for no limit. Includes setting up the tunnel, if there is one. */
	readonly connectTimeout: number;
	/** The read buffer. Sockets of a thread may share it, because data is consumed before the next read. */
	readonly readBuffer: () => Buffer;
	/** Silence until TCP keep-alive probes. */
	readonly probeInterval: number;
	readonly localAddress: string | undefined;
	/** Replaces the system's name resolution. */
	readonly lookup: LookupFunction | undefined;
	/** Delay until a host's next address is tried in parallel (RFC 8305); -1 tries them in sequence. */
	readonly fallbackDelay: number;
}
