/** A connection to a FastCGI application: one request at a time, streamed both ways. */
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
import { BodyPump, type BodyPumpOwner } from '../body-pump.ts';
import { CallClock, type TimedCall } from '../call-clock.ts';
import { type BodyOwner, ClientBody } from '../http1/client-body.ts';
import type { ClientCall, ClientOptions, ConnectionKeeper, KeptConnection } from '../http1/client-call.ts';
import { ownedCopy } from '../http1/owned-copy.ts';
import { BufferedRequestBody, type RequestBodyMemory } from './buffered-request-body.ts';
import {
	formatBeginRequest,
	formatStreamData,
	formatStreamEnd,
	RECORD_TYPE,
	RecordReader,
	type RecordSink,
} from './records.ts';
import { type CgiHead, findBodyStart, parseCgiHead } from './response-head.ts';

/** Maximum bytes of a buffered request body that is sent in one write, together with the request's variables. */
const MAX_BYTES_OF_ONE_WRITE = 65_528;
/** Maximum number of characters of a request's standard error output that are kept. */
const MAX_STDERR_CHARS = 65_536;

export interface FastcgiOptions extends ClientOptions {
	/** The memory for request bodies of unknown length. */
	readonly requestBodyMemory: RequestBodyMemory;
	/**
	 * Receives what the application wrote to standard error, and the status of its response. If undefined, this output is discarded.
	 */
	readonly onStderr: ((text: string, status: number) => void) | undefined;
}

