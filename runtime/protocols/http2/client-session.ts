/** The client side of an HTTP/2 connection, with our own engine (RFC 9113). */
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { UpstreamError, type UpstreamRequest } from '../../../compiler/exchange/leases.ts';
import { socketErrorText, type UpstreamSocket, type UpstreamSocketOwner } from '../../sockets/upstream-socket.ts';
import type { ClientCall, ClientOptions } from '../http1/client-call.ts';
import { RequestEncoder, ResponseReader } from './client-fields.ts';
import { ClientStream, MIN_STREAM_WINDOW, type StreamSession } from './client-stream.ts';
import {
	CLIENT_PREFACE,
	DEFAULT_WINDOW,
	FRAME_FLAG,
	FRAME_TYPE,
	H2_ERROR,
	MAX_WINDOW,
	SETTING_ID,
} from './frame-codes.ts';
import { FrameReader, type FrameSink } from './frame-reader.ts';
import { FrameWriter } from './frame-writer.ts';
import { HeaderBlock } from './header-block.ts';
import { HpackDecoder, StringMemory } from './hpack-decoder.ts';
import { INITIAL_CONNECTION_WINDOW, LINGER_MS, MAX_CONNECTION_WINDOW, MAX_UNREAD_CONTROL_BYTES } from './limits.ts';
import { OutputMemory } from './output-memory.ts';
import { OutputQueue, type QueueOwner } from './output-queue.ts';
import { ReceiveWindow } from './receive-window.ts';
import type { StreamOutput } from './stream-output.ts';

/** Maximum number of replies to control frames that the upstream may leave unread while exchanges are in progress. */
const MAX_UNREAD_REPLIES = 1000;

/** Maximum number of concurrent streams of a connection until the upstream's settings arrive. */
const INITIAL_MAX_STREAMS = 100;
/** Maximum number of concurrent streams of a connection, whatever the upstream allows. */
const MAX_CONCURRENT_STREAMS = 1000;
/** Maximum bytes of a header block, that is, of a HEADERS frame and its CONTINUATION frames. */
const MAX_BLOCK_BYTES = 262_144;
/** Once the stream with this ID has been used, a connection accepts no more requests. */
const LAST_STREAM_ID = 0x7fffffff - 2;
const EMPTY_BYTES = new Uint8Array(0);

/** Encoder and buffers shared by the connections of one pool on one thread. */
export class ClientCoders {
	readonly outputMemory: OutputMemory = new OutputMemory();
	readonly encoder: RequestEncoder = new RequestEncoder();
	readonly stringMemory: StringMemory = new StringMemory(Math.ceil((MAX_BLOCK_BYTES * 8) / 5));
}

/** Callbacks of the connection's owner. */
export interface SessionKeeper {
	/** Called when the connection may have a free stream again. */
	onSessionFreed(session: ClientSession): void;
	/** Called when the connection has no streams left. */
	onSessionIdle(session: ClientSession): void;
	/** Called once, when the connection stops accepting requests. */
	onSessionLost(session: ClientSession): void;
}

