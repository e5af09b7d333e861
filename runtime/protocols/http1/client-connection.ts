/** The client side of an HTTP/1.1 connection: one request at a time over a TCP or Unix socket (RFC 9112). */
import { type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import { UpstreamError, type UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { type OutputOwner, SocketOutput } from '../../sockets/socket-output.ts';
import {
	FULL_READ_BYTES,
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

/** What the connection is reading: nothing, a head, a body with one of three framings, or the data of an upgraded connection. */
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
	/** When the connection last became idle, by `performance.now()`. Set by the keeper. */
	idleSince = 0;
	readonly #upstreamSocket: UpstreamSocket;
	readonly #blocks: BlockReader;
	readonly #socket: ClientSocket;
	readonly #heads: ResponseHeads;
	readonly #bodies = new CompleteBodies();
	readonly #options: ClientOptions;
	readonly #keeper: ConnectionKeeper;
	#state: ReadState = 'idle';
	#call: ClientCall | undefined = undefined;
	#calls = 0;
	readonly #clock: CallClock;
	readonly #output: SocketOutput;
	// State of the current request.
	#sender: BodyPump | undefined = undefined;
	#sent = false;
	#responseBytes = false;
	#persistent = true;
	#answered = false;
	#body: ClientBody | undefined = undefined;
	#relay: BodyRelay | undefined = undefined;
	#remaining = 0;
	#decoder: ChunkedDecoder | undefined = undefined;
	#stream: UpgradedStream | undefined = undefined;
	#wanted = true;

	/** Takes over a connected socket. */
	constructor(upstreamSocket: UpstreamSocket, options: ClientOptions, keeper: ConnectionKeeper) {
		this.#options = options;
		this.#keeper = keeper;
		this.#upstreamSocket = upstreamSocket;
		this.#heads = new ResponseHeads(options);
		this.#blocks = new BlockReader(upstreamSocket, options.pieces);
		upstreamSocket.holder = this;
		this.#socket = upstreamSocket.bare();
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
		this.#calls++;
		this.#state = 'head';
		this.#sent = false;
		this.#heads.begin();
		this.#responseBytes = false;
		this.#answered = false;
		this.#readLess(call.room);
		this.#write(call);
	}

	/** Cancels a request if it is still in progress on this connection. Its response, if any, ends with an error. */
	cancel(call: ClientCall): void {
		if (this.#call === call) this.#fail(new UpstreamError('response', 'the request was canceled'), true);
	}

	/** Closes the connection at once. */
	destroy(): void {
		if (this.#call) this.#fail(new UpstreamError('response', 'the connection was closed'), true);
		else this.#drop();
	}

	/** Implements BodyOwner: the consumer has room again. */
	resumeBody(): void {
		if (this.#wanted) return;
		this.#wanted = true;
		this.#socket.resume();
	}

	/** Implements BodyOwner: nobody reads the rest of the body, so the connection does not wait for it. */
	cancelBody(): void {
		if (this.#call) this.#fail(new UpstreamError('response', 'the body was canceled'), true);
	}

	#write(call: ClientCall): void {
		const { request } = call;
		const body = request.body;
		const bytes = typeof body === 'string' ? Buffer.from(body) : body;
		const length = bytes === null ? 0 : bytes.length;
		const framing = requestFraming(length, request.method);
		let head: string;
		try {
			head = formatRequestHead(request, framing, length, this.#options.keepAlive, this.#options.lines);
		} catch (error) {
			if (!(error instanceof InvalidRequest)) throw error;
			this.#fail(new UpstreamError('request', error.message, error));
			return;
		}
		if (bytes === null || framing === 'none') {
			this.#output.text(head);
			this.bodySent();
		} else if (isStream(bytes)) this.#sendBody(call, head, bytes, length);
		else {
			writeCompleteMessage(this.#output, head, bytes);
			this.bodySent();
		}
	}

	#sendBody({ request }: ClientCall, head: string, body: BodySource, length: number | undefined): void {
		const writer = new RequestBodyWriter(this.#output, body, length, head, this);
		const sender = new BodyPump(body, writer);
		this.#sender = sender;
		this.#clock.bodyBegins();
		const { continueTimeout } = this.#options;
		if (continueTimeout > 0 && request.headers.get('expect')?.toLowerCase() === '100-continue') {
			writer.writeHead();
			this.#clock.wait(continueTimeout, () => this.#continue());
			return;
		}
		// If body data is available already, it is sent together with the head.
		sender.start();
		writer.writeHead();
	}

	/** Implements RequestBodyOwner: the request is complete. */
	bodySent(): void {
		this.#sent = true;
		this.#clock.requestSent(this.#answered);
	}

	/** Implements RequestBodyOwner: the client's body was cut short. */
	bodyFailed(error: unknown): void {
		this.#fail(new UpstreamError('request', 'the request body could not be read', error));
	}

	#continue(): void {
		this.#clock.headCame();
		this.#sender?.start();
	}

	// Implementations of OutputOwner and TimedCall.

	outputDrained(): void {
		this.#sender?.flushed();
	}

	get reading(): boolean {
		return this.#wanted;
	}

	get answering(): boolean {
		return this.#answered && this.#call !== undefined;
	}

	writeFailed(): void {
		this.#sender?.stop();
	}

	stalled(): boolean {
		return this.#sender?.stalled() === true;
	}

	timedOut(what: string): void {
		this.#fail(new UpstreamError('timeout', `the upstream ${what}`));
	}

	/** Implements UpstreamSocketOwner: bytes have been received. */
	received(bytes: Buffer, count: number): boolean {
		this.#clock.read();
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
					this.#wanted = this.#body!.push(this.#blocks.piece(bytes, 0, count, this.#body!.readsAhead));
					break;
				case 'upgraded':
					// The stream resumes the socket when it wants more.
					return this.#stream!.receive(bytes, 0, count);
				case 'idle':
					// An unsolicited response, such as 408 on an idle connection, must not become the response to the next request.
					this.#drop();
			}
		} catch (error) {
			if (!(error instanceof InvalidResponse)) throw error;
			this.#fail(new UpstreamError('response', error.message, error));
		}
		this.#readLess(this.#body ? this.#body.readLimit : this.#call?.room);
		return this.#wanted;
	}

	/** Limits the next read to the bytes that the client can accept. */
	#readLess(room: number | undefined): void {
		if (room !== undefined && room < FULL_READ_BYTES) this.#upstreamSocket.readAtMost(room);
	}

	#readHead(bytes: Buffer, count: number): void {
		const call = this.#call!;
		const { request } = call;
		this.#responseBytes = true;
		const heads = this.#heads;
		heads.take(bytes, count);
		for (let head = heads.next(request); head !== undefined; head = heads.next(request)) {
			if (head.status >= 200 || head.status === 101) {
				this.#answer(call, head, heads.data, heads.at, heads.end);
				return;
			}
			if (head.status === 100 && this.#sender && !this.#sender.started) this.#continue();
			else call.informed(head.status, head.headers);
			// The callback for the interim response may have ended the request.
			if (this.#call !== call) return;
		}
	}

	#answer(call: ClientCall, head: ResponseHead, data: Buffer, start: number, end: number): void {
		this.#clock.headCame();
		this.#persistent = head.persistent && this.#options.keepAlive;
		switch (head.framing) {
			case 'none':
				this.#answerWhole(call, toUpstreamResponse(head, null), start < end || this.#upstreamSocket.filled);
				return;
			case 'length':
				if (end - start >= head.length) {
					const body = head.length === 0 ? null : this.#bodies.of(call, head, data, start, head.length);
					this.#answerWhole(
						call,
						toUpstreamResponse(head, body),
						end - start > head.length || this.#upstreamSocket.filled,
					);
					return;
				}
				this.#remaining = head.length;
				this.#beginBody(head, 'length');
				this.#relay = createBodyRelay(head.length, this.#upstreamSocket, this.#body!, this.#options.relay, this);
				// If body data has arrived already, the client gets it together with the head.
				if (start < end) this.#readLength(data, start, end);
				this.#tell(call, toUpstreamResponse(head, this.#body!));
				return;
			case 'chunked':
				this.#answerChunked(call, head, data, start, end);
				return;
			case 'close': {
				const body = this.#beginBody(head, 'close');
				if (start < end) this.#wanted = body.push(this.#blocks.piece(data, start, end, body.readsAhead));
				this.#tell(call, toUpstreamResponse(head, body));
				return;
			}
			case 'upgrade': {
				this.#state = 'upgraded';
				this.#clock.stop();
				const stream = new UpgradedStream(this.#socket);
				this.#stream = stream;
				if (start < end) stream.receive(data, start, end);
				this.#tell(call, { ...toUpstreamResponse(head, null), upgradedStream: stream });
				return;
			}
		}
	}

	/** Reports the response. The callback may cancel the request before it returns. */
	#tell(call: ClientCall, answer: UpstreamResponse): void {
		this.#answered = true;
		call.answered(answer, true);
	}

	/** Reports a response that has been received completely. During the callback, the connection can already carry another request. */
	#answerWhole(call: ClientCall, answer: UpstreamResponse, more: boolean): void {
		this.#answered = true;
		this.#leave(more);
		call.answered(answer, true);
		call.released();
	}

	/** Reports a chunked response. If its whole body has arrived, the body is passed on as bytes, so that the client learns its length. */
	#answerChunked(call: ClientCall, head: ResponseHead, data: Buffer, start: number, end: number): void {
		const decoder = createResponseDecoder(head);
		const pieces: Buffer[] = [];
		const used = decodeChunks(decoder, data, start, end, { push: piece => pieces.push(piece) });
		const more = used < end || this.#upstreamSocket.filled;
		if (decoder.ended && decoder.trailers === undefined) {
			this.#answerWhole(call, toUpstreamResponse(head, this.#bodies.ofPieces(call, head, data, pieces)), more);
			return;
		}
		this.#decoder = decoder;
		const body = this.#beginBody(head, 'chunked');
		for (const piece of pieces) this.#wanted = body.push(this.#options.pieces.copy(piece, 0, piece.length));
		if (decoder.ended) body.end(decoder.trailers);
		this.#tell(call, toUpstreamResponse(head, body));
		if (decoder.ended && this.#call === call) this.#responseEnded(more);
	}

	/** Creates a body whose end has not arrived. */
	#beginBody(head: ResponseHead, state: 'length' | 'chunked' | 'close'): ClientBody {
		const room = this.#call!.room ?? Infinity;
		const body = new ClientBody(this, state === 'length' ? head.length : undefined, this.#options.pieces, room);
		this.#body = body;
		this.#state = state;
		return body;
	}

	#readLength(bytes: Buffer, start: number, end: number): void {
		const to = Math.min(end, start + this.#remaining);
		this.#remaining -= to - start;
		const body = this.#body!;
		// If the kernel moves the rest, reads only detect that there is more.
		const short = this.#relay?.wantsShortRead === true;
		const more = !short && body.readsAhead && this.#remaining >= LARGE_PIECE_BYTES;
		this.#wanted = body.push(this.#blocks.piece(bytes, start, to, more));
		if (short) this.#upstreamSocket.readLess();
		if (this.#remaining > 0) return;
		body.end(undefined);
		this.#responseEnded(to < end || this.#upstreamSocket.filled);
	}

	// RelayOwner.

	get outstanding(): number {
		return this.#state === 'length' ? this.#remaining : 0;
	}

	moved(count: number, room: boolean, more: boolean): void {
		this.#clock.read();
		this.#remaining -= count;
		if (this.#remaining === 0) {
			this.#body!.end(undefined);
			this.#responseEnded(more);
		} else if (!room) {
			this.#wanted = false;
			this.#socket.pause();
		}
	}

	relayFailed(): void {
		this.#fail(new UpstreamError('response', 'the body could not be forwarded'), true);
	}

	#readChunked(bytes: Buffer, count: number): void {
		const decoder = this.#decoder!;
		const used = decodeChunks(decoder, bytes, 0, count, this);
		if (!decoder.ended) return;
		this.#body!.end(decoder.trailers);
		this.#responseEnded(used < count || this.#upstreamSocket.filled);
	}

	/** Implements ChunkSink: content of a chunked body. */
	push(piece: Buffer): void {
		this.#wanted = this.#body!.push(this.#options.pieces.copy(piece, 0, piece.length));
	}

	#responseEnded(more: boolean): void {
		const call = this.#call;
		if (!call) return;
		this.#leave(more);
		call.released();
	}

	/** Ends the request. @param more True if bytes follow the response; the connection is then not reused. */
	#leave(more: boolean): void {
		const whole = this.#sent && !more && !this.#output.pending;
		const reusable = this.#persistent && whole && !this.#socket.destroyed && !this.#upstreamSocket.broken;
		this.#call = undefined;
		this.#clock.stop();
		this.#sender?.stop();
		this.#sender = undefined;
		this.#body = undefined;
		this.#relay = undefined;
		this.#decoder = undefined;
		this.#wanted = true;
		if (reusable) {
			this.#state = 'idle';
			this.#keeper.connectionIdle(this);
		} else this.#drop();
	}

	/** Fails the current request. @param ours True if the upstream is not to blame. */
	#fail(error: UpstreamError, ours = false): void {
		const call = this.#call;
		const sender = this.#sender;
		const stream = this.#stream;
		this.#call = undefined;
		this.#drop();
		if (!call) return;
		sender?.stop();
		if (!this.#answered) {
			const untouched = this.#calls > 1 && !this.#responseBytes && !sender?.started && error.phase !== 'timeout';
			call.failed(error, untouched);
			return;
		}
		this.#body?.fail(error);
		stream?.destroy(error);
		call.released(ours || stream ? undefined : error);
	}

	/** Implements UpstreamSocketOwner: the upstream has closed its side. */
	ended(): void {
		switch (this.#state) {
			case 'idle':
				this.#drop();
				break;
			case 'head':
				this.#closedEarly(this.#responseBytes ? 'within the response head' : 'without a response');
				break;
			case 'length':
			case 'chunked':
				this.#closedEarly('within the response body');
				break;
			case 'close':
				this.#body!.end(undefined);
				this.#responseEnded(false);
				break;
			case 'upgraded':
				this.#stream!.receiveEnd();
		}
	}

	#closedEarly(when: string): void {
		this.#fail(new UpstreamError('response', `the connection was closed ${when}`));
	}

	/** Implements UpstreamSocketOwner: the socket has closed. */
	closed(error: Error | undefined): void {
		if (this.#state === 'closed') return;
		if (this.#state === 'upgraded') {
			const call = this.#call!;
			this.#call = undefined;
			this.#stream!.socketClosed(error);
			this.#drop();
			call.released();
			return;
		}
		const phase = !this.#sent && !this.#answered ? 'request' : 'response';
		this.#fail(new UpstreamError(phase, error ? socketErrorText(error) : 'the connection was closed', error));
	}

	#drop(): void {
		if (this.#state === 'closed') return;
		this.#clock.stop();
		this.#state = 'closed';
		this.#heads.drop();
		this.#socket.destroy();
		this.#blocks.end();
		this.#keeper.connectionLost(this);
	}
}
