/**
 * The pair of memory BIOs between OpenSSL and our UDP sockets. All connections of a thread share one pair, because only one
 * connection uses it at a time: its received datagrams are put in (unless the connection runs without its listener; see
 * channel-runs.ts), OpenSSL processes them, and the datagrams that OpenSSL sends are taken out before another connection runs. A
 * pair for each connection would take 48 KB more memory per connection, and would rarely be in the processor's cache.
 */

import { type DatagramMemory, MAX_SENT_DATAGRAMS, SENT_DATAGRAM_BYTES } from './datagram-memory.ts';
import type { QuicLibrary } from './quic-library.ts';
import * as BOUND from './quic-limits.ts';

const CTRL_RESET = 1;
const CTRL_PENDING = 10;
const CTRL_SET_MTU = 42;
const CTRL_SET_CAPS = 87;
const CTRL_SET_LOCAL_ADDRESS = 84;
const ALL_CAPS = 15n;
/**
 * Size of a `BIO_MSG`, which holds data, length, peer, local address and flags. The constants give it in bytes, 32-bit words and
 * 64-bit words.
 */
const MESSAGE_BYTES = 40;
const MESSAGE_STRIDE = 40n;
const MESSAGE_WORDS = 10;
const MESSAGE_LONGS = 5;
const LENGTH_WORD = 2;
const LOCAL_LONG = 3;
/** Maximum datagrams put into the pair at a time, which is also the most that OpenSSL reads at a time. */
const MAX_PUT_DATAGRAMS = 32;
/**
 * Maximum datagrams handed to OpenSSL before the connection runs. OpenSSL needs a buffer for each, which it keeps as long as the
 * connection is open.
 */
const MAX_INJECTED_DATAGRAMS = 16;
const TWO_POWER_32 = 2 ** 32;

/** The pair of BIOs of one thread. */
export class DatagramPipe {
	readonly #functions: QuicLibrary['functions'];
	readonly #memory: DatagramMemory;
	readonly #opensslEnd: bigint;
	readonly #ourEnd: bigint;
	/** The `BIO_MSG`s of received datagrams, which are put into the pair. */
	readonly #input: Messages;
	/**
	 * The `BIO_MSG`s for datagrams that are taken out of the pair. Each points to its own part of
	 * `DatagramMemory.outgoingPayloads`.
	 */
	readonly #output: Messages;
	/** Address of the first received datagram. It is less than 2^48, so a number represents it exactly. */
	readonly #receivedPointer: number;

