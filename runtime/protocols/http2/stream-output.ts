/** Sends the body of one stream, as its windows allow, one frame per turn (RFC 9113 §5.2). */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import { MAX_WINDOW } from './frame-codes.ts';
import { MAX_FRAME_SIZE } from './limits.ts';

/** Writes DATA frames. */
export interface DataWriter {
	/** Nothing more is taken for now. */
	readonly full: boolean;
	/** Writes a frame with `bytes[start, end)`; with `last` it ends the stream. Returns what tells it to `endStreamAt`. */
	data(stream: number, last: boolean, bytes: Uint8Array, start: number, end: number): number;
	/** Lets the frame end its stream after all; false if it has gone already. */
	endStreamAt(frame: number): boolean;
}

/** The connection, for the output of its streams. */
export interface OutputSession {
	readonly frames: DataWriter;
	/** Bytes of DATA that the client accepts on all streams together. */
	sendWindow: number;
	/** Bytes of bodies that each stream may buffer, because all of them share the connection's limit. */
	readonly share: number;
	/** Gives the output a turn, now or soon. */
	wantsTurn(output: StreamOutput): void;
	/** Accounts for bytes added to or removed from memory. */
	holds(bytes: number): void;
	/** A DATA frame of this size was written. */
	dataSent(bytes: number): void;
}

/** The stream, for its output. */
export interface OutputOwner {
	/** Bytes of the body were written. */
	sent(bytes: number): void;
	/** The body has been sent; `ended` says whether that ended the stream, or trailers follow. */
	bodyEnded(source: BodySource | undefined, ended: boolean): void;
	/** The body cannot be sent completely: the stream must be reset. */
	broken(): void;
	/** The client has stopped accepting data; called again with false when it resumes. */
	blocked(blocked: boolean): void;
	/** Reports whether trailers follow the body, which has been read. */
	endsApart(source: BodySource | undefined): boolean;
}

/** Minimum bytes requested from a source, even if the client accepts fewer: less would cost more than it saves. */
const MIN_PULL = 1024;

/** The output can continue at once. */
export const MORE = 0;
/** It waits for its source or its own window, or has ended. */
export const WAITS = 1;
/** It waits for the connection's window. */
export const STARVES = 2;

/** What one stream has to send. */
export class StreamOutput {
	readonly id: number;
	/** Bytes of DATA that the client accepts on this stream; negative after it has reduced its windows. */
	window: number;
	/** It is in the connection's queue. */
	queued = false;
	readonly #session: OutputSession;
	readonly #owner: OutputOwner;
	#source: BodySource | undefined = undefined;
	/** A complete body has no source; a tunnel continues after its pieces. */
	#active = false;
	#tunnel = false;
	#piece: Uint8Array | undefined = undefined;
	#at = 0;
	/** Remaining bytes of the announced length; −1 if there is none. */
	#remaining = -1;
	#pulling = false;
	#blocked = false;
	#taken: ((error?: Error) => void) | undefined = undefined;
	#ending = false;
	/** Bytes reported to the session. */
	#held = 0;
	/** Some of the body has been pulled; then, the bytes that the client has accepted. */
	#begun = false;
	#sent = 0;

	constructor(id: number, window: number, session: OutputSession, owner: OutputOwner) {
		this.id = id;
		this.window = window;
		this.#session = session;
		this.#owner = owner;
	}

	/** True if something is to be sent, or may be. */
	get active(): boolean {
		return this.#active;
	}

