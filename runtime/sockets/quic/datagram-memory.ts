/**
 * The memory from which a thread's UDP sockets send and into which they receive: payloads, addresses, control data and the
 * message headers for `recvmmsg` and `sendmmsg`, which point to each other.
 */

import type { QuicLibrary } from './quic-library.ts';

/** Maximum number of messages read by one `recvmmsg`. */
export const MAX_RECEIVED_MESSAGES = 16;
/** Maximum bytes of a received message. With GRO, a message is a series of datagrams. */
export const RECEIVED_MESSAGE_BYTES = 65_536;
/** Maximum datagrams taken from an engine at once. */
export const MAX_SENT_DATAGRAMS = 64;
/** Bytes reserved for each datagram in {@link DatagramMemory.outgoingPayloads}. */
export const SENT_DATAGRAM_BYTES = 2048;
/** Bytes reserved for the control data of a message. */
export const CONTROL_BYTES = 128;
/** Bytes reserved for the `sockaddr` of a peer. */
export const PEER_ADDRESS_BYTES = 32;
/** Size of the kernel's `mmsghdr`. */
export const MESSAGE_HEADER_BYTES = 64;
/** Maximum bytes of a reply that is sent without a connection. */
export const MAX_REPLY_BYTES = 192;
/** Maximum number of replies that are sent together. */
export const MAX_REPLIES = 64;

/** The addresses of a datagram's sender and receiver, as needed for replying. */
export interface DatagramPath {
	/** `sockaddr` of the peer. */
	readonly peer: Buffer;
	/** The bytes of `peer`, as integers. */
	readonly peerWords: Int32Array;
	readonly peerPointer: bigint;
	/** Size of the peer's `sockaddr` in bytes. */
	readonly peerBytes: number;
	/** The control message for sending from the address that the peer sent to; empty if the system did not report it. */
	readonly controlWords: Int32Array;
	/** The address that the peer sent to; '' if the system did not report it. */
	readonly localAddress: string;
	/** Time (`performance.now()`) until which datagrams on this path are sent one by one, without GSO. */
	withoutGsoUntil: number;
}

/** Buffers for sending and receiving. A thread needs only one set, because they are used only during calls. */
export class DatagramMemory {
	/** The payloads of received messages. */
	readonly received: Buffer = Buffer.allocUnsafeSlow(MAX_RECEIVED_MESSAGES * RECEIVED_MESSAGE_BYTES);
	/** The `sockaddr`s of the peers that sent the received messages. */
	readonly peerAddresses: Buffer = Buffer.allocUnsafeSlow(MAX_RECEIVED_MESSAGES * PEER_ADDRESS_BYTES);
	/** The bytes of `peerAddresses`, as integers. */
	readonly peerAddressWords: Int32Array = wordsOf(this.peerAddresses);
	/** The control data of received messages. */
	readonly controls: Buffer = Buffer.allocUnsafeSlow(MAX_RECEIVED_MESSAGES * CONTROL_BYTES);
	/** The bytes of `controls`, as integers. */
	readonly controlWords: Int32Array = wordsOf(this.controls);
	/** The message headers for `recvmmsg`. */
	readonly incomingHeaders: Buffer = Buffer.allocUnsafeSlow(MAX_RECEIVED_MESSAGES * MESSAGE_HEADER_BYTES).fill(0);
	/** The bytes of `incomingHeaders`, as integers. */
	readonly incomingHeaderWords: Int32Array = wordsOf(this.incomingHeaders);
	/** Datagrams to send, each at a multiple of {@link SENT_DATAGRAM_BYTES}. */
	readonly outgoingPayloads: Buffer = Buffer.allocUnsafeSlow(MAX_SENT_DATAGRAMS * SENT_DATAGRAM_BYTES);
	/** The length in bytes of each datagram in {@link outgoingPayloads}. */
	readonly outgoingLengths: Uint32Array = new Uint32Array(MAX_SENT_DATAGRAMS);
	/** The path of each datagram in {@link outgoingPayloads}. */
	readonly outgoingPaths: DatagramPath[] = [];
	/** Number of datagrams that wait to be sent. All belong to {@link waitingSender}. */
	waitingCount = 0;
	/** The socket that sends the waiting datagrams when it is flushed. */
	waitingSender: { flush(): void } | undefined = undefined;
	/** The message headers for `sendmmsg`. */
	readonly outgoingHeaders: Buffer = Buffer.allocUnsafeSlow(MAX_SENT_DATAGRAMS * MESSAGE_HEADER_BYTES).fill(0);
	/** The `iovec`s of the datagrams to send. */
	readonly outgoingVectors: Buffer = Buffer.allocUnsafeSlow(MAX_SENT_DATAGRAMS * 16).fill(0);
	readonly outgoingControls: Buffer = Buffer.allocUnsafeSlow(MAX_SENT_DATAGRAMS * CONTROL_BYTES).fill(0);
	/** The bytes of `outgoingHeaders`, `outgoingVectors` and `outgoingControls`, as integers. */
	readonly outgoingHeaderLongs: BigUint64Array = new BigUint64Array(this.outgoingHeaders.buffer);
	readonly outgoingHeaderWords: Int32Array = wordsOf(this.outgoingHeaders);
	readonly outgoingVectorWords: Int32Array = wordsOf(this.outgoingVectors);
	readonly outgoingControlWords: Int32Array = wordsOf(this.outgoingControls);
	readonly receivedPointer: bigint;
	readonly outgoingPayloadsPointer: bigint;
	readonly incomingHeadersPointer: bigint;
	/** The address of each message header, vector and control message for sending. */
	readonly outgoingHeaderPointers: readonly bigint[];
	readonly outgoingVectorPointers: readonly bigint[];
	readonly outgoingControlPointers: readonly bigint[];
	/** The `iovec`s into which messages are received. */
	readonly #receiveVectors: Buffer = Buffer.allocUnsafeSlow(MAX_RECEIVED_MESSAGES * 16).fill(0);

