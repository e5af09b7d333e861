/** Sends the body of one stream as the flow-control windows allow, one frame per turn (RFC 9113 §5.2). */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import { MAX_WINDOW } from './frame-codes.ts';
import { MAX_FRAME_SIZE } from './limits.ts';

/** Writes DATA frames. Implemented by HTTP/2 and HTTP/3. */
export interface DataWriter {
	/** True if no more frames should be written for now. */
	readonly full: boolean;
	/** Writes a frame with `bytes[start, end)`. With `last`, the frame ends the stream. Returns an argument for `endStreamAt`. */
	data(stream: number, last: boolean, bytes: Uint8Array, start: number, end: number): number;
	/** Makes a frame that was written without `last` end its stream. Returns false if the frame has already been sent. */
	endStreamAt(frame: number): boolean;
}

/** The connection, as the output of its streams sees it. */
export interface OutputSession {
	readonly frames: DataWriter;
	/** Number of bytes of DATA that the client accepts on all streams together (the connection's send window). */
	sendWindow: number;
	/** Maximum bytes of its body that each stream may buffer. The streams share the connection's limit. */
	readonly share: number;
	/** Requests that `turn` be called, during this task or soon after. */
	wantsTurn(output: StreamOutput): void;
	/** Accounts for bytes that are buffered (positive) or no longer buffered (negative). */
	holds(bytes: number): void;
	/** Called when a DATA frame of this many bytes has been written. */
	dataSent(bytes: number): void;
}

/** The stream, as its output sees it. */
export interface OutputOwner {
	/** Called when bytes of the body have been written. */
	sent(bytes: number): void;
	/** Called when the body has been sent. `ended` is true if the stream has ended; otherwise, trailers follow. */
	bodyEnded(source: BodySource | undefined, ended: boolean): void;
	/** Called when the body cannot be sent completely. The stream must then be reset. */
	broken(): void;
	/** Called with true when the client has stopped accepting data, and with false when it accepts data again. */
	blocked(blocked: boolean): void;
	/** Reports whether the stream must be ended separately from the body, for example because trailers follow. */
	endsApart(source: BodySource | undefined): boolean;
}

/** Minimum bytes requested from a source, even if the client accepts fewer. Smaller pulls would cost more than they save. */
const MIN_PULL = 1024;

/** Result of a turn: the output can continue at once. */
export const TURN_MORE = 0;
/** Result of a turn: the output waits for its source or for its stream's window, or has ended. */
export const TURN_WAITS = 1;
/** Result of a turn: the output waits for the connection's window. */
export const TURN_STARVES = 2;

/** Sends the body of one stream. */
export class StreamOutput {
	readonly id: number;
	/** Number of bytes of DATA that the client accepts on this stream. Negative if the client has reduced the initial window. */
	window: number;
	/** True while the output is in the connection's queue. */
	queued = false;
	readonly #session: OutputSession;
	readonly #owner: OutputOwner;
	#source: BodySource | undefined = undefined;
	/** `#active`: something is to be sent. `#tunnel`: the output does not end with the current chunk. */
	#active = false;
	#tunnel = false;
	#piece: Uint8Array | undefined = undefined;
	#at = 0;
	/** Number of bytes of the announced length that have not been sent; −1 if no length was announced. */
	#remaining = -1;
	#pulling = false;
	#blocked = false;
	#taken: ((error?: Error) => void) | undefined = undefined;
	#ending = false;
	/** Number of buffered bytes, as last reported to the session. */
	#held = 0;
	/** `#begun`: some of the source has been pulled. `#sent`: number of bytes that the client has accepted. */
	#begun = false;
	#sent = 0;

	constructor(id: number, window: number, session: OutputSession, owner: OutputOwner) {
		this.id = id;
		this.window = window;
		this.#session = session;
		this.#owner = owner;
	}

	/** True if there is something to send, or if something may be added. */
	get active(): boolean {
		return this.#active;
	}