	/** Bytes of a body that the client accepts now. */
	get room(): number {
		return Math.min(this.window, this.#session.sendWindow, this.#session.share);
	}

	/** Sends a complete body, which must not change until it has been sent. */
	sendWhole(bytes: Uint8Array): void {
		this.#active = true;
		this.#piece = bytes;
		this.#ending = true;
		// Most bodies fit in one frame, which is sent with the head, before others get their turn.
		if (this.#session.frames.full || this.turn() !== WAITS) this.#session.wantsTurn(this);
		if (this.#active) this.#hold();
	}

	/** Sends a source; `length` is its announced length. */
	sendSource(source: BodySource, length: number | undefined): void {
		this.#active = true;
		this.#source = source;
		this.#remaining = length ?? -1;
		if (source.held !== undefined) this.#hold();
		this.#session.wantsTurn(this);
	}

	/** From now on, `write` and `end` control what is sent. */
	openTunnel(): void {
		this.#active = true;
		this.#tunnel = true;
	}

	/** For a tunnel: one write at a time. */
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

	/** For a tunnel: nothing more is written. */
	end(): void {
		this.#ending = true;
		this.#session.wantsTurn(this);
	}

	/** The client accepts more; returns false if the window becomes too large (RFC 9113 §6.9.1). */
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

	/** Sends up to one frame; returns MORE, WAITS or STARVES. */
	turn(): number {
		if (!this.#active) return WAITS;
		if (this.#piece === undefined) {
			if (!this.#mayPull()) {
				this.#block(true);
				return this.window <= 0 ? WAITS : STARVES;
			}
			// From here on, any wait is for the source.
			if (this.window > 0 && this.#session.sendWindow > 0) this.#block(false);
		}
		const piece = this.#piece ?? this.#pull();
		if (piece === undefined) return this.#ending && this.#active ? this.#end() : WAITS;
		const left = piece.length - this.#at;
		if (left === 0) {
			this.#pieceSent();
			return MORE;
		}
		const session = this.#session;
		const room = Math.min(left, this.window, session.sendWindow, MAX_FRAME_SIZE);
		if (room <= 0) {
			this.#block(true);
			return this.window <= 0 ? WAITS : STARVES;
		}
		if (this.#remaining >= 0) {
			if (left > this.#remaining) {
				this.#break();
				return WAITS;
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
		if (room < left) return MORE;
		this.#pieceSent();
		if (last) {
			this.#active = false;
			this.#owner.bodyEnded(undefined, true);
			return WAITS;
		}
		return this.#remaining === 0 ? this.#endEarly(frame) : MORE;
	}

	/**
	 * A source is not pulled before the client accepts data, except to find out whether it has ended, if what has been sent may have
	 * been everything.
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

	/** The announced length has been sent: if possible, the end of the source is marked in the last frame. */
	#endEarly(frame: number): number {
		const source = this.#source!;
		const piece = this.#pull();
		if (piece !== undefined) {
			if (piece.length === 0) return MORE;
			this.#break();
			return WAITS;
		}
		if (!this.#ending || !this.#active) return WAITS;
		if (this.#owner.endsApart(source) || !this.#session.frames.endStreamAt(frame)) return this.#end();
		this.#source = undefined;
		this.#active = false;
		this.#hold();
		this.#owner.bodyEnded(source, true);
		return WAITS;
	}

	/** Returns the next piece; undefined if it has not arrived, at the end, and after a failure. */
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
	 * Bytes worth pulling: what the client accepts now, or as much as it accepted before, because then it is reading. Otherwise,
	 * small, frequently raised windows would cause tiny pulls.
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
			return WAITS;
		}
		const source = this.#source;
		this.#source = undefined;
		this.#active = false;
		this.#hold();
		this.#owner.bodyEnded(source, false);
		return WAITS;
	}

	/** Makes the client see that the body is incomplete. */
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

	/** Makes the source release memory that it keeps for the next pull, if the client has not accepted anything for a while. */
	rest(): void {
		// The rest of a piece is in the source's memory.
		if (this.#blocked && this.#piece === undefined && !this.#pulling) this.#source?.idle?.();
	}

	/** Reports buffered bytes to the session. */
	#hold(): void {
		const left = this.#piece === undefined ? 0 : this.#piece.length - this.#at;
		const bytes = left + (this.#source?.held ?? 0);
		if (bytes === this.#held) return;
		this.#session.holds(bytes - this.#held);
		this.#held = bytes;
	}
}
