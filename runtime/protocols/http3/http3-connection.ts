/** One HTTP/3 connection: its control streams, its requests, and its shutdown (RFC 9114). */
import type { ConnectionInfo, TlsInfo } from '../../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { QuicClose, QuicConnection, QuicConnectionOwner, QuicStream } from '../../sockets/quic/quic-connection.ts';
import { type CutReason, FloodGuard, FRAME_COST } from '../http2/flood-guard.ts';
import { OutputQueue } from '../http2/output-queue.ts';
import type { RequestFields } from '../http2/request-fields.ts';
import { RequestGate } from '../http2/request-gate.ts';
import { HANDLER_LENGTH } from '../http2/response-writer.ts';
import type { Http2Stream, ResetCodes } from '../http2/stream.ts';
import type { DataWriter, StreamOutput } from '../http2/stream-output.ts';
import { type ControlledConnection, ControlStream } from './control-stream.ts';
import { FRAME_TYPE, H3_ERROR, SETTING_ID, STREAM_TYPE } from './http3-codes.ts';
import type { EngineConnection, Http3Coders, Http3Engine } from './http3-engine.ts';
import * as BOUND from './limits.ts';
import type { QpackDecoder } from './qpack-decoder.ts';
import { MAX_SECTION_START_BYTES, writeSectionLength, writeSectionStart } from './qpack-encoder.ts';
import { type RequestConnection, RequestStream } from './request-stream.ts';
import { MAX_VARINT, varintLength, writeVarint } from './varint.ts';

/** Maximum bytes of a frame's type and length. */
const FRAME_HEAD = 16;
/** Number of bytes reserved for a `Date` field. */
const DATE_ROOM = 48;
/** Buffer for writing a DATA frame, possibly together with a head before it. */
const SCRATCH = Buffer.allocUnsafeSlow(BOUND.MAX_DATA_PAYLOAD_BYTES + FRAME_HEAD);

