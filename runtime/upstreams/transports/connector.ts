/** The interface between an upstream pool and its connections, independent of the protocol they speak. */

import type { RequestBodyMemory } from '../../protocols/fastcgi/buffered-request-body.ts';
import type { CallCarrier, ClientCall } from '../../protocols/http1/client-call.ts';
import type { PieceMemory } from '../../protocols/http1/piece-memory.ts';
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import type { TlsProvider } from './tls-provision.ts';

/** Manages this thread's connections to one upstream and sends requests on them. */
export interface UpstreamConnector {
	/**
	 * Sends a request: sets its `carrier`, then invokes the callbacks of {@link ClientCall}, possibly before returning.
	 * @param wantsNewConnection True to use a new connection, which has not carried any request.
	 */
	send(call: ClientCall, wantsNewConnection: boolean): void;
	/** Number of idle connections. */
	readonly idleCount: number;
	/** True if there are no connections, neither open nor being opened. */
	readonly isUnused: boolean;
	/** Closes connections idle for longer than the limit. `now` is `performance.now()`. */
	sweep(now: number): void;
	/** Closes idle connections and stops keeping new ones; busy connections close after their last request. */
	close(): void;
}

/** Keep-alive limits. */
export interface IdleLimits {
	/** Milliseconds that a connection may stay idle. 0 disables keep-alive. */
	readonly timeoutMs: number;
	/** Maximum idle connections. 0 disables keep-alive. After a burst, more are kept briefly, because bursts tend to repeat. */
	readonly maxCount: number;
}

/** Dependencies shared by all connectors of one pool. */
export interface ConnectorDeps {
	/** The read buffer, shared by all sockets of the thread. */
	readonly readBuffer: () => Buffer;
	/** Memory into which pieces of bodies are copied. */
	readonly pieceMemory: PieceMemory;
	/** The memory for request bodies of unknown length to FastCGI applications. */
	readonly requestBodyMemory: RequestBodyMemory;
	/** Relays large bodies from socket to socket. */
	readonly openRelay?: () => SocketRelay | undefined;
	/** Number of threads with connections of their own, among which process-wide limits are divided. */
	readonly threadCount: number;
	/** Called when a connection becomes idle, so that the owner schedules `sweep`. */
	onIdle(): void;
	/** Environment with proxy variables; defaults to the process's. */
	readonly environment?: { readonly [name: string]: string | undefined };
	/** Receives what FastCGI applications write to standard error, with the status of their response. */
	readonly onStderr?: (text: string, status: number) => void;
	/** Provides the certificates and keys for TLS to upstreams, except those in files. */
	readonly provideTls?: TlsProvider | undefined;
	/** Current number of idle connections from this thread to all upstreams of the pool. */
	readonly idleConnections?: number;
}

/** A carrier that does nothing, for a request that has not been sent yet or has ended. */
export const NO_CARRIER: CallCarrier = { cancel() {} };
