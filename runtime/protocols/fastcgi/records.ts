/** Encodes FastCGI 1.0 records, and decodes them incrementally. */

/** Record types (FastCGI specification §8). */
export const RECORD_TYPE = { begin: 1, abort: 2, end: 3, params: 4, stdin: 5, stdout: 6, stderr: 7 } as const;

/** The request ID. One is enough, because a connection carries one request at a time. */
const REQUEST_ID = 1;
const RECORD_HEADER_BYTES = 8;
/** Maximum content of a record in bytes; a multiple of 8, so that no padding is needed. */
const MAX_CONTENT_BYTES = 65_528;

/** Encodes the start of a request: its role and its variables. `params` has alternating names and values, in Latin-1. */
export function formatBeginRequest(params: readonly string[], keepConnection: boolean): Buffer {
	const pairBytes = formatPairs(params);
	const beginRecord = Buffer.from([
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
	return Buffer.concat([
		beginRecord,
		...formatStreamData(RECORD_TYPE.params, pairBytes),
		formatStreamEnd(RECORD_TYPE.params),
	]);
}

/** Encodes data of a stream. Returns no records if there is no data, because an empty record would end the stream. */
export function formatStreamData(type: number, content: Uint8Array): Uint8Array[] {
	const records: Uint8Array[] = [];
	for (let at = 0; at < content.length; at += MAX_CONTENT_BYTES) {
		const piece = content.subarray(at, at + MAX_CONTENT_BYTES);
		const paddingBytes = -piece.length & 7;
		records.push(recordHeader(type, piece.length, paddingBytes), piece);
		if (paddingBytes > 0) records.push(Buffer.alloc(paddingBytes));
	}
	return records;
}

/** Encodes the end of a stream: a record without content. */
export function formatStreamEnd(type: number): Buffer {
	return recordHeader(type, 0, 0);
}

function recordHeader(type: number, contentLength: number, paddingBytes: number): Buffer {
	return Buffer.from([1, type, 0, REQUEST_ID, contentLength >> 8, contentLength & 255, paddingBytes, 0]);
}

function formatPairs(params: readonly string[]): Buffer {
	let maxBytes = 0;
	for (const text of params) maxBytes += text.length + (text.length < 128 ? 1 : 4);
	const pairBytes = Buffer.allocUnsafe(maxBytes);
	let at = 0;
	for (let i = 0; i + 1 < params.length; i += 2) {
		const name = params[i]!;
		const value = params[i + 1]!;
		at = writeLength(pairBytes, at, name.length);
		at = writeLength(pairBytes, at, value.length);
		at += pairBytes.write(name, at, 'latin1');
		at += pairBytes.write(value, at, 'latin1');
	}
	return pairBytes.subarray(0, at);
}

function writeLength(bytes: Buffer, at: number, length: number): number {
	if (length < 128) return bytes.writeUInt8(length, at);
	return bytes.writeUInt32BE((length | 0x80000000) >>> 0, at);
}

/** Receives decoded records. The bytes passed to it are valid only during the call. */
export interface RecordSink {
	onContent(type: number, bytes: Buffer): void;
	/** Called when the request has ended. `appStatus` is the application's exit status; `protocolStatus` is 0 on success. */
	onRequestEnded(appStatus: number, protocolStatus: number): void;
}

/** Decodes records from input that may be split anywhere. */
export class RecordReader {
	readonly #sink: RecordSink;
	readonly #recordHeader = Buffer.alloc(RECORD_HEADER_BYTES);
	#headerLength = 0;
	#recordType = 0;
	#remainingBytes = 0;
	#paddingBytes = 0;
	#endRecordContent = Buffer.alloc(0);

	constructor(sink: RecordSink) {
		this.#sink = sink;
	}

	/** True if the input so far ends with a complete record. */
	get isComplete(): boolean {
		return this.#headerLength === 0;
	}

	/** Decodes `count` bytes. Returns false if they are not FastCGI records. */
	write(bytes: Buffer, count: number): boolean {
		let at = 0;
		while (at < count) {
			if (this.#headerLength < RECORD_HEADER_BYTES) {
				const partBytes = Math.min(RECORD_HEADER_BYTES - this.#headerLength, count - at);
				bytes.copy(this.#recordHeader, this.#headerLength, at, at + partBytes);
				this.#headerLength += partBytes;
				at += partBytes;
				if (this.#headerLength < RECORD_HEADER_BYTES) return true;
				if (this.#recordHeader[0] !== 1) return false;
				this.#recordType = this.#recordHeader[1]!;
				this.#remainingBytes = this.#recordHeader.readUInt16BE(4);
				this.#paddingBytes = this.#recordHeader[6]!;
				if (this.#recordType === RECORD_TYPE.end) {
					if (this.#remainingBytes !== 8) return false;
					this.#endRecordContent = Buffer.alloc(0);
				}
			}
			if (this.#remainingBytes > 0) {
				const partBytes = Math.min(this.#remainingBytes, count - at);
				const piece = bytes.subarray(at, at + partBytes);
				at += partBytes;
				this.#remainingBytes -= partBytes;
				if (this.#recordType === RECORD_TYPE.end)
					this.#endRecordContent = Buffer.concat([this.#endRecordContent, piece]);
				else if (partBytes > 0) this.#sink.onContent(this.#recordType, piece);
			}
			if (this.#remainingBytes > 0) return true;
			const skippedBytes = Math.min(this.#paddingBytes, count - at);
			this.#paddingBytes -= skippedBytes;
			at += skippedBytes;
			if (this.#paddingBytes > 0) return true;
			this.#headerLength = 0;
			if (this.#recordType === RECORD_TYPE.end)
				this.#sink.onRequestEnded(this.#endRecordContent.readUInt32BE(0), this.#endRecordContent[4]!);
		}
		return true;
	}
}
