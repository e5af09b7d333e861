/** Reads the unidirectional streams of a client: its control stream, its QPACK streams, and others (RFC 9114 §6.2). */
import type { QuicStream, QuicStreamOwner } from '../../sockets/quic/quic-connection.ts';
import type { CutReason } from '../http2/flood-guard.ts';
import { FRAME_COST } from '../http2/flood-guard.ts';
import { FrameReader, type FrameSink } from './frame-reader.ts';
import { FORBIDDEN_FRAMES, FORBIDDEN_SETTINGS, FRAME_TYPE, H3_ERROR, SETTING_ID, STREAM_TYPE } from './http3-codes.ts';
import { MAX_CONTROL_FRAME_BYTES } from './limits.ts';
import { VarintReader } from './varint.ts';

/** What the unidirectional streams need from their connection. */
export interface ControlledConnection {
	/**
	 * Registers a stream of a type that may occur only once per connection. Returns false if there has been one
	 * already (RFC 9114 §6.2.1).
	 */
	claimStreamType(type: number): boolean;
	/** Ends the connection because of an error caused by the client. */
	fail(code: number): void;
	/** Deducts the cost of a frame or instruction that does no useful work from the connection's budget; see `FloodGuard`. */
	charge(reason: CutReason, cost: number): void;
	/** Called for a stream of an unknown type, or one that ended before its type was known. */
	onUnknownStream(stream: QuicStream): void;
	beginInput(): void;
}

/** A unidirectional stream opened by the client. */
export class ControlStream implements QuicStreamOwner, FrameSink {
	readonly #connection: ControlledConnection;
	readonly #stream: QuicStream;
	readonly #varintReader = new VarintReader();
	readonly #frameReader = new FrameReader(this);
	#streamType = -1;
	#hasSettings = false;
	/** The highest push ID that the client has allowed; −1 if it has allowed none. */
	#maxPushId = -1n;
	#lastGoAwayId = MAX_QUIC_INTEGER;
	#hasFailed = false;

	constructor(connection: ControlledConnection, stream: QuicStream) {
		this.#connection = connection;
		this.#stream = stream;
	}

