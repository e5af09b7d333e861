/** Splits the bytes of a stream into frames (RFC 9114 §7.1), however the bytes are divided among reads. */
import { VarintReader } from './varint.ts';

/** Receives the frames of a stream. */
export interface FrameSink {
	/**
	 * Called when a frame begins. Returns how its payload is handled: pass it on as it arrives (`stream`), pass it on as a whole
	 * (`gather`), ignore it (`skip`), or stop reading (`stop`).
	 */
	onFrame(type: number, length: number): 'stream' | 'gather' | 'skip' | 'stop';
	/** Receives payload of a streamed frame: `bytes[start, end)`, never empty. Returns false to stop reading. */
	onPayloadPart(bytes: Buffer, start: number, end: number): boolean;
	/**
	 * Receives the whole payload of a gathered frame. `isLast` is true if nothing that follows it has been received yet. Returns
	 * false to stop reading.
	 */
	onWholePayload(type: number, bytes: Buffer, start: number, end: number, isLast: boolean): boolean;
}

/** Splits one stream into frames. */
export class FrameReader {
	readonly #sink: FrameSink;
	readonly #varintReader = new VarintReader();
	#state: 'type' | 'length' | 'payload' = 'type';
	#frameType = 0;
	#payloadBytesLeft = 0;
	#payloadUse: 'stream' | 'gather' | 'skip' = 'skip';
	#gatheredPayload: Buffer | undefined = undefined;
	#gatheredBytes = 0;

	constructor(sink: FrameSink) {
		this.#sink = sink;
	}

	/** True within a frame. If the stream ends there, that is an error (RFC 9114 §7.1). */
	get isIncomplete(): boolean {
		return this.#state !== 'type' || this.#varintReader.isIncomplete;
	}

	/** Reads bytes. Returns false once the sink has stopped reading. */
	read(bytes: Buffer, start = 0): boolean {
		let at = start;
		const end = bytes.length;
		while (at < end) {
			if (this.#state === 'payload') {
				const partBytes = Math.min(end - at, this.#payloadBytesLeft);
				this.#payloadBytesLeft -= partBytes;
				if (!this.#handlePayload(bytes, at, at + partBytes, at + partBytes === end)) return false;
				at += partBytes;
				continue;
			}
			if (!this.#varintReader.push(bytes[at++]!)) continue;
			if (this.#state === 'type') {
				this.#frameType = this.#varintReader.value;
				this.#state = 'length';
				continue;
			}
			if (!this.#beginPayload(this.#varintReader.value, at === end)) return false;
		}
		return true;
	}

	#beginPayload(length: number, isLast: boolean): boolean {
		const payloadUse = this.#sink.onFrame(this.#frameType, length);
		if (payloadUse === 'stop') return false;
		this.#payloadUse = payloadUse;
		this.#payloadBytesLeft = length;
		this.#state = 'payload';
		if (length > 0) return true;
		this.#state = 'type';
		return payloadUse !== 'gather' || this.#sink.onWholePayload(this.#frameType, EMPTY_BUFFER, 0, 0, isLast);
	}

	#handlePayload(bytes: Buffer, start: number, end: number, isLast: boolean): boolean {
		const isComplete = this.#payloadBytesLeft === 0;
		if (isComplete) this.#state = 'type';
		if (this.#payloadUse === 'skip') return true;
		if (this.#payloadUse === 'stream') return this.#sink.onPayloadPart(bytes, start, end);
		if (this.#gatheredPayload === undefined) {
			if (isComplete) return this.#sink.onWholePayload(this.#frameType, bytes, start, end, isLast);
			this.#gatheredPayload = Buffer.allocUnsafe(end - start + this.#payloadBytesLeft);
			this.#gatheredBytes = 0;
		}
		bytes.copy(this.#gatheredPayload, this.#gatheredBytes, start, end);
		this.#gatheredBytes += end - start;
		if (!isComplete) return true;
		const payload = this.#gatheredPayload;
		this.#gatheredPayload = undefined;
		return this.#sink.onWholePayload(this.#frameType, payload, 0, payload.length, isLast);
	}
}

const EMPTY_BUFFER = Buffer.alloc(0);
