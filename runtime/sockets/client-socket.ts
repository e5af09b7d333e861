/** A client connection, as protocols see it. */
import { isDirectIo } from './io-mode.ts';

/** The common interface of `net.Socket`, `tls.TLSSocket` and {@link DirectSocket}. Events are delivered through a SocketInput. */
export interface ClientSocket {
	readonly destroyed: boolean;
	readonly writableEnded: boolean;
	/** Number of bytes that have been written but not sent. */
	readonly writableLength: number;
	/** True if nothing more should be written until the sink is notified that the socket has drained. */
	readonly writableNeedDrain: boolean;
	readonly remoteAddress?: string | undefined;
	readonly remotePort?: number | undefined;
	readonly localAddress?: string | undefined;
	readonly localPort?: number | undefined;
	write(text: string, encoding: 'latin1', done?: (error?: Error | null) => void): unknown;
	write(bytes: Uint8Array, done?: (error?: Error | null) => void): unknown;
	cork(): void;
	uncork(): void;
	/** Closes our side. The connection closes when both sides have ended. */
	end(finished?: () => void): unknown;
	/** Closes both sides at once. */
	destroy(error?: Error): unknown;
	pause(): unknown;
	resume(): unknown;
}

/** Returns the number of bytes that were passed to the system and that it has not accepted yet. */
export function queuedBytes(
	socket: Pick<ClientSocket, 'writableLength'> & { _handle?: { readonly writeQueueSize?: number | undefined } | null },
): number {
	return (isDirectIo() ? socket._handle?.writeQueueSize : undefined) ?? socket.writableLength;
}
