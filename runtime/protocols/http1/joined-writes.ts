/**
 * Writes a head and its body as one buffer. Two writes would cost more than copying the body, and writing a string would need
 * more memory.
 */
import type { SocketOutput } from '../../sockets/socket-output.ts';

/** Maximum bytes of a body that is copied into one buffer with its head. */
export const MAX_JOINED_BODY_BYTES: number = 32 * 1024;
/** Size of the buffer. The largest body fits into it together with a typical head. */
const BUFFER_BYTES = 48 * 1024;

/** The buffer in which heads and bodies are joined, one per thread. It is reused as soon as the socket has accepted a write. */
export class JoinedWrites {
	#buffer: Buffer | undefined = undefined;

	/** Writes Latin-1 text followed by bytes. Returns false if the body is too long, or `output.isDirect` is false. */
	write(output: SocketOutput, text: string, bytes: Uint8Array): boolean {
		const totalBytes = text.length + bytes.byteLength;
		if (bytes.byteLength > MAX_JOINED_BODY_BYTES || !output.isDirect) return false;
		const buffer =
			totalBytes > BUFFER_BYTES
				? Buffer.allocUnsafeSlow(totalBytes)
				: (this.#buffer ?? Buffer.allocUnsafeSlow(BUFFER_BYTES));
		buffer.write(text, 0, 'latin1');
		buffer.set(bytes, text.length);
		const isAccepted = output.writeBytes(buffer.subarray(0, totalBytes));
		// If the socket has not accepted the whole write, it still uses this buffer, so the next write allocates another one.
		if (buffer.length === BUFFER_BYTES) this.#buffer = isAccepted ? buffer : undefined;
		return true;
	}
}
