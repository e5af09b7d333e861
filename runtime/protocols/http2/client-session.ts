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

/** Maximum replies to control frames that the upstream has not read, while there are exchanges on the connection. */
const MAX_UNREAD_ANSWERS = 1000;

/** Maximum number of concurrent streams of a connection until the upstream's settings arrive. */
const FIRST_STREAMS = 100;
/** Maximum number of concurrent streams of a connection, whatever the upstream allows. */
const MAX_STREAMS = 1000;
/** Maximum bytes of a header block, which consists of HEADERS and CONTINUATION frames. */
const MAX_BLOCK = 262_144;
/** After the stream with this ID, a connection accepts no more requests. */
const LAST_STREAM = 0x7fffffff - 2;
const EMPTY = new Uint8Array(0);

/** State shared by the connections of one pool on one thread. */
export class ClientCoders {
	readonly output: OutputMemory = new OutputMemory();
	readonly encoder: RequestEncoder = new RequestEncoder();
	readonly strings: StringMemory = new StringMemory(Math.ceil((MAX_BLOCK * 8) / 5));
}

/** Callbacks of the connection's owner. */
export interface SessionKeeper {
	/** Called when the connection may have a free stream again. */
	sessionFreed(session: ClientSession): void;
	/** Called when the connection has no streams left. */
	sessionIdle(session: ClientSession): void;
	/** Called once, when the connection accepts no more requests. */
	sessionLost(session: ClientSession): void;
}

/** An HTTP/2 connection to an upstream. */
export class ClientSession implements UpstreamSocketOwner, FrameSink, QueueOwner, StreamSession {
	/** When the last exchange ended, by `performance.now()`. Set by the keeper. */
	idleSince = 0;
	proven = false;
	readonly frames: FrameWriter;
	sendWindow: number = DEFAULT_WINDOW;
	peerWindow: number = DEFAULT_WINDOW;
	readonly #wire: UpstreamSocket;
	readonly #scheme: 'http' | 'https';
	readonly #options: ClientOptions;
	readonly #coders: ClientCoders;
	readonly #keeper: SessionKeeper;
	readonly #queue: OutputQueue;
	readonly #reader: FrameReader;
	readonly #decoder: HpackDecoder;
	readonly #fields: ResponseReader;
	readonly #window = new ReceiveWindow(INITIAL_CONNECTION_WINDOW, MAX_CONNECTION_WINDOW);
	readonly #streams = new Map<number, ClientStream>();
	#next = 1;
	#first = true;
	#block: HeaderBlock | undefined = undefined;
	#mostStreams = FIRST_STREAMS;
	#takesUpgrades = false;
	/** Requests that wait for the upstream's settings. Undefined once the settings have arrived, or will never arrive. */
	#unsettled: (() => void)[] | undefined = [];
	/**
	 * Streams whose request bodies are held back: until the upstream has announced its stream limit, and after that while at least
	 * as many earlier streams are open. The upstream usually refuses streams beyond its limit, and these can then be sent again.
	 */
	readonly #held = new Set<ClientStream>();
	#retired = false;
	#closed = false;
	/** Number of replies to control frames that the upstream has not read. */
	#unread = 0;
	#failure: Error | undefined = undefined;

	/** Takes over a connected socket, and sends the connection preface. */
	constructor(
		wire: UpstreamSocket,
		scheme: 'http' | 'https',
		options: ClientOptions,
		coders: ClientCoders,
		keeper: SessionKeeper,
	) {
		this.#wire = wire;
		this.#scheme = scheme;
		this.#options = options;
		this.#coders = coders;
		this.#keeper = keeper;
		this.#queue = new OutputQueue(this);
		this.frames = new FrameWriter(wire.socket, coders.output);
		this.#reader = new FrameReader(this, false);
		this.#decoder = new HpackDecoder(coders.strings);
		const mostFields = Math.min(options.maxResponseHead, MAX_BLOCK);
		this.#fields = new ResponseReader(mostFields);
		wire.holder = this;
		wire.socket.on('drain', () => this.settle());
		wire.socket.write(CLIENT_PREFACE, 'latin1');
		this.frames.settings([
			...[SETTING_ID.enablePush, 0, SETTING_ID.initialWindowSize, MIN_STREAM_WINDOW],
			...[SETTING_ID.maxHeaderListSize, mostFields],
		]);
		this.frames.numbers(FRAME_TYPE.windowUpdate, 0, INITIAL_CONNECTION_WINDOW - DEFAULT_WINDOW);
	}

	/** Number of exchanges in progress. */
	get active(): number {
		return this.#streams.size;
	}

	/** True if the connection accepts another request now. */
	get hasRoom(): boolean {
		return !this.#retired && this.#streams.size < this.#mostStreams;
	}

