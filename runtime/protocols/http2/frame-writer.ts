/** Writes the frames of one connection. They are gathered in memory before they are written to the socket. */
import { type ClientSocket, queuedBytes } from '../../sockets/client-socket.ts';
import { FRAME_FLAG, FRAME_HEADER_BYTES, FRAME_TYPE } from './frame-codes.ts';
import { MAX_FRAME_PAYLOAD, MAX_TEXT_OUTPUT_BYTES } from './limits.ts';
import type { OutputMemory, OutputOwner } from './output-memory.ts';

/** The sending side of a connection. It knows nothing about streams and flow control. */
export class FrameWriter implements OutputOwner {
	readonly #socket: ClientSocket;
	readonly #memory: OutputMemory;
	/** Number of gathered bytes that the system had not accepted at the previous check. */
	#previousUnsentBytes = Infinity;
	#unreadControlBytes = 0;

	constructor(socket: ClientSocket, memory: OutputMemory) {
		this.#socket = socket;
		this.#memory = memory;
	}

	/** True if the socket is full. Output that is not urgent then waits until the socket has drained. */
	get full(): boolean {
		return this.#socket.writableNeedDrain;
	}

	/** Number of bytes of control frames that have been written since the socket became full. */
	get unreadControlBytes(): number {
		return this.#unreadControlBytes;
	}

	/** Reports whether the client has accepted anything since the last call. */
	hasProgressed(): boolean {
		// A slow client accepts a batch gradually. Streams learn only when a whole batch has been accepted, so progress is checked
		// here.
		const unsentBytes = queuedBytes(this.#socket);
		const hasProgressed = unsentBytes < this.#previousUnsentBytes;
		this.#previousUnsentBytes = unsentBytes;
		return hasProgressed;
	}

	flush(): void {
		const memory = this.#memory;
		if (memory.owner !== this) return;
		memory.owner = undefined;
		const length = memory.writeIndex;
		memory.writeIndex = 0;
		const socket = this.#socket;
		if (length === 0 || socket.destroyed || socket.writableEnded) return;
		const { bytes } = memory;
		if (length <= MAX_TEXT_OUTPUT_BYTES) {
			// Writing a string is cheaper than writing bytes, and the memory can be reused at once.
			socket.write(bytes.toString('latin1', 0, length), 'latin1');
			return;
		}
		let isMemoryReplaced = false;
		socket.write(bytes.subarray(0, length), () => {
			if (isMemoryReplaced) memory.giveBack(bytes);
		});
		if (socket.writableLength === 0) return;
		isMemoryReplaced = true;
		memory.replaceBuffer();
	}

	/** Starts a frame that belongs to no message. Does the same as {@link beginFrame}. */
	#beginControlFrame(length: number, type: number, flags: number, streamId: number): number {
		if (!this.full) this.#unreadControlBytes = 0;
		this.#unreadControlBytes += FRAME_HEADER_BYTES + length;
		return this.beginFrame(length, type, flags, streamId);
	}

	/** Starts a frame and reserves room for its payload. Returns the payload's index in `bytes`. */
	beginFrame(length: number, type: number, flags: number, streamId: number): number {
		const memory = this.#memory;
		memory.reserve(this, FRAME_HEADER_BYTES + length);
		const { bytes, writeIndex: at } = memory;
		bytes[at] = length >>> 16;
		bytes[at + 1] = length >>> 8;
		bytes[at + 2] = length;
		bytes[at + 3] = type;
		bytes[at + 4] = flags;
		bytes[at + 5] = streamId >>> 24;
		bytes[at + 6] = streamId >>> 16;
		bytes[at + 7] = streamId >>> 8;
		bytes[at + 8] = streamId;
		memory.writeIndex = at + FRAME_HEADER_BYTES + length;
		return at + FRAME_HEADER_BYTES;
	}

