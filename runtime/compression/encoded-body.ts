/** A body that is encoded while it is sent. */
import type { BodySource } from '../../compiler/exchange/body.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import type { CodingStream } from './codings.ts';

/** Pulls from a source, encodes on the thread pool, and delivers one chunk at a time, so that nothing accumulates. */
export class EncodedBody implements BodySource {
	readonly length = undefined;
	/** Number of bytes read so far, before encoding. */
	bytesIn = 0;
	/** Number of bytes produced so far, after encoding. */
	bytesOut = 0;
	readonly #source: BodySource;
	readonly #createEncoder: () => CodingStream;
	#stream: CodingStream | undefined = undefined;
	readonly #flush: boolean;
	readonly #onEnd: (isComplete: boolean) => void;
	#firstChunk: Uint8Array | undefined;
	#encodedPieces: Buffer[] = [];
	#isOver = false;
	#isEncoding = false;
	#failure: unknown;
	/** Resumes the code that waits for the stream's last operation. */
	#onOperationDone: () => void = () => {};

	/**
	 * @param createEncoder Creates the encoder on the first pull, because it takes at least a quarter of a megabyte.
	 * @param firstChunk The first chunk, which has been pulled already.
	 * @param flush If true, data is sent before waiting for more.
	 * @param onEnd Called once. Its argument tells whether the whole source was encoded.
	 */
	constructor(
		source: BodySource,
		createEncoder: () => CodingStream,
		flush: boolean,
		firstChunk: Uint8Array | undefined,
		onEnd: (isComplete: boolean) => void,
	) {
		this.#source = source;
		this.#createEncoder = createEncoder;
		this.#flush = flush;
		this.#firstChunk = firstChunk;
		this.#onEnd = onEnd;
	}

	get trailers(): HeaderList | undefined {
		return this.#source.trailers;
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		const piece = this.#encodedPieces.shift();
		if (piece) return piece;
		if (this.#isOver) return null;
		return this.#encodeMore();
	}

	onIdle(): void {
		if (!this.#isEncoding) this.#source.onIdle?.();
	}

	cancel(reason?: unknown): void {
		this.#source.cancel(reason);
		this.#end(false);
		this.#encodedPieces = [];
	}

	async #encodeMore(): Promise<Uint8Array | null> {
		this.#isEncoding = true;
		try {
			await this.#encode();
		} finally {
			this.#isEncoding = false;
		}
		return this.#encodedPieces.shift() ?? null;
	}

	async #encode(): Promise<void> {
		while (this.#encodedPieces.length === 0 && !this.#isOver) {
			const bytes = this.#firstChunk ?? (await this.#pullSource());
			this.#firstChunk = undefined;
			// The body has been canceled in the meantime.
			if (this.#isOver) break;
			if (bytes === null) await this.#finish();
			else await this.#write(bytes);
			if (this.#failure) {
				const failure = this.#failure;
				this.cancel(failure);
				throw failure;
			}
		}
	}

	/** The encoder, created on first use. */
	get #encoder(): CodingStream {
		if (this.#stream !== undefined) return this.#stream;
		const stream = this.#createEncoder();
		this.#stream = stream;
		stream.on('data', (piece: Buffer) => {
			this.bytesOut += piece.length;
			this.#encodedPieces.push(piece);
		});
		stream.on('error', error => {
			this.#failure = error;
			this.#onOperationDone();
		});
		return stream;
	}

	async #pullSource(): Promise<Uint8Array | null> {
		try {
			return await this.#source.pull();
		} catch (error) {
			// A truncated body must not end like a complete one.
			this.#end(false);
			throw error;
		}
	}

	/** Writes bytes, which are valid until the next pull. When zlib calls back, it has consumed them. */
	#write(bytes: Uint8Array): Promise<void> {
		this.bytesIn += bytes.byteLength;
		const stream = this.#encoder;
		return new Promise(resolve => {
			this.#onOperationDone = resolve;
			stream.write(bytes, () => {
				if (this.#flush && !this.#failure) stream.flush(resolve);
				else resolve();
			});
		});
	}

	#finish(): Promise<void> {
		const stream = this.#encoder;
		return new Promise(resolve => {
			this.#onOperationDone = () => {
				this.#end(this.#failure === undefined);
				resolve();
			};
			stream.once('end', this.#onOperationDone);
			stream.end();
		});
	}

	#end(isComplete: boolean): void {
		if (this.#isOver) return;
		this.#isOver = true;
		if (!isComplete) this.#stream?.destroy();
		this.#onEnd(isComplete);
	}
}
