/** Encodes the bodies of one thread: short ones at once, long ones on the thread pool, and no more at a time than it can bear. */
import type { Body, BodySource } from '../../compiler/exchange/body.ts';
import { isStream } from '../../compiler/exchange/body.ts';
import type { Coding, Compressor, EncodedResult, ServedFile } from '../../compiler/exchange/leases.ts';
import { createCodingStream, encodeWhole } from './codings.ts';
import { EncodedBody } from './encoded-body.ts';
import { EncodedFiles, LARGEST_KEPT } from './encoded-files.ts';

/** Bytes that are encoded at once: about half a millisecond at the usual levels. More would make other requests wait. */
const AT_ONCE = 16 * 1024;

/** Bodies that are encoded on the thread pool at a time; what comes beyond is sent as it is. */
const MOST_STREAMS = 64;

type EncodeOptions = Parameters<Compressor['encode']>[2];
type Encoded = ReturnType<Compressor['encode']>;

/** The compressor of a thread. */
export class ThreadCompressor implements Compressor {
	readonly #files = new EncodedFiles();
	#streams = 0;

	encode(body: Exclude<Body, null>, coding: Coding, options: EncodeOptions): Encoded {
		const { identity } = options;
		const kept = identity && this.#files.get(identity, coding);
		if (kept) {
			if (isStream(body)) body.cancel();
			return { body: kept, encoded: true };
		}
		if (!isStream(body)) {
			const bytes = typeof body === 'string' ? Buffer.from(body) : body;
			if (bytes.byteLength <= AT_ONCE) return this.#keep(encodeWhole(bytes, coding), coding, identity);
			return this.#streamed(new WholeBody(bytes), undefined, coding, options);
		}
		if (body.length !== undefined && body.length <= AT_ONCE) return this.#short(body, coding, options);
		if (!options.flush) return this.#streamed(body, undefined, coding, options);
		return this.#ofUnknownLength(body, coding, options);
	}

	/** A short stream, such as a small file, is read whole first. */
	async #short(source: BodySource, coding: Coding, { identity }: EncodeOptions): Promise<EncodedResult> {
		const pieces: Uint8Array[] = [];
		for (;;) {
			const piece = source.pull();
			const bytes = piece instanceof Promise ? await piece : piece;
			if (bytes === null) break;
			// A copy: the bytes are ours until the next pull only.
			pieces.push(Uint8Array.from(bytes));
		}
		const form = encodeWhole(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces), coding);
		return this.#keep(form, coding, identity);
	}

	/** Looks at what is there already: an answer that is whole in it may be too short to be worth it. */
	#ofUnknownLength(source: BodySource, coding: Coding, options: EncodeOptions): Encoded {
		const first = source.pull();
		if (first instanceof Promise) return this.#streamed(new Resumed(first, source), undefined, coding, options);
		if (first === null) return { body: EMPTY, encoded: false };
		const start = Uint8Array.from(first);
		if (start.byteLength > options.minimum) return this.#streamed(source, start, coding, options);
		return { body: new Resumed(start, source), encoded: false };
	}

	#streamed(source: BodySource, first: Uint8Array | undefined, coding: Coding, options: EncodeOptions): Encoded {
		if (this.#streams >= MOST_STREAMS) return { body: first ? new Resumed(first, source) : source, encoded: false };
		this.#streams++;
		const keeps = options.identity !== undefined && (source.length ?? Infinity) <= 8 * LARGEST_KEPT;
		const stream = createCodingStream(coding, source.length);
		const pieces: Buffer[] = [];
		if (keeps) stream.on('data', (piece: Buffer) => pieces.push(piece));
		const body = new EncodedBody(source, stream, options.flush, first, whole => {
			this.#streams--;
			if (whole && keeps) this.#keep(Buffer.concat(pieces), coding, options.identity);
		});
		return { body, encoded: true };
	}

	#keep(form: Buffer, coding: Coding, identity: ServedFile | undefined): EncodedResult {
		if (identity) this.#files.set(identity, coding, form);
		return { body: form, encoded: true };
	}
}

const EMPTY: Uint8Array = new Uint8Array();

/** Bytes as a stream. */
class WholeBody implements BodySource {
	readonly length: number;
	#bytes: Uint8Array | null;

	constructor(bytes: Uint8Array) {
		this.#bytes = bytes;
		this.length = bytes.byteLength;
	}

	pull(): Uint8Array | null {
		const bytes = this.#bytes;
		this.#bytes = null;
		return bytes;
	}

	cancel(): void {
		this.#bytes = null;
	}
}

/** A stream whose beginning was looked at. */
class Resumed implements BodySource {
	readonly length = undefined;
	readonly #source: BodySource;
	#first: Uint8Array | Promise<Uint8Array | null> | undefined;

	constructor(first: Uint8Array | Promise<Uint8Array | null>, source: BodySource) {
		this.#first = first;
		this.#source = source;
		// Whoever cancels before the first pull leaves it behind.
		if (first instanceof Promise) first.catch(() => {});
	}

	get trailers() {
		return this.#source.trailers;
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		const first = this.#first;
		if (first === undefined) return this.#source.pull();
		this.#first = undefined;
		return first;
	}

	cancel(reason?: unknown): void {
		this.#first = undefined;
		this.#source.cancel(reason);
	}
}