/** An HTTP/3 connection. The object is in use until QUIC reports that the connection has closed. */
export class Http3Connection
	implements ControlledConnection, DataWriter, EngineConnection, QuicConnectionOwner, RequestConnection
{
	readonly engine: Http3Engine;
	readonly info: ConnectionInfo;
	readonly scheme = 'https';
	readonly protocol = 'HTTP/3.0';
	readonly codes: ResetCodes = H3_ERROR;
	readonly frames: DataWriter = this;
	readonly full = false;
	/** No limit here, because the windows of the streams already take the connection's window into account. */
	sendWindow = Number.MAX_SAFE_INTEGER;
	/** Maximum bytes of its body that a stream holds beside those that QUIC buffers: one chunk. */
	readonly share: number = BOUND.MAX_STREAM_PULL_BYTES;
	readonly #quic: QuicConnection;
	readonly #coders: Http3Coders;
	readonly #meter: FloodGuard;
	readonly #queue: OutputQueue;
	readonly #gate = new RequestGate(() => this.#exchanges++);
	readonly #requests = new Map<number, RequestStream>();
	readonly #claimed = new Set<number>();
	/** Number of unidirectional streams whose type is unknown, or not known yet. */
	#others = 0;
	#control: QuicStream | undefined;
	/** Requests whose response head waits for the first bytes of its body. */
	#heads: RequestStream[] = [];
	#exchanges = 0;
	#served = 0;
	/** Number of streams that the client has opened. */
	#streams = 0;
	/** The highest ID of an accepted request stream. Request streams have multiples of 4; −4 if there has been none. */
	#last = -4;
	#running = false;
	#over = false;
	#idleSince: number;
	/** Progress of the shutdown: 0 before it, 1 after the first GOAWAY, 2 after the last one. */
	#ending = 0;
	#goAwayAt = Infinity;

	constructor(quic: QuicConnection, tls: TlsInfo, engine: Http3Engine) {
		engine.refresh();
		engine.now = performance.now();
		this.engine = engine;
		this.#quic = quic;
		this.#coders = engine.coders;
		this.#meter = new FloodGuard(engine.now);
		this.#queue = new OutputQueue(this);
		this.#idleSince = engine.now;
		const { remoteAddress, remotePort, localAddress, localPort } = quic;
		this.info = { remoteAddress, remotePort, localAddress, localPort, tls };
		quic.owner = this;
		engine.add(this);
		this.#openControl();
		if (engine.draining || engine.host.draining) this.drain();
	}

	get fields(): RequestFields {
		return this.#coders.fields;
	}

	get decoder(): QpackDecoder {
		return this.#coders.decoder;
	}

	get idleSince(): number {
		return this.#over || this.#requests.size > 0 ? Infinity : this.#idleSince;
	}

	giveWay(): void {
		this.#close(H3_ERROR.none);
	}

	destroy(): void {
		this.#quic.destroy();
	}

	enter(): void {
		if (this.#running) return;
		this.#running = true;
		this.engine.now = performance.now();
	}

	opened(stream: QuicStream): void {
		if (this.#over) {
			if (stream.bidirectional) stream.reset(H3_ERROR.rejected);
			stream.release();
			return;
		}
		this.enter();
		if (++this.#streams >= BOUND.MAX_CONNECTION_STREAMS) this.#boundStreams();
		if (this.#over) return;
		if (stream.bidirectional) {
			const request = new RequestStream(this, stream);
			stream.owner = request;
			this.#requests.set(stream.id, request);
			return;
		}
		stream.owner = new ControlStream(this, stream);
		if (++this.#others > BOUND.MAX_OTHER_STREAMS) this.#cut(H3_ERROR.excessiveLoad, 'empty_frames');
	}

	/** Makes the client use another connection. */
	#boundStreams(): void {
		const excess = this.#streams - BOUND.MAX_CONNECTION_STREAMS;
		if (excess === 0) this.drain();
		else if (excess === BOUND.MAX_LATE_STREAMS) this.#lastGoAway();
		else if (excess === 2 * BOUND.MAX_LATE_STREAMS) this.#cut(H3_ERROR.excessiveLoad, 'made_you_reset');
	}

	settled(): void {
		this.#run();
	}

	closed(_close: QuicClose): void {
		this.#over = true;
		this.#running = false;
		this.#abandon();
		this.engine.remove(this);
	}

	/** Sends pending data. Ends the connection if it is shutting down and has no requests left. */
	settle(): void {
		if (this.#running || this.#over) return;
		this.#running = true;
		this.#run();
		if (!this.#over) this.#quic.flush();
	}

	check(now: number): void {
		if (this.#over) return;
		if (now >= this.#goAwayAt) this.#lastGoAway();
		const { idleTimeout } = this.engine.limits;
		if (this.#requests.size === 0 && idleTimeout > 0 && now - this.#idleSince >= idleTimeout) {
			this.#end();
			return;
		}
		// An idle connection has nothing to check or to send. Looking at each of many in QUIC takes long.
		if (this.#requests.size === 0 && this.#ending === 0) return;
		this.#running = true;
		for (const request of this.#requests.values()) {
			if (now >= request.headDeadline) {
				this.engine.host.refused('header_timeout');
				this.streamError(request, H3_ERROR.cancel);
			} else request.stream?.check(now);
			if (this.#over) return;
		}
		this.#running = false;
		this.settle();
	}

	drain(): void {
		if (this.#ending > 0 || this.#over) return;
		this.#ending = 1;
		// The first GOAWAY only announces the shutdown; requests already in transit are still served (RFC 9114 §5.2).
		// It contains the largest ID of a request stream that can be written, which is a multiple of 4.
		this.#goAway(MAX_VARINT - 3);
		this.#goAwayAt = performance.now() + BOUND.GOAWAY_WAIT_MS;
		setTimeout(() => this.#lastGoAway(), BOUND.GOAWAY_WAIT_MS).unref();
		this.settle();
	}

	claim(type: number): boolean {
		this.#others--;
		if (this.#claimed.has(type)) return false;
		this.#claimed.add(type);
		return true;
	}

	other(stream: QuicStream): void {
		this.#others--;
		this.spend('empty_frames', FRAME_COST.empty_frames);
		stream.release();
	}

	begins(request: RequestStream): boolean {
		const { id } = request.quic;
		const { host, limits, counters } = this.engine;
		if (this.#ending > 1 && id > this.#last) {
			this.#reject(request);
			return false;
		}
		if (this.#exchanges >= BOUND.MAX_EXCHANGES) {
			host.refused('refused_stream');
			this.#reject(request);
			this.spend('made_you_reset', FRAME_COST.made_you_reset);
			return false;
		}
		if (id > this.#last) this.#last = id;
		counters?.streamOpened();
		if (++this.#served === limits.maxRequestsPerConnection) this.drain();
		return true;
	}

	refused(reason: string): void {
		this.engine.host.refused(reason);
	}

	cancelled(request: RequestStream): void {
		this.engine.counters?.streamReset(true);
		this.#drop(request, H3_ERROR.cancel);
		this.spend('rapid_reset', FRAME_COST.rapid_reset);
	}

	streamError(request: RequestStream, code: number): void {
		this.engine.counters?.streamReset(false);
		this.#drop(request, code);
		this.spend('made_you_reset', FRAME_COST.made_you_reset);
	}

	spend(reason: CutReason, cost: number): void {
		if (this.#meter.spend(cost, this.engine.now)) this.#cut(H3_ERROR.excessiveLoad, reason);
	}

	fail(code: number): void {
		this.#cut(code, 'protocol_error');
	}

	writeHead(id: number, status: number, headers: HeaderList, length: number, ends: boolean): void {
		const request = this.#requests.get(id);
		if (request === undefined || request.gone) return;
		const { responses } = this.#coders;
		// The date is encoded first, because `encode` returns bytes that are valid only until the next call.
		const today = responses.date(this.engine.now);
		const encoded = responses.encode(headers);
		const declared = length === HANDLER_LENGTH ? encoded.contentLength : length;
		const date = status < 200 || encoded.hasDate ? undefined : today;
		const most = MAX_SECTION_START_BYTES + DATE_ROOM + encoded.bytes.length;
		const frame = Buffer.allocUnsafe(FRAME_HEAD + most);
		// The section's length precedes it but is known last, so the section is written after room for the longest frame header.
		const start = FRAME_HEAD;
		let at = writeSectionStart(frame, start, status);
		frame.set(encoded.bytes, at);
		at += encoded.bytes.length;
		if (date) {
			frame.set(date, at);
			at += date.length;
		}
		if (declared >= 0) at = writeSectionLength(frame, at, declared);
		const head = headersFrame(frame, start, at);
		if (ends) this.#write(request, head, 0, head.length, true);
		else if (status < 200) this.#write(request, head, 0, head.length, false);
		else {
			this.#flushHead(request);
			request.head = head;
			this.#heads.push(request);
		}
	}

	writeEnd(id: number, trailers: readonly HeaderList[]): void {
		const request = this.#requests.get(id);
		if (request === undefined || request.gone) return;
		this.#flushHead(request);
		const { responses } = this.#coders;
		const parts = trailers.map(list => new Uint8Array(responses.encode(list).bytes)).filter(part => part.length > 0);
		if (parts.length === 0) {
			this.#write(request, SCRATCH, 0, 0, true);
			return;
		}
		const frame = Buffer.allocUnsafe(FRAME_HEAD + 2 + parts.reduce((sum, part) => sum + part.length, 0));
		let at = writeSectionStart(frame, FRAME_HEAD, undefined);
		for (const part of parts) {
			frame.set(part, at);
			at += part.length;
		}
		const section = headersFrame(frame, FRAME_HEAD, at);
		this.#write(request, section, 0, section.length, true);
	}

	data(id: number, last: boolean, bytes: Uint8Array, start: number, end: number): number {
		const request = this.#requests.get(id);
		if (request === undefined || request.gone) return 0;
		const { head } = request;
		let at = 0;
		if (head !== undefined && head.length + FRAME_HEAD + end - start <= SCRATCH.length) {
			request.head = undefined;
			SCRATCH.set(head, 0);
			at = head.length;
		} else this.#flushHead(request);
		at = writeVarint(SCRATCH, at, FRAME_TYPE.data);
		at = writeVarint(SCRATCH, at, end - start);
		SCRATCH.set(bytes.subarray(start, end), at);
		this.#write(request, SCRATCH, 0, at + end - start, last);
		if (last) return 0;
		const { room } = request.quic;
		if (room < 2 * BOUND.MAX_DATA_PAYLOAD_BYTES) request.quic.awaitRoom();
		// The output will subtract what it has sent. The result is then the room that is left.
		request.stream!.output.window = room + end - start;
		return 0;
	}

	/** Returns false, because QUIC already has every frame that has been written. */
	endStreamAt(): boolean {
		return false;
	}

	wantsTurn(output: StreamOutput): void {
		const request = this.#requests.get(output.id);
		if (request !== undefined) {
			const { room } = request.quic;
			output.window = room;
			if (room < BOUND.MAX_DATA_PAYLOAD_BYTES) request.quic.awaitRoom();
		}
		this.#queue.add(output);
		if (!this.#running) this.#queue.soon();
	}

	start(stream: Http2Stream, fields: RequestFields): void {
		this.#gate.begin(stream, fields, this.engine.now);
	}

	dataSent(bytes: number): void {
		this.#meter.frameSent();
		this.#gate.sent(bytes);
	}

	holds(bytes: number): void {
		this.#gate.holds(bytes);
	}

	dataTaken(stream: Http2Stream | undefined, bytes: number): void {
		const request = stream && this.#requests.get(stream.id);
		if (request === undefined) return;
		const before = request.held;
		request.held = Math.max(0, before - bytes);
		if (before <= BOUND.MAX_HELD_BODY_BYTES || request.held > BOUND.MAX_HELD_BODY_BYTES) return;
		request.quic.pause(false);
		// Data that has arrived already is read asynchronously, because this may be called while data is being read.
		setImmediate(() => this.settle());
	}

	streamEnded(stream: Http2Stream): void {
		const request = this.#requests.get(stream.id);
		if (request !== undefined) this.#remove(request);
	}

	resetStream(stream: Http2Stream, code: number): void {
		const request = this.#requests.get(stream.id);
		if (request === undefined) {
			stream.reset();
			return;
		}
		if (code !== H3_ERROR.none) this.engine.counters?.streamReset(false);
		this.#drop(request, code);
	}

	exchangeEnded(whole: boolean): void {
		this.#exchanges--;
		if (whole) this.#meter.exchangeDone();
	}

	/** Runs the queue, and writes heads that still wait for a body. Ends the connection if it is shutting down and has no requests left. */
	#run(): void {
		this.#running = true;
		if (!this.#over) {
			this.#queue.run();
			while (!this.#over && this.#gate.run(this.engine.now)) this.#queue.run();
		}
		for (const request of this.#heads.splice(0)) this.#flushHead(request);
		this.#running = false;
		if (this.#over || this.#requests.size > 0) return;
		if (this.#ending > 1) this.#end();
	}

	#flushHead(request: RequestStream): void {
		const { head } = request;
		if (head === undefined) return;
		request.head = undefined;
		this.#write(request, head, 0, head.length, false);
	}

	#write(request: RequestStream, bytes: Uint8Array, start: number, end: number, fin: boolean): void {
		// If the write fails, the next event reports that the stream was canceled.
		if (!request.gone) request.quic.write(bytes, start, end, fin);
	}

	#openControl(): void {
		const control = this.#quic.openUni();
		if (control === undefined) {
			// A client must allow at least three unidirectional streams (RFC 9114 §6.2).
			this.#close(H3_ERROR.streamCreation);
			return;
		}
		this.#control = control;
		control.owner = {
			data: () => true,
			reset: () => {},
			stopped: () => this.fail(H3_ERROR.closedCriticalStream),
			drained: () => {},
		};
		const { maxHeadSize, maxHeaderCount } = this.engine.limits;
		const bytes = Buffer.allocUnsafe(64);
		const payload = Buffer.allocUnsafe(48);
		let length = writeVarint(payload, 0, SETTING_ID.maxFieldSectionSize);
		length = writeVarint(payload, length, maxHeadSize + maxHeaderCount * 32);
		length = writeVarint(payload, length, SETTING_ID.enableConnectProtocol);
		length = writeVarint(payload, length, 1);
		let at = writeVarint(bytes, 0, STREAM_TYPE.control);
		at = writeVarint(bytes, at, FRAME_TYPE.settings);
		at = writeVarint(bytes, at, length);
		payload.copy(bytes, at, 0, length);
		control.write(bytes, 0, at + length, false);
	}

	#goAway(id: number): void {
		const length = varintLength(id);
		const bytes = Buffer.allocUnsafe(16);
		let at = writeVarint(bytes, 0, FRAME_TYPE.goAway);
		at = writeVarint(bytes, at, length);
		at = writeVarint(bytes, at, id);
		this.#control?.write(bytes, 0, at, false);
	}

	#lastGoAway(): void {
		if (this.#over || this.#ending !== 1) return;
		this.#ending = 2;
		this.#goAwayAt = Infinity;
		this.#goAway(this.#last + 4);
		this.settle();
	}

	/** Rejects a request that was not processed. The client may send it again on another connection (RFC 9114 §4.1.1). */
	#reject(request: RequestStream): void {
		request.gone = true;
		this.#requests.delete(request.quic.id);
		// This must precede the release, which would reset the stream with code 0.
		request.quic.reset(H3_ERROR.rejected);
		request.quic.release();
		this.#touched();
	}

	#drop(request: RequestStream, code: number): void {
		if (request.gone) return;
		request.gone = true;
		this.#requests.delete(request.quic.id);
		if (code !== H3_ERROR.none) request.quic.reset(code);
		else this.#flushGone(request);
		request.quic.release();
		request.stream?.reset();
		this.#touched();
	}

	/** Ends the response of a request that is being dropped. The response is complete, although the request is not. */
	#flushGone(request: RequestStream): void {
		const { head } = request;
		request.head = undefined;
		if (head !== undefined) request.quic.write(head, 0, head.length, true);
	}

	#remove(request: RequestStream): void {
		this.#flushHead(request);
		request.gone = true;
		this.#requests.delete(request.quic.id);
		request.quic.release();
		this.#touched();
	}

	#touched(): void {
		if (this.#requests.size === 0) this.#idleSince = this.engine.now;
	}

	#cut(code: number, reason: CutReason): void {
		if (this.#over) return;
		this.engine.counters?.cut(reason);
		this.#close(code);
	}

	/** Ends the connection once the client has received everything. `closed` is called then. */
	#end(): void {
		if (this.#over) return;
		this.#over = true;
		this.#quic.end(H3_ERROR.none);
	}

	/** Closes the connection immediately. `closed` is called during this call. */
	#close(code: number): void {
		if (this.#over) return;
		this.#over = true;
		this.#quic.close(code);
	}

	/** Cancels all work for this client, because nothing more can be sent to it. */
	#abandon(): void {
		const requests = [...this.#requests.values()];
		this.#requests.clear();
		for (const request of requests) {
			request.gone = true;
			request.stream?.reset();
		}
	}
}

/**
 * Writes the type and length of a HEADERS frame directly before its section, which is at `bytes[start, end)`. Returns the whole
 * frame.
 */
function headersFrame(bytes: Buffer, start: number, end: number): Buffer {
	const length = end - start;
	const from = start - 1 - varintLength(length);
	writeVarint(bytes, writeVarint(bytes, from, FRAME_TYPE.headers), length);
	return bytes.subarray(from, end);
}