	/** Sends a request. Allowed only if `hasRoom`. */
	carry(call: ClientCall): void {
		if (call.request.upgrade === undefined || this.#unsettled === undefined) this.#carry(call);
		else {
			// The request waits for the upstream's settings, which say whether it supports extended CONNECT (RFC 8441 §3).
			let waits = true;
			call.carrier = {
				cancel: () => {
					if (!waits) return;
					waits = false;
					call.failed(new UpstreamError('response', 'the request was canceled'), false);
				},
			};
			this.#unsettled.push(() => {
				if (!waits) return;
				waits = false;
				this.#carry(call);
			});
		}
	}

	#carry(call: ClientCall): void {
		if (this.#closed || (call.request.upgrade !== undefined && !this.#takesUpgrades)) {
			const message = this.#failure?.message ?? 'the upstream does not support upgrades over HTTP/2';
			call.failed(new UpstreamError('request', message, undefined, true), false);
			return;
		}
		const id = this.#next;
		this.#next += 2;
		const stream = new ClientStream(id, this, call, this.#options);
		this.#streams.set(id, stream);
		if (id >= LAST_STREAM) this.#retire();
		stream.begin();
		this.#queue.soon();
	}

	/** Stops accepting requests, and closes the connection after the last exchange. */
	retire(): void {
		this.#retire();
		if (this.#streams.size === 0) this.end();
	}

	/** Closes the connection, which ends its exchanges. */
	end(): void {
		if (this.#closed) return;
		this.#retire();
		const at = this.frames.begin(8, FRAME_TYPE.goAway, 0, 0);
		this.frames.bytes.fill(0, at, at + 8);
		this.frames.flush();
		this.#close(new Error('the connection was closed'));
	}

	// QueueOwner.

	settle(): void {
		if (this.#closed || this.#wire.broken) return;
		this.#queue.run();
		this.frames.flush();
	}

	// Implementation of StreamSession.

	/** Unlimited here, because request bodies are limited where they are received. */
	readonly share: number = Infinity;

	holds(): void {}

	wantsTurn(output: StreamOutput): void {
		this.#queue.add(output);
		this.#queue.soon();
	}

	dataSent(): void {}

	admitsBody(stream: ClientStream, anyway: boolean): boolean {
		this.#held.delete(stream);
		if (anyway) return true;
		if (this.#unsettled === undefined && this.#streams.size - this.#held.size <= this.#mostStreams) return true;
		this.#held.add(stream);
		return false;
	}

	writeHead(stream: ClientStream, request: UpstreamRequest, ends: boolean, length: number | undefined): void {
		const block = this.#coders.encoder.head(request, this.#scheme, this.#first, length);
		this.#first = false;
		this.frames.headers(stream.id, ends, [block]);
	}

	writeEnd(stream: ClientStream, trailers: HeaderList | undefined): void {
		if (this.#closed) return;
		if (trailers && trailers.size > 0) this.frames.headers(stream.id, true, [this.#coders.encoder.trailers(trailers)]);
		else this.frames.data(stream.id, true, EMPTY, 0, 0);
		this.#queue.soon();
	}

	writeReset(stream: ClientStream, code: number): void {
		if (this.#closed) return;
		this.frames.numbers(FRAME_TYPE.resetStream, stream.id, code);
		this.#queue.soon();
	}

	writeWindow(stream: ClientStream, increment: number): void {
		if (this.#closed) return;
		this.frames.numbers(FRAME_TYPE.windowUpdate, stream.id, increment);
		this.#queue.soon();
	}

	streamEnded(stream: ClientStream, whole: boolean): void {
		if (!this.#streams.delete(stream.id)) return;
		this.#held.delete(stream);
		if (whole) this.proven = true;
		this.#startBodies();
		if (!this.#closed) this.#keeper.sessionFreed(this);
		if (this.#streams.size > 0 || this.#closed) return;
		if (this.#retired) this.end();
		else this.#keeper.sessionIdle(this);
	}

	// Implementation of UpstreamSocketOwner.

	received(bytes: Buffer, count: number): boolean {
		if (this.#closed) return false;
		this.#reader.read(count === bytes.length ? bytes : bytes.subarray(0, count));
		this.settle();
		return true;
	}

	writeFailed(): void {
		this.#retire();
	}

	ended(): void {
		this.#close(new Error('the connection was closed'));
	}

	closed(error: Error | undefined): void {
		this.#close(new Error(error ? socketErrorText(error) : 'the connection was closed'));
	}

	// FrameSink.

	badPreface(): void {}

	oversize(): void {
		this.#fail(H2_ERROR.frameSize, 'a frame is too large');
	}

	frame(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
		if (this.#block && (type !== FRAME_TYPE.continuation || id !== this.#block.stream)) {
			return this.#fail(H2_ERROR.protocol, 'a block of fields was interrupted');
		}
		switch (type) {
			case FRAME_TYPE.data:
				return this.#data(flags, id, bytes, start, end);
			case FRAME_TYPE.headers:
				return this.#headers(flags, id, bytes, start, end);
			case FRAME_TYPE.continuation:
				return this.#continuation(flags, bytes, start, end);
			case FRAME_TYPE.resetStream:
				if (end - start !== 4) return this.#fail(H2_ERROR.frameSize, 'a reset has no code');
				if (!this.#known(id)) return this.#fail(H2_ERROR.protocol, 'a reset of an unknown stream');
				this.#streams.get(id)?.reset(bytes.readUInt32BE(start));
				return !this.#closed;
			case FRAME_TYPE.settings:
				return this.#settings(flags, id, bytes, start, end);
			case FRAME_TYPE.ping:
				if (id !== 0 || end - start !== 8) return this.#fail(H2_ERROR.protocol, 'a ping is malformed');
				if ((flags & FRAME_FLAG.ack) === 0) {
					if (!this.#mayAnswer()) return false;
					this.frames.ping(bytes.subarray(start, end), true);
				}
				return true;
			case FRAME_TYPE.goAway:
				if (id !== 0 || end - start < 8) return this.#fail(H2_ERROR.protocol, 'a GOAWAY frame is malformed');
				this.#goAway(bytes.readUInt32BE(start) & MAX_WINDOW, bytes.readUInt32BE(start + 4));
				return !this.#closed;
			case FRAME_TYPE.windowUpdate:
				return this.#windowUpdate(id, bytes, start, end);
			case FRAME_TYPE.pushPromise:
				return this.#fail(H2_ERROR.protocol, 'a server push that was not enabled');
			default:
				return true;
		}
	}

	/** Reports whether we have opened this stream. */
	#known(id: number): boolean {
		return (id & 1) === 1 && id < this.#next;
	}

	/** Limits the replies to control frames that accumulate if the upstream does not read. Returns false after failing the connection. */
	#mayAnswer(): boolean {
		if (this.#wire.socket.writableLength <= MAX_UNREAD_CONTROL_BYTES) {
			this.#unread = 0;
			return true;
		}
		// The socket may also be full of request bodies. An upstream that reads them slowly may still send some control frames.
		const most = this.#streams.size > 0 ? MAX_UNREAD_ANSWERS : 0;
		return ++this.#unread <= most || this.#fail(H2_ERROR.enhanceYourCalm, 'too many control frames');
	}

	#data(flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
		const whole = end - start;
		if (!this.#known(id)) return this.#fail(H2_ERROR.protocol, 'content of an unknown stream');
		let from = start;
		let to = end;
		if ((flags & FRAME_FLAG.padded) !== 0) {
			const padding = whole > 0 ? bytes[from++]! : 0;
			to -= padding;
			if (to < from) return this.#fail(H2_ERROR.protocol, 'padding is longer than its frame');
		}
		if (!this.#window.take(whole)) return this.#fail(H2_ERROR.flowControl, 'the flow-control window was exceeded');
		// The connection's window is reopened at once, because each stream has its own window and an unread stream must not block
		// the others.
		const increment = this.#window.release(whole, true);
		if (increment > 0) this.frames.numbers(FRAME_TYPE.windowUpdate, 0, increment);
		const stream = this.#streams.get(id);
		if (stream && !stream.data(bytes, from, to, whole, (flags & FRAME_FLAG.endStream) !== 0)) {
			return this.#fail(H2_ERROR.flowControl, 'the flow-control window was exceeded');
		}
		return !this.#closed;
	}

	#headers(flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
		if (!this.#known(id)) return this.#fail(H2_ERROR.protocol, 'fields of an unknown stream');
		let from = start;
		let to = end;
		if ((flags & FRAME_FLAG.padded) !== 0) to -= bytes[from++] ?? 0;
		if ((flags & FRAME_FLAG.priority) !== 0) from += 5;
		if (to < from) return this.#fail(H2_ERROR.protocol, 'padding is longer than its frame');
		const ends = (flags & FRAME_FLAG.endStream) !== 0;
		if ((flags & FRAME_FLAG.endHeaders) !== 0) return this.#decode(id, ends, bytes, from, to);
		this.#block = new HeaderBlock(id, ends, MAX_BLOCK);
		return this.#block.add(bytes, from, to) || this.#fail(H2_ERROR.enhanceYourCalm, 'the response head is too large');
	}

	#continuation(flags: number, bytes: Buffer, start: number, end: number): boolean {
		const block = this.#block;
		if (!block) return this.#fail(H2_ERROR.protocol, 'a continuation without a block of fields');
		if (!block.add(bytes, start, end)) return this.#fail(H2_ERROR.enhanceYourCalm, 'the response head is too large');
		if ((flags & FRAME_FLAG.endHeaders) === 0) return true;
		this.#block = undefined;
		const whole = block.bytes();
		return this.#decode(block.stream, block.endStream, whole, 0, whole.length);
	}

	#decode(id: number, ends: boolean, bytes: Buffer, start: number, end: number): boolean {
		const fields = this.#fields;
		fields.begin();
		// Header blocks depend on previous ones, so the blocks of ended streams must be decoded, too.
		if (!this.#decoder.decode(bytes, start, end, fields))
			return this.#fail(H2_ERROR.compression, 'fields are malformed');
		this.#streams.get(id)?.fields(fields, ends);
		return !this.#closed;
	}

	#settings(flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
		if (id !== 0 || (end - start) % 6 !== 0) return this.#fail(H2_ERROR.frameSize, 'settings are malformed');
		if ((flags & FRAME_FLAG.ack) !== 0) return true;
		if (!this.#mayAnswer()) return false;
		for (let at = start; at < end; at += 6) {
			const value = bytes.readUInt32BE(at + 2);
			switch (bytes.readUInt16BE(at)) {
				case SETTING_ID.maxConcurrentStreams:
					this.#mostStreams = Math.min(value, MAX_STREAMS);
					break;
				case SETTING_ID.enableConnectProtocol:
					this.#takesUpgrades = value === 1;
					break;
				case SETTING_ID.initialWindowSize: {
					if (value > MAX_WINDOW) return this.#fail(H2_ERROR.flowControl, 'a flow-control window is too large');
					const change = value - this.peerWindow;
					this.peerWindow = value;
					for (const { output } of this.#streams.values()) {
						if (!output.widen(change)) return this.#fail(H2_ERROR.flowControl, 'a flow-control window is too large');
					}
				}
			}
		}
		this.frames.settings([]);
		this.#settled();
		if (!this.#closed) this.#keeper.sessionFreed(this);
		return !this.#closed;
	}

	#windowUpdate(id: number, bytes: Buffer, start: number, end: number): boolean {
		if (end - start !== 4) return this.#fail(H2_ERROR.frameSize, 'a window update is malformed');
		const increment = bytes.readUInt32BE(start) & MAX_WINDOW;
		if (id === 0) {
			this.sendWindow += increment;
			if (increment === 0 || this.sendWindow > MAX_WINDOW) {
				return this.#fail(H2_ERROR.flowControl, 'a flow-control window is too large');
			}
			this.#queue.fed();
			return true;
		}
		if (!this.#known(id)) return this.#fail(H2_ERROR.protocol, 'a window update of an unknown stream');
		const stream = this.#streams.get(id);
		if (!stream || stream.output.widen(increment)) return true;
		return this.#fail(H2_ERROR.flowControl, 'a flow-control window is too large');
	}

	/** Handles a GOAWAY. Streams above `last` were not processed, so their requests may be sent elsewhere (RFC 9113 §6.8). */
	#goAway(last: number, code: number): void {
		this.#retire();
		const message =
			code === 0 ? 'the connection is going away' : `the upstream closed the connection with code ${code}`;
		for (const stream of [...this.#streams.values()]) {
			if (stream.id > last) stream.connectionLost(new Error(message), true);
		}
		if (this.#streams.size === 0) this.end();
	}

	#settled(): void {
		const waiting = this.#unsettled ?? [];
		this.#unsettled = undefined;
		for (const listener of waiting) listener();
		this.#startBodies();
	}

	#startBodies(): void {
		if (this.#unsettled !== undefined || this.#closed) return;
		for (const stream of this.#held) {
			if (this.#streams.size - this.#held.size >= this.#mostStreams) return;
			this.#held.delete(stream);
			stream.startBody();
		}
	}

	#retire(): void {
		if (this.#retired) return;
		this.#retired = true;
		this.#keeper.sessionLost(this);
	}

	/** Closes the connection because the upstream violated the protocol. Always returns false. */
	#fail(code: number, message: string): false {
		if (this.#closed) return false;
		this.#retire();
		const at = this.frames.begin(8, FRAME_TYPE.goAway, 0, 0);
		this.frames.bytes.writeUInt32BE(0, at);
		this.frames.bytes.writeUInt32BE(code, at + 4);
		this.frames.flush();
		this.#close(new Error(message));
		return false;
	}

	#close(error: Error): void {
		if (this.#closed) return;
		this.#closed = true;
		this.#failure = error;
		this.#retire();
		for (const stream of [...this.#streams.values()]) stream.connectionLost(error, false);
		this.#settled();
		const { socket } = this.#wire;
		if (socket.writableLength === 0 || socket.destroyed) {
			socket.destroy();
			return;
		}
		// If the upstream reads, it receives the pending GOAWAY before the end of the connection.
		socket.destroySoon();
		setTimeout(() => socket.destroy(), LINGER_MS).unref();
	}
}
