/**
 * Segments of shared memory. A worker thread writes log lines into a segment as bytes, and the main thread writes them to a file
 * without copying. A segment belongs to the worker thread until it is posted, and then to the main thread until it is returned.
 */

/**
 * Size, in bytes, of the lines in a segment. A segment holds about six hundred entries, which are written with one system call.
 */
export const SEGMENT_BYTES: number = 256 * 1024;

/** Size, in bytes, of the header before the lines. Its first four bytes identify the owner. */
const HEADER_BYTES = 64;
const OWNED_BY_THREAD = 0;
const OWNED_BY_MAIN = 1;

/** Lines posted by a thread: text, or the first bytes of a segment. */
export type PostedLines = string | { readonly memory: SharedArrayBuffer; readonly length: number };

/** A thread's view of a segment. */
export class LogSegment {
	readonly memory: SharedArrayBuffer = new SharedArrayBuffer(HEADER_BYTES + SEGMENT_BYTES);
	readonly bytes: Buffer = Buffer.from(this.memory, HEADER_BYTES, SEGMENT_BYTES);
	readonly #owner = new Int32Array(this.memory, 0, 1);

	/** True if the thread may write to the segment. */
	get isFree(): boolean {
		return Atomics.load(this.#owner, 0) === OWNED_BY_THREAD;
	}

	/** Passes ownership to the main thread. */
	handOver(): void {
		Atomics.store(this.#owner, 0, OWNED_BY_MAIN);
	}
}

/** Returns the first bytes of a posted segment. */
export function segmentBytes(memory: SharedArrayBuffer, length: number): Buffer {
	return Buffer.from(memory, HEADER_BYTES, Math.min(length, SEGMENT_BYTES));
}

/** Returns a segment to its thread. */
export function releaseSegment(memory: SharedArrayBuffer): void {
	Atomics.store(new Int32Array(memory, 0, 1), 0, OWNED_BY_THREAD);
}
