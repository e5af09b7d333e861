/** Parses the parts of a QUIC packet that can be read without keys (RFC 8999, RFC 9000 §17). */

/** Bytes of the connection IDs that OpenSSL's server chooses. Packets with a short header do not contain this length. */
export const SERVER_ID_BYTES = 8;
/** Maximum bytes of a connection ID in QUIC version 1 (RFC 9000 §17.2). */
export const MAX_ID_BYTES = 20;
/** QUIC version 1, the only one that OpenSSL supports. */
export const QUIC_VERSION_1 = 1;
/** Minimum bytes of UDP payload in a datagram that starts a connection (RFC 9000 §14.1). */
export const MIN_INITIAL_BYTES = 1200;
/** Minimum bytes of the connection ID that a client chooses for its first packets (RFC 9000 §7.2). */
const MIN_CLIENT_ID_BYTES = 8;

/** The kind of a datagram's first packet. */
export type PacketKind = 'initial' | 'long' | 'short' | 'unknown_version' | 'noise';

/** The header that was read last. One object per thread. Connection IDs are bytes as Latin-1. */
export class PacketHeader {
	kind: PacketKind = 'noise';
	version = 0;
	sourceId = '';
	/** The two halves of the connection ID in a short header, as signed integers. */
	shortIdHigh = 0;
	shortIdLow = 0;
	#destinationId: string | undefined = '';
	/**
	 * Offset at which the token of an Initial packet begins. `tokenEnd` is the offset at which it ends; the two are equal if there
	 * is no token.
	 */
	tokenStart = 0;
	tokenEnd = 0;

	get destinationId(): string {
		// The ID of a short header is converted only when it is needed, because nearly all datagrams have one.
		this.#destinationId ??= textOfHalf(this.shortIdHigh) + textOfHalf(this.shortIdLow);
		return this.#destinationId;
	}

	/** Reads the header of the packet that starts at `start`. Never throws. */
	read(bytes: Buffer, start: number, end: number): PacketKind {
		this.kind = this.#read(bytes, start, end);
		return this.kind;
	}

	#read(bytes: Buffer, start: number, end: number): PacketKind {
		this.#destinationId = '';
		this.sourceId = '';
		const length = end - start;
		if (length < 1) return 'noise';
		const firstByte = bytes[start]!;
		if ((firstByte & 0x80) === 0) {
			// The fixed bit distinguishes QUIC from other protocols (RFC 9000 §17.3.1). A short-header packet of fewer than 21
			// bytes is never valid (§10.3).
			if ((firstByte & 0x40) === 0 || length < 1 + SERVER_ID_BYTES + 12) return 'noise';
			this.version = QUIC_VERSION_1;
			this.#destinationId = undefined;
			this.shortIdHigh = readHalf(bytes, start + 1);
			this.shortIdLow = readHalf(bytes, start + 5);
			return 'short';
		}
		if (length < 7) return 'noise';
		this.version = bytes.readUInt32BE(start + 1);
		const destinationLength = bytes[start + 5]!;
		const sourceStart = start + 6 + destinationLength;
		if (sourceStart >= end) return 'noise';
		const sourceLength = bytes[sourceStart]!;
		if (sourceStart + 1 + sourceLength > end) return 'noise';
		this.#destinationId = bytes.toString('latin1', start + 6, sourceStart);
		this.sourceId = bytes.toString('latin1', sourceStart + 1, sourceStart + 1 + sourceLength);
		// Version 0 means version negotiation, which only servers send.
		if (this.version === 0) return 'noise';
		if (this.version !== QUIC_VERSION_1) return 'unknown_version';
		if ((firstByte & 0x40) === 0 || destinationLength > MAX_ID_BYTES || sourceLength > MAX_ID_BYTES) return 'noise';
		if ((firstByte & 0x30) !== 0 || destinationLength < MIN_CLIENT_ID_BYTES) return 'long';
		return this.#readToken(bytes, sourceStart + 1 + sourceLength, end) ? 'initial' : 'noise';
	}

	/** Reads the length of a token, a variable-length integer (RFC 9000 §16). Returns false if the token exceeds the datagram. */
	#readToken(bytes: Buffer, at: number, end: number): boolean {
		if (at >= end) return false;
		const lengthBytes = 1 << (bytes[at]! >> 6);
		// A length that takes more than 4 bytes exceeds any datagram.
		if (lengthBytes > 4 || at + lengthBytes > end) return false;
		let length = bytes[at]! & 0x3f;
		for (let i = 1; i < lengthBytes; i++) length = length * 256 + bytes[at + i]!;
		this.tokenStart = at + lengthBytes;
		this.tokenEnd = this.tokenStart + length;
		return this.tokenEnd <= end;
	}
}

/** Returns four bytes as a signed integer. */
function readHalf(bytes: Buffer, at: number): number {
	return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

function textOfHalf(half: number): string {
	return String.fromCharCode((half >> 24) & 0xff, (half >> 16) & 0xff, (half >> 8) & 0xff, half & 0xff);
}

/** Returns four characters of a connection ID, from `at` on, as {@link PacketHeader} returns the halves of a short header's ID. */
export function halfOfText(id: string, at: number): number {
	return (
		(id.charCodeAt(at) << 24) | (id.charCodeAt(at + 1) << 16) | (id.charCodeAt(at + 2) << 8) | id.charCodeAt(at + 3)
	);
}

/**
 * Returns a version negotiation packet in reply to a header (RFC 9000 §17.2.1). It contains the header's connection IDs, swapped,
 * and the versions that we support.
 */
export function createVersionNegotiation(header: PacketHeader, random: number): Buffer {
	const { sourceId, destinationId } = header;
	const packet = Buffer.alloc(1 + 4 + 1 + sourceId.length + 1 + destinationId.length + 8);
	packet[0] = 0x80 | 0x40 | (random & 0x3f);
	let at = 5;
	packet[at++] = sourceId.length;
	at += packet.write(sourceId, at, 'latin1');
	packet[at++] = destinationId.length;
	at += packet.write(destinationId, at, 'latin1');
	at = packet.writeUInt32BE(QUIC_VERSION_1, at);
	// Offers a reserved version that nobody supports, so that clients must be able to ignore unknown versions (RFC 9000 §6.3).
	packet.writeUInt32BE(0x0a0a0a0a | ((random & 0xf) << 4), at);
	return packet;
}
