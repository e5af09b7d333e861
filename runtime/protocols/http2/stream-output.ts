/** Sends the body of one stream as the flow-control windows allow, one frame per turn (RFC 9113 §5.2). */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import { bodyFailureText, WRONG_LENGTH } from '../../../compiler/exchange/broken-response.ts';
import { MAX_WINDOW } from './frame-codes.ts';
import { MAX_FRAME_PAYLOAD } from './limits.ts';

/** Writes DATA frames. Implemented by HTTP/2 and HTTP/3. */
export interface DataWriter {
	/** True if no more frames should be written for the moment. */
	readonly full: boolean;
	/** Writes a frame with `bytes[start, end)`. With `isLast`, the frame ends the stream. Returns an argument for `endStreamAt`. */
	writeData(streamId: number, isLast: boolean, bytes: Uint8Array, start: number, end: number): number;
	/** Makes a frame that was written without `isLast` end its stream. Returns false if the frame has already been sent. */
	endStreamAt(frameIndex: number): boolean;
}

/** What the output of a stream needs from the connection. */
export interface OutputSession {
	readonly frames: DataWriter;
	/** Number of bytes of DATA that the client accepts on all streams together (the connection's send window). */
	sendWindow: number;
	/** Maximum bytes of a body that one stream may buffer. In HTTP/2, this is the stream's share of the connection's limit. */
	readonly maxBufferedBytes: number;
	/** Queues an output, so that its `takeTurn` is called during the current task or soon after it. */
	wantsTurn(output: StreamOutput): void;
	/** Accounts for bytes that are buffered (positive) or no longer buffered (negative). */
	accountBuffered(byteCount: number): void;
	/** Called when a DATA frame of this many bytes has been written. */
	dataSent(byteCount: number): void;
}

/** What the output of a stream needs from the stream itself. */
export interface OutputOwner {
	/** Called when bytes of the body have been written. */
	bodyBytesSent(byteCount: number): void;
	/** Called when the body has been sent. `isStreamEnded` is true if the stream has ended; otherwise, trailers follow. */
	bodyEnded(source: BodySource | undefined, isStreamEnded: boolean): void;
	/** Called when the body cannot be sent completely, with the reason. The stream must then be reset. */
	bodyBroken(failure: string): void;
	/** Called with true when the client has stopped accepting data, and with false when it accepts data again. */
	sendingBlocked(isBlocked: boolean): void;
	/** Reports whether the stream must be ended separately from the body's last frame, for example because trailers follow. */
	endsSeparately(source: BodySource | undefined): boolean;
}

/** Minimum bytes requested from a source, even if the client accepts fewer. Smaller pulls would cost more than they save. */
const MIN_PULL_BYTES = 1024;

/** Result of a turn: the output can continue at once. */
export const TURN_MORE = 0;
/** Result of a turn: the output waits for its source or for its stream's window, or has ended. */
export const TURN_WAITS = 1;
/** Result of a turn: the output waits for the connection's window. */
export const TURN_STARVES = 2;

/** Sends the body of one stream. */
export class StreamOutput {
	readonly id: number;
	/**
	 * Number of bytes of DATA that the client accepts on this stream. It is negative if the client has reduced the initial window
	 * below what was sent.
	 */
	sendWindow: number;
	/** True while the output is in the connection's queue. */
	isQueued = false;
	readonly #session: OutputSession;
	readonly #owner: OutputOwner;
	#bodySource: BodySource | undefined = undefined;
	/** True while there is something to send, or more may follow. */
	#isActive = false;
	/** True for a tunnel, whose output does not end with the current chunk. */
	#isTunnel = false;
	#currentPiece: Uint8Array | undefined = undefined;
	#pieceOffset = 0;
	/** Number of bytes of the announced length that have not been sent; −1 if no length was announced. */
	#remainingBytes = -1;
	#isPulling = false;
	#isBlocked = false;
	#onWritten: ((error?: Error) => void) | undefined = undefined;
	/** True if the current chunk is the last one. */
	#isSourceEnded = false;
	/** Number of buffered bytes, as last reported to the session. */
	#bufferedBytes = 0;
	/** True once the source has been pulled. */
	#hasPulled = false;
	/** Number of bytes that the client has accepted. */
	#sentBytes = 0;

	constructor(id: number, sendWindow: number, session: OutputSession, owner: OutputOwner) {
		this.id = id;
		this.sendWindow = sendWindow;
		this.#session = session;
		this.#owner = owner;
	}

	/** True while there is something to send, or more may follow. */
	get active(): boolean {
		return this.#isActive;
	}

