/** A client connection, for protocols. */
import { isDirectIo } from './io-mode.ts';

/** The common interface of `net.Socket`, `tls.TLSSocket` and {@link DirectSocket}. Events are delivered through a SocketInput. */
export interface ClientSocket {
	readonly destroyed: boolean;
	readonly writableEnded: boolean;
	/** Bytes written but not sent yet. */
	readonly writableLength: number;
	/** True if nothing more should be written until the sink is notified. */
	readonly writableNeedDrain: boolean;
	readonly remoteAddress?: string | undefined;
	readonly remotePort?: number | undefined;
	readonly localAddress?: string | undefined;
	readonly localPort?: number | undefined;
	write(text: string, encoding: 'latin1', done?: (error?: Error | null) => void): unknown;
	write(bytes: Uint8Array, done?: (error?: Error | null) => void): unknown;
	cork(): void;
	uncork(): void;
	/** Closes our half; the connection closes when both halves have ended. */
	end(finished?: () => void): unknown;
	/** Closes both halves at once. */
	destroy(error?: Error): unknown;
	pause(): unknown;
	resume(): unknown;
}

/** Returns the bytes passed to the system that it has not accepted yet. */
export function queuedIn(
	socket: Pick<ClientSocket, 'writableLength'> & { _handle?: { readonly writeQueueSize?: number | undefined } | null },
): number {
	return (isDirectIo() ? socket._handle?.writeQueueSize : undefined) ?? socket.writableLength;
}
