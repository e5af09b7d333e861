/** Joins a head and its body in one write: two writes cost the system more than copying, and text more memory. */
import type { SocketOutput } from '../../sockets/socket-output.ts';

/** Maximum bytes of a body that is copied. */
export const LARGEST_JOINED: number = 32 * 1024;
/** Bytes of the buffer: the largest body with a typical head. */
const SIZE = 48 * 1024;

/** The buffer for such writes, reused as soon as the socket has accepted a write. One per thread. */
export class JoinedWrites {
	#memory: Buffer | undefined = undefined;

	/** Writes Latin-1 text followed by bytes; returns false if the body is too long, or over TLS. */
	write(output: SocketOutput, text: string, bytes: Uint8Array): boolean {
		const end = text.length + bytes.byteLength;
		if (bytes.byteLength > LARGEST_JOINED || !output.isDirect) return false;
		const memory = end > SIZE ? Buffer.allocUnsafeSlow(end) : (this.#memory ?? Buffer.allocUnsafeSlow(SIZE));
		memory.write(text, 0, 'latin1');
		memory.set(bytes, text.length);
		const left = output.bytes(memory.subarray(0, end));
		// Not sent yet: the buffer belongs to the socket until then.
		if (memory.length === SIZE) this.#memory = left ? memory : undefined;
		return true;
	}
}