	constructor(library: QuicLibrary) {
		this.receivedPointer = library.addressOf(this.received);
		this.outgoingPayloadsPointer = library.addressOf(this.outgoingPayloads);
		this.incomingHeadersPointer = library.addressOf(this.incomingHeaders);
		this.outgoingHeaderPointers = pointersInto(library, this.outgoingHeaders, MESSAGE_HEADER_BYTES);
		this.outgoingVectorPointers = pointersInto(library, this.outgoingVectors, 16);
		this.outgoingControlPointers = pointersInto(library, this.outgoingControls, CONTROL_BYTES);
		const peerAddressesPointer = library.addressOf(this.peerAddresses);
		const controlsPointer = library.addressOf(this.controls);
		const receiveVectorsPointer = library.addressOf(this.#receiveVectors);
		for (let i = 0; i < MAX_RECEIVED_MESSAGES; i++) {
			this.#receiveVectors.writeBigUInt64LE(this.receivedPointer + BigInt(i * RECEIVED_MESSAGE_BYTES), i * 16);
			this.#receiveVectors.writeBigUInt64LE(BigInt(RECEIVED_MESSAGE_BYTES), i * 16 + 8);
			const headerOffset = i * MESSAGE_HEADER_BYTES;
			this.incomingHeaders.writeBigUInt64LE(peerAddressesPointer + BigInt(i * PEER_ADDRESS_BYTES), headerOffset);
			this.incomingHeaders.writeBigUInt64LE(receiveVectorsPointer + BigInt(i * 16), headerOffset + 16);
			this.incomingHeaders.writeBigUInt64LE(1n, headerOffset + 24);
			this.incomingHeaders.writeBigUInt64LE(controlsPointer + BigInt(i * CONTROL_BYTES), headerOffset + 32);
			this.resetIncomingHeader(i);
		}
		for (let i = 0; i < MAX_SENT_DATAGRAMS; i++)
			this.outgoingVectors.writeBigUInt64LE(this.outgoingPayloadsPointer + BigInt(i * SENT_DATAGRAM_BYTES), i * 16);
	}

	/** Sets the sizes in a message header for `recvmmsg`, in whose place the kernel has written the sizes of what it received. */
	resetIncomingHeader(index: number): void {
		const word = (index * MESSAGE_HEADER_BYTES) / 4;
		this.incomingHeaderWords[word + 2] = PEER_ADDRESS_BYTES;
		this.incomingHeaderWords[word + 10] = CONTROL_BYTES;
	}

	/** Appends a copy of a datagram to those that wait to be sent. */
	putDatagram(datagram: Uint8Array): void {
		this.outgoingPayloads.set(datagram, this.waitingCount * SENT_DATAGRAM_BYTES);
		this.outgoingLengths[this.waitingCount] = datagram.length;
	}
}

/** Returns the addresses of the elements of an array. */
function pointersInto(library: QuicLibrary, memory: Buffer, elementBytes: number): bigint[] {
	const start = library.addressOf(memory);
	return Array.from({ length: memory.length / elementBytes }, (_, i) => start + BigInt(i * elementBytes));
}

/** Returns memory as integers in the byte order of the processor. */
export function wordsOf(memory: Buffer): Int32Array {
	return new Int32Array(memory.buffer, memory.byteOffset, memory.length >> 2);
}

/** Replies to be sent together, each to an address of its own. */
export class ReplyMemory {
	readonly peerAddresses: Buffer = Buffer.allocUnsafeSlow(MAX_REPLIES * PEER_ADDRESS_BYTES);
	readonly payloads: Buffer = Buffer.allocUnsafeSlow(MAX_REPLIES * MAX_REPLY_BYTES);
	readonly controls: Buffer = Buffer.allocUnsafeSlow(MAX_REPLIES * CONTROL_BYTES);
	/** The `iovec`s of the payloads. */
	readonly vectors: Buffer = Buffer.allocUnsafeSlow(MAX_REPLIES * 16).fill(0);
	readonly messages: Buffer = Buffer.allocUnsafeSlow(MAX_REPLIES * MESSAGE_HEADER_BYTES).fill(0);
	readonly controlsPointer: bigint;
	readonly messagesPointer: bigint;
	count = 0;

	constructor(library: QuicLibrary) {
		const peerAddressesPointer = library.addressOf(this.peerAddresses);
		const payloadsPointer = library.addressOf(this.payloads);
		const vectorsPointer = library.addressOf(this.vectors);
		this.controlsPointer = library.addressOf(this.controls);
		this.messagesPointer = library.addressOf(this.messages);
		for (let i = 0; i < MAX_REPLIES; i++) {
			this.vectors.writeBigUInt64LE(payloadsPointer + BigInt(i * MAX_REPLY_BYTES), i * 16);
			this.messages.writeBigUInt64LE(peerAddressesPointer + BigInt(i * PEER_ADDRESS_BYTES), i * MESSAGE_HEADER_BYTES);
			this.messages.writeBigUInt64LE(vectorsPointer + BigInt(i * 16), i * MESSAGE_HEADER_BYTES + 16);
			this.messages.writeBigUInt64LE(1n, i * MESSAGE_HEADER_BYTES + 24);
		}
	}
}
