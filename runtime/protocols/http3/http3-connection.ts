/** One HTTP/3 connection: its control streams, its requests, and its shutdown (RFC 9114). */
import { Buffer } from 'node:buffer';
import { performance } from 'node:perf_hooks';
import type { ConnectionInfo, TlsInfo } from '../../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { QuicClose, QuicConnection, QuicConnectionOwner, QuicStream } from '../../sockets/quic/quic-connection.ts';
import { type CutReason, FloodGuard, FRAME_COST } from '../http2/flood-guard.ts';
import { OutputQueue } from '../http2/output-queue.ts';
import type { RequestFields } from '../http2/request-fields.ts';
import { RequestGate } from '../http2/request-gate.ts';
import { HANDLER_CONTENT_LENGTH } from '../http2/response-writer.ts';
import type { Http2Stream, ResetCodes } from '../http2/stream.ts';
import type { DataWriter, StreamOutput } from '../http2/stream-output.ts';
import { type ControlledConnection, ControlStream } from './control-stream.ts';
import { FRAME_TYPE, H3_ERROR, SETTING_ID, STREAM_TYPE } from './http3-codes.ts';
import type { EngineConnection, Http3Coders, Http3Engine } from './http3-engine.ts';
import * as LIMITS from './limits.ts';
import type { QpackDecoder } from './qpack-decoder.ts';
import { MAX_SECTION_START_BYTES, writeSectionLength, writeSectionStart } from './qpack-encoder.ts';
import { type RequestConnection, RequestStream } from './request-stream.ts';
import { MAX_VARINT, varintLength, writeVarint } from './varint.ts';

/** Maximum bytes of a frame's type and length. */
const MAX_FRAME_HEADER_BYTES = 16;
/** Number of bytes reserved for a `Date` field. */
const MAX_DATE_BYTES = 48;
/** Buffer for writing a DATA frame, possibly together with a head before it. */
const WRITE_BUFFER = Buffer.allocUnsafeSlow(LIMITS.MAX_DATA_PAYLOAD_BYTES + MAX_FRAME_HEADER_BYTES);

