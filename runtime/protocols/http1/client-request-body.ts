/** Writes a streamed request body with Content-Length or chunked framing (RFC 9112 §6). */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import type { SocketOutput } from '../../sockets/socket-output.ts';
import type { BodyPumpOwner } from '../body-pump.ts';
import { formatLastChunk } from './client-head.ts';

/** Callbacks of the body writer. Exactly one of them is called, unless the writer is stopped first. */
export interface RequestBodyOwner {
	onBodySent(): void;
	/**
	 * Called if the body could not be read, or does not have the announced length. In either case, the message cannot be completed.
	 */
	onBodyFailed(error: unknown): void;
}

/** Writes one body with its framing. The head waits for the first chunk, so that both are sent in one write. */
export class RequestBodyWriter implements BodyPumpOwner {
	readonly #output: SocketOutput;
	readonly #body: BodySource;
	readonly #owner: RequestBodyOwner;
	/** Number of bytes of the body still to be written; undefined with chunked framing. */
	#remainingBytes: number | undefined;
	#head: string;

	constructor(
		output: SocketOutput,
		body: BodySource,
		length: number | undefined,
		head: string,
		owner: RequestBodyOwner,
	) {
		this.#output = output;
		this.#body = body;
		this.#remainingBytes = length;
		this.#head = head;
		this.#owner = owner;
	}

	/** Writes the head, unless it has been written together with a chunk. */
	writeHead(): void {
		const head = this.#head;
		if (head === '') return;
		this.#head = '';
		this.#output.writeText(head);
	}

	writePiece(bytes: Uint8Array): boolean {
		const head = this.#head;
		if (this.#remainingBytes === undefined) {
			this.#head = '';
			return this.#output.writeFramed(`${head}${bytes.length.toString(16)}\r\n`, bytes, '\r\n');
		}
		this.#remainingBytes -= bytes.length;
		if (this.#remainingBytes < 0) {
			this.#owner.onBodyFailed(new Error('the request body is longer than its Content-Length'));
			return false;
		}
		if (head === '') return this.#output.writeBytes(bytes);
		this.#head = '';
		return this.#output.writeFramed(head, bytes, '');
	}

	sendDirectly(body: BodySource): void {
		if (this.#remainingBytes === undefined) return;
		this.writeHead();
		const descriptor = this.#output.freeDescriptor;
		if (descriptor >= 0) this.#remainingBytes -= body.sendTo!(descriptor);
	}

	onBodyEnded(): void {
		if (this.#remainingBytes !== undefined && this.#remainingBytes > 0) {
			this.#owner.onBodyFailed(new Error('the request body is shorter than its Content-Length'));
			return;
		}
		this.writeHead();
		if (this.#remainingBytes === undefined) this.#output.writeText(formatLastChunk(this.#body.trailers));
		this.#owner.onBodySent();
	}

	onPumpFailed(error: unknown): void {
		this.#owner.onBodyFailed(error);
	}
}

/** Maximum bytes of a body that is joined with its head in one write. */
const MAX_JOINED_BODY_BYTES = 16384;

export function writeCompleteMessage(output: SocketOutput, head: string, body: Uint8Array): void {
	if (body.length > MAX_JOINED_BODY_BYTES) {
		output.writeFramed(head, body, '');
		return;
	}
	const message = Buffer.allocUnsafe(head.length + body.length);
	message.write(head, 0, 'latin1');
	message.set(body, head.length);
	output.writeBytes(message);
}