	/** Throws if OpenSSL has no memory. */
	constructor(library: QuicLibrary, memory: DatagramMemory) {
		this.#functions = library.functions;
		this.#memory = memory;
		this.#receivedPointer = Number(memory.receivedPointer);
		this.#input = new Messages(library, MAX_PUT_DATAGRAMS);
		this.#output = new Messages(library, MAX_SENT_DATAGRAMS);
		for (let i = 0; i < MAX_SENT_DATAGRAMS; i++) {
			this.#output.longs[i * MESSAGE_LONGS] = memory.outgoingPayloadsPointer + BigInt(i * SENT_DATAGRAM_BYTES);
			this.#output.words[i * MESSAGE_WORDS + LENGTH_WORD] = SENT_DATAGRAM_BYTES;
		}
		const endPointers = Buffer.allocUnsafeSlow(16);
		const endsPointer = library.addressOf(endPointers);
		const bufferSizes = [BigInt(BOUND.OUTGOING_BUFFER_BYTES), BigInt(BOUND.INCOMING_BUFFER_BYTES)] as const;
		if (
			(this.#functions.BIO_new_bio_dgram_pair(
				endsPointer,
				bufferSizes[0],
				endsPointer + 8n,
				bufferSizes[1],
			) as number) !== 1
		) {
			this.#functions.ERR_clear_error();
			throw new Error('OpenSSL makes no pair of BIOs.');
		}
		this.#opensslEnd = endPointers.readBigUInt64LE(0);
		this.#ourEnd = endPointers.readBigUInt64LE(8);
		this.#functions.BIO_ctrl(this.#opensslEnd, CTRL_SET_CAPS, ALL_CAPS, 0n);
		this.#functions.BIO_ctrl(this.#ourEnd, CTRL_SET_CAPS, ALL_CAPS, 0n);
		this.#functions.BIO_ctrl(this.#ourEnd, CTRL_SET_LOCAL_ADDRESS, 1n, 0n);
		// Each OpenSSL listener allocates 32 buffers of this size, and never frees them before it is freed itself.
		this.#functions.BIO_ctrl(this.#opensslEnd, CTRL_SET_MTU, BigInt(BOUND.USUAL_DATAGRAM_BYTES), 0n);
	}

	/** Makes an OpenSSL listener use the pair. */
	attach(listener: bigint): void {
		this.#functions.BIO_up_ref(this.#opensslEnd);
		this.#functions.SSL_set_bio(listener, this.#opensslEnd, this.#opensslEnd);
	}

	/**
	 * Puts received datagrams into the pair of BIOs. `received` has two numbers for each datagram: its offset in
	 * `DatagramMemory.received`, and its length. `fromIndex` is the index of the first number to use, `endIndex` follows the last
	 * one. Returns the index of the first number not used; OpenSSL must process the datagrams before the next call.
	 */
	putDatagrams(
		listener: bigint,
		received: readonly number[],
		fromIndex: number,
		endIndex: number,
		peerPointer: bigint,
	): number {
		const { words, longs, bigInts } = this.#input;
		const maxCount = Math.min(MAX_PUT_DATAGRAMS, (endIndex - fromIndex) / 2);
		let count = 0;
		for (; count < maxCount; count++) {
			const length = received[fromIndex + count * 2 + 1]!;
			if (length > BOUND.USUAL_DATAGRAM_BYTES) break;
			const datagramPointer = this.#receivedPointer + received[fromIndex + count * 2]!;
			const messageWord = count * MESSAGE_WORDS;
			words[messageWord] = datagramPointer;
			words[messageWord + 1] = datagramPointer / TWO_POWER_32;
			words[messageWord + LENGTH_WORD] = length;
			longs[count * MESSAGE_LONGS + LOCAL_LONG] = peerPointer;
		}
		if (count === 0) return this.#injectLarge(listener, received, fromIndex, fromIndex + maxCount * 2, peerPointer);
		const { pointers, countPointer } = this.#input;
		const result = this.#functions.BIO_sendmmsg(
			this.#ourEnd,
			pointers[0]!,
			MESSAGE_STRIDE,
			bigInts[count]!,
			0n,
			countPointer,
		) as number;
		if (result === 1) return fromIndex + 2 * this.#input.processedCount;
		this.#functions.ERR_clear_error();
		// The pair was empty and did not accept the datagram, so the datagram is too large. It is dropped.
		return fromIndex + 2;
	}

	/**
	 * Hands at most {@link MAX_INJECTED_DATAGRAMS} received datagrams to OpenSSL, without the pair of BIOs. The connection must run
	 * before the next call. The parameters and the result are the same as for {@link putDatagrams}.
	 */
	injectDatagrams(
		listener: bigint,
		received: readonly number[],
		fromIndex: number,
		endIndex: number,
		peerPointer: bigint,
	): number {
		const end = Math.min(endIndex, fromIndex + 2 * MAX_INJECTED_DATAGRAMS);
		for (let index = fromIndex; index < end; index += 2)
			this.#inject(listener, received[index]!, received[index + 1]!, peerPointer);
		return end;
	}

	/** Hands a datagram to OpenSSL. Drops it if it is too long. */
	#inject(listener: bigint, offset: number, length: number, peerPointer: bigint): void {
		if (length > BOUND.MAX_DATAGRAM_BYTES) return;
		const datagramPointer = BigInt(this.#receivedPointer + offset);
		if (
			(this.#functions.SSL_inject_net_dgram(listener, datagramPointer, BigInt(length), peerPointer, 0n) as number) !== 1
		) {
			this.#functions.ERR_clear_error();
		}
	}

	/**
	 * Hands datagrams to OpenSSL one by one, from `received[fromIndex]` up to the first one of the usual size or to `end`. If they
	 * went through the pair of BIOs, OpenSSL would enlarge several buffers for each datagram instead of one. Drops datagrams that
	 * are too long. Returns the index after the last datagram handled.
	 */
	#injectLarge(
		listener: bigint,
		received: readonly number[],
		fromIndex: number,
		end: number,
		peerPointer: bigint,
	): number {
		let index = fromIndex;
		for (; index < end; index += 2) {
			const length = received[index + 1]!;
			if (length <= BOUND.USUAL_DATAGRAM_BYTES) break;
			this.#inject(listener, received[index]!, length, peerPointer);
		}
		return index;
	}

	/** Drops datagrams that OpenSSL has not read yet, so that no other connection reads them. */
	dropUnread(): void {
		this.#functions.BIO_ctrl(this.#ourEnd, CTRL_RESET, 0n, 0n);
	}

	/** Drops datagrams that OpenSSL has sent and that have not been taken out of the pair of BIOs. */
	dropUntaken(): void {
		this.#functions.BIO_ctrl(this.#opensslEnd, CTRL_RESET, 0n, 0n);
	}

	/** True if OpenSSL has sent something. */
	get hasOutput(): boolean {
		return (this.#functions.BIO_ctrl(this.#ourEnd, CTRL_PENDING, 0n, 0n) as bigint) > 0n;
	}

	/**
	 * Takes at most `maxCount` datagrams and appends them to the waiting ones in `DatagramMemory.outgoingPayloads`.
	 * Returns how many it took.
	 */
	takeDatagrams(maxCount: number): number {
		const { words, bigInts, pointers, countPointer } = this.#output;
		const { waitingCount, outgoingLengths } = this.#memory;
		const result = this.#functions.BIO_recvmmsg(
			this.#ourEnd,
			pointers[waitingCount]!,
			MESSAGE_STRIDE,
			bigInts[maxCount]!,
			0n,
			countPointer,
		) as number;
		if (result !== 1) {
			this.#functions.ERR_clear_error();
			return 0;
		}
		const count = this.#output.processedCount;
		for (let i = waitingCount; i < waitingCount + count; i++) {
			const word = i * MESSAGE_WORDS + LENGTH_WORD;
			outgoingLengths[i] = words[word]!;
			words[word] = SENT_DATAGRAM_BYTES;
		}
		return count;
	}
}