/** An HTTP/2 connection to an upstream. */
export class ClientSession implements UpstreamSocketOwner, FrameSink, QueueOwner, StreamSession {
	/** The time, by `performance.now()`, when the last exchange ended. Set by the {@link SessionKeeper}. */
	idleSince = 0;
	hasCarriedResponse = false;
	readonly frames: FrameWriter;
	sendWindow: number = DEFAULT_WINDOW;
	peerStreamWindow: number = DEFAULT_WINDOW;
	readonly #upstreamSocket: UpstreamSocket;
	readonly #scheme: 'http' | 'https';
	readonly #options: ClientOptions;
	readonly #coders: ClientCoders;
	readonly #keeper: SessionKeeper;
	readonly #outputQueue: OutputQueue;
	readonly #frameReader: FrameReader;
	readonly #hpackDecoder: HpackDecoder;
	readonly #responseReader: ResponseReader;
	readonly #receiveWindow = new ReceiveWindow(INITIAL_CONNECTION_WINDOW, MAX_CONNECTION_WINDOW);
	readonly #streams = new Map<number, ClientStream>();
	#nextStreamId = 1;
	#isFirstBlock = true;
	#headerBlock: HeaderBlock | undefined = undefined;
	#maxConcurrentStreams = INITIAL_MAX_STREAMS;
	#supportsUpgrades = false;
	/**
	 * Functions that start the requests waiting for the upstream's settings. Undefined once the settings have arrived, or once they
	 * can no longer arrive.
	 */
	#settingsCallbacks: (() => void)[] | undefined = [];
	/**
	 * Streams whose request bodies are held back. A body is held back until the upstream has announced its stream
	 * limit, and then as long as the number of earlier open streams reaches that limit. The upstream usually refuses
	 * streams beyond its limit, and a request whose body has not been sent can then be sent again.
	 */
	readonly #streamsHoldingBody = new Set<ClientStream>();
	#isRetired = false;
	#isClosed = false;
	/** Number of replies to control frames that the upstream has not read. */
	#unreadReplyCount = 0;
	#failure: Error | undefined = undefined;

	/** Takes over a connected socket, and sends the connection preface. */
	constructor(
		upstreamSocket: UpstreamSocket,
		scheme: 'http' | 'https',
		options: ClientOptions,
		coders: ClientCoders,
		keeper: SessionKeeper,
	) {
		this.#upstreamSocket = upstreamSocket;
		this.#scheme = scheme;
		this.#options = options;
		this.#coders = coders;
		this.#keeper = keeper;
		this.#outputQueue = new OutputQueue(this);
		this.frames = new FrameWriter(upstreamSocket.socket, coders.outputMemory);
		this.#frameReader = new FrameReader(this, false);
		this.#hpackDecoder = new HpackDecoder(coders.stringMemory);
		const maxFieldBytes = Math.min(options.maxResponseHead, MAX_BLOCK_BYTES);
		this.#responseReader = new ResponseReader(maxFieldBytes);
		upstreamSocket.holder = this;
		upstreamSocket.socket.on('drain', () => this.sendPending());
		upstreamSocket.socket.write(CLIENT_PREFACE, 'latin1');
		this.frames.writeSettings([
			...[SETTING_ID.enablePush, 0, SETTING_ID.initialWindowSize, MIN_STREAM_WINDOW],
			...[SETTING_ID.maxHeaderListSize, maxFieldBytes],
		]);
		this.frames.writeNumbers(FRAME_TYPE.windowUpdate, 0, INITIAL_CONNECTION_WINDOW - DEFAULT_WINDOW);
	}

	/** Number of exchanges in progress. */
	get activeCount(): number {
		return this.#streams.size;
	}

	/** True if the connection accepts another request now. */
	get hasRoom(): boolean {
		return !this.#isRetired && this.#streams.size < this.#maxConcurrentStreams;
	}

