/** The listening socket of one listener on one thread. */
import type { AddressInfo } from 'node:net';
import { DirectListeningSocket } from './direct-listening-socket.ts';
import type { AcceptedSocket } from './direct-socket.ts';
import { isDirectIo } from './io-mode.ts';
import { NodeListeningSocket } from './node-listening-socket.ts';

/** How dead peers are noticed; times in milliseconds. */
export interface TcpKeepAlive {
	readonly idle: number;
	readonly interval: number;
	/** Unanswered probes after which a connection is closed; undefined for the system's default. */
	readonly count: number | undefined;
}

/** The socket to listen on: an address to bind, or a descriptor that the main thread keeps. */
export type ListenTarget =
	| { readonly port: number; readonly host?: string; readonly ipv6Only?: boolean; readonly reusePort: boolean }
	| { readonly descriptor: number };

/** A socket's descriptor on its thread, and a duplicate for the main thread to keep. */
export interface SocketDescriptors {
	readonly own: number;
	readonly copy: number;
}

/** Receives the connections of a listening socket. */
export interface ListeningOwner {
	accepted(socket: AcceptedSocket): void;
	/** True if the next connection must be a stream, which can be read before its protocol is known. */
	readonly needsStream: boolean;
	/** Called when a connection could not be accepted. */
	acceptFailed(error: NodeJS.ErrnoException): void;
}

/** A socket that listens. */
export interface ListeningSocket {
	/** Binds and listens. Rejects with the system's error. */
	listen(target: ListenTarget): Promise<void>;
	/** True if the peers have no addresses. */
	readonly isUnix: boolean;
	/** The IP address and port that it listens on; undefined for a Unix socket. */
	readonly address: AddressInfo | undefined;
	/** Sets the options of the connections that will be accepted. */
	configure(keepAlive: TcpKeepAlive | undefined): void;
	/** Sets the options of a new connection that did not inherit them. */
	prepare(socket: AcceptedSocket): void;
	/** Duplicates the descriptor; undefined where that is not possible. */
	duplicate(): SocketDescriptors | undefined;
	/** Stops listening. Open connections stay. */
	close(): void;
}

/** Creates a listening socket in the mode of this thread. */
export function createListeningSocket(owner: ListeningOwner): ListeningSocket {
	return isDirectIo() ? new DirectListeningSocket(owner) : new NodeListeningSocket(owner);
}
