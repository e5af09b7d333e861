/** Writes the responses of one connection: framing, joined writes, and streaming with backpressure. */
import { Buffer } from 'node:buffer';
import { type Body, type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import { bodyFailureText, WRONG_LENGTH } from '../../../compiler/exchange/broken-response.ts';
import type { Exchange } from '../../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { type OutputOwner, SocketOutput } from '../../sockets/socket-output.ts';
import type { Http1Engine } from './engine.ts';
import { MAX_JOINED_BODY_BYTES } from './joined-writes.ts';
import { MAX_COALESCED_BYTES, MAX_GATHERED_BYTES, MAX_TEXT_BYTES } from './limits.ts';
import { SERVER_NAME, statusLine } from './response-head.ts';
import { SliceSource } from './slice-source.ts';

/** Maximum consecutive chunks sent without yielding to other connections, if neither the source nor the socket causes a delay. */
const MAX_PIECES_PER_TURN = 32;

/** What a writer needs from its connection. */
export interface WriterOwner {
	/** Determines how many bytes of a body are passed to the socket at a time, and whether the remaining bytes may have to wait. */
	readonly clock: { readonly writeChunk: number; readonly limitsRate: boolean };
	/** Called when a response that could not be written at once has ended: it is complete, or the socket was destroyed. */
	onResponseEnded(): void;
	/**
	 * Called when pending writes have been sent. Not called if the writer itself was waiting for this in order to continue a
	 * streamed body.
	 */
	onDrained(): void;
	/** Called with true when the socket is full, and with false when it is writable again. */
	onWriteBlocked(isBlocked: boolean): void;
}

/** The result of {@link ResponseWriter.respond}. */
export type ResponseProgress = 'written' | 'streaming' | 'upgraded';

/** The output side of a connection. `respond` gathers text, and `flush` sends it. */
export class ResponseWriter implements OutputOwner {
	/** False once a response has announced or implied that the connection closes after it. */
	keepAlive = true;
	readonly #socket: ClientSocket;
	readonly #output: SocketOutput;
	readonly #engine: Http1Engine;
	readonly #owner: WriterOwner;
	#gatheredText = '';
	#exchange: Exchange | undefined = undefined;
	#bodySource: BodySource | undefined = undefined;
	#isChunked = false;
	/** Number of bytes left to write of a streamed body whose length is known; −1 for any other body. */
	#remainingBytes = -1;
	#awaitsWrite = false;
	#isPumping = false;

	constructor(socket: ClientSocket, engine: Http1Engine, owner: WriterOwner) {
		this.#socket = socket;
		this.#output = new SocketOutput(socket, this);
		this.#engine = engine;
		this.#owner = owner;
	}

	/** True if so much output is gathered that it should be sent before more is added. */
	get isFull(): boolean {
		return this.#gatheredText.length >= MAX_GATHERED_BYTES;
	}

	/** True if so much output is waiting for the client that no more should be produced. */
	get isBlocked(): boolean {
		return this.#output.needsDrain;
	}

	/** Reports whether `respond` copies a complete body of this length. The caller may then reuse the body's memory at once. */
	copiesBody(length: number): boolean {
		const { clock } = this.#owner;
		return this.#output.isDirect && length <= MAX_JOINED_BODY_BYTES && length <= clock.writeChunk && !clock.limitsRate;
	}

	/** Passes gathered output to the socket. */
	flush(): void {
		if (this.#gatheredText === '') return;
		const text = this.#gatheredText;
		this.#gatheredText = '';
		this.#output.writeText(text);
	}

	/** Adds an interim response to the gathered output. */
	addInterim(status: number, headers: HeaderList | undefined): void {
		this.#gatheredText += statusLine(status) + (headers ? this.#engine.fieldWriter.write(headers) : '');
		this.#gatheredText += '\r\n';
	}

	/** Adds the response to a message that is rejected before it becomes an exchange. */
	addRefusal(status: number): void {
		this.keepAlive = false;
		this.#gatheredText += `${statusLine(status)}Server: ${SERVER_NAME}\r\n${this.#engine.dateLine()}Content-Length: 0\r\nConnection: close\r\n\r\n`;
	}

	/**
	 * Writes the response of a handled exchange. `minorVersion` is 0 for an HTTP/1.0 client. `mayKeepAlive` says whether the
	 * connection may be reused.
	 */
	respond(x: Exchange, minorVersion: number, mayKeepAlive: boolean): ResponseProgress {
		const response = x.response;
		const method = x.received.method;
		let status = response.status === 0 ? 200 : response.status;
		let body: Body = response.body;
		const isAcceptedConnect = method === 'CONNECT' && status >= 200 && status < 300;
		if (x.upgradeCallback && (status === 101 || isAcceptedConnect)) {
			if (isStream(body)) body.cancel();
			this.#writeUpgradeHead(status, response.headers);
			return 'upgraded';
		}
		// A 2xx would tell the client that its tunnel is open (RFC 9110 §9.3.6). Invalid statuses become 500.
		if (isAcceptedConnect || !(status >= 200 && status <= 999) || !Number.isInteger(status)) {
			if (isStream(body)) body.cancel();
			body = null;
			status = isAcceptedConnect ? 405 : 500;
			response.status = status;
		}
		const engine = this.#engine;
		const fieldWriter = engine.fieldWriter;
		const fieldLines = fieldWriter.write(response.headers);
		let keepAlive = mayKeepAlive && !fieldWriter.close;
		const dateLine = fieldWriter.hasDate ? '' : engine.dateLine();
		const isBodiless = status === 204 || status === 304;
		if (
			typeof body === 'string' &&
			body.length <= MAX_COALESCED_BYTES &&
			!isBodiless &&
			status !== 205 &&
			method !== 'HEAD'
		) {
			const headEnd = this.#formatHeadEnd(keepAlive, minorVersion, fieldWriter.hasUpgrade && status === 426);
			const cachedResponse = engine.responseCache.findText(statusLine(status), fieldLines, dateLine, headEnd, body);
			if (cachedResponse !== undefined) {
				this.#gatheredText += cachedResponse;
				response.bytesSent = body.length;
				return 'written';
			}
		}
		if (
			isSmallBytes(body) &&
			!isBodiless &&
			status !== 205 &&
			method !== 'HEAD' &&
			body.length <= this.#owner.clock.writeChunk
		) {
			const headEnd = this.#formatHeadEnd(keepAlive, minorVersion, fieldWriter.hasUpgrade && status === 426);
			this.#gatheredText += engine.responseCache.textForByteBody(
				statusLine(status),
				fieldLines,
				dateLine,
				headEnd,
				toLatin1(body),
			);
			response.bytesSent = body.length;
			return 'written';
		}
		let head = statusLine(status) + fieldLines + dateLine;
		if (isBodiless || method === 'HEAD') {
			const length = isStream(body)
				? body.length
				: typeof body === 'string'
					? Buffer.byteLength(body)
					: body?.byteLength;
			const declaredLength = length ?? fieldWriter.contentLength;
			// A response to HEAD has the length that a GET response would have. A 304 has a length only if a handler knows it.
			if (!isBodiless && declaredLength >= 0) head += `Content-Length: ${declaredLength}\r\n`;
			else if (status === 304 && fieldWriter.contentLength >= 0)
				head += `Content-Length: ${fieldWriter.contentLength}\r\n`;
			this.#gatheredText +=
				head + this.#formatHeadEnd(keepAlive, minorVersion, fieldWriter.hasUpgrade && status === 426);
			if (isStream(body)) body.cancel();
			return 'written';
		}

		if (status === 205 && body !== null) {
			// 205 tells the client to reset its form. It has no content (RFC 9110 §15.3.6).
			if (isStream(body)) body.cancel();
			body = null;
		}
		if (typeof body === 'string') {
			const length = Buffer.byteLength(body);
			if (length === body.length && length <= MAX_COALESCED_BYTES) {
				// If there are as many bytes as characters, the body is ASCII, which is the same in Latin-1.
				head += `Content-Length: ${length}\r\n`;
				this.#gatheredText +=
					head + this.#formatHeadEnd(keepAlive, minorVersion, fieldWriter.hasUpgrade && status === 426) + body;
				response.bytesSent = length;
				return 'written';
			}
			body = Buffer.from(body, 'utf8');
		}
		let bodySource: BodySource | undefined;
		let length: number | undefined;
		if (body === null) length = 0;
		else if (body instanceof Uint8Array) {
			length = body.byteLength;
			const maxWriteBytes = this.#owner.clock.writeChunk;
			if (length > maxWriteBytes) bodySource = new SliceSource(body, maxWriteBytes);
		} else {
			bodySource = body;
			length = bodySource.length;
		}
		this.#isChunked = false;
		if (length !== undefined) head += `Content-Length: ${length}\r\n`;
		else if (minorVersion === 1) {
			this.#isChunked = true;
			head += 'Transfer-Encoding: chunked\r\n';
		} else keepAlive = false;
		head += this.#formatHeadEnd(keepAlive, minorVersion, fieldWriter.hasUpgrade && status === 426);

		if (bodySource) {
			if (bodySource.prependHead !== undefined && this.#writeAsOneBuffer(bodySource, head)) {
				response.bytesSent = length!;
				return 'written';
			}
			this.flush();
			this.#gatheredText = head;
			this.#exchange = x;
			this.#bodySource = bodySource;
			this.#remainingBytes = length ?? -1;
			if (!this.#pumpBody()) return 'streaming';
			this.#exchange = undefined;
			return 'written';
		}
		if (body !== null && length! > 0) {
			const bytes = body as Uint8Array;
			response.bytesSent = length!;
			const headText = this.#gatheredText + head;
			this.#gatheredText = '';
			if (!this.#engine.joinedWrites.write(this.#output, headText, bytes))
				this.#output.writeFramed(headText, bytes, '');
		} else this.#gatheredText += head;
		return 'written';
	}

	/**
	 * Writes head and body as one buffer, if the body's source reserved room for the head. Returns false if that is not possible.
	 */
	#writeAsOneBuffer(source: BodySource, head: string): boolean {
		if (!this.#output.isDirect) return false;
		const message = source.prependHead!(this.#gatheredText + head);
		if (message === undefined) return false;
		this.#gatheredText = '';
		// Until the write has been accepted, the memory belongs to the socket, and the source must not be pulled again.
		if (this.#output.writeBytes(message)) source.pull();
		return true;
	}

	/** Must be called when the socket has closed. Cancels a stream being written. */
	onSocketClosed(): void {
		const source = this.#bodySource;
		if (!source) return;
		this.#bodySource = undefined;
		this.#awaitsWrite = false;
		source.cancel();
		this.#endResponse();
	}

	#writeUpgradeHead(status: number, headers: HeaderList): void {
		const fieldWriter = this.#engine.fieldWriter;
		this.#gatheredText += statusLine(status) + fieldWriter.write(headers);
		if (!fieldWriter.hasDate) this.#gatheredText += this.#engine.dateLine();
		this.#gatheredText += status === 101 ? 'Connection: Upgrade\r\n\r\n' : '\r\n';
		this.flush();
	}

	/** Returns the `Connection` field, if one is needed, and the end of the head. */
	#formatHeadEnd(keepAlive: boolean, minorVersion: number, announcesUpgrade: boolean): string {
		this.keepAlive = keepAlive;
		if (keepAlive && minorVersion === 1) return announcesUpgrade ? 'Connection: Upgrade\r\n\r\n' : '\r\n';
		if (keepAlive) return 'Connection: keep-alive\r\n\r\n';
		return announcesUpgrade ? 'Connection: Upgrade, close\r\n\r\n' : 'Connection: close\r\n\r\n';
	}

	/** Moves chunks from the source to the socket until one of them is not ready. Returns true if the response has ended. */
	#pumpBody(): boolean {
		const output = this.#output;
		this.#isPumping = true;
		let hasEnded = false;
		for (let pieceCount = 0; ; pieceCount++) {
			const source = this.#bodySource;
			if (!source) {
				hasEnded = true;
				break;
			}
			if (pieceCount === MAX_PIECES_PER_TURN) {
				setImmediate(() => this.#resume());
				break;
			}
			if (source.sendTo !== undefined && this.#remainingBytes > 0) this.#sendDirectly(source);
			let piece: Uint8Array | null | Promise<Uint8Array | null>;
			try {
				piece = source.pull();
			} catch (error) {
				this.#abort(bodyFailureText(error));
				hasEnded = true;
				break;
			}
			if (piece instanceof Promise) {
				piece.then(
					bytes => this.#pieceArrived(source, bytes),
					error => {
						if (this.#bodySource !== source) return;
						this.#abort(bodyFailureText(error));
						this.#endResponse();
					},
				);
				break;
			}
			if (this.#writePiece(piece)) {
				hasEnded = true;
				break;
			}
			// No further chunks are needed. The socket will call `onSocketClosed`.
			if (this.#socket.destroyed) break;
			// At the next pull, the source reuses this chunk's memory, so the chunk must have been sent by then.
			if (output.hasPending) {
				this.#awaitsWrite = true;
				this.#owner.onWriteBlocked(true);
				break;
			}
		}
		if (!hasEnded) this.flush();
		this.#isPumping = false;
		return hasEnded;
	}

	/** Lets the kernel send body data directly, as far as it can, once everything before it has been sent. */
	#sendDirectly(source: BodySource): void {
		this.flush();
		const descriptor = this.#output.freeDescriptor;
		if (descriptor < 0) return;
		const sentBytes = source.sendTo!(descriptor);
		this.#remainingBytes -= sentBytes;
		this.#exchange!.response.bytesSent += sentBytes;
	}

	#pieceArrived(source: BodySource, bytes: Uint8Array | null): void {
		if (this.#bodySource !== source) return;
		const hasEnded = this.#writePiece(bytes);
		if (hasEnded || bytes === null || bytes.length <= MAX_COALESCED_BYTES) this.flush();
		if (hasEnded) this.#endResponse();
		else if (this.#output.hasPending) {
			this.#awaitsWrite = true;
			this.#owner.onWriteBlocked(true);
		} else this.#resume();
	}

	#resume(): void {
		if (this.#bodySource && !this.#isPumping && this.#pumpBody()) {
			this.flush();
			this.#endResponse();
		}
	}

	/** Writes a chunk, or the end of the body (null). Returns true if the body has ended. */
	#writePiece(piece: Uint8Array | null): boolean {
		if (piece === null) {
			const source = this.#bodySource!;
			this.#bodySource = undefined;
			if (this.#remainingBytes > 0) {
				this.#abort(WRONG_LENGTH);
				return true;
			}
			if (this.#isChunked) {
				this.#gatheredText += '0\r\n';
				const trailers = this.#exchange!.response.trailers;
				const fieldWriter = this.#engine.fieldWriter;
				if (trailers) this.#gatheredText += fieldWriter.write(trailers);
				if (source.trailers) this.#gatheredText += fieldWriter.write(source.trailers);
				this.#gatheredText += '\r\n';
			}
			return true;
		}
		const length = piece.byteLength;
		if (length === 0) return false;
		if (this.#remainingBytes >= 0) {
			if (length > this.#remainingBytes) {
				this.#abort(WRONG_LENGTH);
				return true;
			}
			this.#remainingBytes -= length;
		}
		this.#exchange!.response.bytesSent += length;
		const isSmall = length <= MAX_COALESCED_BYTES;
		if (this.#isChunked) this.#gatheredText += `${length.toString(16)}\r\n`;
		if (isSmall) {
			this.#gatheredText += toLatin1(piece);
			if (this.#isChunked) this.#gatheredText += '\r\n';
			if (this.isFull) this.flush();
			return false;
		}
		const head = this.#gatheredText;
		this.#gatheredText = '';
		if (head === '') this.#output.writeBytes(piece);
		else this.#output.writeFramed(head, piece, this.#isChunked ? '\r\n' : '');
		return false;
	}

	/** Implements OutputOwner: pending writes have been sent. */
	onOutputDrained(): void {
		if (!this.#awaitsWrite) {
			this.#owner.onDrained();
			return;
		}
		this.#awaitsWrite = false;
		this.#owner.onWriteBlocked(false);
		this.#resume();
	}

	/** Closes the connection, which is the only way to tell the client that the body is incomplete. */
	#abort(failure: string): void {
		this.#exchange!.response.failure = failure;
		const source = this.#bodySource;
		this.#bodySource = undefined;
		source?.cancel();
		this.#socket.destroy();
	}

	#endResponse(): void {
		this.#exchange = undefined;
		this.#owner.onResponseEnded();
	}
}

function isSmallBytes(body: Body): body is Uint8Array {
	return body instanceof Uint8Array && body.length > 0 && body.length <= MAX_TEXT_BYTES;
}

function toLatin1(bytes: Uint8Array): string {
	return (bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).toString(
		'latin1',
	);
}
