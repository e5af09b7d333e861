/** Encodes the bodies of one thread: short ones immediately, long ones on the thread pool, within limits. */
import { type Body, type BodySource, BytesBody, isStream } from '../../compiler/exchange/body.ts';
import type { Coding, Compressor, EncodedResult, ServedFile } from '../../compiler/exchange/leases.ts';
import { FilePages, RESPONSE_HEAD_ROOM_BYTES } from '../files/file-pages.ts';
import { ReadBody } from '../files/read-body.ts';
import { countEncodedResponse, ENCODING_SLOT, FILE_SLOTS_END } from '../metrics/file-counters.ts';
import { createReusedEncoder, type ReusedEncoder } from '../sockets/reused-encoder.ts';
import { type CodingStream, createCodingStream, encodeWhole, MAX_ONE_SHOT_BYTES, maxOneShotBytes } from './codings.ts';
import { EncodedBody } from './encoded-body.ts';

/** Maximum bytes of encoded files that a thread caches. */
const MAX_CACHED_BYTES = 16 * 1024 * 1024;

/** Maximum size, in bytes, of the encoded form of a file that is cached. */
const MAX_FORM_BYTES: number = 1024 * 1024;

/** An LRU cache of the encoded forms of files. */
class EncodedFiles {
	readonly #forms = new Map<string, Uint8Array>();
	#cachedBytes = 0;

	get(file: ServedFile, coding: Coding): Uint8Array | undefined {
		const key = cacheKeyOf(file, coding);
		const form = this.#forms.get(key);
		if (form) {
			// Keeps the map ordered by last use.
			this.#forms.delete(key);
			this.#forms.set(key, form);
		}
		return form;
	}

	set(file: ServedFile, coding: Coding, form: Uint8Array): void {
		if (form.byteLength > MAX_FORM_BYTES) return;
		const key = cacheKeyOf(file, coding);
		this.#cachedBytes += form.byteLength - (this.#forms.get(key)?.byteLength ?? 0);
		this.#forms.delete(key);
		this.#forms.set(key, form);
		for (const [oldestKey, { byteLength }] of this.#forms) {
			if (this.#cachedBytes <= MAX_CACHED_BYTES) break;
			this.#forms.delete(oldestKey);
			this.#cachedBytes -= byteLength;
		}
	}
}

function cacheKeyOf({ path, size, modified }: ServedFile, { name, level, checksum }: Coding): string {
	return `${name} ${level ?? ''} ${checksum ?? ''} ${size} ${modified.seconds}.${modified.nanoseconds} ${path}`;
}

/** Maximum number of bodies encoded on the thread pool at a time. Further bodies are sent unencoded. */
const MAX_ENCODING_STREAMS = 64;

type EncodeOptions = Parameters<Compressor['encode']>[2];
type EncodeReturn = ReturnType<Compressor['encode']>;

/** Creates the compressor of a thread, which counts what it does in the thread's row of counters. */
export function createThreadCompressor(counters: Float64Array): ThreadCompressor {
	return new ThreadCompressor(counters);
}

export class ThreadCompressor implements Compressor {
	readonly #encodedFiles = new EncodedFiles();
	/** Reused encoders by the coding's name, level and checksum; null for a coding that has no such encoder. */
	readonly #encodersByCoding = new Map<string, ReusedEncoder | null>();
	/** Buffers for encoded output. If the output does not fit, which is rare, the body is encoded again without them. */
	readonly #outputPages = new FilePages(MAX_ONE_SHOT_BYTES + 1024, undefined);
	readonly #counters: Float64Array;
	#streamCount = 0;

	/** @param counters The thread's counter row. */
	constructor(counters: Float64Array = new Float64Array(FILE_SLOTS_END)) {
		this.#counters = counters;
	}

	encode(body: Exclude<Body, null>, coding: Coding, options: EncodeOptions): EncodeReturn {
		const { identity } = options;
		const cachedForm = identity && this.#encodedFiles.get(identity, coding);
		if (cachedForm) {
			if (isStream(body)) body.cancel();
			this.#counters[ENCODING_SLOT.kept]!++;
			return { body: cachedForm, encoded: true };
		}
		if (!isStream(body)) {
			const bytes = typeof body === 'string' ? Buffer.from(body) : body;
			if (bytes.byteLength <= maxOneShotBytes(coding)) return this.#encodeAtOnce(bytes, coding, identity);
			// The bytes are copied, because the caller may reuse the memory.
			return this.#encodeStreaming(new BytesBody(Uint8Array.from(bytes)), undefined, coding, options);
		}
		if (body.length !== undefined && body.length <= maxOneShotBytes(coding))
			return this.#encodeShort(body, [], coding, identity);
		if (!options.flush) return this.#encodeStreaming(body, undefined, coding, options);
		return this.#encodeUnknownLength(body, coding, options);
	}

	/**
	 * Reads a short stream, such as an upstream's response, completely before encoding it. Returns a promise only if it must wait.
	 */
	#encodeShort(
		source: BodySource,
		pieces: Uint8Array[],
		coding: Coding,
		identity: ServedFile | undefined,
	): EncodeReturn {
		for (;;) {
			const piece = source.pull();
			if (piece instanceof Promise) {
				return piece.then(
					bytes =>
						this.#onShortChunk(bytes, source, pieces, coding, identity) ??
						this.#encodeShort(source, pieces, coding, identity),
				);
			}
			const encodedResult = this.#onShortChunk(piece, source, pieces, coding, identity);
			if (encodedResult) return encodedResult;
		}
	}

