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
	#codingStream: CodingStream | undefined = undefined;
	readonly #mustFlush: boolean;
	readonly #onEnd: (isComplete: boolean) => void;
	#firstChunk: Uint8Array | undefined;
	#encodedPieces: Buffer[] = [];
	#hasEnded = false;
	#isEncoding = false;
	#failure: unknown;
	/** Resumes the code that waits for the stream's current operation. */
	#onOperationDone: () => void = () => {};

	/**
	 * @param createEncoder Creates the encoder on the first pull, because it takes at least a quarter of a megabyte.
	 * @param firstChunk The first chunk, which has been pulled already.
	 * @param mustFlush If true, the encoder is flushed before the body waits for more data, so that nothing is held back.
	 * @param onEnd Called once, with true if the whole source was encoded.
	 */
	constructor(
		source: BodySource,
		createEncoder: () => CodingStream,
		mustFlush: boolean,
		firstChunk: Uint8Array | undefined,
		onEnd: (isComplete: boolean) => void,
	) {
		this.#source = source;
		this.#createEncoder = createEncoder;
		this.#mustFlush = mustFlush;
		this.#firstChunk = firstChunk;
		this.#onEnd = onEnd;
	}

	get trailers(): HeaderList | undefined {
		return this.#source.trailers;
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		const piece = this.#encodedPieces.shift();
		if (piece) return piece;
		if (this.#hasEnded) return null;
		return this.#encodeMore();
	}

	onIdle(): void {
		if (!this.#isEncoding) this.#source.onIdle?.();
	}

	cancel(reason?: unknown): void {
		this.#source.cancel(reason);
		this.#endBody(false);
		this.#encodedPieces = [];
	}

	async #encodeMore(): Promise<Uint8Array | null> {
		this.#isEncoding = true;
		try {
			await this.#encodeUntilOutput();
		} finally {
			this.#isEncoding = false;
		}
		return this.#encodedPieces.shift() ?? null;
	}

	async #encodeUntilOutput(): Promise<void> {
		while (this.#encodedPieces.length === 0 && !this.#hasEnded) {
			const bytes = this.#firstChunk ?? (await this.#pullSource());
			this.#firstChunk = undefined;
			// The body has been canceled in the meantime.
			if (this.#hasEnded) break;
			if (bytes === null) await this.#finishEncoder();
			else await this.#writeToEncoder(bytes);
			if (this.#failure) {
				const failure = this.#failure;
				this.cancel(failure);
				throw failure;
			}
		}
	}

	/** The encoder, created on first use. */
	get #encoder(): CodingStream {
		if (this.#codingStream !== undefined) return this.#codingStream;
		const stream = this.#createEncoder();
		this.#codingStream = stream;
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
			this.#endBody(false);
			throw error;
		}
	}

	/** Writes bytes, which are valid until the next pull. When zlib calls back, it has consumed them. */
	#writeToEncoder(bytes: Uint8Array): Promise<void> {
		this.bytesIn += bytes.byteLength;
		const stream = this.#encoder;
		return new Promise(resolve => {
			this.#onOperationDone = resolve;
			stream.write(bytes, () => {
				if (this.#mustFlush && !this.#failure) stream.flush(resolve);
				else resolve();
			});
		});
	}

	#finishEncoder(): Promise<void> {
		const stream = this.#encoder;
		return new Promise(resolve => {
			this.#onOperationDone = () => {
				this.#endBody(this.#failure === undefined);
				resolve();
			};
			stream.once('end', this.#onOperationDone);
			stream.end();
		});
	}

	#endBody(isComplete: boolean): void {
		if (this.#hasEnded) return;
		this.#hasEnded = true;
		if (!isComplete) this.#codingStream?.destroy();
		this.#onEnd(isComplete);
	}
}
