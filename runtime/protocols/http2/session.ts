/** An HTTP/2 connection: its frames, settings, flow control and streams (RFC 9113). */
import type { Socket } from 'node:net';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import type { DirectSocket } from '../../sockets/direct-socket.ts';
import { SocketInfo } from '../http1/socket-info.ts';
import { type InputSink, SocketInput } from '../http1/socket-input.ts';
import type { ConnectionPeer } from '../protocol.ts';
import { ControlFrames, type ControlledSession } from './control-frames.ts';
import { type CutReason, FloodGuard, FRAME_COST } from './flood-guard.ts';
import { DEFAULT_WINDOW, FRAME_FLAG, FRAME_TYPE, H2_ERROR, SETTING_ID } from './frame-codes.ts';
import { FrameReader, type FrameSink } from './frame-reader.ts';
import { FrameWriter } from './frame-writer.ts';
import { HeaderBlock } from './header-block.ts';
import { HpackDecoder } from './hpack-decoder.ts';
import type { EngineSession, Http2Coders, Http2Engine } from './http2-engine.ts';
import * as BOUND from './limits.ts';
import { OutputQueue } from './output-queue.ts';
import { ReceiveWindow } from './receive-window.ts';
import { RecentResets } from './recent-resets.ts';
import type { StreamBody } from './request-body.ts';
import { SECTION_MALFORMED, SECTION_VALID } from './request-fields.ts';
import { RequestGate } from './request-gate.ts';
import { writeHead, writeTrailers } from './response-writer.ts';
import { SessionDeadlines } from './session-deadlines.ts';
import { SessionEnd } from './session-end.ts';
import { HTTP2_RESET_CODES, Http2Stream, type StreamSession } from './stream.ts';
import type { StreamOutput } from './stream-output.ts';
import { rangeWithoutPadding } from './unpadded.ts';

/** Unwanted DATA frames below this many bytes are charged, because they cost more than they contribute. */
const SMALL_DATA = 1024;

/** A connection that began with another protocol and is handed over. */
export interface TakenOverConnection {
	readonly input: SocketInput;
	readonly info: SocketInfo;
}

/** An HTTP/2 connection. The object is in use until its socket has closed. */
export class Http2Session implements ControlledSession, EngineSession, FrameSink, InputSink, StreamSession {
	readonly engine: Http2Engine;
	readonly info: SocketInfo;
	readonly scheme: 'http' | 'https';
	readonly protocol = 'HTTP/2.0';
	readonly codes = HTTP2_RESET_CODES;
	readonly frames: FrameWriter;
	sendWindow = DEFAULT_WINDOW;
	readonly #coders: Http2Coders;
	readonly #socket: ClientSocket;
	readonly #input: SocketInput;
	readonly #reader: FrameReader = new FrameReader(this);
	readonly #decoder: HpackDecoder;
	readonly #meter: FloodGuard;
	readonly #window = new ReceiveWindow(BOUND.INITIAL_CONNECTION_WINDOW, BOUND.MAX_CONNECTION_WINDOW);
	readonly queue: OutputQueue;
	readonly streams = new Map<number, Http2Stream>();
	readonly #resets = new RecentResets();
	/** Bodies that received content in the current read and have a waiting reader. */
	readonly #awaited: StreamBody[] = [];
	readonly ending: SessionEnd;
	/** Number of unfinished exchanges, including those of reset streams. */
	#exchanges = 0;
	readonly #gate = new RequestGate(() => this.#exchanges++);
	lastStream = 0;
	#requests = 0;
	#block: HeaderBlock | undefined = undefined;
	/** True once the first header block has been sent. */
	#encoded = false;
	/** True while received bytes are being processed. Writes are then gathered until the end. */
	#running = false;
	readonly #deadlines: SessionDeadlines;
	readonly #control: ControlFrames = new ControlFrames(this);