	/** Sends a request. Allowed only if `hasRoom`. */
	sendRequest(call: ClientCall): void {
		if (call.request.upgrade === undefined || this.#settingsCallbacks === undefined) this.#openStream(call);
		else {
			// The request waits for the upstream's settings, which say whether it supports extended CONNECT (RFC 8441 §3).
			let isWaiting = true;
			call.carrier = {
				cancel: () => {
					if (!isWaiting) return;
					isWaiting = false;
					call.onFailure(new UpstreamError('response', 'the request was canceled'), false);
				},
			};
			this.#settingsCallbacks.push(() => {
				if (!isWaiting) return;
				isWaiting = false;
				this.#openStream(call);
			});
		}
	}

	#openStream(call: ClientCall): void {
		if (this.#isClosed || (call.request.upgrade !== undefined && !this.#supportsUpgrades)) {
			const message = this.#failure?.message ?? 'the upstream does not support upgrades over HTTP/2';
			call.onFailure(new UpstreamError('request', message, undefined, true), false);
			return;
		}
		const id = this.#nextStreamId;
		this.#nextStreamId += 2;
		const stream = new ClientStream(id, this, call, this.#options);
		this.#streams.set(id, stream);
		if (id >= LAST_STREAM_ID) this.#retire();
		stream.start();
		this.#outputQueue.schedule();
	}

	/** Stops accepting requests, and closes the connection after the last exchange. */
	retire(): void {
		this.#retire();
		if (this.#streams.size === 0) this.end();
	}

	/** Closes the connection, which ends its exchanges. */
	end(): void {
		if (this.#isClosed) return;
		this.#retire();
		const payloadStart = this.frames.beginFrame(8, FRAME_TYPE.goAway, 0, 0);
		this.frames.bytes.fill(0, payloadStart, payloadStart + 8);
		this.frames.flush();
		this.#close(new Error('the connection was closed'));
	}

	// Called by the output queue (QueueOwner).

	sendPending(): void {
		if (this.#isClosed || this.#upstreamSocket.isBroken) return;
		this.#outputQueue.run();
		this.frames.flush();
	}

	// Members that the streams use (StreamSession).

	/** Buffered bytes are not limited here, because request bodies are limited where they are received. */
	readonly maxBufferedBytes: number = Infinity;

	accountBuffered(): void {}

	wantsTurn(output: StreamOutput): void {
		this.#outputQueue.add(output);
		this.#outputQueue.schedule();
	}

	dataSent(): void {}

	admitsBody(stream: ClientStream, force: boolean): boolean {
		this.#streamsHoldingBody.delete(stream);
		if (force) return true;
		if (
			this.#settingsCallbacks === undefined &&
			this.#streams.size - this.#streamsHoldingBody.size <= this.#maxConcurrentStreams
		)
			return true;
		this.#streamsHoldingBody.add(stream);
		return false;
	}

	writeHead(stream: ClientStream, request: UpstreamRequest, endsStream: boolean, length: number | undefined): void {
		const block = this.#coders.encoder.encodeHead(request, this.#scheme, this.#isFirstBlock, length);
		this.#isFirstBlock = false;
		this.frames.writeHeaders(stream.id, endsStream, [block]);
	}

	writeEnd(stream: ClientStream, trailers: HeaderList | undefined): void {
		if (this.#isClosed) return;
		if (trailers && trailers.size > 0)
			this.frames.writeHeaders(stream.id, true, [this.#coders.encoder.encodeTrailers(trailers)]);
		else this.frames.writeData(stream.id, true, EMPTY_BYTES, 0, 0);
		this.#outputQueue.schedule();
	}

	writeReset(stream: ClientStream, code: number): void {
		if (this.#isClosed) return;
		this.frames.writeNumbers(FRAME_TYPE.resetStream, stream.id, code);
		this.#outputQueue.schedule();
	}

	writeWindow(stream: ClientStream, increment: number): void {
		if (this.#isClosed) return;
		this.frames.writeNumbers(FRAME_TYPE.windowUpdate, stream.id, increment);
		this.#outputQueue.schedule();
	}

	onStreamEnded(stream: ClientStream, isComplete: boolean): void {
		if (!this.#streams.delete(stream.id)) return;
		this.#streamsHoldingBody.delete(stream);
		if (isComplete) this.hasCarriedResponse = true;
		this.#startBodies();
		if (!this.#isClosed) this.#keeper.onSessionFreed(this);
		if (this.#streams.size > 0 || this.#isClosed) return;
		if (this.#isRetired) this.end();
		else this.#keeper.onSessionIdle(this);
	}

	// Called by the upstream socket (UpstreamSocketOwner).

	onReceived(bytes: Buffer, count: number): boolean {
		if (this.#isClosed) return false;
		this.#frameReader.read(count === bytes.length ? bytes : bytes.subarray(0, count));
		this.sendPending();
		return true;
	}

	onWriteFailed(): void {
		this.#retire();
	}

	onPeerEnded(): void {
		this.#close(new Error('the connection was closed'));
	}

	onClosed(error: Error | undefined): void {
		this.#close(new Error(error ? socketErrorText(error) : 'the connection was closed'));
	}

	// Called by the frame reader (FrameSink).

	onBadPreface(): void {}

	onFrameTooLarge(): void {
		this.#fail(H2_ERROR.frameSize, 'a frame is too large');
	}

	onFrame(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
		if (this.#headerBlock && (type !== FRAME_TYPE.continuation || id !== this.#headerBlock.streamId)) {
			return this.#fail(H2_ERROR.protocol, 'a block of fields was interrupted');
		}
		switch (type) {
			case FRAME_TYPE.data:
				return this.#handleData(flags, id, bytes, start, end);
			case FRAME_TYPE.headers:
				return this.#handleHeaders(flags, id, bytes, start, end);
			case FRAME_TYPE.continuation:
				return this.#handleContinuation(flags, bytes, start, end);
			case FRAME_TYPE.resetStream:
				if (end - start !== 4) return this.#fail(H2_ERROR.frameSize, 'a reset has no code');
				if (!this.#wasOpened(id)) return this.#fail(H2_ERROR.protocol, 'a reset of an unknown stream');
				this.#streams.get(id)?.handleReset(bytes.readUInt32BE(start));
				return !this.#isClosed;
			case FRAME_TYPE.settings:
				return this.#handleSettings(flags, id, bytes, start, end);
			case FRAME_TYPE.ping:
				if (id !== 0 || end - start !== 8) return this.#fail(H2_ERROR.protocol, 'a ping is malformed');
				if ((flags & FRAME_FLAG.ack) === 0) {
					if (!this.#mayReply()) return false;
					this.frames.writePing(bytes.subarray(start, end), true);
				}
				return true;
			case FRAME_TYPE.goAway:
				if (id !== 0 || end - start < 8) return this.#fail(H2_ERROR.protocol, 'a GOAWAY frame is malformed');
				this.#handleGoAway(bytes.readUInt32BE(start) & MAX_WINDOW, bytes.readUInt32BE(start + 4));
				return !this.#isClosed;
			case FRAME_TYPE.windowUpdate:
				return this.#handleWindowUpdate(id, bytes, start, end);
			case FRAME_TYPE.pushPromise:
				return this.#fail(H2_ERROR.protocol, 'a server push that was not enabled');
			default:
				return true;
		}
	}

	/** Reports whether we have opened this stream. */
	#wasOpened(id: number): boolean {
		return (id & 1) === 1 && id < this.#nextStreamId;
	}

	/**
	 * Limits the unread replies to control frames, in case the upstream does not read. If there are too many, fails the connection
	 * and returns false.
	 */
	#mayReply(): boolean {
		if (this.#upstreamSocket.socket.writableLength <= MAX_UNREAD_CONTROL_BYTES) {
			this.#unreadReplyCount = 0;
			return true;
		}
		// If the socket is full of request bodies, the upstream may be reading them slowly. It may then send some control frames
		// without reading our replies.
		const maxUnread = this.#streams.size > 0 ? MAX_UNREAD_REPLIES : 0;
		return ++this.#unreadReplyCount <= maxUnread || this.#fail(H2_ERROR.enhanceYourCalm, 'too many control frames');
	}

	#handleData(flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
		const frameBytes = end - start;
		if (!this.#wasOpened(id)) return this.#fail(H2_ERROR.protocol, 'content of an unknown stream');
		let contentStart = start;
		let contentEnd = end;
		if ((flags & FRAME_FLAG.padded) !== 0) {
			const padding = frameBytes > 0 ? bytes[contentStart++]! : 0;
			contentEnd -= padding;
			if (contentEnd < contentStart) return this.#fail(H2_ERROR.protocol, 'padding is longer than its frame');
		}
		if (!this.#receiveWindow.consume(frameBytes))
			return this.#fail(H2_ERROR.flowControl, 'the flow-control window was exceeded');
		// The connection's window is reopened at once, because each stream has its own window and an unread stream must not block
		// the others.
		const increment = this.#receiveWindow.release(frameBytes, true);
		if (increment > 0) this.frames.writeNumbers(FRAME_TYPE.windowUpdate, 0, increment);
		const stream = this.#streams.get(id);
		if (
			stream &&
			!stream.handleData(bytes, contentStart, contentEnd, frameBytes, (flags & FRAME_FLAG.endStream) !== 0)
		) {
			return this.#fail(H2_ERROR.flowControl, 'the flow-control window was exceeded');
		}
		return !this.#isClosed;
	}

	#handleHeaders(flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
		if (!this.#wasOpened(id)) return this.#fail(H2_ERROR.protocol, 'fields of an unknown stream');
		let contentStart = start;
		let contentEnd = end;
		if ((flags & FRAME_FLAG.padded) !== 0) contentEnd -= bytes[contentStart++] ?? 0;
		if ((flags & FRAME_FLAG.priority) !== 0) contentStart += 5;
		if (contentEnd < contentStart) return this.#fail(H2_ERROR.protocol, 'padding is longer than its frame');
		const endsStream = (flags & FRAME_FLAG.endStream) !== 0;
		if ((flags & FRAME_FLAG.endHeaders) !== 0) return this.#decode(id, endsStream, bytes, contentStart, contentEnd);
		this.#headerBlock = new HeaderBlock(id, endsStream, MAX_BLOCK_BYTES);
		return (
			this.#headerBlock.add(bytes, contentStart, contentEnd) ||
			this.#fail(H2_ERROR.enhanceYourCalm, 'the response head is too large')
		);
	}

	#handleContinuation(flags: number, bytes: Buffer, start: number, end: number): boolean {
		const block = this.#headerBlock;
		if (!block) return this.#fail(H2_ERROR.protocol, 'a continuation without a block of fields');
		if (!block.add(bytes, start, end)) return this.#fail(H2_ERROR.enhanceYourCalm, 'the response head is too large');
		if ((flags & FRAME_FLAG.endHeaders) === 0) return true;
		this.#headerBlock = undefined;
		const completeBlock = block.toBytes();
		return this.#decode(block.streamId, block.endStream, completeBlock, 0, completeBlock.length);
	}

	#decode(id: number, endsStream: boolean, bytes: Buffer, start: number, end: number): boolean {
		const responseReader = this.#responseReader;
		responseReader.begin();
		// Header blocks depend on previous ones, so the blocks of ended streams must be decoded, too.
		if (!this.#hpackDecoder.decode(bytes, start, end, responseReader))
			return this.#fail(H2_ERROR.compression, 'fields are malformed');
		this.#streams.get(id)?.handleFields(responseReader, endsStream);
		return !this.#isClosed;
	}

	#handleSettings(flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
		if (id !== 0 || (end - start) % 6 !== 0) return this.#fail(H2_ERROR.frameSize, 'settings are malformed');
		if ((flags & FRAME_FLAG.ack) !== 0) return true;
		if (!this.#mayReply()) return false;
		for (let at = start; at < end; at += 6) {
			const value = bytes.readUInt32BE(at + 2);
			switch (bytes.readUInt16BE(at)) {
				case SETTING_ID.maxConcurrentStreams:
					this.#maxConcurrentStreams = Math.min(value, MAX_CONCURRENT_STREAMS);
					break;
				case SETTING_ID.enableConnectProtocol:
					this.#supportsUpgrades = value === 1;
					break;
				case SETTING_ID.initialWindowSize: {
					if (value > MAX_WINDOW) return this.#fail(H2_ERROR.flowControl, 'a flow-control window is too large');
					const windowChange = value - this.peerStreamWindow;
					this.peerStreamWindow = value;
					for (const { output } of this.#streams.values()) {
						if (!output.widenWindow(windowChange))
							return this.#fail(H2_ERROR.flowControl, 'a flow-control window is too large');
					}
				}
			}
		}
		this.frames.writeSettings([]);
		this.#runSettingsCallbacks();
		if (!this.#isClosed) this.#keeper.onSessionFreed(this);
		return !this.#isClosed;
	}

	#handleWindowUpdate(id: number, bytes: Buffer, start: number, end: number): boolean {
		if (end - start !== 4) return this.#fail(H2_ERROR.frameSize, 'a window update is malformed');
		const increment = bytes.readUInt32BE(start) & MAX_WINDOW;
		if (id === 0) {
			this.sendWindow += increment;
			if (increment === 0 || this.sendWindow > MAX_WINDOW) {
				return this.#fail(H2_ERROR.flowControl, 'a flow-control window is too large');
			}
			this.#outputQueue.onWindowGrown();
			return true;
		}
		if (!this.#wasOpened(id)) return this.#fail(H2_ERROR.protocol, 'a window update of an unknown stream');
		const stream = this.#streams.get(id);
		if (!stream || stream.output.widenWindow(increment)) return true;
		return this.#fail(H2_ERROR.flowControl, 'a flow-control window is too large');
	}

	/**
	 * Handles a GOAWAY. Streams above `lastStreamId` were not processed, so their requests may be sent elsewhere (RFC 9113 §6.8).
	 */
	#handleGoAway(lastStreamId: number, code: number): void {
		this.#retire();
		const message =
			code === 0 ? 'the connection is going away' : `the upstream closed the connection with code ${code}`;
		for (const stream of [...this.#streams.values()]) {
			if (stream.id > lastStreamId) stream.connectionLost(new Error(message), true);
		}
		if (this.#streams.size === 0) this.end();
	}

	#runSettingsCallbacks(): void {
		const callbacks = this.#settingsCallbacks ?? [];
		this.#settingsCallbacks = undefined;
		for (const callback of callbacks) callback();
		this.#startBodies();
	}

	#startBodies(): void {
		if (this.#settingsCallbacks !== undefined || this.#isClosed) return;
		for (const stream of this.#streamsHoldingBody) {
			if (this.#streams.size - this.#streamsHoldingBody.size >= this.#maxConcurrentStreams) return;
			this.#streamsHoldingBody.delete(stream);
			stream.startBody();
		}
	}

	#retire(): void {
		if (this.#isRetired) return;
		this.#isRetired = true;
		this.#keeper.onSessionLost(this);
	}

	/** Closes the connection because the upstream violated the protocol. Always returns false. */
	#fail(code: number, message: string): false {
		if (this.#isClosed) return false;
		this.#retire();
		const payloadStart = this.frames.beginFrame(8, FRAME_TYPE.goAway, 0, 0);
		this.frames.bytes.writeUInt32BE(0, payloadStart);
		this.frames.bytes.writeUInt32BE(code, payloadStart + 4);
		this.frames.flush();
		this.#close(new Error(message));
		return false;
	}

	#close(error: Error): void {
		if (this.#isClosed) return;
		this.#isClosed = true;
		this.#failure = error;
		this.#retire();
		for (const stream of [...this.#streams.values()]) stream.connectionLost(error, false);
		this.#runSettingsCallbacks();
		const { socket } = this.#upstreamSocket;
		if (socket.writableLength === 0 || socket.destroyed) {
			socket.destroy();
			return;
		}
		// If the upstream reads, it receives the pending GOAWAY before the end of the connection.
		socket.destroySoon();
		setTimeout(() => socket.destroy(), LINGER_MS).unref();
	}
}
