/** Splits the bytes of a stream into frames (RFC 9114 §7.1), however the bytes are divided among reads. */
import { VarintReader } from './varint.ts';

/** Receives the frames of a stream. */
export interface FrameSink {
	/**
	 * Called when a frame begins. Returns what to do with its payload: pass it on as it arrives (`stream`), pass it on as a whole
	 * (`gather`), ignore it (`skip`), or stop reading (`stop`).
	 */
	frame(type: number, length: number): 'stream' | 'gather' | 'skip' | 'stop';
	/** Receives payload of a streamed frame: `bytes[start, end)`, never empty. Returns false to stop reading. */
	payload(bytes: Buffer, start: number, end: number): boolean;
	/**
	 * Receives the whole payload of a gathered frame. `last` is true if nothing that follows it has been received yet. Returns false
	 * to stop reading.
	 */
	whole(type: number, bytes: Buffer, start: number, end: number, last: boolean): boolean;
}

/** Splits one stream into frames. */
export class FrameReader {
	readonly #sink: FrameSink;
	readonly #varint = new VarintReader();
	#state: 'type' | 'length' | 'payload' = 'type';
	#type = 0;
	#left = 0;
	#use: 'stream' | 'gather' | 'skip' = 'skip';
	#gathered: Buffer | undefined = undefined;
	#filled = 0;

	constructor(sink: FrameSink) {
		this.#sink = sink;
	}

	/** True within a frame. If the stream ends there, that is an error (RFC 9114 §7.1). */
	get within(): boolean {
		return this.#state !== 'type' || this.#varint.within;
	}

	/** Reads bytes. Returns false once the sink has stopped reading. */
	read(bytes: Buffer, from = 0): boolean {
		let at = from;
		const end = bytes.length;
		while (at < end) {
			if (this.#state === 'payload') {
				const taken = Math.min(end - at, this.#left);
				this.#left -= taken;
				if (!this.#take(bytes, at, at + taken, at + taken === end)) return false;
				at += taken;
				continue;
			}
			if (!this.#varint.push(bytes[at++]!)) continue;
			if (this.#state === 'type') {
				this.#type = this.#varint.value;
				this.#state = 'length';
				continue;
			}
			if (!this.#begin(this.#varint.value, at === end)) return false;
		}
		return true;
	}

	#begin(length: number, last: boolean): boolean {
		const use = this.#sink.frame(this.#type, length);
		if (use === 'stop') return false;
		this.#use = use;
		this.#left = length;
		this.#state = 'payload';
		if (length > 0) return true;
		this.#state = 'type';
		return use !== 'gather' || this.#sink.whole(this.#type, EMPTY, 0, 0, last);
	}

	#take(bytes: Buffer, start: number, end: number, last: boolean): boolean {
		const ends = this.#left === 0;
		if (ends) this.#state = 'type';
		if (this.#use === 'skip') return true;
		if (this.#use === 'stream') return this.#sink.payload(bytes, start, end);
		if (this.#gathered === undefined) {
			if (ends) return this.#sink.whole(this.#type, bytes, start, end, last);
			this.#gathered = Buffer.allocUnsafe(end - start + this.#left);
			this.#filled = 0;
		}
		bytes.copy(this.#gathered, this.#filled, start, end);
		this.#filled += end - start;
		if (!ends) return true;
		const whole = this.#gathered;
		this.#gathered = undefined;
		return this.#sink.whole(this.#type, whole, 0, whole.length, last);
	}
}

const EMPTY = Buffer.alloc(0);