/** An HTTP/3 connection. The object is in use until QUIC reports that the connection has closed. */
export class Http3Connection
	implements ControlledConnection, DataWriter, EngineConnection, QuicConnectionOwner, RequestConnection
{
	readonly engine: Http3Engine;
	/** Replaced when the client's port changes. Requests in progress keep the port with which they began. */
	info: ConnectionInfo;
	readonly scheme = 'https';
	readonly protocol = 'HTTP/3.0';
	readonly resetCodes: ResetCodes = H3_ERROR;
	readonly frames: DataWriter = this;
	readonly full = false;
	/** No limit here, because the windows of the streams already take the connection's window into account. */
	sendWindow = Number.MAX_SAFE_INTEGER;
	/** Maximum bytes of a response body that one stream holds in addition to those that QUIC buffers: one chunk. */
	readonly maxBufferedBytes: number = LIMITS.MAX_STREAM_PULL_BYTES;
	readonly #quicConnection: QuicConnection;
	readonly #coders: Http3Coders;
	readonly #floodGuard: FloodGuard;
	readonly #outputQueue: OutputQueue;
	readonly #requestGate = new RequestGate(() => this.#exchangeCount++);
	readonly #requestsById = new Map<number, RequestStream>();
	readonly #claimedStreamTypes = new Set<number>();
	/** Number of open unidirectional streams whose type has not been read yet. */
	#unknownStreamCount = 0;
	#controlStream: QuicStream | undefined;
	/** Requests whose response heads wait to be sent in one write with the first bytes of their bodies. */
	#waitingHeads: RequestStream[] = [];
	#exchangeCount = 0;
	#requestCount = 0;
	/** Number of streams that the client has opened. */
	#streamCount = 0;
	/** The highest ID of an accepted request stream; −4 if there has been none. IDs of request streams are multiples of 4. */
	#lastRequestId = -4;
	#isProcessing = false;
	#hasEnded = false;
	#idleSince: number;
	/** Progress of the shutdown: 0 before it, 1 after the first GOAWAY, 2 after the last one. */
	#shutdownStep = 0;
	#lastGoAwayDeadline = Infinity;

	constructor(quic: QuicConnection, tls: TlsInfo, engine: Http3Engine) {
		engine.refreshLimits();
		engine.now = performance.now();
		this.engine = engine;
		this.#quicConnection = quic;
		this.#coders = engine.coders;
		this.#floodGuard = new FloodGuard(engine.now);
		this.#outputQueue = new OutputQueue(this);
		this.#idleSince = engine.now;
		const { remoteAddress, remotePort, localAddress, localPort } = quic;
		this.info = { remoteAddress, remotePort, localAddress, localPort, tls };
		quic.owner = this;
		engine.add(this);
		this.#openControlStream();
		if (engine.draining || engine.host.draining) this.drain();
	}

	get requestFields(): RequestFields {
		return this.#coders.requestFields;
	}

	get qpackDecoder(): QpackDecoder {
		return this.#coders.decoder;
	}

	get idleSince(): number {
		return this.#hasEnded || this.#requestsById.size > 0 ? Infinity : this.#idleSince;
	}

	giveWay(): void {
		this.#close(H3_ERROR.none);
	}

	destroy(): void {
		this.#quicConnection.destroy();
	}

	beginInput(): void {
		if (this.#isProcessing) return;
		this.#isProcessing = true;
		this.engine.now = performance.now();
	}

	onStreamOpened(stream: QuicStream): void {
		if (this.#hasEnded) {
			if (stream.isBidirectional) stream.reset(H3_ERROR.rejected);
			stream.release();
			return;
		}
		this.beginInput();
		if (++this.#streamCount >= LIMITS.MAX_CONNECTION_STREAMS) this.#limitStreams();
		if (this.#hasEnded) return;
		if (stream.isBidirectional) {
			const request = new RequestStream(this, stream);
			stream.owner = request;
			this.#requestsById.set(stream.id, request);
			return;
		}
		stream.owner = new ControlStream(this, stream);
		if (++this.#unknownStreamCount > LIMITS.MAX_OTHER_STREAMS) this.#cutOff(H3_ERROR.excessiveLoad, 'empty_frames');
	}

	/** Shuts the connection down in steps once the client has opened many streams, so that the client uses another connection. */
	#limitStreams(): void {
		const excessStreams = this.#streamCount - LIMITS.MAX_CONNECTION_STREAMS;
		if (excessStreams === 0) this.drain();
		else if (excessStreams === LIMITS.MAX_LATE_STREAMS) this.#sendLastGoAway();
		else if (excessStreams === 2 * LIMITS.MAX_LATE_STREAMS) this.#cutOff(H3_ERROR.excessiveLoad, 'made_you_reset');
	}

	onPortChanged(remotePort: number): void {
		this.info = { ...this.info, remotePort };
	}

	onEventsDelivered(): void {
		this.#sendQueued();
	}

	onClosed(_close: QuicClose): void {
		this.#hasEnded = true;
		this.#isProcessing = false;
		this.#abandon();
		this.engine.remove(this);
	}

	/** Sends pending data. Ends the connection if it is shutting down and has no requests left. */
	sendPending(): void {
		if (this.#isProcessing || this.#hasEnded) return;
		this.#isProcessing = true;
		this.#sendQueued();
		if (!this.#hasEnded) this.#quicConnection.flush();
	}

	checkDeadlines(now: number): void {
		if (this.#hasEnded) return;
		if (now >= this.#lastGoAwayDeadline) this.#sendLastGoAway();
		const { idleTimeout } = this.engine.limits;
		if (this.#requestsById.size === 0 && idleTimeout > 0 && now - this.#idleSince >= idleTimeout) {
			this.#endGracefully();
			return;
		}
		// An idle connection has nothing to check or to send. If there are many, querying QUIC for each one would be slow.
		if (this.#requestsById.size === 0 && this.#shutdownStep === 0) return;
		this.#isProcessing = true;
		for (const request of this.#requestsById.values()) {
			if (now >= request.headDeadline) {
				this.engine.host.countRefusal('header_timeout');
				this.failStream(request, H3_ERROR.cancel);
			} else request.stream?.checkDeadlines(now);
			if (this.#hasEnded) return;
		}
		this.#isProcessing = false;
		this.sendPending();
	}

	drain(): void {
		if (this.#shutdownStep > 0 || this.#hasEnded) return;
		this.#shutdownStep = 1;
		// The first GOAWAY only announces the shutdown; requests that are already in transit are still served (RFC 9114 §5.2). It
		// contains the largest ID of a request stream that can be written, which is a multiple of 4.
		this.#writeGoAway(MAX_VARINT - 3);
		this.#lastGoAwayDeadline = performance.now() + LIMITS.GOAWAY_WAIT_MS;
		setTimeout(() => this.#sendLastGoAway(), LIMITS.GOAWAY_WAIT_MS).unref();
		this.sendPending();
	}

	claimStreamType(type: number): boolean {
		this.#unknownStreamCount--;
		if (this.#claimedStreamTypes.has(type)) return false;
		this.#claimedStreamTypes.add(type);
		return true;
	}

	onUnknownStream(stream: QuicStream): void {
		this.#unknownStreamCount--;
		this.charge('empty_frames', FRAME_COST.empty_frames);
		stream.release();
	}

	acceptRequest(request: RequestStream): boolean {
		const { id } = request.quicStream;
		const { host, limits, counters } = this.engine;
		if (this.#shutdownStep > 1 && id > this.#lastRequestId) {
			this.#rejectRequest(request);
			return false;
		}
		if (this.#exchangeCount >= LIMITS.MAX_EXCHANGES) {
			host.countRefusal('refused_stream');
			this.#rejectRequest(request);
			this.charge('made_you_reset', FRAME_COST.made_you_reset);
			return false;
		}
		if (id > this.#lastRequestId) this.#lastRequestId = id;
		counters?.streamOpened();
		if (++this.#requestCount === limits.maxRequestsPerConnection) this.drain();
		return true;
	}

	countRefusal(reason: string): void {
		this.engine.host.countRefusal(reason);
	}

	onRequestCanceled(request: RequestStream): void {
		this.engine.counters?.streamReset(true);
		this.#dropRequest(request, H3_ERROR.cancel);
		this.charge('rapid_reset', FRAME_COST.rapid_reset);
	}

	failStream(request: RequestStream, code: number): void {
		this.engine.counters?.streamReset(false);
		this.#dropRequest(request, code);
		this.charge('made_you_reset', FRAME_COST.made_you_reset);
	}

	charge(reason: CutReason, cost: number): void {
		if (this.#floodGuard.charge(cost, this.engine.now)) this.#cutOff(H3_ERROR.excessiveLoad, reason);
	}

	fail(code: number): void {
		this.#cutOff(code, 'protocol_error');
	}

	writeHead(id: number, status: number, headers: HeaderList, length: number, endsStream: boolean): void {
		const request = this.#requestsById.get(id);
		if (request === undefined || request.isGone) return;
		const { responseFields } = this.#coders;
		// The date is encoded first, because `encode` returns bytes that are valid only until the next call.
		const dateField = responseFields.encodeDate(this.engine.now);
		const encodedFields = responseFields.encode(headers);
		const declaredLength = length === HANDLER_CONTENT_LENGTH ? encodedFields.contentLength : length;
		const addedDate = status < 200 || encodedFields.hasDate ? undefined : dateField;
		const maxBytes = MAX_SECTION_START_BYTES + MAX_DATE_BYTES + encodedFields.bytes.length;
		const frameBuffer = Buffer.allocUnsafe(MAX_FRAME_HEADER_BYTES + maxBytes);
		// The section's length precedes it but is known only at the end, so room for the longest frame header is left before the
		// section.
		const sectionStart = MAX_FRAME_HEADER_BYTES;
		let at = writeSectionStart(frameBuffer, sectionStart, status);
		frameBuffer.set(encodedFields.bytes, at);
		at += encodedFields.bytes.length;
		if (addedDate) {
			frameBuffer.set(addedDate, at);
			at += addedDate.length;
		}
		if (declaredLength >= 0) at = writeSectionLength(frameBuffer, at, declaredLength);
		const headFrame = completeHeadersFrame(frameBuffer, sectionStart, at);
		if (endsStream) this.#writeFrames(request, headFrame, 0, headFrame.length, true);
		else if (status < 200) this.#writeFrames(request, headFrame, 0, headFrame.length, false);
		else {
			this.#flushHead(request);
			request.responseHead = headFrame;
			this.#waitingHeads.push(request);
		}
	}

	writeEnd(id: number, trailers: readonly HeaderList[]): void {
		const request = this.#requestsById.get(id);
		if (request === undefined || request.isGone) return;
		this.#flushHead(request);
		const { responseFields } = this.#coders;
		const parts = trailers
			.map(list => new Uint8Array(responseFields.encode(list).bytes))
			.filter(part => part.length > 0);
		if (parts.length === 0) {
			this.#writeFrames(request, WRITE_BUFFER, 0, 0, true);
			return;
		}
		const frameBuffer = Buffer.allocUnsafe(
			MAX_FRAME_HEADER_BYTES + 2 + parts.reduce((sum, part) => sum + part.length, 0),
		);
		let at = writeSectionStart(frameBuffer, MAX_FRAME_HEADER_BYTES, undefined);
		for (const part of parts) {
			frameBuffer.set(part, at);
			at += part.length;
		}
		const headersFrame = completeHeadersFrame(frameBuffer, MAX_FRAME_HEADER_BYTES, at);
		this.#writeFrames(request, headersFrame, 0, headersFrame.length, true);
	}

	writeData(id: number, isLast: boolean, bytes: Uint8Array, start: number, end: number): number {
		const request = this.#requestsById.get(id);
		if (request === undefined || request.isGone) return 0;
		const { responseHead: head } = request;
		let at = 0;
		if (head !== undefined && head.length + MAX_FRAME_HEADER_BYTES + end - start <= WRITE_BUFFER.length) {
			request.responseHead = undefined;
			WRITE_BUFFER.set(head, 0);
			at = head.length;
		} else this.#flushHead(request);
		at = writeVarint(WRITE_BUFFER, at, FRAME_TYPE.data);
		at = writeVarint(WRITE_BUFFER, at, end - start);
		WRITE_BUFFER.set(bytes.subarray(start, end), at);
		this.#writeFrames(request, WRITE_BUFFER, 0, at + end - start, isLast);
		if (isLast) return 0;
		const { roomBytes } = request.quicStream;
		if (roomBytes < 2 * LIMITS.MAX_DATA_PAYLOAD_BYTES) request.quicStream.awaitRoom();
		// The output subtracts the bytes that it has just sent from its window, which leaves `roomBytes`.
		request.stream!.output.sendWindow = roomBytes + end - start;
		return 0;
	}

	/** Returns false, because QUIC already has every frame that has been written. */
	endStreamAt(): boolean {
		return false;
	}

	wantsTurn(output: StreamOutput): void {
		const request = this.#requestsById.get(output.id);
		if (request !== undefined) {
			const { roomBytes } = request.quicStream;
			output.sendWindow = roomBytes;
			if (roomBytes < LIMITS.MAX_DATA_PAYLOAD_BYTES) request.quicStream.awaitRoom();
		}
		this.#outputQueue.add(output);
		if (!this.#isProcessing) this.#outputQueue.schedule();
	}

	startExchange(stream: Http2Stream, fields: RequestFields): void {
		this.#requestGate.startOrDelay(stream, fields, this.engine.now);
	}

	dataSent(bytes: number): void {
		this.#floodGuard.creditFrame();
		this.#requestGate.accountSent(bytes);
	}

	accountBuffered(bytes: number): void {
		this.#requestGate.accountBuffered(bytes);
	}

	onDataConsumed(stream: Http2Stream | undefined, bytes: number): void {
		const request = stream && this.#requestsById.get(stream.id);
		if (request === undefined) return;
		const heldBytesBefore = request.heldBytes;
		request.heldBytes = Math.max(0, heldBytesBefore - bytes);
		if (heldBytesBefore <= LIMITS.MAX_HELD_BODY_BYTES || request.heldBytes > LIMITS.MAX_HELD_BODY_BYTES) return;
		request.quicStream.pause(false);
		// Data that has arrived already is read asynchronously, because this may be called while data is being read.
		setImmediate(() => this.sendPending());
	}

	onStreamEnded(stream: Http2Stream): void {
		const request = this.#requestsById.get(stream.id);
		if (request !== undefined) this.#removeRequest(request);
	}

	resetStream(stream: Http2Stream, code: number): void {
		const request = this.#requestsById.get(stream.id);
		if (request === undefined) {
			stream.onReset();
			return;
		}
		if (code !== H3_ERROR.none) this.engine.counters?.streamReset(false);
		this.#dropRequest(request, code);
	}

	onExchangeEnded(isComplete: boolean): void {
		this.#exchangeCount--;
		if (isComplete) this.#floodGuard.creditExchange();
	}

	/**
	 * Sends the queued output, and the response heads that still wait for a body. Ends the connection if it is shutting down and has
	 * no requests left.
	 */
	#sendQueued(): void {
		this.#isProcessing = true;
		if (!this.#hasEnded) {
			this.#outputQueue.run();
			while (!this.#hasEnded && this.#requestGate.startWaiting(this.engine.now)) this.#outputQueue.run();
		}
		if (this.#waitingHeads.length > 0) {
			const waitingHeads = this.#waitingHeads;
			this.#waitingHeads = [];
			for (const request of waitingHeads) this.#flushHead(request);
		}
		this.#isProcessing = false;
		if (this.#hasEnded || this.#requestsById.size > 0) return;
		if (this.#shutdownStep > 1) this.#endGracefully();
	}

	#flushHead(request: RequestStream): void {
		const { responseHead: head } = request;
		if (head === undefined) return;
		request.responseHead = undefined;
		this.#writeFrames(request, head, 0, head.length, false);
	}

	#writeFrames(request: RequestStream, bytes: Uint8Array, start: number, end: number, endsStream: boolean): void {
		// If the write fails, the next event reports that the stream was canceled.
		if (!request.isGone) request.quicStream.write(bytes, start, end, endsStream);
	}

	#openControlStream(): void {
		const controlStream = this.#quicConnection.openUni();
		if (controlStream === undefined) {
			// The client allows no control stream, but it must allow at least three unidirectional streams (RFC 9114 §6.2).
			this.#close(H3_ERROR.streamCreation);
			return;
		}
		this.#controlStream = controlStream;
		controlStream.owner = {
			onData: () => true,
			onReset: () => {},
			onStopped: () => this.fail(H3_ERROR.closedCriticalStream),
			onDrained: () => {},
		};
		const { maxHeadSize, maxHeaderCount } = this.engine.limits;
		const streamStart = Buffer.allocUnsafe(64);
		const payload = Buffer.allocUnsafe(48);
		let payloadBytes = writeVarint(payload, 0, SETTING_ID.maxFieldSectionSize);
		payloadBytes = writeVarint(payload, payloadBytes, maxHeadSize + maxHeaderCount * 32);
		payloadBytes = writeVarint(payload, payloadBytes, SETTING_ID.enableConnectProtocol);
		payloadBytes = writeVarint(payload, payloadBytes, 1);
		let at = writeVarint(streamStart, 0, STREAM_TYPE.control);
		at = writeVarint(streamStart, at, FRAME_TYPE.settings);
		at = writeVarint(streamStart, at, payloadBytes);
		payload.copy(streamStart, at, 0, payloadBytes);
		controlStream.write(streamStart, 0, at + payloadBytes, false);
	}

	#writeGoAway(id: number): void {
		const idBytes = varintLength(id);
		const bytes = Buffer.allocUnsafe(16);
		let at = writeVarint(bytes, 0, FRAME_TYPE.goAway);
		at = writeVarint(bytes, at, idBytes);
		at = writeVarint(bytes, at, id);
		this.#controlStream?.write(bytes, 0, at, false);
	}

	#sendLastGoAway(): void {
		if (this.#hasEnded || this.#shutdownStep !== 1) return;
		this.#shutdownStep = 2;
		this.#lastGoAwayDeadline = Infinity;
		this.#writeGoAway(this.#lastRequestId + 4);
		this.sendPending();
	}

	/** Rejects a request that was not processed. The client may send it again on another connection (RFC 9114 §4.1.1). */
	#rejectRequest(request: RequestStream): void {
		request.isGone = true;
		this.#requestsById.delete(request.quicStream.id);
		// The reset must precede the release, which would otherwise reset the stream with code 0.
		request.quicStream.reset(H3_ERROR.rejected);
		request.quicStream.release();
		this.#updateIdleSince();
	}

	#dropRequest(request: RequestStream, code: number): void {
		if (request.isGone) return;
		request.isGone = true;
		this.#requestsById.delete(request.quicStream.id);
		if (code !== H3_ERROR.none) request.quicStream.reset(code);
		else this.#endResponse(request);
		request.quicStream.release();
		request.stream?.onReset();
		this.#updateIdleSince();
	}

	/** Ends the response of a request that is being dropped. The response is complete, but the request is not. */
	#endResponse(request: RequestStream): void {
		const { responseHead: head } = request;
		request.responseHead = undefined;
		if (head !== undefined) request.quicStream.write(head, 0, head.length, true);
	}

	#removeRequest(request: RequestStream): void {
		this.#flushHead(request);
		request.isGone = true;
		this.#requestsById.delete(request.quicStream.id);
		request.quicStream.release();
		this.#updateIdleSince();
	}

	#updateIdleSince(): void {
		if (this.#requestsById.size === 0) this.#idleSince = this.engine.now;
	}

	#cutOff(code: number, reason: CutReason): void {
		if (this.#hasEnded) return;
		this.engine.counters?.connectionCut(reason);
		this.#close(code);
	}

	/** Ends the connection once the client has received everything. `onClosed` is called then. */
	#endGracefully(): void {
		if (this.#hasEnded) return;
		this.#hasEnded = true;
		this.#quicConnection.end(H3_ERROR.none);
	}

	/** Closes the connection immediately. `onClosed` is called during this call. */
	#close(code: number): void {
		if (this.#hasEnded) return;
		this.#hasEnded = true;
		this.#quicConnection.close(code);
	}

	/** Cancels all work for this client, because nothing more can be sent to it. */
	#abandon(): void {
		const requests = [...this.#requestsById.values()];
		this.#requestsById.clear();
		for (const request of requests) {
			request.isGone = true;
			request.stream?.onReset();
		}
	}
}

/**
 * Writes the type and length of a HEADERS frame directly before its section, which is at `bytes[start, end)`. Returns the whole
 * frame.
 */
function completeHeadersFrame(bytes: Buffer, start: number, end: number): Buffer {
	const length = end - start;
	const frameStart = start - 1 - varintLength(length);
	writeVarint(bytes, writeVarint(bytes, frameStart, FRAME_TYPE.headers), length);
	return bytes.subarray(frameStart, end);
}