	constructor(
		given: Socket | DirectSocket | TakenOverConnection,
		scheme: 'http' | 'https',
		engine: Http2Engine,
		peer?: ConnectionPeer,
	) {
		engine.refresh();
		this.engine = engine;
		this.#coders = engine.coders;
		const taken = 'input' in given;
		if (taken) {
			this.#input = given.input;
			this.#input.sink = this;
		} else this.#input = new SocketInput(given, scheme, this.#coders, this);
		const { socket } = this.#input;
		this.#socket = socket;
		this.scheme = scheme;
		this.info = taken ? given.info : new SocketInfo(socket, scheme, peer);
		this.info.readAddresses();
		this.frames = new FrameWriter(socket, this.#coders.output);
		this.#decoder = new HpackDecoder(this.#coders.strings);
		this.queue = new OutputQueue(this);
		engine.now = performance.now();
		this.#meter = new FloodGuard(engine.now);
		this.ending = new SessionEnd(socket, this.frames);
		this.#deadlines = new SessionDeadlines(engine);
		engine.add(this, taken);
		this.frames.settings([
			...[SETTING_ID.maxConcurrentStreams, BOUND.MAX_CONCURRENT_STREAMS],
			...[SETTING_ID.initialWindowSize, BOUND.INITIAL_STREAM_WINDOW],
			...[SETTING_ID.maxHeaderListSize, engine.limits.maxHeadSize + engine.limits.maxHeaderCount * 32],
			...[SETTING_ID.enableConnectProtocol, 1, SETTING_ID.noRfc7540Priorities, 1],
		]);
		this.frames.numbers(FRAME_TYPE.windowUpdate, 0, BOUND.INITIAL_CONNECTION_WINDOW - DEFAULT_WINDOW);
		this.frames.flush();
		if (engine.draining || engine.host.draining) this.drain();
	}

	data(bytes: Buffer): void {
		if (this.ending.read(bytes.length)) return;
		if (!this.info.isAddressKnown) {
			this.#socket.destroy();
			return;
		}
		this.#running = true;
		this.engine.now = performance.now();
		this.#reader.read(bytes);
		for (const body of this.#awaited.splice(0)) body.deliver();
		this.#running = false;
		this.settle();
	}

	/** Called when the client has closed its side: it can no longer acknowledge anything, open windows or read responses. */
	end(): void {
		this.ending.now(this.lastStream, H2_ERROR.none);
		this.#abandon();
	}

	/** Sends pending data. Closes the connection if it is shutting down and has no streams left. */
	settle(): void {
		if (this.#running) return;
		this.#running = true;
		if (!this.ending.over) {
			do this.queue.run();
			while (this.#gate.run(this.engine.now));
		}
		this.#running = false;
		this.frames.flush();
		if (this.frames.full) {
			if (this.#deadlines.blocked(true)) this.frames.progressed();
			// Replies to control frames are buffered, so a client that does not read them must not send more.
			if (this.#socket.writableLength > BOUND.MAX_UNREAD_CONTROL_BYTES + 2 * BOUND.OUTPUT_BUFFER_BYTES) {
				this.#cutOff(H2_ERROR.enhanceYourCalm, 'unread_control');
			}
		}
		const idle = this.streams.size === 0;
		if (idle && this.ending.idle()) return;
		this.#deadlines.set(idle, this.lastStream, this.#block !== undefined || (idle && this.#reader.within));
	}

	check(now: number): void {
		if (this.ending.check(now, this.lastStream)) return;
		switch (this.#deadlines.passed(now)) {
			case 'write':
				if (this.frames.progressed()) {
					this.#deadlines.blocked(false);
					break;
				}
				this.engine.host.refused('write_timeout');
				this.engine.counters?.cut('timeout');
				this.#socket.destroy();
				return;
			case 'head':
				this.engine.host.refused('header_timeout');
				this.#cutOff(H2_ERROR.none, 'timeout');
				return;
			case 'idle':
				this.ending.now(this.lastStream, H2_ERROR.none);
				return;
		}
		for (const stream of this.streams.values()) stream.check(now);
		this.settle();
	}

	drain(): void {
		if (this.ending.begin()) this.settle();
	}

	get idleSince(): number {
		return this.ending.over || this.streams.size > 0 ? Infinity : this.#deadlines.idleSince;
	}

	giveWay(): void {
		this.ending.now(this.lastStream, H2_ERROR.none);
		// Pending data is sent, but the connection does not wait for the client to close its side.
		setImmediate(() => this.#socket.destroy());
	}

	destroy(): void {
		this.#socket.destroy();
	}

	badPreface(): void {
		this.#cutOff(H2_ERROR.protocol, 'protocol_error');
	}

	oversize(): void {
		this.#cutOff(H2_ERROR.frameSize, 'protocol_error');
	}

	frame(type: number, flags: number, stream: number, bytes: Buffer, start: number, end: number): boolean {
		// The first frame must be SETTINGS, and a header block must not be interrupted by other frames (RFC 9113 §3.4, §4.3).
		if (this.#block !== undefined && (type !== FRAME_TYPE.continuation || stream !== this.#block.stream)) {
			return this.fail(H2_ERROR.protocol);
		}
		if (!this.#control.settled && type !== FRAME_TYPE.settings) return this.fail(H2_ERROR.protocol);
		switch (type) {
			case FRAME_TYPE.data:
				this.#data(flags, stream, bytes, start, end);
				break;
			case FRAME_TYPE.headers:
				this.#headers(flags, stream, bytes, start, end);
				break;
			case FRAME_TYPE.priority:
				this.#control.priority(stream, end - start);
				break;
			case FRAME_TYPE.resetStream:
				this.#resetByClient(stream, end - start);
				break;
			case FRAME_TYPE.settings:
				this.#control.settings(flags, stream, bytes, start, end);
				break;
			case FRAME_TYPE.pushPromise:
				this.fail(H2_ERROR.protocol);
				break;
			case FRAME_TYPE.ping:
				this.#control.ping(flags, stream, bytes, start, end);
				break;
			case FRAME_TYPE.goAway:
				this.#control.goAway(stream, end - start);
				break;
			case FRAME_TYPE.windowUpdate:
				this.#control.windowUpdate(stream, bytes, start, end);
				break;
			case FRAME_TYPE.continuation:
				this.#continuation(flags, bytes, start, end);
				break;
			default:
				// Extension frames are ignored (RFC 9113 §4.1), but their number is limited.
				this.spend('empty_frames', FRAME_COST.empty_frames);
		}
		return !this.ending.over;
	}

	#data(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
		const size = end - start;
		if (id === 0 || id > this.lastStream) {
			this.fail(H2_ERROR.protocol);
			return;
		}
		const content = rangeWithoutPadding(flags, bytes, start, end, 0);
		if (content === undefined) {
			this.fail(H2_ERROR.protocol);
			return;
		}
		if (!this.#window.take(size)) {
			this.fail(H2_ERROR.flowControl);
			return;
		}
		const stream = this.streams.get(id);
		if (stream === undefined || !stream.remoteOpen) {
			this.dataTaken(undefined, size, false);
			if (stream !== undefined) this.streamError(stream, H2_ERROR.streamClosed);
			else if (!this.#resets.has(id)) this.fail(H2_ERROR.streamClosed);
			else this.spend('empty_frames', size === 0 ? FRAME_COST.empty_frames : FRAME_COST.late_data);
			return;
		}
		if (!stream.window.take(size)) {
			this.dataTaken(undefined, size, false);
			this.streamError(stream, H2_ERROR.flowControl);
			return;
		}
		const [from, to] = content;
		const padding = size - (to - from);
		if (padding > 0) this.dataTaken(stream, padding, false);
		if (to > from) {
			const { body } = stream;
			if (body!.length !== undefined && body!.received + to - from > body!.length) {
				this.dataTaken(undefined, to - from, false);
				this.streamError(stream, H2_ERROR.protocol);
				return;
			}
			if (stream.draining && size < SMALL_DATA) this.spend('empty_frames', FRAME_COST.late_data);
			stream.data(bytes, from, to);
			if (body!.awaited && this.#awaited.at(-1) !== body) this.#awaited.push(body!);
		} else if ((flags & FRAME_FLAG.endStream) === 0) this.spend('empty_frames', FRAME_COST.empty_frames);
		if ((flags & FRAME_FLAG.endStream) !== 0 && !stream.gone && !stream.endRemote(undefined)) {
			this.streamError(stream, H2_ERROR.protocol);
		}
	}

	#headers(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
		const content = rangeWithoutPadding(flags, bytes, start, end, (flags & FRAME_FLAG.priority) !== 0 ? 5 : 0);
		// Clients open streams with odd, ascending IDs (RFC 9113 §5.1.1).
		if ((id & 1) === 0 || content === undefined) {
			this.fail(H2_ERROR.protocol);
			return;
		}
		const [from, to] = content;
		const endStream = (flags & FRAME_FLAG.endStream) !== 0;
		if ((flags & FRAME_FLAG.endHeaders) !== 0) {
			this.#headerBlock(id, endStream, bytes, from, to);
			return;
		}
		this.#block = new HeaderBlock(id, endStream, this.engine.limits.maxHeadSize * BOUND.MAX_BLOCK_FACTOR);
		this.#block.add(bytes, from, to);
	}

	#continuation(flags: number, bytes: Buffer, start: number, end: number): void {
		const block = this.#block;
		if (block === undefined) {
			this.fail(H2_ERROR.protocol);
			return;
		}
		if (!block.add(bytes, start, end)) {
			this.#cutOff(H2_ERROR.enhanceYourCalm, 'continuation_flood');
			return;
		}
		if ((flags & FRAME_FLAG.endHeaders) === 0) return;
		this.#block = undefined;
		const whole = block.bytes();
		this.#headerBlock(block.stream, block.endStream, whole, 0, whole.length);
	}

	/** Handles a complete header block. It is always decoded, because later blocks depend on it (RFC 9113 §4.3). */
	#headerBlock(id: number, endStream: boolean, bytes: Buffer, start: number, end: number): void {
		const { fields } = this.#coders;
		const opens = id > this.lastStream;
		fields.begin(!opens);
		if (!this.#decoder.decode(bytes, start, end, fields)) {
			this.fail(H2_ERROR.compression);
			return;
		}
		if (opens) this.#open(id, endStream);
		else this.#trailers(id, endStream);
	}

	#open(id: number, endStream: boolean): void {
		const { engine } = this;
		this.lastStream = id;
		if (this.ending.refuses) {
			this.#resets.add(id);
			this.spend('made_you_reset', FRAME_COST.made_you_reset);
			return;
		}
		const { fields } = this.#coders;
		const stream = new Http2Stream(this, id, this.#control.peerWindow, !endStream);
		if (this.streams.size >= BOUND.MAX_CONCURRENT_STREAMS || this.#exchanges >= BOUND.MAX_CONCURRENT_STREAMS) {
			engine.host.refused('refused_stream');
			this.streamError(stream, H2_ERROR.refusedStream);
			return;
		}
		const result = fields.endHead(endStream);
		if (result === SECTION_MALFORMED) {
			engine.host.refused(fields.reason);
			this.streamError(stream, H2_ERROR.protocol);
			return;
		}
		this.streams.set(id, stream);
		engine.counters?.streamOpened();
		if (++this.#requests === engine.limits.maxRequestsPerConnection) this.ending.begin();
		if (result === SECTION_VALID) {
			this.#gate.begin(stream, fields, engine.now);
			return;
		}
		engine.host.refused(fields.reason);
		stream.refuse(result);
	}

	#trailers(id: number, endStream: boolean): void {
		const { fields } = this.#coders;
		const stream = this.streams.get(id);
		if (stream === undefined) {
			// If we have reset the stream, the block was in transit. Otherwise, the stream is closed or was skipped (RFC 9113 §5.1.1).
			if (!this.#resets.has(id)) this.fail(H2_ERROR.streamClosed);
			return;
		}
		if (!stream.remoteOpen) this.streamError(stream, H2_ERROR.streamClosed);
		else if (fields.endTrailers() !== SECTION_VALID || !endStream) {
			this.engine.host.refused(endStream ? fields.reason : 'bad_pseudo_header');
			this.streamError(stream, H2_ERROR.protocol);
		} else if (!stream.endRemote(new HeaderList(fields.items))) this.streamError(stream, H2_ERROR.protocol);
	}

	#resetByClient(id: number, size: number): void {
		if (id === 0 || id > this.lastStream) this.fail(H2_ERROR.protocol);
		else if (size !== 4) this.fail(H2_ERROR.frameSize);
		else {
			const stream = this.streams.get(id);
			this.engine.counters?.streamReset(true);
			if (stream !== undefined) {
				this.streams.delete(id);
				stream.reset();
			}
			// A canceled exchange is wasted work. A completed exchange has already earned this cost.
			this.spend('rapid_reset', FRAME_COST.rapid_reset);
		}
	}

	writeHead(stream: number, status: number, headers: HeaderList, length: number, ends: boolean): void {
		writeHead(
			this.frames,
			this.#coders.responseFields,
			this.engine.now,
			stream,
			status,
			headers,
			length,
			ends,
			!this.#encoded,
		);
		this.#encoded = true;
	}

	writeEnd(stream: number, trailers: readonly HeaderList[]): void {
		writeTrailers(this.frames, this.#coders.responseFields, stream, trailers);
	}

	get share(): number {
		return BOUND.MAX_BUFFERED_BYTES / Math.max(1, this.streams.size);
	}

	holds(bytes: number): void {
		this.#gate.holds(bytes);
	}

	wantsTurn(output: StreamOutput): void {
		this.queue.add(output);
		// Output that was not caused by received bytes is sent asynchronously.
		if (!this.#running) this.queue.soon();
	}

	dataSent(bytes: number): void {
		this.#gate.sent(bytes);
		this.#meter.frameSent();
	}

	dataTaken(stream: Http2Stream | undefined, bytes: number, keepsUp: boolean): void {
		if (this.ending.over) return;
		const increment = this.#window.release(bytes, keepsUp);
		if (increment > 0) this.frames.numbers(FRAME_TYPE.windowUpdate, 0, increment);
		const more = stream?.window.release(bytes, keepsUp) ?? 0;
		if (more > 0) this.frames.numbers(FRAME_TYPE.windowUpdate, stream!.id, more);
		if ((increment > 0 || more > 0) && !this.#running) this.queue.soon();
	}

	streamEnded(stream: Http2Stream): void {
		this.streams.delete(stream.id);
	}

	resetStream(stream: Http2Stream, code: number): void {
		this.frames.numbers(FRAME_TYPE.resetStream, stream.id, code);
		if (code !== H2_ERROR.none) this.engine.counters?.streamReset(false);
		this.streams.delete(stream.id);
		this.#resets.add(stream.id);
		stream.reset();
	}

	exchangeEnded(whole: boolean): void {
		this.#exchanges--;
		if (whole) this.#meter.exchangeDone();
	}

	/** Handles a stream error caused by the client: resets the stream, and charges the connection for it. */
	streamError(stream: Http2Stream, code: number): void {
		this.resetStream(stream, code);
		this.spend('made_you_reset', FRAME_COST.made_you_reset);
	}

	spend(reason: CutReason, cost: number): void {
		if (this.#meter.spend(cost, this.engine.now)) this.#cutOff(H2_ERROR.enhanceYourCalm, reason);
	}

	/** Handles a connection error caused by the client: closes the connection (RFC 9113 §5.4.1). Always returns false. */
	fail(code: number): false {
		this.#cutOff(code, 'protocol_error');
		return false;
	}

	#cutOff(code: number, reason: CutReason): void {
		if (this.ending.over) return;
		this.engine.counters?.cut(reason);
		this.ending.now(this.lastStream, code);
		this.#abandon();
	}

	/** Cancels all work for this client, because nothing more can be sent to it. */
	#abandon(): void {
		const streams = [...this.streams.values()];
		this.streams.clear();
		for (const stream of streams) stream.reset();
	}

	drained(): void {
		this.#deadlines.blocked(false);
		this.settle();
	}

	closed(): void {
		this.ending.closed();
		this.#abandon();
		this.engine.remove(this);
	}
}
