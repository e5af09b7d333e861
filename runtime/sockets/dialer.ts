/** The interface for connecting to an upstream, independent of the protocol. */
import type { LookupFunction } from 'node:net';
import type { UpstreamError } from '../../compiler/exchange/leases.ts';
import type { UpstreamSocket } from './upstream-socket.ts';

/** Callbacks of a connection attempt. Exactly one is called, unless the attempt is abandoned. */
export interface DialOwner {
	/** Called when the socket is ready for the protocol's first byte. Its new owner must be set during the call. */
	onDialed(socket: UpstreamSocket): void;
	/** Called when the attempt has failed with an error of phase `connect` or `timeout`. No part of the request has been sent. */
	onDialFailed(error: UpstreamError): void;
}

export interface DialAttempt {
	/** Cancels the attempt. No callback is called after that. */
	abandon(): void;
}

/** Opens connections to one upstream. */
export interface Dialer {
	dial(owner: DialOwner): DialAttempt;
}

/** The address of an upstream: a host name or IP address with a port, or the path of a Unix socket. */
export type ClientTarget = { readonly host: string; readonly port: number } | { readonly path: string };

/** Options for opening a connection. Times are in milliseconds. */
export interface DialOptions {
	/** Timeout of the attempt, including the setup of the tunnel if there is one. 0 means no limit. */
	readonly connectTimeout: number;
	/** Returns the read buffer, which all sockets of a thread share: data is processed or copied before the next read. */
	readonly readBuffer: () => Buffer;
	/** Idle time after which TCP keep-alive probes are sent; 0 sends none. */
	readonly probeInterval: number;
	readonly localAddress: string | undefined;
	/** Resolves host names; undefined to use the system's resolver. */
	readonly lookup: LookupFunction | undefined;
	/**
	 * Delay after which the host's next address is tried in parallel (RFC 8305). −1 tries the next address only after the previous
	 * one has failed.
	 */
	readonly fallbackDelay: number;
}
