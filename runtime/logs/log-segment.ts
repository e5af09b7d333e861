/**
 * Memory in which a thread writes log lines as bytes and from which the main thread writes them to a file, with no copy in
 * between. One belongs to its thread until it is posted, to the main thread until it is given back.
 */

/** Bytes of lines in a segment: some six hundred entries, written by one system call. */
export const SEGMENT_BYTES: number = 256 * 1024;

/** Bytes before them, of which the first four say whose it is. */
const HEAD = 64;
const THREADS = 0;
const MAINS = 1;

/** Lines as a thread posts them: a text, or the first bytes of a segment. */
export type PostedLines = string | { readonly memory: SharedArrayBuffer; readonly length: number };

/** A segment as its thread sees it. */
export class LogSegment {
	readonly memory: SharedArrayBuffer = new SharedArrayBuffer(HEAD + SEGMENT_BYTES);
	readonly bytes: Buffer = Buffer.from(this.memory, HEAD, SEGMENT_BYTES);
	readonly #owner = new Int32Array(this.memory, 0, 1);

	/** Whether the thread may write in it. */
	get isFree(): boolean {
		return Atomics.load(this.#owner, 0) === THREADS;
	}

	/** It is the main thread's from now on. */
	handOver(): void {
		Atomics.store(this.#owner, 0, MAINS);
	}
}

/** The first bytes of a segment that was posted. */
export function segmentBytes(memory: SharedArrayBuffer, length: number): Buffer {
	return Buffer.from(memory, HEAD, Math.min(length, SEGMENT_BYTES));
}

/** Gives a segment back to its thread. */
export function giveBack(memory: SharedArrayBuffer): void {
	Atomics.store(new Int32Array(memory, 0, 1), 0, THREADS);
}
