/** A request's body as handlers pull it, fed by its stream's DATA frames. */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { PieceGatherer } from '../piece-gatherer.ts';

/** The stream as its body sees it. */
export interface BodyFeeder {
	/** Someone waits for bytes that are not here yet. */
	bodyAwaited(): void;
	/** Bytes are held no more; with `keepsUp` none are left. */
	bodyTaken(bytes: number, keepsUp: boolean): void;
}

interface Waiter {
	readonly resolve: (piece: Uint8Array | null) => void;
	readonly reject: (error: unknown) => void;
}

/** The body of one request. `pull` throws an HttpError when the body was cut short (400) or is late (408). */
export class StreamBody implements BodySource {
	/** `Content-Length`, where the client gave one. */
	readonly length: number | undefined;
	trailers: HeaderList | undefined = undefined;
	/** Bytes that have come in. */
	received = 0;
	/** The last byte has come in. */
	complete = false;
	readonly #feeder: BodyFeeder;
	#queue: Buffer[] = [];
	#queued = 0;
	readonly #gatherer = new PieceGatherer();
	#waiter: Waiter | undefined = undefined;
	#failure: HttpError | undefined = undefined;
	#discarding = false;

	constructor(feeder: BodyFeeder, length: number | undefined) {
		this.#feeder = feeder;
		this.length = length;
	}

	/** True while a pull waits. */
	get awaited(): boolean {
		return this.#waiter !== undefined;
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		const piece = this.#queue.shift();
		if (piece) {
			this.#queued -= piece.length;
			this.#feeder.bodyTaken(piece.length, this.#queued === 0);
			return piece;
		}
		if (this.#failure) throw this.#failure;
		if (this.complete) return null;
		if (this.#discarding) throw new HttpError(500, 'The body of the request was given up.');
		if (this.#waiter) throw new HttpError(500, 'The body of the request has two readers.');
		return new Promise((resolve, reject) => {
			this.#waiter = { resolve, reject };
			this.#feeder.bodyAwaited();
		});
	}

	cancel(): void {
		if (this.#discarding) return;
		this.#discarding = true;
		const queued = this.#queued;
		this.#queue = [];
		this.#queued = 0;
		this.#settle()?.reject(new HttpError(500, 'The body of the request was given up.'));
		if (queued > 0) this.#feeder.bodyTaken(queued, false);
	}

	/** For the stream: content, which is the body's from now on. */
	feed(piece: Buffer): void {
		this.received += piece.length;
		if (this.#discarding || this.#failure) {
			this.#feeder.bodyTaken(piece.length, true);
			return;
		}
		const waiter = this.#settle();
		if (waiter) {
			this.#feeder.bodyTaken(piece.length, true);
			waiter.resolve(piece);
			return;
		}
		this.#queued += piece.length;
		this.#gatherer.push(this.#queue, piece);
	}

	/** For the stream: all content is here. */
	end(): void {
		this.complete = true;
		this.#settle()?.resolve(null);
	}

	/** For the stream: no more bytes come, and those that came are not the whole. */
	fail(error: HttpError): void {
		if (this.complete || this.#failure) return;
		this.#failure = error;
		this.#settle()?.reject(error);
	}

	#settle(): Waiter | undefined {
		const waiter = this.#waiter;
		this.#waiter = undefined;
		return waiter;
	}
}
