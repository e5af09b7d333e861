/** Writes a head and its body as one piece: two cost the system more than copying them together does, and text more memory. */
import type { SocketOutput } from '../socket-output.ts';

/** Bytes of the largest body that is copied. */
const LARGEST = 32 * 1024;
/** Bytes of a copy. */
const SIZE = 48 * 1024;

/** Memory for such pieces, which a socket that takes them at once gives back at once. One for a thread. */
export class JoinedWrites {
	#memory: Buffer | undefined = undefined;

	/** Writes text of one byte a character and bytes behind it; false when they are too long for that, or over TLS. */
	write(output: SocketOutput, text: string, bytes: Uint8Array): boolean {
		const end = text.length + bytes.byteLength;
		if (bytes.byteLength > LARGEST || end > SIZE || !output.isDirect) return false;
		this.#memory ??= Buffer.allocUnsafeSlow(SIZE);
		this.#memory.write(text, 0, 'latin1');
		this.#memory.set(bytes, text.length);
		// Not out yet: it is the socket's until it is.
		if (!output.bytes(this.#memory.subarray(0, end))) this.#memory = undefined;
		return true;
	}
}