	onData(bytes: Buffer, isEnd: boolean): boolean {
		this.#connection.beginInput();
		let at = 0;
		while (this.#streamType < 0 && at < bytes.length) {
			if (this.#varintReader.push(bytes[at++]!) && !this.#setStreamType(this.#varintReader.value)) return false;
		}
		if (this.#streamType === STREAM_TYPE.control) this.#frameReader.read(bytes, at);
		else if (this.#streamType >= 0) this.#checkInstructions(bytes, at);
		if (isEnd && !this.#hasFailed) this.#onStreamEnded();
		return !this.#hasFailed;
	}

	onReset(): void {
		this.#connection.beginInput();
		this.#onStreamEnded();
	}

	onStopped(): void {}

	onDrained(): void {}

	onFrame(type: number, length: number): 'gather' | 'skip' | 'stop' {
		if (!this.#hasSettings && type !== FRAME_TYPE.settings) return this.#fail(H3_ERROR.missingSettings);
		switch (type) {
			case FRAME_TYPE.settings:
				if (this.#hasSettings) return this.#fail(H3_ERROR.frameUnexpected);
				this.#hasSettings = true;
				break;
			case FRAME_TYPE.data:
			case FRAME_TYPE.headers:
			case FRAME_TYPE.pushPromise:
				return this.#fail(H3_ERROR.frameUnexpected);
			case FRAME_TYPE.cancelPush:
			case FRAME_TYPE.goAway:
			case FRAME_TYPE.maxPushId:
			case FRAME_TYPE.priorityUpdateRequest:
			case FRAME_TYPE.priorityUpdatePush:
				this.#connection.charge('priority_flood', FRAME_COST.priority_flood);
				break;
			default:
				if (FORBIDDEN_FRAMES.has(type)) return this.#fail(H3_ERROR.frameUnexpected);
				this.#connection.charge('empty_frames', FRAME_COST.empty_frames);
				return this.#hasFailed ? 'stop' : 'skip';
		}
		return length > MAX_CONTROL_FRAME_BYTES ? this.#fail(H3_ERROR.excessiveLoad) : 'gather';
	}

	onPayloadPart(): boolean {
		return false;
	}

	onWholePayload(type: number, bytes: Buffer, start: number, end: number): boolean {
		if (type === FRAME_TYPE.priorityUpdateRequest || type === FRAME_TYPE.priorityUpdatePush) {
			this.#checkPriorityUpdate(type, bytes.subarray(start, end));
			return !this.#hasFailed;
		}
		const numbers = readVarints(bytes, start, end);
		if (type === FRAME_TYPE.settings) this.#checkSettings(numbers);
		else if (numbers?.length !== 1) this.#fail(H3_ERROR.frame);
		else this.#handleNumber(type, numbers[0]!);
		return !this.#hasFailed;
	}

	/**
	 * Checks the ID in a PRIORITY_UPDATE frame (RFC 9218 §7.2). The priority itself is ignored: streams are served round-robin.
	 */
	#checkPriorityUpdate(type: number, payload: Buffer): void {
		const idBytes = payload.length === 0 ? 1 : 1 << (payload[0]! >> 6);
		if (idBytes > payload.length) this.#fail(H3_ERROR.frame);
		// We have not promised any push, so every push ID is invalid. The IDs of request streams are multiples of 4.
		else if (type === FRAME_TYPE.priorityUpdatePush || (payload[idBytes - 1]! & 3) !== 0) this.#fail(H3_ERROR.id);
	}

	/** Called when the type of the stream is known. */
	#setStreamType(type: number): boolean {
		this.#streamType = type;
		switch (type) {
			case STREAM_TYPE.control:
			case STREAM_TYPE.encoder:
			case STREAM_TYPE.decoder:
				if (this.#connection.claimStreamType(type)) return true;
				this.#fail(H3_ERROR.streamCreation);
				return false;
			case STREAM_TYPE.push:
				// Only servers may open push streams (RFC 9114 §6.2.2).
				this.#fail(H3_ERROR.streamCreation);
				return false;
		}
		this.#hasFailed = true;
		this.#connection.onUnknownStream(this.#stream);
		return false;
	}

	#checkSettings(numbers: bigint[] | undefined): void {
		if (numbers === undefined || numbers.length % 2 === 1) {
			this.#fail(H3_ERROR.frame);
			return;
		}
		const seenIds = new Set<bigint>();
		for (let i = 0; i < numbers.length; i += 2) {
			const id = numbers[i]!;
			if (FORBIDDEN_SETTINGS.has(Number(id)) || seenIds.has(id)) {
				this.#fail(H3_ERROR.settings);
				return;
			}
			seenIds.add(id);
			if (id === BigInt(SETTING_ID.enableConnectProtocol) && numbers[i + 1]! > 1n) {
				this.#fail(H3_ERROR.settings);
				return;
			}
		}
	}

	#handleNumber(frameType: number, value: bigint): void {
		switch (frameType) {
			case FRAME_TYPE.goAway:
				// A client's GOAWAY contains a push ID, which must not increase (RFC 9114 §5.2).
				if (value > this.#lastGoAwayId) this.#fail(H3_ERROR.id);
				this.#lastGoAwayId = value;
				return;
			case FRAME_TYPE.maxPushId:
				if (value < this.#maxPushId) this.#fail(H3_ERROR.id);
				this.#maxPushId = value;
				return;
			case FRAME_TYPE.cancelPush:
				// We have not promised any push, so the ID is invalid.
				this.#fail(H3_ERROR.id);
		}
	}

	/** Checks QPACK instructions (RFC 9204 §4.3, §4.4). Without a dynamic table, only instructions that change nothing are valid. */
	#checkInstructions(bytes: Buffer, start: number): void {
		for (let at = start; at < bytes.length && !this.#hasFailed; at++) {
			if (this.#streamType === STREAM_TYPE.encoder) {
				// 0x20 is the instruction Set Dynamic Table Capacity with the capacity 0.
				if (bytes[at] !== 0x20) this.#fail(H3_ERROR.encoderStream);
			} else if (this.#isInCancellation || (bytes[at]! & 0xc0) === 0x40) this.#checkCancellation(bytes[at]!);
			else this.#fail(H3_ERROR.decoderStream);
			this.#connection.charge('settings_flood', 1);
		}
	}

	/** True while a Stream Cancellation is incomplete. Its integer begins in the first byte, with a prefix of 6 bits. */
	#isInCancellation = false;
	#cancellationBytes = 0;

	#checkCancellation(byte: number): void {
		if (!this.#isInCancellation) {
			this.#isInCancellation = (byte & 0x3f) === 0x3f;
			this.#cancellationBytes = 0;
			return;
		}
		if (byte < 128) this.#isInCancellation = false;
		else if (++this.#cancellationBytes > 9) this.#fail(H3_ERROR.decoderStream);
	}

	#onStreamEnded(): void {
		switch (this.#streamType) {
			case STREAM_TYPE.control:
			case STREAM_TYPE.encoder:
			case STREAM_TYPE.decoder:
				this.#fail(H3_ERROR.closedCriticalStream);
				return;
		}
		this.#hasFailed = true;
		this.#connection.onUnknownStream(this.#stream);
	}

	#fail(code: number): 'stop' {
		this.#hasFailed = true;
		this.#connection.fail(code);
		return 'stop';
	}
}

/** The largest variable-length integer of QUIC (RFC 9000 §16). */
const MAX_QUIC_INTEGER = 2n ** 62n - 1n;

/**
 * Decodes all integers in the given bytes. They are bigints, because numbers beyond 2^53 are not exact. Returns undefined if the
 * last integer is cut short.
 */
function readVarints(bytes: Buffer, start: number, end: number): bigint[] | undefined {
	const values: bigint[] = [];
	for (let at = start; at < end; ) {
		const varintBytes = 1 << (bytes[at]! >> 6);
		if (at + varintBytes > end) return undefined;
		let value = BigInt(bytes[at]! & 0x3f);
		for (let i = 1; i < varintBytes; i++) value = value * 256n + BigInt(bytes[at + i]!);
		values.push(value);
		at += varintBytes;
	}
	return values;
}