/** An array of `BIO_MSG`s in memory, followed by the word in which a call returns how many of them it has processed. */
class Messages {
	readonly words: Uint32Array;
	readonly longs: BigUint64Array;
	/** The address of each message. */
	readonly pointers: readonly bigint[];
	readonly countPointer: bigint;
	/** The numbers from 0 to the number of messages, as BigInts, so that calls need not allocate any. */
	readonly bigInts: readonly bigint[];
	readonly #countWord: number;

	constructor(library: QuicLibrary, count: number) {
		const bytes = Buffer.allocUnsafeSlow(count * MESSAGE_BYTES + 8).fill(0);
		const firstPointer = library.addressOf(bytes);
		this.words = new Uint32Array(bytes.buffer);
		this.longs = new BigUint64Array(bytes.buffer);
		this.pointers = Array.from({ length: count }, (_, i) => firstPointer + BigInt(i * MESSAGE_BYTES));
		this.countPointer = firstPointer + BigInt(count * MESSAGE_BYTES);
		this.bigInts = Array.from({ length: count + 1 }, (_, i) => BigInt(i));
		this.#countWord = count * MESSAGE_WORDS;
	}

	/** Number of messages that the last call has processed. */
	get processedCount(): number {
		return this.words[this.#countWord]!;
	}
}
