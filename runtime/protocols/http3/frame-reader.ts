/** Takes the bytes of a stream apart into frames (RFC 9114 §7.1), however they come. */
import { VarintReader } from './varint.ts';

/** What takes the frames of a stream. */
export interface FrameSink {
	/** A frame begins. Returns what is done with its payload: `stream` as it comes, `gather` as a whole, `skip`, or `stop`. */
	frame(type: number, length: number): 'stream' | 'gather' | 'skip' | 'stop';
	/** Payload of a frame that is streamed: `bytes[start, end)`, never empty. Returns false to stop. */
	payload(bytes: Buffer, start: number, end: number): boolean;
	/** The payload of a gathered frame. `last`: nothing has come after it yet. Returns false to stop. */
	whole(type: number, bytes: Buffer, start: number, end: number, last: boolean): boolean;
}

/** Reader of one stream. */
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

	/** Within a frame: the end of the stream would be a mistake here (RFC 9114 §7.1). */
	get within(): boolean {
		return this.#state !== 'type' || this.#varint.within;
	}

	/** Reads bytes; false once the sink has said stop. */
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
