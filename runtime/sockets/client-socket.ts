/** A client's connection as protocols use it. */
import { isDirectIo } from './io-mode.ts';

/** What `net.Socket`, its TLS kin and {@link DirectSocket} have in common. Their events come through a SocketInput. */
export interface ClientSocket {
	readonly destroyed: boolean;
	readonly writableEnded: boolean;
	/** Bytes that have been written and have not left. */
	readonly writableLength: number;
	/** True when so much has not left that nothing more should be written before the sink hears that it has. */
	readonly writableNeedDrain: boolean;
	readonly remoteAddress?: string | undefined;
	readonly remotePort?: number | undefined;
	readonly localAddress?: string | undefined;
	readonly localPort?: number | undefined;
	write(text: string, encoding: 'latin1', done?: (error?: Error | null) => void): unknown;
	write(bytes: Uint8Array, done?: (error?: Error | null) => void): unknown;
	cork(): void;
	uncork(): void;
	/** Ends our half; the connection goes when both have ended. */
	end(finished?: () => void): unknown;
	/** Ends both halves at once. */
	destroy(error?: Error): unknown;
	pause(): unknown;
	resume(): unknown;
}

/** Bytes given to the system that it has not taken yet. */
export function queuedIn(
	socket: Pick<ClientSocket, 'writableLength'> & { _handle?: { readonly writeQueueSize?: number | undefined } | null },
): number {
	return (isDirectIo() ? socket._handle?.writeQueueSize : undefined) ?? socket.writableLength;
}
