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
import * as LIMITS from './limits.ts';
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

/** Discarded DATA frames with fewer bytes than this are charged to the flood budget: many tiny frames are costly to process. */
const SMALL_DATA_BYTES = 1024;

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
	readonly resetCodes = HTTP2_RESET_CODES;
	readonly frames: FrameWriter;
	sendWindow = DEFAULT_WINDOW;
	readonly #coders: Http2Coders;
	readonly #socket: ClientSocket;
	readonly #input: SocketInput;
	readonly #frameReader: FrameReader = new FrameReader(this);
	readonly #hpackDecoder: HpackDecoder;
	readonly #floodGuard: FloodGuard;
	readonly #receiveWindow = new ReceiveWindow(LIMITS.INITIAL_CONNECTION_WINDOW, LIMITS.MAX_CONNECTION_WINDOW);
	readonly queue: OutputQueue;
	readonly streams = new Map<number, Http2Stream>();
	readonly #recentResets = new RecentResets();
	/** Bodies that received content in the current read and have a waiting reader. */
	readonly #awaitedBodies: StreamBody[] = [];
	readonly sessionEnd: SessionEnd;
	/** Number of unfinished exchanges, including those of reset streams. */
	#exchangeCount = 0;
	readonly #requestGate = new RequestGate(
		() => this.#exchangeCount++,
		() => this.frames.full,
	);
	lastStreamId = 0;
	#requestCount = 0;
	#headerBlock: HeaderBlock | undefined = undefined;
	/** True once the first header block has been sent. */
	#hasSentBlock = false;
	/** True while received bytes are being processed. Writes are then gathered until the end. */
	#isProcessing = false;
	readonly #deadlines: SessionDeadlines;
	readonly #controlFrames: ControlFrames = new ControlFrames(this);

	constructor(
		source: Socket | DirectSocket | TakenOverConnection,
		scheme: 'http' | 'https',
		engine: Http2Engine,
		peer?: ConnectionPeer,
	) {
		engine.refreshLimits();
		this.engine = engine;
		this.#coders = engine.coders;
		const isTakenOver = 'input' in source;
		if (isTakenOver) {
			this.#input = source.input;
			this.#input.sink = this;
		} else this.#input = new SocketInput(source, scheme, this.#coders, this);
		const { socket } = this.#input;
		this.#socket = socket;
		this.scheme = scheme;
		this.info = isTakenOver ? source.info : new SocketInfo(socket, scheme, peer);
		this.info.readAddresses();
		this.frames = new FrameWriter(socket, this.#coders.outputMemory);
		this.#hpackDecoder = new HpackDecoder(this.#coders.stringMemory);
		this.queue = new OutputQueue(this);
		engine.now = performance.now();
		this.#floodGuard = new FloodGuard(engine.now);
		this.sessionEnd = new SessionEnd(socket, this.frames);
		this.#deadlines = new SessionDeadlines(engine);
		engine.add(this, isTakenOver);
		this.frames.writeSettings([
			...[SETTING_ID.maxConcurrentStreams, LIMITS.MAX_CONCURRENT_STREAMS],
			...[SETTING_ID.initialWindowSize, LIMITS.INITIAL_STREAM_WINDOW],
			...[SETTING_ID.maxHeaderListSize, engine.limits.maxHeadSize + engine.limits.maxHeaderCount * 32],
			...[SETTING_ID.enableConnectProtocol, 1, SETTING_ID.noRfc7540Priorities, 1],
		]);
		this.frames.writeNumbers(FRAME_TYPE.windowUpdate, 0, LIMITS.INITIAL_CONNECTION_WINDOW - DEFAULT_WINDOW);
		this.frames.flush();
		if (engine.draining || engine.host.draining) this.drain();
	}

	onData(bytes: Buffer): void {
		if (this.sessionEnd.discardIfEnded(bytes.length)) return;
		if (!this.info.isAddressKnown) {
			this.#socket.destroy();
			return;
		}
		this.#isProcessing = true;
		this.engine.now = performance.now();
		this.#frameReader.read(bytes);
		for (const body of this.#awaitedBodies.splice(0)) body.deliver();
		this.#isProcessing = false;
		this.sendPending();
	}

	/** Called when the client has closed its side: it can no longer acknowledge anything, open windows or read responses. */
	onPeerEnded(): void {
		this.sessionEnd.endNow(this.lastStreamId, H2_ERROR.none);
		this.#abandon();
	}

	/** Sends pending data. Closes the connection if it is shutting down and has no streams left. */
	sendPending(): void {
		if (this.#isProcessing) return;
		this.#isProcessing = true;
		if (!this.sessionEnd.hasEnded) {
			// Waiting requests come first, because one large response could keep the socket full until its end.
			this.#requestGate.startWaiting(this.engine.now);
			do this.queue.run();
			while (this.#requestGate.startWaiting(this.engine.now));
		}
		this.#isProcessing = false;
		this.frames.flush();
		if (this.frames.full) {
			if (this.#deadlines.setBlocked(true)) this.frames.hasProgressed();
			// Replies to control frames are buffered, so a client that does not read them must not send more.
			if (this.frames.unreadControlBytes > LIMITS.MAX_UNREAD_CONTROL_BYTES)
				this.#cutOff(H2_ERROR.enhanceYourCalm, 'unread_control');
		}
		const isIdle = this.streams.size === 0;
		if (isIdle && this.sessionEnd.closeIfEnding()) return;
		this.#deadlines.update(
			isIdle,
			this.lastStreamId,
			this.#headerBlock !== undefined || (isIdle && this.#frameReader.isIncomplete),
		);
	}

	checkDeadlines(now: number): void {
		if (this.sessionEnd.checkDeadlines(now, this.lastStreamId)) return;
		switch (this.#deadlines.findExpired(now)) {
			case 'write':
				if (this.frames.hasProgressed()) {
					this.#deadlines.setBlocked(false);
					break;
				}
				this.engine.host.countRefusal('write_timeout');
				this.engine.counters?.connectionCut('timeout');
				this.#socket.destroy();
				return;
			case 'head':
				this.engine.host.countRefusal('header_timeout');
				this.#cutOff(H2_ERROR.none, 'timeout');
				return;
			case 'idle':
				this.sessionEnd.endNow(this.lastStreamId, H2_ERROR.none);
				return;
		}
		for (const stream of this.streams.values()) stream.checkDeadlines(now);
		this.sendPending();
	}

	drain(): void {
		if (this.sessionEnd.announceShutdown()) this.sendPending();
	}

	get idleSince(): number {
		return this.sessionEnd.hasEnded || this.streams.size > 0 ? Infinity : this.#deadlines.idleSince;
	}

	giveWay(): void {
		this.sessionEnd.endNow(this.lastStreamId, H2_ERROR.none);
		// Pending data is sent, but the connection does not wait for the client to close its side.
		setImmediate(() => this.#socket.destroy());
	}

	destroy(): void {
		this.#socket.destroy();
	}

	onBadPreface(): void {
		this.#cutOff(H2_ERROR.protocol, 'protocol_error');
	}

	onFrameTooLarge(): void {
		this.#cutOff(H2_ERROR.frameSize, 'protocol_error');
	}

	onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
		// The first frame must be SETTINGS, and a header block must not be interrupted by other frames (RFC 9113 §3.4, §4.3).
		if (
			this.#headerBlock !== undefined &&
			(type !== FRAME_TYPE.continuation || streamId !== this.#headerBlock.streamId)
		) {
			return this.fail(H2_ERROR.protocol);
		}
		if (!this.#controlFrames.hasReceivedSettings && type !== FRAME_TYPE.settings) return this.fail(H2_ERROR.protocol);
		switch (type) {
			case FRAME_TYPE.data:
				this.#handleData(flags, streamId, bytes, start, end);
				break;
			case FRAME_TYPE.headers:
				this.#handleHeaders(flags, streamId, bytes, start, end);
				break;
			case FRAME_TYPE.priority:
				this.#controlFrames.handlePriority(streamId, end - start);
				break;
			case FRAME_TYPE.resetStream:
				this.#resetByClient(streamId, end - start);
				break;
			case FRAME_TYPE.settings:
				this.#controlFrames.handleSettings(flags, streamId, bytes, start, end);
				break;
			case FRAME_TYPE.pushPromise:
				this.fail(H2_ERROR.protocol);
				break;
			case FRAME_TYPE.ping:
				this.#controlFrames.handlePing(flags, streamId, bytes, start, end);
				break;
			case FRAME_TYPE.goAway:
				this.#controlFrames.handleGoAway(streamId, end - start);
				break;
			case FRAME_TYPE.windowUpdate:
				this.#controlFrames.handleWindowUpdate(streamId, bytes, start, end);
				break;
			case FRAME_TYPE.continuation:
				this.#handleContinuation(flags, bytes, start, end);
				break;
			default:
				// Extension frames are ignored (RFC 9113 §4.1), but their number is limited.
				this.charge('empty_frames', FRAME_COST.empty_frames);
		}
		return !this.sessionEnd.hasEnded;
	}

	#handleData(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
		const payloadBytes = end - start;
		if (id === 0 || id > this.lastStreamId) {
			this.fail(H2_ERROR.protocol);
			return;
		}
		const contentRange = rangeWithoutPadding(flags, bytes, start, end, 0);
		if (contentRange === undefined) {
			this.fail(H2_ERROR.protocol);
			return;
		}
		if (!this.#receiveWindow.consume(payloadBytes)) {
			this.fail(H2_ERROR.flowControl);
			return;
		}
		const stream = this.streams.get(id);
		if (stream === undefined || !stream.isRemoteOpen) {
			this.onDataConsumed(undefined, payloadBytes, false);
			if (stream !== undefined) this.failStream(stream, H2_ERROR.streamClosed);
			else if (!this.#recentResets.has(id)) this.fail(H2_ERROR.streamClosed);
			else this.charge('empty_frames', payloadBytes === 0 ? FRAME_COST.empty_frames : FRAME_COST.late_data);
			return;
		}
		if (!stream.receiveWindow.consume(payloadBytes)) {
			this.onDataConsumed(undefined, payloadBytes, false);
			this.failStream(stream, H2_ERROR.flowControl);
			return;
		}
		const [contentStart, contentEnd] = contentRange;
		const paddingBytes = payloadBytes - (contentEnd - contentStart);
		if (paddingBytes > 0) this.onDataConsumed(stream, paddingBytes, false);
		if (contentEnd > contentStart) {
			const { body } = stream;
			if (body!.length !== undefined && body!.receivedBytes + contentEnd - contentStart > body!.length) {
				this.onDataConsumed(undefined, contentEnd - contentStart, false);
				this.failStream(stream, H2_ERROR.protocol);
				return;
			}
			if (stream.isDraining && payloadBytes < SMALL_DATA_BYTES) this.charge('empty_frames', FRAME_COST.late_data);
			stream.handleData(bytes, contentStart, contentEnd);
			if (body!.awaited && this.#awaitedBodies.at(-1) !== body) this.#awaitedBodies.push(body!);
		} else if ((flags & FRAME_FLAG.endStream) === 0) this.charge('empty_frames', FRAME_COST.empty_frames);
		if ((flags & FRAME_FLAG.endStream) !== 0 && !stream.isGone && !stream.endRemote(undefined)) {
			this.failStream(stream, H2_ERROR.protocol);
		}
	}

	#handleHeaders(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
		const contentRange = rangeWithoutPadding(flags, bytes, start, end, (flags & FRAME_FLAG.priority) !== 0 ? 5 : 0);
		// Clients open streams with odd, ascending IDs (RFC 9113 §5.1.1).
		if ((id & 1) === 0 || contentRange === undefined) {
			this.fail(H2_ERROR.protocol);
			return;
		}
		const [contentStart, contentEnd] = contentRange;
		const endStream = (flags & FRAME_FLAG.endStream) !== 0;
		if ((flags & FRAME_FLAG.endHeaders) !== 0) {
			this.#handleHeaderBlock(id, endStream, bytes, contentStart, contentEnd);
			return;
		}
		this.#headerBlock = new HeaderBlock(id, endStream, this.engine.limits.maxHeadSize * LIMITS.MAX_BLOCK_FACTOR);
		this.#headerBlock.add(bytes, contentStart, contentEnd);
	}

	#handleContinuation(flags: number, bytes: Buffer, start: number, end: number): void {
		const block = this.#headerBlock;
		if (block === undefined) {
			this.fail(H2_ERROR.protocol);
			return;
		}
		if (!block.add(bytes, start, end)) {
			this.#cutOff(H2_ERROR.enhanceYourCalm, 'continuation_flood');
			return;
		}
		if ((flags & FRAME_FLAG.endHeaders) === 0) return;
		this.#headerBlock = undefined;
		const completeBlock = block.toBytes();
		this.#handleHeaderBlock(block.streamId, block.endStream, completeBlock, 0, completeBlock.length);
	}

	/** Handles a complete header block. It is always decoded, because later blocks depend on it (RFC 9113 §4.3). */
	#handleHeaderBlock(id: number, endStream: boolean, bytes: Buffer, start: number, end: number): void {
		const { requestFields: fields } = this.#coders;
		const opensStream = id > this.lastStreamId;
		fields.beginSection(!opensStream);
		if (!this.#hpackDecoder.decode(bytes, start, end, fields)) {
			this.fail(H2_ERROR.compression);
			return;
		}
		if (opensStream) this.#openStream(id, endStream);
		else this.#endRequest(id, endStream);
	}

	#openStream(id: number, endStream: boolean): void {
		const { engine } = this;
		this.lastStreamId = id;
		if (this.sessionEnd.refusesStreams) {
			this.#recentResets.add(id);
			this.charge('made_you_reset', FRAME_COST.made_you_reset);
			return;
		}
		const { requestFields: fields } = this.#coders;
		const stream = new Http2Stream(this, id, this.#controlFrames.peerStreamWindow, !endStream);
		if (this.streams.size >= LIMITS.MAX_CONCURRENT_STREAMS || this.#exchangeCount >= LIMITS.MAX_CONCURRENT_STREAMS) {
			engine.host.countRefusal('refused_stream');
			this.failStream(stream, H2_ERROR.refusedStream);
			return;
		}
		const result = fields.endHead(endStream);
		if (result === SECTION_MALFORMED) {
			engine.host.countRefusal(fields.reason);
			this.failStream(stream, H2_ERROR.protocol);
			return;
		}
		this.streams.set(id, stream);
		engine.counters?.streamOpened();
		if (++this.#requestCount === engine.limits.maxRequestsPerConnection) this.sessionEnd.announceShutdown();
		if (result === SECTION_VALID) {
			this.#requestGate.startOrDelay(stream, fields, engine.now);
			return;
		}
		engine.host.countRefusal(fields.reason);
		stream.refuse(result);
		// Unlike requests that start exchanges, these do not wait until the client reads.
		if (this.frames.full) this.charge('made_you_reset', FRAME_COST.made_you_reset);
	}

	#endRequest(id: number, endStream: boolean): void {
		const { requestFields: fields } = this.#coders;
		const stream = this.streams.get(id);
		if (stream === undefined) {
			// A block that was in transit when we reset the stream is ignored. If we did not reset it recently, the stream is closed
			// or was skipped (RFC 9113 §5.1.1).
			if (this.#recentResets.has(id)) this.charge('empty_frames', FRAME_COST.late_data);
			else this.fail(H2_ERROR.streamClosed);
			return;
		}
		if (!stream.isRemoteOpen) this.failStream(stream, H2_ERROR.streamClosed);
		else if (fields.endTrailers() !== SECTION_VALID || !endStream) {
			this.engine.host.countRefusal(endStream ? fields.reason : 'bad_pseudo_header');
			this.failStream(stream, H2_ERROR.protocol);
		} else if (!stream.endRemote(new HeaderList(fields.items))) this.failStream(stream, H2_ERROR.protocol);
	}

	#resetByClient(id: number, payloadBytes: number): void {
		if (id === 0 || id > this.lastStreamId) this.fail(H2_ERROR.protocol);
		else if (payloadBytes !== 4) this.fail(H2_ERROR.frameSize);
		else {
			const stream = this.streams.get(id);
			this.engine.counters?.streamReset(true);
			if (stream !== undefined) {
				this.streams.delete(id);
				stream.onReset();
			}
			// An unfinished exchange was wasted work. A finished one has earned credit, which offsets part of the charge.
			this.charge('rapid_reset', FRAME_COST.rapid_reset);
		}
	}

	writeHead(streamId: number, status: number, headers: HeaderList, length: number, endsStream: boolean): void {
		writeHead(
			this.frames,
			this.#coders.responseFields,
			this.engine.now,
			streamId,
			status,
			headers,
			length,
			endsStream,
			!this.#hasSentBlock,
		);
		this.#hasSentBlock = true;
	}

	writeEnd(streamId: number, trailers: readonly HeaderList[]): void {
		writeTrailers(this.frames, this.#coders.responseFields, streamId, trailers);
	}

	get maxBufferedBytes(): number {
		return LIMITS.MAX_BUFFERED_BYTES / Math.max(1, this.streams.size);
	}

	accountBuffered(byteCount: number): void {
		this.#requestGate.accountBuffered(byteCount);
	}

	wantsTurn(output: StreamOutput): void {
		this.queue.add(output);
		// Output that was not caused by received bytes is sent asynchronously.
		if (!this.#isProcessing) this.queue.schedule();
	}

	dataSent(byteCount: number): void {
		this.#requestGate.accountSent(byteCount);
		this.#floodGuard.creditFrame();
	}

	onDataConsumed(stream: Http2Stream | undefined, byteCount: number, keepsUp: boolean): void {
		if (this.sessionEnd.hasEnded) return;
		const increment = this.#receiveWindow.release(byteCount, keepsUp);
		if (increment > 0) this.frames.writeNumbers(FRAME_TYPE.windowUpdate, 0, increment);
		const streamIncrement = stream?.receiveWindow.release(byteCount, keepsUp) ?? 0;
		if (streamIncrement > 0) this.frames.writeNumbers(FRAME_TYPE.windowUpdate, stream!.id, streamIncrement);
		if ((increment > 0 || streamIncrement > 0) && !this.#isProcessing) this.queue.schedule();
	}

	onStreamEnded(stream: Http2Stream): void {
		this.streams.delete(stream.id);
	}

	resetStream(stream: Http2Stream, code: number): void {
		this.frames.writeNumbers(FRAME_TYPE.resetStream, stream.id, code);
		if (code !== H2_ERROR.none) this.engine.counters?.streamReset(false);
		this.streams.delete(stream.id);
		this.#recentResets.add(stream.id);
		stream.onReset();
	}

	onExchangeEnded(isComplete: boolean): void {
		this.#exchangeCount--;
		if (isComplete) this.#floodGuard.creditExchange();
	}

	/** Handles a stream error caused by the client: resets the stream, and charges the connection for it. */
	failStream(stream: Http2Stream, code: number): void {
		this.resetStream(stream, code);
		this.charge('made_you_reset', FRAME_COST.made_you_reset);
	}

	charge(reason: CutReason, cost: number): void {
		if (this.#floodGuard.charge(cost, this.engine.now)) this.#cutOff(H2_ERROR.enhanceYourCalm, reason);
	}

	/** Handles a connection error caused by the client: closes the connection (RFC 9113 §5.4.1). Always returns false. */
	fail(code: number): false {
		this.#cutOff(code, 'protocol_error');
		return false;
	}

	#cutOff(code: number, reason: CutReason): void {
		if (this.sessionEnd.hasEnded) return;
		this.engine.counters?.connectionCut(reason);
		this.sessionEnd.endNow(this.lastStreamId, code);
		this.#abandon();
	}

	/** Cancels all work for this client, because nothing more can be sent to it. */
	#abandon(): void {
		const streams = [...this.streams.values()];
		this.streams.clear();
		for (const stream of streams) stream.onReset();
	}

	onDrained(): void {
		this.#deadlines.setBlocked(false);
		this.sendPending();
	}

	onClosed(): void {
		this.sessionEnd.onSocketClosed();
		this.#abandon();
		this.engine.remove(this);
	}
}
