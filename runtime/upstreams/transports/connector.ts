/** The way to one upstream: what stands between a pool and connections, whatever protocol they speak. */
import type { CallCarrier, ClientCall } from '../../protocols/http1/client-call.ts';
import type { PieceMemory } from '../../protocols/http1/piece-memory.ts';
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import type { TlsProvider } from './tls-provision.ts';

/** Keeps connections to one upstream on one thread, and puts calls on them. */
export interface UpstreamConnector {
	/**
	 * Sends a call: sets its `carrier`, and then calls it back as {@link ClientCall} says, perhaps before returning.
	 * @param fresh True for a connection that has carried nothing before.
	 */
	send(call: ClientCall, fresh: boolean): void;
	/** Connections that are open and carry nothing. */
	readonly idle: number;
	/** True when there is no connection at all, nor one under way. */
	readonly unused: boolean;
	/** Ends connections that have been idle for too long; `now` is `performance.now()`. */
	sweep(now: number): void;
	/** Ends idle connections and keeps none from now on; those in use end after their last call. */
	close(): void;
}

/** How idle connections are kept. */
export interface IdleLimits {
	/** Milliseconds that a connection may be idle; 0 keeps none. */
	readonly timeout: number;
	/** Connections kept; 0 keeps none. More than these stay for a moment, as bursts come again. */
	readonly count: number;
}

/** What links of one pool share. */
export interface ConnectorDeps {
	/** What a socket reads into; shared by the thread's sockets. */
	readonly readBuffer: () => Buffer;
	/** What pieces of bodies are copied into. */
	readonly pieces: PieceMemory;
	/** What moves the rest of large bodies from socket to socket. */
	readonly relay?: () => SocketRelay | undefined;
	/** Threads that keep connections of their own: limits of the process are divided among them. */
	readonly threads: number;
	/** A connection has become idle: somebody must call `sweep` from time to time. */
	idled(): void;
	/** Names proxies to connect through; the process's if left out. */
	readonly environment?: { readonly [name: string]: string | undefined };
	/** Gets what FastCGI applications write to standard error, with the status of their response. */
	readonly complained?: (text: string, status: number) => void;
	/** Gives what TLS needs and no file holds. */
	readonly provideTls?: TlsProvider | undefined;
	/** Idle connections to all upstreams of the pool on this thread. */
	readonly idleConnections?: number;
}

/** A carrier for calls that nothing carries yet, or any more. */
export const NO_CARRIER: CallCarrier = { cancel() {} };
