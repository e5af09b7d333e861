/**
 * Asks OpenSSL for the events of a connection and of all its streams in one call. One call for each would take longer than a
 * request.
 */
import type { QuicLibrary } from './quic-library.ts';

/** Events of `SSL_poll`. */
export const POLL_EVENT = {
	/** The connection is closing, or has closed. */
	connectionEnds: 1 << 2,
	/** The peer has reset the stream. */
	readFails: 1 << 4,
	/** The peer has asked us to stop sending. */
	writeFails: 1 << 5,
	readable: 1 << 6,
} as const;

/**
 * All events of a stream that are polled. A stream that could not be polled is assumed to have all of them, so that each is
 * checked.
 */
export const ALL_STREAM_EVENTS: number = POLL_EVENT.readable | POLL_EVENT.readFails | POLL_EVENT.writeFails;

/** BIO_POLL_DESCRIPTOR_TYPE_SSL: the item refers to an SSL object. */
const TYPE_SSL = 2;
/** SSL_POLL_FLAG_NO_HANDLE_EVENTS: the call reports existing events, but does not process input to find new ones. */
const NO_HANDLE_EVENTS = 1n;
/**
 * Size of an `SSL_POLL_ITEM`, which holds type, object, events and results. The constants give it in bytes, 64-bit words and
 * 32-bit words.
 */
const ITEM_BYTES = 32;
const ITEM_STRIDE = 32n;
const ITEM_LONGS = 4;
const ITEM_WORDS = 8;
const EVENTS_WORD = 4;
const RESULT_WORD = 6;
/** Maximum streams per call. A client may have 100 bidirectional and 100 unidirectional streams open. */
const MAX_POLLED_STREAMS = 256;
/** Maximum items per call: the connection, followed by streams. */
const MAX_ITEMS: number = 1 + MAX_POLLED_STREAMS;

/** Polls the streams of one connection at a time, with memory that belongs to the thread. */
export class PolledStreams {
	readonly #functions: QuicLibrary['functions'];
	readonly #words: Uint32Array;
	readonly #longs: BigUint64Array;
	readonly #itemsPointer: bigint;
	readonly #timeoutPointer: bigint;
	readonly #countPointer: bigint;
	readonly #bigInts: readonly bigint[] = Array.from({ length: MAX_ITEMS + 1 }, (_, i) => BigInt(i));
	/** Number of items in the last call of `poll`; 0 if it has failed. */
	#polledCount = 0;

	constructor(library: QuicLibrary) {
		this.#functions = library.functions;
		// After the items, the memory holds two more values: a timeout of zero, so that the call does not wait, and
		// the number of items with events, which the call writes.
		const bytes = Buffer.allocUnsafeSlow(MAX_ITEMS * ITEM_BYTES + 24).fill(0);
		this.#words = new Uint32Array(bytes.buffer);
		this.#longs = new BigUint64Array(bytes.buffer);
		this.#itemsPointer = library.addressOf(bytes);
		this.#timeoutPointer = this.#itemsPointer + BigInt(MAX_ITEMS * ITEM_BYTES);
		this.#countPointer = this.#timeoutPointer + 16n;
		for (let i = 0; i < MAX_ITEMS; i++) {
			this.#words[i * ITEM_WORDS] = TYPE_SSL;
			this.#words[i * ITEM_WORDS + EVENTS_WORD] = i === 0 ? POLL_EVENT.connectionEnds : ALL_STREAM_EVENTS;
		}
	}

	isClosing(connection: bigint): boolean {
		this.#longs[1] = connection;
		return !this.#poll(1) || this.#words[RESULT_WORD]! !== 0;
	}

	/**
	 * Polls a connection and its streams. Until the next call, {@link eventsOf} returns the events of the streams in the same order.
	 * Returns false if the connection is closing or could not be polled.
	 */
	poll(connection: bigint, streams: readonly { readonly ssl: bigint }[]): boolean {
		const longs = this.#longs;
		longs[1] = connection;
		const count = 1 + Math.min(streams.length, MAX_POLLED_STREAMS);
		for (let i = 1; i < count; i++) longs[i * ITEM_LONGS + 1] = streams[i - 1]!.ssl;
		this.#polledCount = this.#poll(count) ? count : 0;
		return this.#polledCount > 0 && this.#words[RESULT_WORD]! === 0;
	}

	/** Returns the events of the stream with this index in the last call of {@link poll}. */
	eventsOf(index: number): number {
		return index + 1 < this.#polledCount ? this.#words[(index + 1) * ITEM_WORDS + RESULT_WORD]! : ALL_STREAM_EVENTS;
	}

	#poll(count: number): boolean {
		const countAsBigInt = this.#bigInts[count]!;
		const result = this.#functions.SSL_poll(
			this.#itemsPointer,
			countAsBigInt,
			ITEM_STRIDE,
			this.#timeoutPointer,
			NO_HANDLE_EVENTS,
			this.#countPointer,
		);
		if (result === 1) return true;
		this.#functions.ERR_clear_error();
		return false;
	}
}
