/** Splits a connection's bytes into frames (RFC 9113 §4.1). */
import { CLIENT_PREFACE, FRAME_HEADER_BYTES } from './frame-codes.ts';
import { MAX_FRAME_SIZE } from './limits.ts';

/** Receives frames. The bytes are valid only during the call. */
export interface FrameSink {
	/** Handles a frame. Returns false if the connection should not be read any more. */
	frame(type: number, flags: number, stream: number, bytes: Buffer, start: number, end: number): boolean;
	/** Called if the connection does not start with the preface. */
	badPreface(): void;
	/** Called if a frame exceeds the maximum size. */
	oversize(): void;
}

/** Maximum bytes of a frame, including its header. */
const LARGEST = FRAME_HEADER_BYTES + MAX_FRAME_SIZE;
/** Minimum bytes of a frame for which a reusable buffer is worthwhile. */
const LARGE = 8192;
/** This thread's free buffers for large frames. */
const free: Buffer[] = [];
/** Maximum free buffers kept. */
const MAX_FREE = 32;

function memoryFor(size: number): Buffer {
	if (size < LARGE || size > LARGEST) return Buffer.allocUnsafe(size);
	return free.pop() ?? Buffer.allocUnsafeSlow(LARGEST);
}

/** Splits received bytes into frames, and passes each to the sink. */
export class FrameReader {
	readonly #sink: FrameSink;
	#preface = 0;
	/** Bytes of an incomplete frame or frame header. */
	#partial: Buffer | undefined = undefined;
	#held = 0;

	/** @param preface False on the client side, because servers do not send a preface. */
	constructor(sink: FrameSink, preface: boolean = true) {
		this.#sink = sink;
		if (!preface) this.#preface = CLIENT_PREFACE.length;
	}

	/** True if the input so far ends within the preface or a frame. */
	get within(): boolean {
		return this.#held > 0 || this.#preface < CLIENT_PREFACE.length;
	}

	/** Processes received bytes. */
	read(bytes: Buffer): void {
		let at = this.#preface < CLIENT_PREFACE.length ? this.#readPreface(bytes) : 0;
		if (at < 0) return;
		if (this.#held > 0) {
			at = this.#complete(bytes, at);
			if (at < 0) return;
		}
		const length = bytes.length;
		while (length - at >= FRAME_HEADER_BYTES) {
			const size = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
			if (size > MAX_FRAME_SIZE) {
				this.#sink.oversize();
				return;
			}
			const end = at + FRAME_HEADER_BYTES + size;
			if (end > length) break;
			if (!this.#deliver(bytes, at, end)) return;
			at = end;
		}
		if (at < length) this.#hold(bytes, at);
	}

	#readPreface(bytes: Buffer): number {
		let at = 0;
		while (this.#preface < CLIENT_PREFACE.length && at < bytes.length) {
			if (bytes[at++] !== CLIENT_PREFACE.charCodeAt(this.#preface++)) {
				this.#sink.badPreface();
				return -1;
			}
		}
		return at;
	}

	/** Continues an incomplete frame. Returns the index after it, or −1 if it is still incomplete or nothing more is to be read. */
	#complete(bytes: Buffer, start: number): number {
		let at = start;
		if (this.#held < FRAME_HEADER_BYTES) {
			at = this.#fill(bytes, at, FRAME_HEADER_BYTES);
			if (this.#held < FRAME_HEADER_BYTES) return -1;
		}
		const header = this.#partial!;
		const size = (header[0]! << 16) | (header[1]! << 8) | header[2]!;
		if (size > MAX_FRAME_SIZE) {
			this.#sink.oversize();
			return -1;
		}
		const whole = FRAME_HEADER_BYTES + size;
		at = this.#fill(bytes, at, whole);
		if (this.#held < whole) return -1;
		const frame = this.#partial!;
		this.#partial = undefined;
		this.#held = 0;
		const goesOn = this.#deliver(frame, 0, whole);
		if (frame.length === LARGEST && free.length < MAX_FREE) free.push(frame);
		return goesOn ? at : -1;
	}

	/** Fills the partial frame up to `wanted` bytes. Returns the index after the bytes consumed. */
	#fill(bytes: Buffer, start: number, wanted: number): number {
		if (this.#partial!.length < wanted) {
			const larger = memoryFor(wanted);
			this.#partial!.copy(larger, 0, 0, this.#held);
			this.#partial = larger;
		}
		const end = Math.min(bytes.length, start + wanted - this.#held);
		bytes.copy(this.#partial!, this.#held, start, end);
		this.#held += end - start;
		return end;
	}

	#hold(bytes: Buffer, start: number): void {
		this.#held = bytes.length - start;
		this.#partial = memoryFor(Math.max(this.#held, FRAME_HEADER_BYTES));
		bytes.copy(this.#partial, 0, start);
	}

	#deliver(bytes: Buffer, at: number, end: number): boolean {
		const stream = ((bytes[at + 5]! & 127) << 24) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 8) | bytes[at + 8]!;
		return this.#sink.frame(bytes[at + 3]!, bytes[at + 4]!, stream, bytes, at + FRAME_HEADER_BYTES, end);
	}
}