	/** Handles a chunk of a short stream. Returns undefined if further chunks follow. */
	#onShortChunk(
		bytes: Uint8Array | null,
		source: BodySource,
		pieces: Uint8Array[],
		coding: Coding,
		identity: ServedFile | undefined,
	): EncodeReturn | undefined {
		if (bytes === null) {
			const allBytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
			return this.#encodeAtOnce(allBytes, coding, identity);
		}
		if (pieces.length > 0 || bytes.byteLength !== source.length) {
			// The bytes are copied, because they are valid only until the next pull.
			pieces.push(Uint8Array.from(bytes));
			return undefined;
		}
		const encodedResult = this.#encodeAtOnce(bytes, coding, identity);
		const lastPull = source.pull();
		return lastPull instanceof Promise ? lastPull.then(() => encodedResult) : encodedResult;
	}

	#encodeAtOnce(bytes: Uint8Array, coding: Coding, identity: ServedFile | undefined): EncodedResult {
		const page = this.#outputPages.takePage();
		const encodedLength = this.#reusedEncoderFor(coding)?.(bytes, page.memory, RESPONSE_HEAD_ROOM_BYTES);
		if (encodedLength !== undefined && identity === undefined) {
			countEncodedResponse(this.#counters, coding.name, bytes.byteLength, encodedLength);
			return { body: new ReadBody(this.#outputPages, page, encodedLength), encoded: true };
		}
		const encodedForm =
			encodedLength === undefined
				? encodeWhole(bytes, coding)
				: copyBytes(page.memory, RESPONSE_HEAD_ROOM_BYTES, encodedLength);
		this.#outputPages.returnPage(page);
		if (identity !== undefined) this.#encodedFiles.set(identity, coding, encodedForm);
		countEncodedResponse(this.#counters, coding.name, bytes.byteLength, encodedForm.byteLength);
		return { body: encodedForm, encoded: true };
	}

	#reusedEncoderFor(coding: Coding): ReusedEncoder | null {
		if (coding.name === 'br') return null;
		const key = `${coding.name} ${coding.level} ${coding.checksum}`;
		let encoder = this.#encodersByCoding.get(key);
		if (encoder === undefined) {
			encoder = createReusedEncoder(coding.name, () => createCodingStream(coding, undefined)) ?? null;
			this.#encodersByCoding.set(key, encoder);
		}
		return encoder;
	}

	/**
	 * Handles a source of unknown length. If its first chunk is available at once and not longer than `options.minimum`, the body
	 * is sent unencoded, because it is probably too short to be worth encoding.
	 */
	#encodeUnknownLength(source: BodySource, coding: Coding, options: EncodeOptions): EncodeReturn {
		const firstPull = source.pull();
		if (firstPull instanceof Promise)
			return this.#encodeStreaming(new ResumedBody(firstPull, source), undefined, coding, options);
		if (firstPull === null) return { body: EMPTY_BYTES, encoded: false };
		const firstChunk = Uint8Array.from(firstPull);
		if (firstChunk.byteLength > options.minimum) return this.#encodeStreaming(source, firstChunk, coding, options);
		return { body: new ResumedBody(firstChunk, source), encoded: false };
	}

	#encodeStreaming(
		source: BodySource,
		firstChunk: Uint8Array | undefined,
		coding: Coding,
		options: EncodeOptions,
	): EncodeReturn {
		if (this.#streamCount >= MAX_ENCODING_STREAMS) {
			this.#counters[ENCODING_SLOT.skipped]!++;
			return { body: firstChunk ? new ResumedBody(firstChunk, source) : source, encoded: false };
		}
		this.#streamCount++;
		const isCacheable = options.identity !== undefined && (source.length ?? Infinity) <= 8 * MAX_FORM_BYTES;
		const pieces: Buffer[] = [];
		const createEncoder = (): CodingStream => {
			const stream = createCodingStream(coding, source.length);
			if (isCacheable) stream.on('data', (piece: Buffer) => pieces.push(piece));
			return stream;
		};
		const body = new EncodedBody(source, createEncoder, options.flush, firstChunk, isComplete => {
			this.#streamCount--;
			countEncodedResponse(this.#counters, coding.name, body.bytesIn, body.bytesOut);
			if (isComplete && isCacheable) this.#encodedFiles.set(options.identity!, coding, Buffer.concat(pieces));
		});
		return { body, encoded: true };
	}
}

const EMPTY_BYTES: Uint8Array = new Uint8Array();

/** Copies bytes, because a slice would keep the memory of the whole buffer allocated. */
function copyBytes(memory: Buffer, start: number, length: number): Buffer {
	const copy = Buffer.allocUnsafeSlow(length);
	memory.copy(copy, 0, start, start + length);
	return copy;
}

/** A source whose first chunk has been pulled already. */
class ResumedBody implements BodySource {
	readonly length = undefined;
	readonly #source: BodySource;
	#firstChunk: Uint8Array | Promise<Uint8Array | null> | undefined;

	constructor(firstChunk: Uint8Array | Promise<Uint8Array | null>, source: BodySource) {
		this.#firstChunk = firstChunk;
		this.#source = source;
		// If the body is canceled before the first pull, nobody else handles a rejection.
		if (firstChunk instanceof Promise) firstChunk.catch(() => {});
	}

	get trailers() {
		return this.#source.trailers;
	}

	onIdle(): void {
		this.#source.onIdle?.();
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		const firstChunk = this.#firstChunk;
		if (firstChunk === undefined) return this.#source.pull(maxBytes);
		this.#firstChunk = undefined;
		return firstChunk;
	}

	cancel(reason?: unknown): void {
		this.#firstChunk = undefined;
		this.#source.cancel(reason);
	}
}
