/** Encodes FastCGI 1.0 records, and decodes them incrementally. */

/** Record types (FastCGI specification §8). */
export const RECORD_TYPE = { begin: 1, abort: 2, end: 3, params: 4, stdin: 5, stdout: 6, stderr: 7 } as const;

/** The request ID. One is enough, because a connection carries one request at a time. */
const REQUEST_ID = 1;
const HEADER = 8;
/** Maximum content of a record in bytes; a multiple of 8, so that no padding is needed. */
const MAX_CONTENT = 65_528;

/** Encodes the start of a request: its role and its variables (alternating names and values, in Latin-1). */
export function formatBeginRequest(params: readonly string[], keepConnection: boolean): Buffer {
	const pairs = formatPairs(params);
	const begin = Buffer.from([
		1,
		RECORD_TYPE.begin,
		0,
		REQUEST_ID,
		0,
		8,
		0,
		0,
		0,
		1,
		keepConnection ? 1 : 0,
		0,
		0,
		0,
		0,
		0,
	]);
	return Buffer.concat([begin, ...formatStreamData(RECORD_TYPE.params, pairs), formatStreamEnd(RECORD_TYPE.params)]);
}

/** Encodes data of a stream. Returns no records if there is no data, because an empty record would end the stream. */
export function formatStreamData(type: number, content: Uint8Array): Uint8Array[] {
	const records: Uint8Array[] = [];
	for (let at = 0; at < content.length; at += MAX_CONTENT) {
		const piece = content.subarray(at, at + MAX_CONTENT);
		const padding = -piece.length & 7;
		records.push(recordHeader(type, piece.length, padding), piece);
		if (padding > 0) records.push(Buffer.alloc(padding));
	}
	return records;
}

/** Encodes the end of a stream. */
export function formatStreamEnd(type: number): Buffer {
	return recordHeader(type, 0, 0);
}

function recordHeader(type: number, length: number, padding: number): Buffer {
	return Buffer.from([1, type, 0, REQUEST_ID, length >> 8, length & 255, padding, 0]);
}

function formatPairs(params: readonly string[]): Buffer {
	let size = 0;
	for (const text of params) size += text.length + (text.length < 128 ? 1 : 4);
	const pairs = Buffer.allocUnsafe(size);
	let at = 0;
	for (let i = 0; i + 1 < params.length; i += 2) {
		const name = params[i]!;
		const value = params[i + 1]!;
		at = writeLength(pairs, at, name.length);
		at = writeLength(pairs, at, value.length);
		at += pairs.write(name, at, 'latin1');
		at += pairs.write(value, at, 'latin1');
	}
	return pairs.subarray(0, at);
}

function writeLength(bytes: Buffer, at: number, length: number): number {
	if (length < 128) return bytes.writeUInt8(length, at);
	return bytes.writeUInt32BE((length | 0x80000000) >>> 0, at);
}

/** Receives decoded records. The bytes passed to it are valid only during the call. */
export interface RecordSink {
	content(type: number, bytes: Buffer): void;
	/** Called when the request has ended. `status` is the application's exit status; `protocol` is 0 on success. */
	requestEnded(status: number, protocol: number): void;
}

/** Decodes records from input that may be split anywhere. */
export class RecordReader {
	readonly #sink: RecordSink;
	readonly #head = Buffer.alloc(HEADER);
	#headLength = 0;
	#type = 0;
	#remaining = 0;
	#padding = 0;
	#end = Buffer.alloc(0);

	constructor(sink: RecordSink) {
		this.#sink = sink;
	}

	/** True if the input so far ends with a complete record. */
	get whole(): boolean {
		return this.#headLength === 0;
	}

	/** Decodes `count` bytes. Returns false if they are not FastCGI records. */
	write(bytes: Buffer, count: number): boolean {
		let at = 0;
		while (at < count) {
			if (this.#headLength < HEADER) {
				const taken = Math.min(HEADER - this.#headLength, count - at);
				bytes.copy(this.#head, this.#headLength, at, at + taken);
				this.#headLength += taken;
				at += taken;
				if (this.#headLength < HEADER) return true;
				if (this.#head[0] !== 1) return false;
				this.#type = this.#head[1]!;
				this.#remaining = this.#head.readUInt16BE(4);
				this.#padding = this.#head[6]!;
				if (this.#type === RECORD_TYPE.end) {
					if (this.#remaining !== 8) return false;
					this.#end = Buffer.alloc(0);
				}
			}
			if (this.#remaining > 0) {
				const taken = Math.min(this.#remaining, count - at);
				const piece = bytes.subarray(at, at + taken);
				at += taken;
				this.#remaining -= taken;
				if (this.#type === RECORD_TYPE.end) this.#end = Buffer.concat([this.#end, piece]);
				else if (taken > 0) this.#sink.content(this.#type, piece);
			}
			if (this.#remaining > 0) return true;
			const skipped = Math.min(this.#padding, count - at);
			this.#padding -= skipped;
			at += skipped;
			if (this.#padding > 0) return true;
			this.#headLength = 0;
			if (this.#type === RECORD_TYPE.end) this.#sink.requestEnded(this.#end.readUInt32BE(0), this.#end[4]!);
		}
		return true;
	}
}
