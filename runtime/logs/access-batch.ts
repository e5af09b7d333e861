/** Collects encoded lines of one writer on one thread and posts them in batches: one message for hundreds of requests. */
import { MAX_LOG_IN_TRANSIT_CHARS } from '../threads/control-words.ts';
import type { LineSink } from './access-log.ts';
import { LogSegment, SEGMENT_BYTES } from './log-segment.ts';

/** Maximum milliseconds that a line waits for further lines before the batch is posted. */
const FLUSH_DELAY_MS = 50;
/** Maximum number of segments of one writer on one thread. If all of them are waiting to be written, lines are dropped. */
const MAX_SEGMENTS: number = MAX_LOG_IN_TRANSIT_CHARS / SEGMENT_BYTES;
/** Maximum number of bytes in UTF-8 of one UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3;

/** The destination of a batch's text. */
export interface BatchPort {
	/** Posts lines to the main thread. */
	postText(text: string, entryCount: number): void;
	reportDropped(entryCount: number): void;
	/** Counts characters in transit: incremented here, and decremented when the main thread has received the text. */
	readonly charsInTransit: Int32Array;
	readonly charsInTransitSlot: number;
}

/** The destination of an access log's lines. */
export interface AccessPort extends BatchPort {
	/** Posts the first bytes of a segment, which belongs to the main thread until it returns it. */
	postSegment(memory: SharedArrayBuffer, length: number, entryCount: number): void;
}

export class AccessBatch implements LineSink {
	readonly #port: AccessPort;
	readonly #segments: LogSegment[] = [];
	/** The current segment; undefined while none is free. */
	#currentSegment: LogSegment | undefined;
	#usedBytes = 0;
	#entryCount = 0;
	#flushTimer: NodeJS.Timeout | undefined;

	constructor(port: AccessPort) {
		this.#port = port;
	}

	write(line: string): void {
		const freeBytes = SEGMENT_BYTES - this.#usedBytes;
		if (line.length * MAX_BYTES_PER_UNIT > freeBytes && !this.#makeRoom(line)) return;
		const segment = this.#currentSegment ?? this.#takeSegment();
		if (segment === undefined) {
			this.#port.reportDropped(1);
			return;
		}
		this.#usedBytes += segment.bytes.write(line, this.#usedBytes);
		this.#entryCount++;
		if (this.#flushTimer === undefined) this.#flushTimer = setTimeout(() => this.flush(), FLUSH_DELAY_MS).unref();
	}

	writeBytes(line: Buffer): void {
		const { length } = line;
		if (length > SEGMENT_BYTES) {
			this.write(line.toString());
			return;
		}
		if (length > SEGMENT_BYTES - this.#usedBytes) this.flush();
		const segment = this.#currentSegment ?? this.#takeSegment();
		if (segment === undefined) {
			this.#port.reportDropped(1);
			return;
		}
		line.copy(segment.bytes, this.#usedBytes);
		this.#usedBytes += length;
		this.#entryCount++;
		if (this.#flushTimer === undefined) this.#flushTimer = setTimeout(() => this.flush(), FLUSH_DELAY_MS).unref();
	}

	/** Posts the lines collected so far to the main thread. */
	flush(): void {
		clearTimeout(this.#flushTimer);
		this.#flushTimer = undefined;
		const segment = this.#currentSegment;
		if (segment === undefined || this.#entryCount === 0) return;
		segment.handOver();
		this.#port.postSegment(segment.memory, this.#usedBytes, this.#entryCount);
		this.#currentSegment = undefined;
		this.#usedBytes = 0;
		this.#entryCount = 0;
	}

	/** Makes room for a line. Returns false if the line is too long for any segment and has been posted separately. */
	#makeRoom(line: string): boolean {
		this.flush();
		if (line.length * MAX_BYTES_PER_UNIT <= SEGMENT_BYTES) return true;
		const { charsInTransit, charsInTransitSlot } = this.#port;
		if (Atomics.load(charsInTransit, charsInTransitSlot) > MAX_LOG_IN_TRANSIT_CHARS) this.#port.reportDropped(1);
		else {
			Atomics.add(charsInTransit, charsInTransitSlot, line.length);
			this.#port.postText(line, 1);
		}
		return false;
	}

	#takeSegment(): LogSegment | undefined {
		let freeSegment = this.#segments.find(segment => segment.isFree);
		if (freeSegment === undefined && this.#segments.length < MAX_SEGMENTS) {
			freeSegment = new LogSegment();
			this.#segments.push(freeSegment);
		}
		this.#currentSegment = freeSegment;
		return freeSegment;
	}
}