	/** Number of bytes of a body that could be sent now. */
	get roomBytes(): number {
		return Math.min(this.sendWindow, this.#session.sendWindow, this.#session.maxBufferedBytes);
	}

	/** Sends a complete body, which must not change until it has been sent. */
	sendComplete(bytes: Uint8Array): void {
		this.#isActive = true;
		this.#currentPiece = bytes;
		this.#isSourceEnded = true;
		// The first frame is sent together with the head, before other streams get a turn. Most bodies fit in this frame.
		if (this.#session.frames.full || this.takeTurn() !== TURN_WAITS) this.#session.wantsTurn(this);
		if (this.#isActive) this.#reportBuffered();
	}

	/** Sends a streamed body. `length` is its announced length. */
	sendSource(source: BodySource, length: number | undefined): void {
		this.#isActive = true;
		this.#bodySource = source;
		this.#remainingBytes = length ?? -1;
		if (source.heldBytes !== undefined) this.#reportBuffered();
		this.#session.wantsTurn(this);
	}

	/** Turns the stream into a tunnel: from now on, `write` and `end` determine what is sent. */
	openTunnel(): void {
		this.#isActive = true;
		this.#isTunnel = true;
	}

	/** Writes to a tunnel. Only one write may be in progress at a time. */
	write(piece: Uint8Array, onWritten: (error?: Error) => void): void {
		if (!this.#isActive) {
			onWritten(new Error('The stream has ended.'));
			return;
		}
		this.#currentPiece = piece;
		this.#pieceOffset = 0;
		this.#onWritten = onWritten;
		this.#session.wantsTurn(this);
	}

	/** Ends the output of a tunnel. */
	end(): void {
		this.#isSourceEnded = true;
		this.#session.wantsTurn(this);
	}

	/** Enlarges the window. Returns false if it becomes too large (RFC 9113 §6.9.1). */
	widenWindow(byteCount: number): boolean {
		this.sendWindow += byteCount;
		if (this.sendWindow > MAX_WINDOW) return false;
		if (this.#isActive && this.sendWindow > 0 && (this.#currentPiece !== undefined || this.#isBlocked))
			this.#session.wantsTurn(this);
		return true;
	}

	/** Cancels whatever has not been sent. */
	cancel(): void {
		this.#isActive = false;
		this.#currentPiece = undefined;
		const source = this.#bodySource;
		this.#bodySource = undefined;
		this.#reportBuffered();
		source?.cancel();
		const onWritten = this.#onWritten;
		this.#onWritten = undefined;
		onWritten?.(new Error('The stream has ended.'));
	}

	/** Sends at most one frame. Returns `TURN_MORE`, `TURN_WAITS` or `TURN_STARVES`. */
	takeTurn(): number {
		if (!this.#isActive) return TURN_WAITS;
		if (this.#currentPiece === undefined) {
			if (!this.#mayPull()) {
				this.#setBlocked(true);
				return this.sendWindow <= 0 ? TURN_WAITS : TURN_STARVES;
			}
			// The client accepts data, so from here on any wait is for the source.
			if (this.sendWindow > 0 && this.#session.sendWindow > 0) this.#setBlocked(false);
		}
		const piece = this.#currentPiece ?? this.#pull();
		if (piece === undefined) return this.#isSourceEnded && this.#isActive ? this.#endBody() : TURN_WAITS;
		const pieceBytesLeft = piece.length - this.#pieceOffset;
		if (pieceBytesLeft === 0) {
			this.#pieceSent();
			return TURN_MORE;
		}
		const session = this.#session;
		const frameBytes = Math.min(pieceBytesLeft, this.sendWindow, session.sendWindow, MAX_FRAME_PAYLOAD);
		if (frameBytes <= 0) {
			this.#setBlocked(true);
			return this.sendWindow <= 0 ? TURN_WAITS : TURN_STARVES;
		}
		if (this.#remainingBytes >= 0) {
			if (pieceBytesLeft > this.#remainingBytes) {
				this.#failBody(WRONG_LENGTH);
				return TURN_WAITS;
			}
			this.#remainingBytes -= frameBytes;
		}
		this.#setBlocked(false);
		const start = this.#pieceOffset;
		const end = start + frameBytes;
		const isLast =
			frameBytes === pieceBytesLeft && this.#isSourceEnded && !this.#isTunnel && !this.#owner.endsSeparately(undefined);
		const frameIndex = session.frames.writeData(this.id, isLast, piece, start, end);
		this.#pieceOffset = end;
		this.sendWindow -= frameBytes;
		session.sendWindow -= frameBytes;
		this.#sentBytes += frameBytes;
		session.dataSent(frameBytes);
		this.#owner.bodyBytesSent(frameBytes);
		if (frameBytes < pieceBytesLeft) return TURN_MORE;
		this.#pieceSent();
		if (isLast) {
			this.#isActive = false;
			this.#owner.bodyEnded(undefined, true);
			return TURN_WAITS;
		}
		return this.#remainingBytes === 0 ? this.#endWithFrame(frameIndex) : TURN_MORE;
	}

	/**
	 * Reports whether the source may be pulled. While the client accepts no data, the source is pulled only if the data sent so far
	 * may be the whole body, to find out whether the source has ended.
	 */
	#mayPull(): boolean {
		if (this.#bodySource === undefined || this.#isSourceEnded) return true;
		if (this.sendWindow > 0 && this.#session.sendWindow > 0) return true;
		return this.#remainingBytes === 0 || (this.#remainingBytes < 0 && this.#hasPulled);
	}

	#pieceSent(): void {
		this.#currentPiece = undefined;
		this.#pieceOffset = 0;
		if (this.#bufferedBytes > 0) this.#reportBuffered();
		const onWritten = this.#onWritten;
		this.#onWritten = undefined;
		onWritten?.();
	}

	/** Called when the announced length has been sent. If the source has ended as well, makes the last frame end the stream. */
	#endWithFrame(frameIndex: number): number {
		const source = this.#bodySource!;
		const piece = this.#pull();
		if (piece !== undefined) {
			if (piece.length === 0) return TURN_MORE;
			this.#failBody(WRONG_LENGTH);
			return TURN_WAITS;
		}
		if (!this.#isSourceEnded || !this.#isActive) return TURN_WAITS;
		if (this.#owner.endsSeparately(source) || !this.#session.frames.endStreamAt(frameIndex)) return this.#endBody();
		this.#bodySource = undefined;
		this.#isActive = false;
		this.#reportBuffered();
		this.#owner.bodyEnded(source, true);
		return TURN_WAITS;
	}

	/** Returns the next chunk; undefined if it has not arrived yet, the source has ended, or it has failed. */
	#pull(): Uint8Array | undefined {
		const source = this.#bodySource;
		if (source === undefined || this.#isSourceEnded || this.#isPulling) return undefined;
		let piece: Uint8Array | null | Promise<Uint8Array | null>;
		try {
			this.#hasPulled = true;
			piece = source.pull(this.#pullBytes);
		} catch (error) {
			this.#failBody(bodyFailureText(error));
			return undefined;
		}
		if (piece instanceof Promise) {
			this.#isPulling = true;
			piece.then(
				bytes => this.#pieceArrived(source, bytes),
				error => {
					this.#isPulling = false;
					if (this.#bodySource === source) this.#failBody(bodyFailureText(error));
				},
			);
			return undefined;
		}
		return this.#setPiece(piece);
	}

	/**
	 * Number of bytes worth pulling: as many as the client accepts now, or as many as it has accepted before, because a client that
	 * has accepted data is probably still reading, and may open its windows in such small steps that every pull would be tiny.
	 */
	get #pullBytes(): number {
		const { sendWindow, maxBufferedBytes } = this.#session;
		return Math.max(
			MIN_PULL_BYTES,
			Math.min(maxBufferedBytes, Math.max(this.#sentBytes, Math.min(this.sendWindow, sendWindow))),
		);
	}

	#pieceArrived(source: BodySource, bytes: Uint8Array | null): void {
		this.#isPulling = false;
		if (this.#bodySource !== source) return;
		this.#setPiece(bytes);
		this.#session.wantsTurn(this);
	}

	#setPiece(piece: Uint8Array | null): Uint8Array | undefined {
		if (piece === null) {
			this.#isSourceEnded = true;
			return undefined;
		}
		this.#currentPiece = piece;
		this.#pieceOffset = 0;
		return piece;
	}

	#endBody(): number {
		if (this.#remainingBytes > 0) {
			this.#failBody(WRONG_LENGTH);
			return TURN_WAITS;
		}
		const source = this.#bodySource;
		this.#bodySource = undefined;
		this.#isActive = false;
		this.#reportBuffered();
		this.#owner.bodyEnded(source, false);
		return TURN_WAITS;
	}

	/** Cancels the output. The stream is reset, so that the client notices that the body is incomplete. */
	#failBody(failure: string): void {
		this.cancel();
		this.#owner.bodyBroken(failure);
	}

	#setBlocked(isBlocked: boolean): void {
		if (this.#isBlocked === isBlocked) return;
		this.#isBlocked = isBlocked;
		if (isBlocked) {
			if (!this.#hasPulled) this.releaseIdleMemory();
			this.#reportBuffered();
		}
		this.#owner.sendingBlocked(isBlocked);
	}

	/** If the client is not accepting data, makes the source release the memory that it keeps for the next pull. */
	releaseIdleMemory(): void {
		// While a chunk has not been sent completely, it is still in the source's memory.
		if (this.#isBlocked && this.#currentPiece === undefined && !this.#isPulling) this.#bodySource?.onIdle?.();
	}

	/** Reports the number of buffered bytes to the session. */
	#reportBuffered(): void {
		const unsentBytes = this.#currentPiece === undefined ? 0 : this.#currentPiece.length - this.#pieceOffset;
		const bufferedBytes = unsentBytes + (this.#bodySource?.heldBytes ?? 0);
		if (bufferedBytes === this.#bufferedBytes) return;
		this.#session.accountBuffered(bufferedBytes - this.#bufferedBytes);
		this.#bufferedBytes = bufferedBytes;
	}
}
