/** The interface of the listening sockets of the two I/O modes, each for one listener on one thread. */
import type { AddressInfo } from 'node:net';
import type { AcceptedSocket } from './direct-socket.ts';

/** The TCP keep-alive settings, which determine when dead peers are detected. Times are in milliseconds. */
export interface TcpKeepAlive {
	readonly idleMs: number;
	readonly intervalMs: number;
	/** Number of unanswered probes after which a connection is closed; undefined for the system's default. */
	readonly count: number | undefined;
}

/** What to listen on: an address to bind, or a descriptor that the main thread keeps open. */
export type ListenTarget =
	| { readonly port: number; readonly host?: string; readonly ipv6Only?: boolean; readonly reusePort: boolean }
	| { readonly descriptor: number };

/** A socket's descriptor on its own thread, and a duplicate that the main thread keeps open. */
export interface SocketDescriptors {
	readonly own: number;
	readonly copy: number;
}

/** Receives the connections of a listening socket. */
export interface ListeningOwner {
	onAccepted(socket: AcceptedSocket): void;
	/** True if the next connection must be a `net.Socket`, so that it can be read before its protocol is known. */
	readonly needsStream: boolean;
	/** Called when a connection could not be accepted. */
	onAcceptFailed(error: NodeJS.ErrnoException): void;
}

/** The common interface of the listening sockets of the two I/O modes. */
export interface ListeningSocket {
	/** Binds and listens. Rejects with the system's error. */
	listen(target: ListenTarget): Promise<void>;
	/** True for a Unix socket, whose peers have no addresses. */
	readonly isUnix: boolean;
	/** The IP address and port on which the socket listens; undefined for a Unix socket. */
	readonly address: AddressInfo | undefined;
	/** Sets the options of connections accepted from now on. */
	configure(keepAlive: TcpKeepAlive | undefined): void;
	/** Sets the options of a new connection, if it did not inherit them. */
	prepare(socket: AcceptedSocket): void;
	/** Duplicates the descriptor. Returns undefined if that is not possible. */
	duplicate(): SocketDescriptors | undefined;
	/** Accepts the connections that are waiting. Resolves once that is done. */
	acceptWaiting(): Promise<void>;
	/** Stops listening. Open connections continue. Connections that are still waiting are reset, unless the socket has a duplicate. */
	close(): void;
}
