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
	readonly #open: () => CodingStream;
	#stream: CodingStream | undefined = undefined;
	readonly #flush: boolean;
	readonly #ended: (whole: boolean) => void;
	#first: Uint8Array | undefined;
	#ready: Buffer[] = [];
	#over = false;
	#encoding = false;
	#failure: unknown;
	/** Ends the wait for the stream's last operation. */
	#done: () => void = () => {};

	/**
	 * @param open Creates the encoder on the first pull, because it takes at least a quarter of a megabyte.
	 * @param first The first chunk, which has been pulled already.
	 * @param flush If true, data is sent before waiting for more.
	 * @param ended Called once, with whether the whole source was encoded.
	 */
	constructor(
		source: BodySource,
		open: () => CodingStream,
		flush: boolean,
		first: Uint8Array | undefined,
		ended: (whole: boolean) => void,
	) {
		this.#source = source;
		this.#open = open;
		this.#flush = flush;
		this.#first = first;
		this.#ended = ended;
	}

	get trailers(): HeaderList | undefined {
		return this.#source.trailers;
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		const piece = this.#ready.shift();
		if (piece) return piece;
		if (this.#over) return null;
		return this.#encodeMore();
	}

	onIdle(): void {
		if (!this.#encoding) this.#source.onIdle?.();
	}

	cancel(reason?: unknown): void {
		this.#source.cancel(reason);
		this.#end(false);
		this.#ready = [];
	}

	async #encodeMore(): Promise<Uint8Array | null> {
		this.#encoding = true;
		try {
			await this.#encode();
		} finally {
			this.#encoding = false;
		}
		return this.#ready.shift() ?? null;
	}

	async #encode(): Promise<void> {
		while (this.#ready.length === 0 && !this.#over) {
			const bytes = this.#first ?? (await this.#pullSource());
			this.#first = undefined;
			// The body has been canceled in the meantime.
			if (this.#over) break;
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
		const stream = this.#open();
		this.#stream = stream;
		stream.on('data', (piece: Buffer) => {
			this.bytesOut += piece.length;
			this.#ready.push(piece);
		});
		stream.on('error', error => {
			this.#failure = error;
			this.#done();
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
			this.#done = resolve;
			stream.write(bytes, () => {
				if (this.#flush && !this.#failure) stream.flush(resolve);
				else resolve();
			});
		});
	}

	#finish(): Promise<void> {
		const stream = this.#encoder;
		return new Promise(resolve => {
			this.#done = () => {
				this.#end(this.#failure === undefined);
				resolve();
			};
			stream.once('end', this.#done);
			stream.end();
		});
	}

	#end(whole: boolean): void {
		if (this.#over) return;
		this.#over = true;
		if (!whole) this.#stream?.destroy();
		this.#ended(whole);
	}
}
