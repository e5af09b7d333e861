/** Splits a connection's bytes into frames (RFC 9113 §4.1). */
import { CLIENT_PREFACE, FRAME_HEADER_BYTES } from './frame-codes.ts';
import { MAX_FRAME_PAYLOAD } from './limits.ts';

/** Receives frames. The bytes are valid only during the call. */
export interface FrameSink {
	/** Handles a frame. Returns false if the connection should not be read any more. */
	onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean;
	/** Called if the connection does not start with the preface. */
	onBadPreface(): void;
	/** Called if a frame exceeds the maximum size. */
	onFrameTooLarge(): void;
}

/** Maximum bytes of a frame, including its header. */
const MAX_FRAME_BYTES = FRAME_HEADER_BYTES + MAX_FRAME_PAYLOAD;
/** Minimum bytes of a frame for which a reusable buffer is worthwhile. */
const LARGE_FRAME_BYTES = 8192;
/** This thread's free buffers for large frames. */
const freeFrameBuffers: Buffer[] = [];
const MAX_FREE_BUFFERS = 32;

function allocateFrameBuffer(size: number): Buffer {
	if (size < LARGE_FRAME_BYTES || size > MAX_FRAME_BYTES) return Buffer.allocUnsafe(size);
	return freeFrameBuffers.pop() ?? Buffer.allocUnsafeSlow(MAX_FRAME_BYTES);
}

/** Splits received bytes into frames, and passes each to the sink. */
export class FrameReader {
	readonly #sink: FrameSink;
	#matchedPrefaceBytes = 0;
	/** Bytes of an incomplete frame or frame header. */
	#partialFrame: Buffer | undefined = undefined;
	#partialBytes = 0;

	/** @param expectsPreface False on the client side, because servers do not send a preface. */
	constructor(sink: FrameSink, expectsPreface: boolean = true) {
		this.#sink = sink;
		if (!expectsPreface) this.#matchedPrefaceBytes = CLIENT_PREFACE.length;
	}

	/** True if the input so far ends within the preface or a frame. */
	get isIncomplete(): boolean {
		return this.#partialBytes > 0 || this.#matchedPrefaceBytes < CLIENT_PREFACE.length;
	}

	/** Passes each complete frame to the sink, and keeps the bytes of an incomplete one for the next call. */
	read(bytes: Buffer): void {
		let at = this.#matchedPrefaceBytes < CLIENT_PREFACE.length ? this.#readPreface(bytes) : 0;
		if (at < 0) return;
		if (this.#partialBytes > 0) {
			at = this.#completePartial(bytes, at);
			if (at < 0) return;
		}
		const length = bytes.length;
		while (length - at >= FRAME_HEADER_BYTES) {
			const payloadBytes = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
			if (payloadBytes > MAX_FRAME_PAYLOAD) {
				this.#sink.onFrameTooLarge();
				return;
			}
			const end = at + FRAME_HEADER_BYTES + payloadBytes;
			if (end > length) break;
			if (!this.#deliverFrame(bytes, at, end)) return;
			at = end;
		}
		if (at < length) this.#keepPartial(bytes, at);
	}

	#readPreface(bytes: Buffer): number {
		let at = 0;
		while (this.#matchedPrefaceBytes < CLIENT_PREFACE.length && at < bytes.length) {
			if (bytes[at++] !== CLIENT_PREFACE.charCodeAt(this.#matchedPrefaceBytes++)) {
				this.#sink.onBadPreface();
				return -1;
			}
		}
		return at;
	}

	/** Continues an incomplete frame. Returns the index after it, or −1 if it is still incomplete or nothing more is to be read. */
	#completePartial(bytes: Buffer, start: number): number {
		let at = start;
		if (this.#partialBytes < FRAME_HEADER_BYTES) {
			at = this.#fillPartial(bytes, at, FRAME_HEADER_BYTES);
			if (this.#partialBytes < FRAME_HEADER_BYTES) return -1;
		}
		const header = this.#partialFrame!;
		const payloadBytes = (header[0]! << 16) | (header[1]! << 8) | header[2]!;
		if (payloadBytes > MAX_FRAME_PAYLOAD) {
			this.#sink.onFrameTooLarge();
			return -1;
		}
		const frameBytes = FRAME_HEADER_BYTES + payloadBytes;
		at = this.#fillPartial(bytes, at, frameBytes);
		if (this.#partialBytes < frameBytes) return -1;
		const frame = this.#partialFrame!;
		this.#partialFrame = undefined;
		this.#partialBytes = 0;
		const canContinue = this.#deliverFrame(frame, 0, frameBytes);
		if (frame.length === MAX_FRAME_BYTES && freeFrameBuffers.length < MAX_FREE_BUFFERS) freeFrameBuffers.push(frame);
		return canContinue ? at : -1;
	}

	/** Fills the partial frame up to a length of `targetBytes`. Returns the index after the bytes consumed. */
	#fillPartial(bytes: Buffer, start: number, targetBytes: number): number {
		if (this.#partialFrame!.length < targetBytes) {
			const largerBuffer = allocateFrameBuffer(targetBytes);
			this.#partialFrame!.copy(largerBuffer, 0, 0, this.#partialBytes);
			this.#partialFrame = largerBuffer;
		}
		const end = Math.min(bytes.length, start + targetBytes - this.#partialBytes);
		bytes.copy(this.#partialFrame!, this.#partialBytes, start, end);
		this.#partialBytes += end - start;
		return end;
	}

	#keepPartial(bytes: Buffer, start: number): void {
		this.#partialBytes = bytes.length - start;
		this.#partialFrame = allocateFrameBuffer(Math.max(this.#partialBytes, FRAME_HEADER_BYTES));
		bytes.copy(this.#partialFrame, 0, start);
	}

	#deliverFrame(bytes: Buffer, at: number, end: number): boolean {
		const streamId = ((bytes[at + 5]! & 127) << 24) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 8) | bytes[at + 8]!;
		return this.#sink.onFrame(bytes[at + 3]!, bytes[at + 4]!, streamId, bytes, at + FRAME_HEADER_BYTES, end);
	}
}