	/** Shortens the last frame if its payload is smaller than the room reserved for it. */
	shortenLastFrame(payloadStart: number, end: number): void {
		const { bytes } = this.#memory;
		const length = end - payloadStart;
		bytes[payloadStart - 9] = length >>> 16;
		bytes[payloadStart - 8] = length >>> 8;
		bytes[payloadStart - 7] = length;
		this.#memory.writeIndex = end;
	}

	/** The memory to which the index returned by `beginFrame` refers. */
	get bytes(): Buffer {
		return this.#memory.bytes;
	}

	/** Writes a frame whose payload is one or two 32-bit numbers. */
	writeNumbers(type: number, streamId: number, firstNumber: number, secondNumber?: number): void {
		const length = secondNumber === undefined ? 4 : 8;
		const at = this.#beginControlFrame(length, type, 0, streamId);
		this.bytes.writeUInt32BE(firstNumber, at);
		if (secondNumber !== undefined) this.bytes.writeUInt32BE(secondNumber, at + 4);
	}

	/** Writes SETTINGS with alternating identifiers and values. An empty list acknowledges the peer's SETTINGS. */
	writeSettings(entries: readonly number[]): void {
		const at = this.#beginControlFrame(
			entries.length * 3,
			FRAME_TYPE.settings,
			entries.length === 0 ? FRAME_FLAG.ack : 0,
			0,
		);
		for (let i = 0; i < entries.length; i += 2) {
			this.bytes.writeUInt16BE(entries[i]!, at + i * 3);
			this.bytes.writeUInt32BE(entries[i + 1]!, at + i * 3 + 2);
		}
	}

	/** Writes a PING with eight bytes of payload, or the acknowledgment of one. */
	writePing(payload: Uint8Array, isAck: boolean): void {
		const at = this.#beginControlFrame(8, FRAME_TYPE.ping, isAck ? FRAME_FLAG.ack : 0, 0);
		this.bytes.set(payload, at);
	}

	/** Writes a header block, given in parts, in as many frames as necessary. */
	writeHeaders(streamId: number, endStream: boolean, blockParts: readonly Uint8Array[]): void {
		let length = 0;
		for (let i = 0; i < blockParts.length; i++) length += blockParts[i]!.length;
		const flags = endStream ? FRAME_FLAG.endStream : 0;
		if (length <= MAX_FRAME_PAYLOAD) {
			let at = this.beginFrame(length, FRAME_TYPE.headers, flags | FRAME_FLAG.endHeaders, streamId);
			for (let i = 0; i < blockParts.length; i++) {
				this.bytes.set(blockParts[i]!, at);
				at += blockParts[i]!.length;
			}
			return;
		}
		const block = Buffer.concat(blockParts as Uint8Array[]);
		for (let start = 0; start < length; start += MAX_FRAME_PAYLOAD) {
			const part = block.subarray(start, start + MAX_FRAME_PAYLOAD);
			const endHeadersFlag = start + part.length === length ? FRAME_FLAG.endHeaders : 0;
			const at = this.beginFrame(
				part.length,
				start === 0 ? FRAME_TYPE.headers : FRAME_TYPE.continuation,
				start === 0 ? flags | endHeadersFlag : endHeadersFlag,
				streamId,
			);
			this.bytes.set(part, at);
		}
	}

	/** Writes a DATA frame. Returns the frame's position, for `endStreamAt`. */
	writeData(streamId: number, endStream: boolean, piece: Uint8Array, start: number, end: number): number {
		const at = this.beginFrame(end - start, FRAME_TYPE.data, endStream ? FRAME_FLAG.endStream : 0, streamId);
		this.bytes.set(start === 0 && end === piece.length ? piece : piece.subarray(start, end), at);
		return at - FRAME_HEADER_BYTES;
	}

	/** Sets END_STREAM on the last DATA frame. Returns false if the frame has already been sent. */
	endStreamAt(frameIndex: number): boolean {
		const memory = this.#memory;
		if (memory.owner !== this || frameIndex + FRAME_HEADER_BYTES > memory.writeIndex) return false;
		memory.bytes[frameIndex + 4]! |= FRAME_FLAG.endStream;
		return true;
	}
}
