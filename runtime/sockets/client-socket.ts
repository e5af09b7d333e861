/** The interface through which protocols use the socket of a client connection. */
import { isDirectIo } from './io-mode.ts';

/** The common interface of `net.Socket`, `tls.TLSSocket` and {@link DirectSocket}. Events are delivered through a SocketInput. */
export interface ClientSocket {
	readonly destroyed: boolean;
	readonly writableEnded: boolean;
	/** Number of bytes that have been written but not sent. */
	readonly writableLength: number;
	/** True if nothing more should be written until the socket has drained. */
	readonly writableNeedDrain: boolean;
	readonly remoteAddress?: string | undefined;
	readonly remotePort?: number | undefined;
	readonly localAddress?: string | undefined;
	readonly localPort?: number | undefined;
	write(text: string, encoding: 'latin1', onWritten?: (error?: Error | null) => void): unknown;
	write(bytes: Uint8Array, onWritten?: (error?: Error | null) => void): unknown;
	cork(): void;
	uncork(): void;
	/** Closes our side of the connection. The connection closes completely once the client has closed its side, too. */
	end(onFinished?: () => void): unknown;
	/** Closes the connection immediately, in both directions. */
	destroy(error?: Error): unknown;
	pause(): unknown;
	resume(): unknown;
}

/** Returns the number of written bytes that the system has not accepted yet. */
export function queuedBytes(
	socket: Pick<ClientSocket, 'writableLength'> & { _handle?: { readonly writeQueueSize?: number | undefined } | null },
): number {
	return (isDirectIo() ? socket._handle?.writeQueueSize : undefined) ?? socket.writableLength;
}
