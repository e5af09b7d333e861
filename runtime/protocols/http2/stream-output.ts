/** Sends the body of one stream: what its windows allow, a frame a turn (RFC 9113 §5.2). */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import { MAX_WINDOW } from './frame-codes.ts';
import type { FrameWriter } from './frame-writer.ts';
import { MAX_FRAME_SIZE } from './limits.ts';

/** The connection as its streams send through it. */
export interface OutputSession {
	readonly frames: FrameWriter;
	/** Bytes of DATA that the client takes on all streams together. */
	sendWindow: number;
	/** Bytes of bodies that each stream may keep from those who make them, because all of them share what one client may. */
	readonly share: number;
	/** Gives the output a turn, now or soon. */
	wantsTurn(output: StreamOutput): void;
	/** So many bytes more, or fewer, wait for the client to take them. */
	holds(bytes: number): void;
	/** A DATA frame of so many bytes was written. */
	dataSent(bytes: number): void;
}

/** The stream as its output sees it. */
export interface OutputOwner {
	/** Bytes of body were written. */
	sent(bytes: number): void;
	/** The body is out; whether that ended the stream, or trailers are to follow. */
	bodyEnded(source: BodySource | undefined, ended: boolean): void;
	/** The body cannot be sent whole: the stream must be reset. */
	broken(): void;
	/** The client takes nothing for now; called again with false when it does. */
	blocked(blocked: boolean): void;
	/** Whether the stream ends in a frame of its own, after a body that has been read: with trailers, or later. */
	endsApart(source: BodySource | undefined): boolean;
}

/** Bytes that are asked of a source when the client takes fewer: less would cost more than it saves. */
const LEAST_PULL = 1024;

/** The output would go on at once. */
export const MORE = 0;
/** It waits for its source, its own window, or has ended. */
export const WAITS = 1;
/** It waits for the window of the connection. */
export const STARVES = 2;

/** What one stream has to send. */
export class StreamOutput {
	readonly id: number;
	/** Bytes of DATA that the client takes on this stream; below 0 after it has made windows smaller. */
	window: number;
	/** Stands in the connection's queue. */
	queued = false;
	readonly #session: OutputSession;
	readonly #owner: OutputOwner;
	#source: BodySource | undefined = undefined;
	/** A body that was whole has no source; a tunnel goes on after its pieces. */
	#active = false;
	#tunnel = false;
	#piece: Uint8Array | undefined = undefined;
	#at = 0;
	/** Bytes that the declared length still asks for; −1 when there is none. */
	#remaining = -1;
	#pulling = false;
	#blocked = false;
	#taken: ((error?: Error) => void) | undefined = undefined;
	#ending = false;
	/** Bytes that the session has been told of. */
	#held = 0;
	/** Something of the body has been pulled; and bytes that the client has taken. */
	#begun = false;
	#sent = 0;

	constructor(id: number, window: number, session: OutputSession, owner: OutputOwner) {
		this.id = id;
		this.window = window;
		this.#session = session;
		this.#owner = owner;
	}

	/** Something is to be sent, or may be. */
	get active(): boolean {
		return this.#active;
	}

	/** Bytes of a body that the client takes now. */
	get room(): number {
		return Math.min(this.window, this.#session.sendWindow, this.#session.share);
	}

	/** Sends a body that is whole. It must not change until it has been sent. */
	sendWhole(bytes: Uint8Array): void {
		this.#active = true;
		this.#piece = bytes;
		this.#ending = true;
		// Most bodies are one frame: it goes out with its head, before others get their turn.
		if (this.#session.frames.full || this.turn() !== WAITS) this.#session.wantsTurn(this);
		if (this.#active) this.#hold();
	}

	/** Sends what a source gives; `length` is what it was said to give. */
	sendSource(source: BodySource, length: number | undefined): void {
		this.#active = true;
		this.#source = source;
		this.#remaining = length ?? -1;
		if (source.held !== undefined) this.#hold();
		this.#session.wantsTurn(this);
	}

	/** From now on `write` and `end` say what is sent. */
	openTunnel(): void {
		this.#active = true;
		this.#tunnel = true;
	}

	/** Of a tunnel: one write at a time. */
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

	/** Of a tunnel: nothing more is written. */
	end(): void {
		this.#ending = true;
		this.#session.wantsTurn(this);
	}

	/** The client takes more; false when that is more than a window can be (RFC 9113 §6.9.1). */
	widen(bytes: number): boolean {
		this.window += bytes;
		if (this.window > MAX_WINDOW) return false;
		if (this.#active && this.window > 0 && (this.#piece !== undefined || this.#blocked)) this.#session.wantsTurn(this);
		return true;
	}

	/** Gives up whatever has not been sent. */
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

	/** Sends up to a frame: MORE, WAITS or STARVES. */
	turn(): number {
		if (!this.#active) return WAITS;
		if (this.#piece === undefined) {
			if (!this.#mayPull()) {
				this.#block(true);
				return this.window <= 0 ? WAITS : STARVES;
			}
			// From here on it is the source that may have to be waited for.
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
	 * Nothing is asked of a source before the client takes something. Only whether it has ended is found out without: where
	 * what has been sent may have been all.
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

	/** The declared length is out: the end that the source tells goes with the frame that was written last, where it may. */
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

	/** The next piece; undefined while it is not here, when there is none, and after a failure. */
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
	 * Bytes that are worth pulling: what the client takes now, or as much as it has taken before, for then it is reading. With
	 * windows that are small and often raised, sources would be asked for crumbs otherwise.
	 */
	get #useful(): number {
		const { sendWindow, share } = this.#session;
		return Math.max(LEAST_PULL, Math.min(share, Math.max(this.#sent, Math.min(this.window, sendWindow))));
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

	/** The client must see that the body is not whole. */
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

	/** Has the source let memory go that it keeps for the next pull, when the client has taken nothing for a while. */
	rest(): void {
		// What is left of a piece is the source's memory.
		if (this.#blocked && this.#piece === undefined && !this.#pulling) this.#source?.idle?.();
	}

	/** Tells the session what waits in memory. */
	#hold(): void {
		const left = this.#piece === undefined ? 0 : this.#piece.length - this.#at;
		const bytes = left + (this.#source?.held ?? 0);
		if (bytes === this.#held) return;
		this.#session.holds(bytes - this.#held);
		this.#held = bytes;
	}
}