export class FastcgiConnection
	implements KeptConnection, UpstreamSocketOwner, BodyOwner, BodyPumpOwner, RecordSink, TimedCall, OutputOwner
{
	idleSince = 0;
	readonly #upstreamSocket: UpstreamSocket;
	readonly #socket: ClientSocket;
	readonly #options: FastcgiOptions;
	readonly #keeper: ConnectionKeeper;
	#isClosed = false;
	#call: ClientCall | undefined = undefined;
	#callCount = 0;
	readonly #clock: CallClock;
	readonly #output: SocketOutput;
	// State of the current request.
	#reader: RecordReader;
	#bodyPump: BodyPump | undefined = undefined;
	/** The body of unknown length that is being read into memory. */
	#bufferedBody: BufferedRequestBody | undefined = undefined;
	/** True once a streamed body may have been read, so that the request cannot be sent again. */
	#isBodyStarted = false;
	#isRequestSent = false;
	#hasResponseBytes = false;
	#headText = '';
	#head: CgiHead | undefined = undefined;
	#bodyPieces: Buffer[] = [];
	#receivedBytes = 0;
	#body: ClientBody | undefined = undefined;
	#isAnswered = false;
	#hasRequestEnded = false;
	#wantsData = true;
	#stderrText = '';
	/** Describes an error found while the records were read. */
	#responseError: string | undefined = undefined;
	#isRefused = false;

	/** Takes over a connected socket. */
	constructor(upstreamSocket: UpstreamSocket, options: FastcgiOptions, keeper: ConnectionKeeper) {
		upstreamSocket.holder = this;
		this.#upstreamSocket = upstreamSocket;
		this.#socket = upstreamSocket.withoutStream();
		this.#output = new SocketOutput(this.#socket, this);
		this.#clock = new CallClock(options, this);
		this.#options = options;
		this.#keeper = keeper;
		this.#reader = new RecordReader(this);
	}

	get usable(): boolean {
		return this.#call === undefined && !this.#isClosed && !this.#socket.destroyed;
	}

	send(call: ClientCall): void {
		call.carrier = this;
		this.#call = call;
		this.#callCount++;
		this.#isRequestSent = false;
		this.#hasResponseBytes = false;
		this.#headText = '';
		this.#head = undefined;
		this.#bodyPieces = [];
		this.#receivedBytes = 0;
		this.#body = undefined;
		this.#isAnswered = false;
		this.#hasRequestEnded = false;
		this.#stderrText = '';
		this.#reader = new RecordReader(this);
		this.#limitNextRead(call.roomBytes);
		const { body } = call.request;
		this.#isBodyStarted = isStream(body);
		if (isStream(body) && body.length === undefined) {
			void this.#bufferBody(call, new BufferedRequestBody(body, this.#options.requestBodyMemory));
			return;
		}
		const bytes = typeof body === 'string' ? Buffer.from(body) : body;
		if (isStream(bytes)) this.#sendStream(call, bytes);
		else this.#sendComplete(call, bytes);
	}

	cancel(call: ClientCall): void {
		if (this.#call === call) this.#fail(new UpstreamError('response', 'the request was canceled'), true);
	}

	destroy(): void {
		if (this.#call) this.#fail(new UpstreamError('response', 'the connection was closed'), true);
		else this.#close();
	}

	/** Reads a body of unknown length into memory, and then sends the request. */
	async #bufferBody(call: ClientCall, body: BufferedRequestBody): Promise<void> {
		this.#bufferedBody = body;
		try {
			if (!(await body.read())) return;
		} catch (error) {
			this.#fail(new UpstreamError('request', 'the request body could not be read', error));
			return;
		}
		this.#bufferedBody = undefined;
		if (body.length <= MAX_BYTES_OF_ONE_WRITE) this.#sendComplete(call, body.pull());
		else this.#sendStream(call, body);
	}

	/** Sends a request whose body has a known length. */
	#sendStream(call: ClientCall, body: BodySource): void {
		this.#output.writeBytes(this.#beginRecords(call, body.length!));
		this.#bodyPump = new BodyPump(body, this);
		this.#clock.bodyStarted();
		this.#bodyPump.start();
	}

	#sendComplete(call: ClientCall, bytes: Uint8Array | null): void {
		const records = bytes ? formatStreamData(RECORD_TYPE.stdin, bytes) : [];
		this.#output.writeBytes(
			Buffer.concat([this.#beginRecords(call, bytes?.length ?? 0), ...records, formatStreamEnd(RECORD_TYPE.stdin)]),
		);
		this.#bodySent();
	}

	/** Returns the records that begin a request with a body of this length. */
	#beginRecords({ request }: ClientCall, length: number): Buffer {
		const params = request.transport?.params ?? [];
		const lengthText = String(length);
		const requestVariables = [
			'REQUEST_METHOD',
			request.method,
			'CONTENT_LENGTH',
			lengthText,
			'HTTP_CONTENT_LENGTH',
			lengthText,
		];
		return formatBeginRequest([...requestVariables, ...params], this.#options.keepAlive);
	}

	/** Implements `BodyPumpOwner`: writes a chunk of the body as STDIN records. */
	writePiece(bytes: Uint8Array): boolean {
		for (const record of formatStreamData(RECORD_TYPE.stdin, bytes)) this.#output.writeBytes(record);
		return !this.#output.hasPending;
	}

	/** Implements `BodyPumpOwner`: the request is complete. */
	onBodyEnded(): void {
		this.#output.writeBytes(formatStreamEnd(RECORD_TYPE.stdin));
		this.#bodySent();
	}

	#bodySent(): void {
		this.#isRequestSent = true;
		this.#clock.requestSent(this.#isAnswered);
		this.#call?.onRequestSent?.();
	}

	/** Implements `BodyPumpOwner`: the client's body was cut short. */
	onPumpFailed(error: unknown): void {
		this.#fail(new UpstreamError('request', 'the request body could not be read', error));
	}

	/** Implements OutputOwner: pending writes have been sent. */
	onOutputDrained(): void {
		this.#bodyPump?.onPieceFlushed();
	}

	/** Implements TimedCall: false while reading is paused because the body's consumer has no room. */
	get isReading(): boolean {
		return this.#wantsData;
	}

	/** Implements UpstreamSocketOwner: true while a response whose head has been reported is still incomplete. */
	get isAnswering(): boolean {
		return this.#isAnswered && this.#call !== undefined;
	}

	/** Implements UpstreamSocketOwner: stops sending the body. */
	onWriteFailed(): void {
		this.#bodyPump?.stop();
	}

	/** Implements TimedCall: reports whether sending the request body has stalled. */
	checkStalled(): boolean {
		return this.#bodyPump?.checkStalled() === true;
	}

	/** Implements TimedCall: fails the request. */
	onTimeout(reason: string): void {
		this.#fail(new UpstreamError('timeout', `the application ${reason}`));
	}

	/** Implements BodyOwner: the consumer has room again. */
	resumeBody(): void {
		if (this.#wantsData) return;
		this.#wantsData = true;
		this.#socket.resume();
	}

	/** Implements BodyOwner: the consumer does not want the rest of the body. */
	cancelBody(): void {
		if (this.#call) this.#fail(new UpstreamError('response', 'the body was canceled'), true);
	}

	/** Implements UpstreamSocketOwner: bytes have been received. */
	onReceived(bytes: Buffer, count: number): boolean {
		const call = this.#call;
		if (!call) {
			// Unsolicited data must not become the response to the next request.
			this.#close();
			return true;
		}
		this.#clock.bytesReceived();
		this.#hasResponseBytes = true;
		if (!this.#reader.write(bytes, count)) this.#responseError ??= 'the response is not FastCGI';
		if (this.#call !== call) return true;
		if (this.#responseError !== undefined) {
			this.#fail(new UpstreamError('response', this.#responseError, undefined, this.#isRefused));
			return true;
		}
		if (this.#hasRequestEnded) this.#endCall(call);
		else if (this.#head && !this.#isAnswered) this.#startStreaming(call, this.#head);
		this.#limitNextRead(this.#body ? this.#body.readLimitBytes : this.#call?.roomBytes);
		return this.#wantsData;
	}

	/** Limits the next read to the bytes that the client can accept. */
	#limitNextRead(roomBytes: number | undefined): void {
		if (roomBytes !== undefined && roomBytes < MIN_ROOM_FOR_FULL_READ_BYTES) this.#upstreamSocket.readAtMost(roomBytes);
	}

	/** Implements RecordSink: handles a part of the response or of the application's standard error. */
	onContent(type: number, bytes: Buffer): void {
		if (this.#responseError !== undefined || this.#hasRequestEnded) return;
		if (type === RECORD_TYPE.stderr) {
			if (this.#options.onStderr && this.#stderrText.length < MAX_STDERR_CHARS)
				this.#stderrText += bytes.toString('utf8');
			return;
		}
		if (type !== RECORD_TYPE.stdout) return;
		if (this.#head) {
			this.#addContent(bytes);
			return;
		}
		this.#headText += bytes.toString('latin1');
		const bodyOffset = findBodyStart(this.#headText);
		if (bodyOffset === -1) {
			if (this.#headText.length > this.#options.maxResponseHead) this.#responseError = 'the response head is too large';
			return;
		}
		const head = parseCgiHead(this.#headText.slice(0, bodyOffset));
		if (typeof head === 'string') {
			this.#responseError = head;
			return;
		}
		this.#head = head;
		this.#clock.headReceived();
		const firstBodyText = this.#headText.slice(bodyOffset);
		this.#headText = '';
		if (firstBodyText !== '') this.#addContent(Buffer.from(firstBodyText, 'latin1'));
	}

	/** Implements RecordSink: the application has ended the request. */
	onRequestEnded(_appStatus: number, protocolStatus: number): void {
		if (protocolStatus !== 0) {
			this.#responseError ??= `the application refused the request (${protocolStatus})`;
			this.#isRefused = !this.#head;
		}
		this.#hasRequestEnded = true;
	}

	#addContent(bytes: Buffer): void {
		const { length } = this.#head!;
		this.#receivedBytes += bytes.length;
		if (length !== undefined && this.#receivedBytes > length && !this.#isBodiless()) {
			this.#responseError = 'the body is longer than its Content-Length';
			return;
		}
		if (this.#body) this.#wantsData = this.#body.push(this.#options.pieceMemory.copy(bytes, 0, bytes.length));
		else if (!this.#isBodiless()) this.#bodyPieces.push(ownedCopy(bytes, 0, bytes.length));
	}

	#isBodiless(): boolean {
		const { status } = this.#head!;
		return this.#call!.request.method === 'HEAD' || status === 204 || status === 304;
	}

	/** Reports a response whose body is streamed. */
	#startStreaming(call: ClientCall, head: CgiHead): void {
		this.#isAnswered = true;
		if (this.#isBodiless()) {
			call.onResponse(createResponse(head, null));
			return;
		}
		const body = new ClientBody(this, head.length, this.#options.pieceMemory, call.roomBytes ?? Infinity);
		this.#body = body;
		for (const piece of this.#bodyPieces.splice(0)) this.#wantsData = body.push(piece);
		call.onResponse(createResponse(head, body));
	}

	/** Completes the request when the application has ended it. */
	#endCall(call: ClientCall): void {
		const head = this.#head;
		if (!head) {
			this.#fail(new UpstreamError('response', 'the application sent no response'));
			return;
		}
		if (head.length !== undefined && this.#receivedBytes < head.length && !this.#isBodiless()) {
			this.#fail(new UpstreamError('response', 'the body is shorter than its Content-Length'));
			return;
		}
		if (!this.#isAnswered) {
			this.#isAnswered = true;
			const [firstPiece, ...otherPieces] = this.#bodyPieces;
			call.onResponse(
				createResponse(
					head,
					firstPiece === undefined ? null : otherPieces.length === 0 ? firstPiece : Buffer.concat(this.#bodyPieces),
				),
			);
			// The callback may have canceled the request.
			if (this.#call !== call) return;
		}
		this.#body?.end(undefined);
		this.#body = undefined;
		const isComplete = this.#isRequestSent && this.#reader.isComplete && !this.#output.hasPending;
		const isReusable =
			this.#options.keepAlive && isComplete && !this.#socket.destroyed && !this.#upstreamSocket.isBroken;
		this.#reportStderr(head.status);
		this.#call = undefined;
		this.#clearRequest();
		this.#wantsData = true;
		if (isReusable) this.#keeper.onConnectionIdle(this);
		else this.#close();
		call.onReleased();
	}

	/** Implements UpstreamSocketOwner: the application has closed its side. */
	onPeerEnded(): void {
		this.onClosed(undefined);
	}

	/** Implements UpstreamSocketOwner: the socket has closed. */
	onClosed(error: Error | undefined): void {
		if (this.#isClosed) return;
		if (!this.#call) {
			this.#close();
			return;
		}
		const phase = !this.#isRequestSent && !this.#isAnswered ? 'request' : 'response';
		this.#fail(new UpstreamError(phase, error ? socketErrorText(error) : 'the connection was closed', error));
	}

	/** Fails the current request. With `isUpstreamBlameless`, the failure is not counted against the application. */
	#fail(error: UpstreamError, isUpstreamBlameless = false): void {
		const call = this.#call;
		if (!call) {
			this.#close();
			return;
		}
		this.#reportStderr(this.#head?.status ?? 502);
		this.#call = undefined;
		this.#clearRequest();
		this.#close();
		if (!this.#isAnswered) {
			const canRetry =
				this.#callCount > 1 && !this.#hasResponseBytes && !this.#isBodyStarted && error.phase !== 'timeout';
			call.onFailure(error, canRetry);
			return;
		}
		this.#body?.fail(error);
		call.onReleased(isUpstreamBlameless ? undefined : error);
	}

	#reportStderr(status: number): void {
		const stderrText = this.#stderrText;
		this.#stderrText = '';
		if (stderrText !== '') this.#options.onStderr?.(stderrText, status);
	}

	/** Stops the timeouts and the body of a request that has ended, and resets its state. */
	#clearRequest(): void {
		this.#clock.stop();
		this.#bodyPump?.stop();
		this.#bodyPump = undefined;
		this.#bufferedBody?.cancel();
		this.#bufferedBody = undefined;
		this.#responseError = undefined;
		this.#isRefused = false;
		this.#bodyPieces = [];
	}

	#close(): void {
		if (this.#isClosed) return;
		this.#isClosed = true;
		this.#socket.destroy();
		this.#keeper.onConnectionLost(this);
	}
}

function createResponse(head: CgiHead, body: UpstreamResponse['body']): UpstreamResponse {
	const { status, headers } = head;
	return { status, reason: undefined, headers, body, protocol: 'HTTP/1.1', upgradedStream: undefined };
}
