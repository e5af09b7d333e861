/** A connection to a FastCGI application: one request at a time, streamed both ways. */
import { type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { UpstreamError, type UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { type OutputOwner, SocketOutput } from '../../sockets/socket-output.ts';
import {
	FULL_READ_BYTES,
	socketErrorText,
	type UpstreamSocket,
	type UpstreamSocketOwner,
} from '../../sockets/upstream-socket.ts';
import { BodyPump, type BodyPumpOwner } from '../body-pump.ts';
import { CallClock, type TimedCall } from '../call-clock.ts';
import { type BodyOwner, ClientBody } from '../http1/client-body.ts';
import type { ClientCall, ClientOptions, ConnectionKeeper, KeptConnection } from '../http1/client-call.ts';
import { ownedCopy } from '../http1/owned-copy.ts';
import {
	formatBeginRequest,
	formatStreamData,
	formatStreamEnd,
	RECORD_TYPE,
	RecordReader,
	type RecordSink,
} from './records.ts';
import { type CgiHead, findBodyStart, parseCgiHead } from './response-head.ts';

/**
 * Maximum bytes of a buffered request body. A body of unknown length is buffered, because applications need the length before
 * the body.
 */
const MAX_HELD = 16_777_216;
/** Maximum characters kept of what a request writes to standard error. */
const MAX_ERRORS = 65_536;

/** Receives what the application wrote to standard error, with the status of its response. If undefined, it is discarded. */
export interface FastcgiOptions extends ClientOptions {
	/** Receives what the application wrote to standard error, with the status of its response. If undefined, it is discarded. */
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
	#closed = false;
	#call: ClientCall | undefined = undefined;
	#calls = 0;
	readonly #clock: CallClock;
	readonly #output: SocketOutput;
	// State of the current request.
	#reader: RecordReader;
	#pump: BodyPump | undefined = undefined;
	#sent = false;
	#bytes = false;
	#headText = '';
	#head: CgiHead | undefined = undefined;
	#pieces: Buffer[] = [];
	#received = 0;
	#body: ClientBody | undefined = undefined;
	#answered = false;
	#ended = false;
	#wanted = true;
	#errors = '';
	/** Describes an error found while reading the records. */
	#mistake: string | undefined = undefined;
	#refused = false;

	/** Takes over a connected socket. */
	constructor(upstreamSocket: UpstreamSocket, options: FastcgiOptions, keeper: ConnectionKeeper) {
		upstreamSocket.holder = this;
		this.#upstreamSocket = upstreamSocket;
		this.#socket = upstreamSocket.bare();
		this.#output = new SocketOutput(this.#socket, this);
		this.#clock = new CallClock(options, this);
		this.#options = options;
		this.#keeper = keeper;
		this.#reader = new RecordReader(this);
	}

	get usable(): boolean {
		return this.#call === undefined && !this.#closed && !this.#socket.destroyed;
	}

	send(call: ClientCall): void {
		call.carrier = this;
		this.#call = call;
		this.#calls++;
		this.#sent = false;
		this.#bytes = false;
		this.#headText = '';
		this.#head = undefined;
		this.#pieces = [];
		this.#received = 0;
		this.#body = undefined;
		this.#answered = false;
		this.#ended = false;
		this.#errors = '';
		this.#reader = new RecordReader(this);
		this.#readLess(call.room);
		const { body } = call.request;
		if (isStream(body) && body.length === undefined) {
			this.#hold(call, body).catch(error => this.#fail(error as UpstreamError));
			return;
		}
		const bytes = typeof body === 'string' ? Buffer.from(body) : body;
		if (isStream(bytes)) {
			this.#output.bytes(this.#beginning(call, bytes.length!));
			this.#pump = new BodyPump(bytes, this);
			this.#clock.bodyStarted();
			this.#pump.start();
		} else this.#sendWhole(call, bytes);
	}

	cancel(call: ClientCall): void {
		if (this.#call === call) this.#fail(new UpstreamError('response', 'the request was canceled'), true);
	}

	destroy(): void {
		if (this.#call) this.#fail(new UpstreamError('response', 'the connection was closed'), true);
		else this.#drop();
	}

	/** Buffers a body of unknown length. @throws UpstreamError */
	async #hold(call: ClientCall, body: BodySource): Promise<void> {
		const pieces: Uint8Array[] = [];
		let size = 0;
		try {
			for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
				if (this.#call !== call) return body.cancel();
				size += piece.length;
				if (size > MAX_HELD) {
					body.cancel();
					throw new HttpError(411, 'For FastCGI, a body of this size needs a Content-Length.');
				}
				pieces.push(Uint8Array.from(piece));
			}
		} catch (error) {
			throw new UpstreamError('request', 'the request body could not be read', error);
		}
		if (this.#call === call) this.#sendWhole(call, Buffer.concat(pieces));
	}

	#sendWhole(call: ClientCall, bytes: Uint8Array | null): void {
		const records = bytes ? formatStreamData(RECORD_TYPE.stdin, bytes) : [];
		this.#output.bytes(
			Buffer.concat([this.#beginning(call, bytes?.length ?? 0), ...records, formatStreamEnd(RECORD_TYPE.stdin)]),
		);
		this.#requestSent();
	}

	/** Returns the records that begin a request with a body of this length. */
	#beginning({ request }: ClientCall, length: number): Buffer {
		const params = request.transport?.params ?? [];
		const size = String(length);
		const own = ['REQUEST_METHOD', request.method, 'CONTENT_LENGTH', size, 'HTTP_CONTENT_LENGTH', size];
		return formatBeginRequest([...own, ...params], this.#options.keepAlive);
	}

	/** Implements `BodyPumpOwner`. */
	writePiece(bytes: Uint8Array): boolean {
		for (const record of formatStreamData(RECORD_TYPE.stdin, bytes)) this.#output.bytes(record);
		return !this.#output.pending;
	}

	/** Implements `BodyPumpOwner`: the request is complete. */
	bodyEnded(): void {
		this.#output.bytes(formatStreamEnd(RECORD_TYPE.stdin));
		this.#requestSent();
	}

	#requestSent(): void {
		this.#sent = true;
		this.#clock.requestSent(this.#answered);
	}

	/** Implements `BodyPumpOwner`: the client's body was cut short. */
	pumpFailed(error: unknown): void {
		this.#fail(new UpstreamError('request', 'the request body could not be read', error));
	}

	/** Implements OutputOwner. */
	outputDrained(): void {
		this.#pump?.flushed();
	}

	/** Implements TimedCall. */
	get reading(): boolean {
		return this.#wanted;
	}

	/** Implements UpstreamSocketOwner. */
	get answering(): boolean {
		return this.#answered && this.#call !== undefined;
	}

	/** Implements UpstreamSocketOwner: stops sending the body. */
	writeFailed(): void {
		this.#pump?.stop();
	}

	/** Implements TimedCall. */
	checkStalled(): boolean {
		return this.#pump?.checkStalled() === true;
	}

	/** Implements TimedCall. */
	timedOut(what: string): void {
		this.#fail(new UpstreamError('timeout', `the application ${what}`));
	}

	/** Implements BodyOwner. */
	resumeBody(): void {
		if (this.#wanted) return;
		this.#wanted = true;
		this.#socket.resume();
	}

	/** Implements BodyOwner. */
	cancelBody(): void {
		if (this.#call) this.#fail(new UpstreamError('response', 'the body was canceled'), true);
	}

	/** Implements UpstreamSocketOwner. */
	received(bytes: Buffer, count: number): boolean {
		const call = this.#call;
		if (!call) {
			// Unsolicited data must not become the response to the next request.
			this.#drop();
			return true;
		}
		this.#clock.bytesReceived();
		this.#bytes = true;
		if (!this.#reader.write(bytes, count)) this.#mistake ??= 'the response is not FastCGI';
		if (this.#call !== call) return true;
		if (this.#mistake !== undefined) {
			this.#fail(new UpstreamError('response', this.#mistake, undefined, this.#refused));
			return true;
		}
		if (this.#ended) this.#finish(call);
		else if (this.#head && !this.#answered) this.#stream(call, this.#head);
		this.#readLess(this.#body ? this.#body.readLimitBytes : this.#call?.room);
		return this.#wanted;
	}

	/** Limits the next read to the bytes that the client can accept. */
	#readLess(room: number | undefined): void {
		if (room !== undefined && room < FULL_READ_BYTES) this.#upstreamSocket.readAtMost(room);
	}

	/** Implements RecordSink. */
	content(type: number, bytes: Buffer): void {
		if (this.#mistake !== undefined || this.#ended) return;
		if (type === RECORD_TYPE.stderr) {
			if (this.#options.onStderr && this.#errors.length < MAX_ERRORS) this.#errors += bytes.toString('utf8');
			return;
		}
		if (type !== RECORD_TYPE.stdout) return;
		if (this.#head) {
			this.#push(bytes);
			return;
		}
		this.#headText += bytes.toString('latin1');
		const start = findBodyStart(this.#headText);
		if (start === -1) {
			if (this.#headText.length > this.#options.maxResponseHead) this.#mistake = 'the response head is too large';
			return;
		}
		const head = parseCgiHead(this.#headText.slice(0, start));
		if (typeof head === 'string') {
			this.#mistake = head;
			return;
		}
		this.#head = head;
		this.#clock.headReceived();
		const rest = this.#headText.slice(start);
		this.#headText = '';
		if (rest !== '') this.#push(Buffer.from(rest, 'latin1'));
	}

	/** Implements RecordSink. */
	requestEnded(_status: number, protocol: number): void {
		if (protocol !== 0) {
			this.#mistake ??= `the application refused the request (${protocol})`;
			this.#refused = !this.#head;
		}
		this.#ended = true;
	}

	#push(bytes: Buffer): void {
		const { length } = this.#head!;
		this.#received += bytes.length;
		if (length !== undefined && this.#received > length && !this.#bodiless()) {
			this.#mistake = 'the body is longer than its Content-Length';
			return;
		}
		if (this.#body) this.#wanted = this.#body.push(this.#options.pieces.copy(bytes, 0, bytes.length));
		else if (!this.#bodiless()) this.#pieces.push(ownedCopy(bytes, 0, bytes.length));
	}

	#bodiless(): boolean {
		const { status } = this.#head!;
		return this.#call!.request.method === 'HEAD' || status === 204 || status === 304;
	}

	/** Reports a response whose body is streamed. */
	#stream(call: ClientCall, head: CgiHead): void {
		this.#answered = true;
		if (this.#bodiless()) {
			call.answered(responseOf(head, null));
			return;
		}
		const body = new ClientBody(this, head.length, this.#options.pieces, call.room ?? Infinity);
		this.#body = body;
		for (const piece of this.#pieces.splice(0)) this.#wanted = body.push(piece);
		call.answered(responseOf(head, body));
	}

	/** Completes the request when the application has ended it. */
	#finish(call: ClientCall): void {
		const head = this.#head;
		if (!head) {
			this.#fail(new UpstreamError('response', 'the application sent no response'));
			return;
		}
		if (head.length !== undefined && this.#received < head.length && !this.#bodiless()) {
			this.#fail(new UpstreamError('response', 'the body is shorter than its Content-Length'));
			return;
		}
		if (!this.#answered) {
			this.#answered = true;
			const [first, ...more] = this.#pieces;
			call.answered(
				responseOf(head, first === undefined ? null : more.length === 0 ? first : Buffer.concat(this.#pieces)),
			);
			// The callback may have canceled the request.
			if (this.#call !== call) return;
		}
		this.#body?.end(undefined);
		this.#body = undefined;
		const whole = this.#sent && this.#reader.whole && !this.#output.pending;
		const reusable = this.#options.keepAlive && whole && !this.#socket.destroyed && !this.#upstreamSocket.broken;
		this.#reportStderr(head.status);
		this.#call = undefined;
		this.#clear();
		this.#wanted = true;
		if (reusable) this.#keeper.connectionIdle(this);
		else this.#drop();
		call.released();
	}

	/** Implements UpstreamSocketOwner: the application has closed its side. */
	ended(): void {
		this.closed(undefined);
	}

	/** Implements UpstreamSocketOwner. */
	closed(error: Error | undefined): void {
		if (this.#closed) return;
		if (!this.#call) {
			this.#drop();
			return;
		}
		const phase = !this.#sent && !this.#answered ? 'request' : 'response';
		this.#fail(new UpstreamError(phase, error ? socketErrorText(error) : 'the connection was closed', error));
	}

	/** Fails the current request. @param ours True if the application is not to blame. */
	#fail(error: UpstreamError, ours = false): void {
		const call = this.#call;
		if (!call) {
			this.#drop();
			return;
		}
		const started = this.#pump?.started === true;
		this.#reportStderr(this.#head?.status ?? 502);
		this.#call = undefined;
		this.#clear();
		this.#drop();
		if (!this.#answered) {
			const untouched = this.#calls > 1 && !this.#bytes && !started && error.phase !== 'timeout';
			call.failed(error, untouched);
			return;
		}
		this.#body?.fail(error);
		call.released(ours ? undefined : error);
	}

	#reportStderr(status: number): void {
		const text = this.#errors;
		this.#errors = '';
		if (text !== '') this.#options.onStderr?.(text, status);
	}

	/** Releases the state of a request. */
	#clear(): void {
		this.#clock.stop();
		this.#pump?.stop();
		this.#pump = undefined;
		this.#mistake = undefined;
		this.#refused = false;
		this.#pieces = [];
	}

	#drop(): void {
		if (this.#closed) return;
		this.#closed = true;
		this.#socket.destroy();
		this.#keeper.connectionLost(this);
	}
}

function responseOf(head: CgiHead, body: UpstreamResponse['body']): UpstreamResponse {
	const { status, headers } = head;
	return { status, reason: undefined, headers, body, protocol: 'HTTP/1.1', upgradedStream: undefined };
}