	/** Number of bytes of a body that could be sent now. */
	get room(): number {
		return Math.min(this.window, this.#session.sendWindow, this.#session.share);
	}

	/** Sends a complete body, which must not change until it has been sent. */
	sendWhole(bytes: Uint8Array): void {
		this.#active = true;
		this.#piece = bytes;
		this.#ending = true;
		// Most bodies fit in one frame. It is sent together with the head, before other streams get a turn.
		if (this.#session.frames.full || this.turn() !== TURN_WAITS) this.#session.wantsTurn(this);
		if (this.#active) this.#hold();
	}

	/** Sends a streamed body. `length` is its announced length. */
	sendSource(source: BodySource, length: number | undefined): void {
		this.#active = true;
		this.#source = source;
		this.#remaining = length ?? -1;
		if (source.heldBytes !== undefined) this.#hold();
		this.#session.wantsTurn(this);
	}

	/** Turns the stream into a tunnel: from now on, `write` and `end` determine what is sent. */
	openTunnel(): void {
		this.#active = true;
		this.#tunnel = true;
	}

	/** Writes to a tunnel. Only one write may be in progress at a time. */
	write(piece: Uint8Array, taken: (error?: Error) => void): void {
		if (!this.#active) {
			taken(new Error('The stream has ended.'));
			return;
		}
		this.#piece = piece;
		this.#at = 0;
		this.#taken = taken;
		this.#session.wantsTurn(this);
	}

	/** Ends the output of a tunnel. */
	end(): void {
		this.#ending = true;
		this.#session.wantsTurn(this);
	}

	/** Enlarges the window. Returns false if it becomes too large (RFC 9113 §6.9.1). */
	widen(bytes: number): boolean {
		this.window += bytes;
		if (this.window > MAX_WINDOW) return false;
		if (this.#active && this.window > 0 && (this.#piece !== undefined || this.#blocked)) this.#session.wantsTurn(this);
		return true;
	}

	/** Cancels whatever has not been sent. */
	cancel(): void {
		this.#active = false;
		this.#piece = undefined;
		const source = this.#source;
		this.#source = undefined;
		this.#hold();
		source?.cancel();
		const taken = this.#taken;
		this.#taken = undefined;
		taken?.(new Error('The stream has ended.'));
	}

	/** Sends at most one frame. Returns `TURN_MORE`, `TURN_WAITS` or `TURN_STARVES`. */
	turn(): number {
		if (!this.#active) return TURN_WAITS;
		if (this.#piece === undefined) {
			if (!this.#mayPull()) {
				this.#block(true);
				return this.window <= 0 ? TURN_WAITS : TURN_STARVES;
			}
			// The client accepts data, so from here on any wait is for the source.
			if (this.window > 0 && this.#session.sendWindow > 0) this.#block(false);
		}
		const piece = this.#piece ?? this.#pull();
		if (piece === undefined) return this.#ending && this.#active ? this.#end() : TURN_WAITS;
		const left = piece.length - this.#at;
		if (left === 0) {
			this.#pieceSent();
			return TURN_MORE;
		}
		const session = this.#session;
		const room = Math.min(left, this.window, session.sendWindow, MAX_FRAME_SIZE);
		if (room <= 0) {
			this.#block(true);
			return this.window <= 0 ? TURN_WAITS : TURN_STARVES;
		}
		if (this.#remaining >= 0) {
			if (left > this.#remaining) {
				this.#break();
				return TURN_WAITS;
			}
			this.#remaining -= room;
		}
		this.#block(false);
		const start = this.#at;
		const end = start + room;
		const last = room === left && this.#ending && !this.#tunnel && !this.#owner.endsApart(undefined);
		const frame = session.frames.data(this.id, last, piece, start, end);
		this.#at = end;
		this.window -= room;
		session.sendWindow -= room;
		this.#sent += room;
		session.dataSent(room);
		this.#owner.sent(room);
		if (room < left) return TURN_MORE;
		this.#pieceSent();
		if (last) {
			this.#active = false;
			this.#owner.bodyEnded(undefined, true);
			return TURN_WAITS;
		}
		return this.#remaining === 0 ? this.#endEarly(frame) : TURN_MORE;
	}

	/**
	 * Reports whether the source may be pulled. While the client accepts no data, it is pulled only to find out whether it has ended,
	 * if the data sent so far may have been all.
	 */
	#mayPull(): boolean {
		if (this.#source === undefined || this.#ending) return true;
		if (this.window > 0 && this.#session.sendWindow > 0) return true;
		return this.#remaining === 0 || (this.#remaining < 0 && this.#begun);
	}

	#pieceSent(): void {
		this.#piece = undefined;
		this.#at = 0;
		if (this.#held > 0) this.#hold();
		const taken = this.#taken;
		this.#taken = undefined;
		taken?.();
	}

	/** Called when the announced length has been sent. If the source has ended, too, the last frame is made to end the stream. */
	#endEarly(frame: number): number {
		const source = this.#source!;
		const piece = this.#pull();
		if (piece !== undefined) {
			if (piece.length === 0) return TURN_MORE;
			this.#break();
			return TURN_WAITS;
		}
		if (!this.#ending || !this.#active) return TURN_WAITS;
		if (this.#owner.endsApart(source) || !this.#session.frames.endStreamAt(frame)) return this.#end();
		this.#source = undefined;
		this.#active = false;
		this.#hold();
		this.#owner.bodyEnded(source, true);
		return TURN_WAITS;
	}

	/** Returns the next chunk, or undefined if it has not arrived, at the end, or after a failure. */
	#pull(): Uint8Array | undefined {
		const source = this.#source;
		if (source === undefined || this.#ending || this.#pulling) return undefined;
		let piece: Uint8Array | null | Promise<Uint8Array | null>;
		try {
			this.#begun = true;
			piece = source.pull(this.#useful);
		} catch {
			this.#break();
			return undefined;
		}
		if (piece instanceof Promise) {
			this.#pulling = true;
			piece.then(
				bytes => this.#arrived(source, bytes),
				() => {
					this.#pulling = false;
					if (this.#source === source) this.#break();
				},
			);
			return undefined;
		}
		return this.#took(piece);
	}

	/**
	 * Number of bytes worth pulling: what the client accepts now, or as much as it has accepted before, because then it is probably
	 * reading. Otherwise, a client that opens its windows in small steps would cause tiny pulls.
	 */
	get #useful(): number {
		const { sendWindow, share } = this.#session;
		return Math.max(MIN_PULL, Math.min(share, Math.max(this.#sent, Math.min(this.window, sendWindow))));
	}

	#arrived(source: BodySource, bytes: Uint8Array | null): void {
		this.#pulling = false;
		if (this.#source !== source) return;
		this.#took(bytes);
		this.#session.wantsTurn(this);
	}

	#took(piece: Uint8Array | null): Uint8Array | undefined {
		if (piece === null) {
			this.#ending = true;
			return undefined;
		}
		this.#piece = piece;
		this.#at = 0;
		return piece;
	}

	#end(): number {
		if (this.#remaining > 0) {
			this.#break();
			return TURN_WAITS;
		}
		const source = this.#source;
		this.#source = undefined;
		this.#active = false;
		this.#hold();
		this.#owner.bodyEnded(source, false);
		return TURN_WAITS;
	}

	/** Cancels the output. The stream is reset, so that the client notices that the body is incomplete. */
	#break(): void {
		this.cancel();
		this.#owner.broken();
	}

	#block(blocked: boolean): void {
		if (this.#blocked === blocked) return;
		this.#blocked = blocked;
		if (blocked) {
			if (!this.#begun) this.rest();
			this.#hold();
		}
		this.#owner.blocked(blocked);
	}

	/** Makes the source release the memory that it keeps for the next pull, if the client is not accepting data. */
	rest(): void {
		// While a chunk has not been sent completely, it is still in the source's memory.
		if (this.#blocked && this.#piece === undefined && !this.#pulling) this.#source?.onIdle?.();
	}

	/** Reports the number of buffered bytes to the session. */
	#hold(): void {
		const left = this.#piece === undefined ? 0 : this.#piece.length - this.#at;
		const bytes = left + (this.#source?.heldBytes ?? 0);
		if (bytes === this.#held) return;
		this.#session.holds(bytes - this.#held);
		this.#held = bytes;
	}
}
