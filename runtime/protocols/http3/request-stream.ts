/** Handles the frames of a request stream: head, body and trailers, in this order (RFC 9114 §4.1). */
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { QuicStream, QuicStreamOwner } from '../../sockets/quic/quic-connection.ts';
import { type CutReason, FRAME_COST } from '../http2/flood-guard.ts';
import { type RequestFields, SECTION_MALFORMED, SECTION_VALID } from '../http2/request-fields.ts';
import { Http2Stream, type StreamSession } from '../http2/stream.ts';
import { FrameReader, type FrameSink } from './frame-reader.ts';
import { FORBIDDEN_FRAMES, FRAME_TYPE, H3_ERROR } from './http3-codes.ts';
import { MAX_HELD_BODY_BYTES, MAX_SECTION_FACTOR } from './limits.ts';
import type { QpackDecoder } from './qpack-decoder.ts';

/** What the request streams need from their connection. */
export interface RequestConnection extends StreamSession {
	readonly requestFields: RequestFields;
	readonly qpackDecoder: QpackDecoder;
	/** Postpones sending until all input has been processed. Must be called before input is processed. May be called again. */
	beginInput(): void;
	/** Starts the exchange of a request now, or when the buffers have room for its response. */
	startExchange(stream: Http2Stream, fields: RequestFields): void;
	/** Called when a request's head has been read. Returns false if the request is rejected. */
	acceptRequest(request: RequestStream): boolean;
	fail(code: number): void;
	/** Handles a stream error caused by the client. */
	failStream(request: RequestStream, code: number): void;
	countRefusal(reason: string): void;
	charge(reason: CutReason, cost: number): void;
	/** Called when the client has canceled a request. */
	onRequestCanceled(request: RequestStream): void;
}

/** States of a request stream: the part of the request that is being received. */
const RECEIVING_HEAD = 0;
const RECEIVING_BODY = 1;
const AFTER_TRAILERS = 2;

/** A request stream. The object is in use until the stream is closed. */
export class RequestStream implements QuicStreamOwner, FrameSink {
	readonly quicStream: QuicStream;
	/** The object that runs the exchange of this stream. Set once the head has been received. */
	stream: Http2Stream | undefined = undefined;
	/** The response head as a frame, while it waits to be sent with the first bytes of the body. */
	responseHead: Buffer | undefined = undefined;
	/** Deadline for receiving the head, by `performance.now()`. */
	headDeadline: number;
	/** Number of bytes of the request body that its reader has not consumed. */
	heldBytes = 0;
	isGone = false;
	readonly #connection: RequestConnection;
	readonly #frameReader = new FrameReader(this);
	#state = RECEIVING_HEAD;
	/** True for a CONNECT, after whose head only DATA and unknown frames are allowed (RFC 9114 §4.4). */
	#isConnect = false;
	/** True if the stream ends with the bytes that are currently being read. */
	#endsWithRead = false;
	#hasEnded = false;
	#trailerFields: HeaderList | undefined = undefined;

	constructor(connection: RequestConnection, quicStream: QuicStream) {
		this.#connection = connection;
		this.quicStream = quicStream;
		const { engine } = connection;
		this.headDeadline = engine.deadlineIn(engine.limits.headTimeout);
	}

