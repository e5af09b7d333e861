/** Writes a head and its body as one piece: two cost the system more than copying them together does, and text more memory. */
import type { SocketOutput } from '../../sockets/socket-output.ts';

/** Bytes of the largest body that is copied. */
export const LARGEST_JOINED: number = 32 * 1024;
/** Bytes of a copy with a usual head. */
const SIZE = 48 * 1024;

/** Memory for such pieces, which a socket that takes them at once gives back at once. One for a thread. */
export class JoinedWrites {
	#memory: Buffer | undefined = undefined;

	/** Writes text of one byte a character and bytes behind it; false when the body is too long for that, or over TLS. */
	write(output: SocketOutput, text: string, bytes: Uint8Array): boolean {
		const end = text.length + bytes.byteLength;
		if (bytes.byteLength > LARGEST_JOINED || !output.isDirect) return false;
		const memory = end > SIZE ? Buffer.allocUnsafeSlow(end) : (this.#memory ?? Buffer.allocUnsafeSlow(SIZE));
		memory.write(text, 0, 'latin1');
		memory.set(bytes, text.length);
		const left = output.bytes(memory.subarray(0, end));
		// Not out yet: it is the socket's until it is.
		if (memory.length === SIZE) this.#memory = left ? memory : undefined;
		return true;
	}
}
