/** The client side of an HTTP/1.1 connection: one request at a time over a TCP or Unix socket (RFC 9112). */
import { type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import { UpstreamError, type UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { type OutputOwner, SocketOutput } from '../../sockets/socket-output.ts';
import {
	MIN_ROOM_FOR_FULL_READ_BYTES,
	socketErrorText,
	type UpstreamSocket,
	type UpstreamSocketOwner,
} from '../../sockets/upstream-socket.ts';
import { BodyPump } from '../body-pump.ts';
import { CallClock, type TimedCall } from '../call-clock.ts';
import { BlockReader } from './block-reader.ts';
import { type BodyRelay, createBodyRelay, type RelayOwner } from './body-relay.ts';
import type { ChunkedDecoder, ChunkSink } from './chunked-decoder.ts';
import { type BodyOwner, ClientBody } from './client-body.ts';
import type { ClientCall, ClientOptions, ConnectionKeeper, KeptConnection } from './client-call.ts';
import {
	formatRequestHead,
	InvalidRequest,
	InvalidResponse,
	type ResponseHead,
	requestFraming,
} from './client-head.ts';
import { type RequestBodyOwner, RequestBodyWriter, writeCompleteMessage } from './client-request-body.ts';
import { CompleteBodies, createResponseDecoder, decodeChunks, toUpstreamResponse } from './client-response.ts';
import { LARGE_PIECE_BYTES } from './piece-memory.ts';
import { ResponseHeads } from './response-heads.ts';
import { UpgradedStream } from './upgraded-stream.ts';

/** What the connection is reading: nothing (`idle` or `closed`), a head, a body with one of three framings, or upgraded data. */
type ReadState = 'idle' | 'head' | 'length' | 'chunked' | 'close' | 'upgraded' | 'closed';

export class ClientConnection
	implements
		KeptConnection,
		UpstreamSocketOwner,
		BodyOwner,
		RequestBodyOwner,
		ChunkSink,
		TimedCall,
		OutputOwner,
		RelayOwner
{
	/** The time, by `performance.now()`, when the connection last became idle. Set by the {@link ConnectionKeeper}. */
	idleSince = 0;
	readonly #upstreamSocket: UpstreamSocket;
	readonly #blockReader: BlockReader;
	readonly #socket: ClientSocket;
	readonly #responseHeads: ResponseHeads;
	readonly #completeBodies = new CompleteBodies();
	readonly #options: ClientOptions;
	readonly #keeper: ConnectionKeeper;
	#state: ReadState = 'idle';
	#call: ClientCall | undefined = undefined;
	#callCount = 0;
	readonly #clock: CallClock;
	readonly #output: SocketOutput;
	// State of the current request.
	#bodyPump: BodyPump | undefined = undefined;
	#isRequestSent = false;
	#hasResponseBytes = false;
	#isPersistent = true;
	#isAnswered = false;
	#body: ClientBody | undefined = undefined;
	#relay: BodyRelay | undefined = undefined;
	#remainingBytes = 0;
	#decoder: ChunkedDecoder | undefined = undefined;
	#upgradedStream: UpgradedStream | undefined = undefined;
	#wantsData = true;

	/** Takes over a connected socket. */
	constructor(upstreamSocket: UpstreamSocket, options: ClientOptions, keeper: ConnectionKeeper) {
		this.#options = options;
		this.#keeper = keeper;
		this.#upstreamSocket = upstreamSocket;
		this.#responseHeads = new ResponseHeads(options);
		this.#blockReader = new BlockReader(upstreamSocket, options.pieceMemory);
		upstreamSocket.holder = this;
		this.#socket = upstreamSocket.withoutStream();
		this.#clock = new CallClock(options, this);
		this.#output = new SocketOutput(this.#socket, this);
	}

	/** True if a request can be sent on the connection now. */
	get usable(): boolean {
		return this.#state === 'idle' && !this.#socket.destroyed;
	}

	/** Sends a request. Allowed only if `usable`. */
	send(call: ClientCall): void {
		call.carrier = this;
		this.#call = call;
		this.#callCount++;
		this.#state = 'head';
		this.#isRequestSent = false;
		this.#responseHeads.beginExchange();
		this.#hasResponseBytes = false;
		this.#isAnswered = false;
		this.#limitNextRead(call.roomBytes);
		this.#writeRequest(call);
	}

	/** Cancels a request if it is still in progress on this connection. Its response, if any, ends with an error. */
	cancel(call: ClientCall): void {
		if (this.#call === call) this.#fail(new UpstreamError('response', 'the request was canceled'), true);
	}

	/** Closes the connection at once. */
	destroy(): void {
		if (this.#call) this.#fail(new UpstreamError('response', 'the connection was closed'), true);
		else this.#close();
	}

	/** Implements BodyOwner: the consumer has room again. */
	resumeBody(): void {
		if (this.#wantsData) return;
		this.#wantsData = true;
		this.#socket.resume();
	}

	/** Implements BodyOwner: the consumer does not want the rest of the body, so the connection is closed. */
	cancelBody(): void {
		if (this.#call) this.#fail(new UpstreamError('response', 'the body was canceled'), true);
	}

	#writeRequest(call: ClientCall): void {
		const { request } = call;
		const body = request.body;
		const bytes = typeof body === 'string' ? Buffer.from(body) : body;
		const length = bytes === null ? 0 : bytes.length;
		const framing = requestFraming(length, request.method);
		let head: string;
		try {
			head = formatRequestHead(request, framing, length, this.#options.keepAlive, this.#options.lineCache);
		} catch (error) {
			if (!(error instanceof InvalidRequest)) throw error;
			this.#fail(new UpstreamError('request', error.message, error));
			return;
		}
		if (bytes === null || framing === 'none') {
			this.#output.writeText(head);
			this.onBodySent();
		} else if (isStream(bytes)) this.#sendBody(call, head, bytes, length);
		else {
			writeCompleteMessage(this.#output, head, bytes);
			this.onBodySent();
		}
	}

	#sendBody({ request }: ClientCall, head: string, body: BodySource, length: number | undefined): void {
		const writer = new RequestBodyWriter(this.#output, body, length, head, this);
		const bodyPump = new BodyPump(body, writer);
		this.#bodyPump = bodyPump;
		this.#clock.bodyStarted();
		const { continueTimeout } = this.#options;
		if (continueTimeout > 0 && request.headers.get('expect')?.toLowerCase() === '100-continue') {
			writer.writeHead();
			this.#clock.waitForHead(continueTimeout, () => this.#startBody());
			return;
		}
		// If body data is available already, it is sent in one write with the head.
		bodyPump.start();
		writer.writeHead();
	}

	/** Implements RequestBodyOwner: the request is complete. */
	onBodySent(): void {
		this.#isRequestSent = true;
		this.#clock.requestSent(this.#isAnswered);
		this.#call?.onRequestSent?.();
	}

	/** Implements RequestBodyOwner: the client's body was cut short. */
	onBodyFailed(error: unknown): void {
		this.#fail(new UpstreamError('request', 'the request body could not be read', error));
	}

	#startBody(): void {
		this.#clock.headReceived();
		this.#bodyPump?.start();
	}

	// Members that the output (OutputOwner), the timeouts (TimedCall) and the upstream socket (UpstreamSocketOwner) use.

	onOutputDrained(): void {
		this.#bodyPump?.onPieceFlushed();
	}

	get isReading(): boolean {
		return this.#wantsData;
	}

	get isAnswering(): boolean {
		return this.#isAnswered && this.#call !== undefined;
	}

	onWriteFailed(): void {
		this.#bodyPump?.stop();
	}

	checkStalled(): boolean {
		return this.#bodyPump?.checkStalled() === true;
	}

	onTimeout(reason: string): void {
		this.#fail(new UpstreamError('timeout', `the upstream ${reason}`));
	}

	/** Implements UpstreamSocketOwner: bytes have been received. */
	onReceived(bytes: Buffer, count: number): boolean {
		this.#clock.bytesReceived();
		try {
			switch (this.#state) {
				case 'head':
					this.#readHead(bytes, count);
					break;
				case 'length':
					this.#readLength(bytes, 0, count);
					break;
				case 'chunked':
					this.#readChunked(bytes, count);
					break;
				case 'close':
					this.#wantsData = this.#body!.push(this.#blockReader.takePiece(bytes, 0, count, this.#body!.readsAhead));
					break;
				case 'upgraded':
					// The stream resumes the socket when it wants more.
					return this.#upgradedStream!.receive(bytes, 0, count);
				case 'idle':
					// An unsolicited response, such as 408 on an idle connection, must not become the response to the next request.
					this.#close();
			}
		} catch (error) {
			if (!(error instanceof InvalidResponse)) throw error;
			this.#fail(new UpstreamError('response', error.message, error));
		}
		this.#limitNextRead(this.#body ? this.#body.readLimitBytes : this.#call?.roomBytes);
		return this.#wantsData;
	}

	/** Limits the next read to the bytes that the client can accept. */
	#limitNextRead(roomBytes: number | undefined): void {
		if (roomBytes !== undefined && roomBytes < MIN_ROOM_FOR_FULL_READ_BYTES) this.#upstreamSocket.readAtMost(roomBytes);
	}

	#readHead(bytes: Buffer, count: number): void {
		const call = this.#call!;
		const { request } = call;
		this.#hasResponseBytes = true;
		const responseHeads = this.#responseHeads;
		responseHeads.addBytes(bytes, count);
		for (let head = responseHeads.nextHead(request); head !== undefined; head = responseHeads.nextHead(request)) {
			if (head.status >= 200 || head.status === 101) {
				this.#readResponse(call, head, responseHeads.searchedBytes, responseHeads.offset, responseHeads.searchEnd);
				return;
			}
			if (head.status === 100 && this.#bodyPump && !this.#bodyPump.hasStarted) this.#startBody();
			else call.onInterimResponse(head.status, head.headers);
			// The callback for the interim response may have ended the request.
			if (this.#call !== call) return;
		}
	}

	#readResponse(call: ClientCall, head: ResponseHead, data: Buffer, start: number, end: number): void {
		this.#clock.headReceived();
		this.#isPersistent = head.persistent && this.#options.keepAlive;
		switch (head.framing) {
			case 'none':
				this.#reportComplete(call, toUpstreamResponse(head, null), start < end || this.#upstreamSocket.hasFilledBuffer);
				return;
			case 'length':
				if (end - start >= head.length) {
					const body = head.length === 0 ? null : this.#completeBodies.extract(call, head, data, start, head.length);
					this.#reportComplete(
						call,
						toUpstreamResponse(head, body),
						end - start > head.length || this.#upstreamSocket.hasFilledBuffer,
					);
					return;
				}
				this.#remainingBytes = head.length;
				this.#createBody(head, 'length');
				this.#relay = createBodyRelay(head.length, this.#upstreamSocket, this.#body!, this.#options.openRelay, this);
				// If body data has arrived already, the client gets it together with the head.
				if (start < end) this.#readLength(data, start, end);
				this.#reportResponse(call, toUpstreamResponse(head, this.#body!));
				return;
			case 'chunked':
				this.#readChunkedBody(call, head, data, start, end);
				return;
			case 'close': {
				const body = this.#createBody(head, 'close');
				if (start < end) this.#wantsData = body.push(this.#blockReader.takePiece(data, start, end, body.readsAhead));
				const response = toUpstreamResponse(head, body);
				this.#reportResponse(
					call,
					this.#upstreamSocket.hidesTruncation ? { ...response, mayBeTruncated: true } : response,
				);
				return;
			}
			case 'upgrade': {
				this.#state = 'upgraded';
				this.#clock.stop();
				const stream = new UpgradedStream(this.#socket);
				this.#upgradedStream = stream;
				if (start < end) stream.receive(data, start, end);
				this.#reportResponse(call, { ...toUpstreamResponse(head, null), upgradedStream: stream });
				return;
			}
		}
	}

	/** Reports the response. The callback may cancel the request before it returns. */
	#reportResponse(call: ClientCall, response: UpstreamResponse): void {
		this.#isAnswered = true;
		call.onResponse(response, true);
	}

	/**
	 * Reports a response that has been received completely. During the callback, the connection can already carry another request.
	 */
	#reportComplete(call: ClientCall, response: UpstreamResponse, hasExtraBytes: boolean): void {
		this.#isAnswered = true;
		this.#endCall(hasExtraBytes);
		call.onResponse(response, true);
		call.onReleased();
	}

	/**
	 * Reports a chunked response. If its whole body has arrived, the body is passed on as bytes, so that the client learns its
	 * length.
	 */
	#readChunkedBody(call: ClientCall, head: ResponseHead, data: Buffer, start: number, end: number): void {
		const decoder = createResponseDecoder(head);
		const pieces: Buffer[] = [];
		const consumedEnd = decodeChunks(decoder, data, start, end, { push: piece => pieces.push(piece) });
		const hasExtraBytes = consumedEnd < end || this.#upstreamSocket.hasFilledBuffer;
		if (decoder.ended && decoder.trailers === undefined) {
			this.#reportComplete(
				call,
				toUpstreamResponse(head, this.#completeBodies.joinPieces(call, head, data, pieces)),
				hasExtraBytes,
			);
			return;
		}
		this.#decoder = decoder;
		const body = this.#createBody(head, 'chunked');
		for (const piece of pieces) this.#wantsData = body.push(this.#options.pieceMemory.copy(piece, 0, piece.length));
		if (decoder.ended) body.end(decoder.trailers);
		this.#reportResponse(call, toUpstreamResponse(head, body));
		if (decoder.ended && this.#call === call) this.#responseEnded(hasExtraBytes);
	}

	/** Creates a body whose end has not arrived. */
	#createBody(head: ResponseHead, state: 'length' | 'chunked' | 'close'): ClientBody {
		const roomBytes = this.#call!.roomBytes ?? Infinity;
		const body = new ClientBody(
			this,
			state === 'length' ? head.length : undefined,
			this.#options.pieceMemory,
			roomBytes,
		);
		this.#body = body;
		this.#state = state;
		return body;
	}

	#readLength(bytes: Buffer, start: number, end: number): void {
		const bodyEnd = Math.min(end, start + this.#remainingBytes);
		this.#remainingBytes -= bodyEnd - start;
		const body = this.#body!;
		// If the kernel moves the rest of the body, reads need only detect that more has arrived.
		const isShortRead = this.#relay?.wantsShortRead === true;
		const moreFollows = !isShortRead && body.readsAhead && this.#remainingBytes >= LARGE_PIECE_BYTES;
		this.#wantsData = body.push(this.#blockReader.takePiece(bytes, start, bodyEnd, moreFollows));
		if (isShortRead) this.#upstreamSocket.shortenNextRead();
		if (this.#remainingBytes > 0) return;
		body.end(undefined);
		this.#responseEnded(bodyEnd < end || this.#upstreamSocket.hasFilledBuffer);
	}

	// Members that the body relay uses (RelayOwner).

	get outstandingBytes(): number {
		return this.#state === 'length' ? this.#remainingBytes : 0;
	}

	bytesRelayed(count: number, hasRoom: boolean, hasExtraBytes: boolean): void {
		this.#clock.bytesReceived();
		this.#remainingBytes -= count;
		if (this.#remainingBytes === 0) {
			this.#body!.end(undefined);
			this.#responseEnded(hasExtraBytes);
		} else if (!hasRoom) {
			this.#wantsData = false;
			this.#socket.pause();
		}
	}

	relayFailed(): void {
		this.#fail(new UpstreamError('response', 'the body could not be forwarded'), true);
	}

	#readChunked(bytes: Buffer, count: number): void {
		const decoder = this.#decoder!;
		const consumedEnd = decodeChunks(decoder, bytes, 0, count, this);
		if (!decoder.ended) return;
		this.#body!.end(decoder.trailers);
		this.#responseEnded(consumedEnd < count || this.#upstreamSocket.hasFilledBuffer);
	}

	/** Implements ChunkSink: content of a chunked body. */
	push(piece: Buffer): void {
		this.#wantsData = this.#body!.push(this.#options.pieceMemory.copy(piece, 0, piece.length));
	}

	#responseEnded(hasExtraBytes: boolean): void {
		const call = this.#call;
		if (!call) return;
		this.#endCall(hasExtraBytes);
		call.onReleased();
	}

	/**
	 * Ends the request.
	 * @param hasExtraBytes True if bytes follow the response, in which case the connection is not reused.
	 */
	#endCall(hasExtraBytes: boolean): void {
		const isComplete = this.#isRequestSent && !hasExtraBytes && !this.#output.hasPending;
		const isReusable = this.#isPersistent && isComplete && !this.#socket.destroyed && !this.#upstreamSocket.isBroken;
		this.#call = undefined;
		this.#clock.stop();
		this.#bodyPump?.stop();
		this.#bodyPump = undefined;
		this.#body = undefined;
		this.#relay = undefined;
		this.#decoder = undefined;
		const isPaused = !this.#wantsData;
		this.#wantsData = true;
		if (isReusable) {
			this.#state = 'idle';
			// A response can end while reading is paused: the kernel may have moved the rest of its body, and TLS delivers all that it has
			// decrypted.
			if (isPaused) this.#socket.resume();
			this.#keeper.onConnectionIdle(this);
		} else this.#close();
	}

	/** Fails the current request. With `isUpstreamBlameless`, the failure is not counted against the upstream. */
	#fail(error: UpstreamError, isUpstreamBlameless = false): void {
		const call = this.#call;
		const bodyPump = this.#bodyPump;
		const upgradedStream = this.#upgradedStream;
		this.#call = undefined;
		this.#close();
		if (!call) return;
		bodyPump?.stop();
		if (!this.#isAnswered) {
			const canRetry =
				this.#callCount > 1 && !this.#hasResponseBytes && !bodyPump?.hasStarted && error.phase !== 'timeout';
			call.onFailure(error, canRetry);
			return;
		}
		this.#body?.fail(error);
		upgradedStream?.destroy(error);
		call.onReleased(isUpstreamBlameless || upgradedStream ? undefined : error);
	}

	/** Implements UpstreamSocketOwner: the upstream has closed its side. */
	onPeerEnded(): void {
		switch (this.#state) {
			case 'idle':
				this.#close();
				break;
			case 'head':
				this.#failClosed(this.#hasResponseBytes ? 'within the response head' : 'without a response');
				break;
			case 'length':
			case 'chunked':
				this.#failClosed('within the response body');
				break;
			case 'close':
				if (this.#upstreamSocket.isTruncated) {
					// Without framing, only `close_notify` shows that the end is not an attacker's (RFC 9112 §9.8).
					this.#failClosed('without close_notify, so the response may be incomplete');
					break;
				}
				this.#body!.end(undefined);
				this.#responseEnded(false);
				break;
			case 'upgraded':
				this.#upgradedStream!.receiveEnd();
		}
	}

	#failClosed(closeMoment: string): void {
		this.#fail(new UpstreamError('response', `the connection was closed ${closeMoment}`));
	}

	/** Implements UpstreamSocketOwner: the socket has closed. */
	onClosed(error: Error | undefined): void {
		if (this.#state === 'closed') return;
		if (this.#state === 'upgraded') {
			const call = this.#call!;
			this.#call = undefined;
			this.#upgradedStream!.socketClosed(error);
			this.#close();
			call.onReleased();
			return;
		}
		const phase = !this.#isRequestSent && !this.#isAnswered ? 'request' : 'response';
		this.#fail(new UpstreamError(phase, error ? socketErrorText(error) : 'the connection was closed', error));
	}

	#close(): void {
		if (this.#state === 'closed') return;
		this.#clock.stop();
		this.#state = 'closed';
		this.#responseHeads.release();
		this.#socket.destroy();
		this.#blockReader.end();
		this.#keeper.onConnectionLost(this);
	}
}