	onData(bytes: Buffer, isEnd: boolean): boolean {
		this.#connection.beginInput();
		this.#endsWithRead = isEnd;
		const canContinue = this.#frameReader.read(bytes);
		// Content that has arrived in several frames is delivered as one chunk.
		this.stream?.body?.deliver();
		if (!canContinue || this.isGone) return false;
		if (isEnd && !this.#hasEnded) this.#onStreamEnded();
		return this.isGone || this.heldBytes <= MAX_HELD_BODY_BYTES;
	}

	onReset(): void {
		this.#connection.beginInput();
		if (!this.isGone) this.#connection.onRequestCanceled(this);
	}

	onStopped(): void {
		this.#connection.beginInput();
		if (!this.isGone) this.#connection.onRequestCanceled(this);
	}

	onDrained(): void {
		const { stream } = this;
		if (this.isGone || stream === undefined || !stream.output.active) return;
		this.#connection.beginInput();
		this.#connection.wantsTurn(stream.output);
	}

	onFrame(type: number, length: number): 'stream' | 'gather' | 'skip' | 'stop' {
		const { limits } = this.#connection.engine;
		switch (type) {
			case FRAME_TYPE.data:
				if (this.#state !== RECEIVING_BODY) return this.#fail(H3_ERROR.frameUnexpected);
				if (length === 0) this.#connection.charge('empty_frames', FRAME_COST.empty_frames);
				return this.isGone ? 'stop' : 'stream';
			case FRAME_TYPE.headers:
				if (this.#state === AFTER_TRAILERS || this.#isConnect) return this.#fail(H3_ERROR.frameUnexpected);
				if (length <= limits.maxHeadSize * MAX_SECTION_FACTOR) return 'gather';
				return this.#refuseTooLarge();
			case FRAME_TYPE.cancelPush:
			case FRAME_TYPE.settings:
			case FRAME_TYPE.pushPromise:
			case FRAME_TYPE.goAway:
			case FRAME_TYPE.maxPushId:
			case FRAME_TYPE.priorityUpdateRequest:
			case FRAME_TYPE.priorityUpdatePush:
				return this.#fail(H3_ERROR.frameUnexpected);
		}
		if (FORBIDDEN_FRAMES.has(type)) return this.#fail(H3_ERROR.frameUnexpected);
		// Extension frames are ignored (RFC 9114 §9), but their number is limited.
		this.#connection.charge('empty_frames', FRAME_COST.empty_frames);
		return this.isGone ? 'stop' : 'skip';
	}

	onPayloadPart(bytes: Buffer, start: number, end: number): boolean {
		const stream = this.stream!;
		const body = stream.body;
		// A rejected request has no reader, and a plain CONNECT has no body.
		if (body === undefined) return true;
		if (body.length !== undefined && body.receivedBytes + end - start > body.length) {
			this.#connection.failStream(this, H3_ERROR.message);
			return false;
		}
		this.heldBytes += end - start;
		stream.handleData(bytes, start, end);
		return !this.isGone;
	}

	onWholePayload(_type: number, bytes: Buffer, start: number, end: number, isLast: boolean): boolean {
		const connection = this.#connection;
		const { requestFields: fields } = connection;
		const isTrailers = this.#state === RECEIVING_BODY;
		fields.beginSection(isTrailers);
		if (!connection.qpackDecoder.decode(bytes, start, end, fields)) {
			this.#fail(H3_ERROR.decompression);
			return false;
		}
		if (isTrailers) return this.#endTrailers(fields);
		this.#state = RECEIVING_BODY;
		this.#startRequest(fields, this.#endsWithRead && isLast);
		return !this.isGone;
	}

	#startRequest(fields: RequestFields, endsStream: boolean): void {
		const connection = this.#connection;
		this.headDeadline = Infinity;
		const result = fields.endHead(endsStream);
		if (result === SECTION_MALFORMED) {
			connection.countRefusal(fields.reason);
			connection.failStream(this, H3_ERROR.message);
			return;
		}
		this.#isConnect = fields.method === 'CONNECT';
		this.stream = new Http2Stream(connection, this.quicStream.id, this.quicStream.roomBytes, !endsStream);
		if (!connection.acceptRequest(this)) return;
		if (endsStream) this.#hasEnded = true;
		if (result === SECTION_VALID) connection.startExchange(this.stream, fields);
		else {
			connection.countRefusal(fields.reason);
			this.stream.refuse(result);
		}
	}

	#endTrailers(fields: RequestFields): boolean {
		this.#state = AFTER_TRAILERS;
		if (fields.endTrailers() !== SECTION_VALID) {
			this.#connection.countRefusal(fields.reason);
			this.#connection.failStream(this, H3_ERROR.message);
			return false;
		}
		this.#trailerFields = new HeaderList(fields.items);
		return true;
	}

	/** Called when the client has ended its side. */
	#onStreamEnded(): void {
		this.#hasEnded = true;
		const { stream } = this;
		if (this.#frameReader.isIncomplete) {
			this.#fail(H3_ERROR.frame);
			return;
		}
		if (stream === undefined) {
			this.#connection.failStream(this, H3_ERROR.incomplete);
			return;
		}
		if (!stream.endRemote(this.#trailerFields)) this.#connection.failStream(this, H3_ERROR.message);
	}

	#refuseTooLarge(): 'skip' | 'stop' {
		const connection = this.#connection;
		connection.countRefusal('head_too_large');
		if (this.#state === RECEIVING_BODY) {
			connection.failStream(this, H3_ERROR.message);
			return 'stop';
		}
		this.headDeadline = Infinity;
		this.#state = RECEIVING_BODY;
		this.stream = new Http2Stream(connection, this.quicStream.id, this.quicStream.roomBytes, true);
		if (!connection.acceptRequest(this)) return 'stop';
		this.stream.refuse(431);
		return this.isGone ? 'stop' : 'skip';
	}

	#fail(code: number): 'stop' {
		this.isGone = true;
		this.#connection.fail(code);
		return 'stop';
	}
}
