/**
 * Shrinks two buffers that OpenSSL keeps for the whole life of a connection, and that would otherwise take a third of an idle
 * connection's memory: the buffer for the TLS messages that follow the handshake, which are only session tickets, and the
 * buffer of a control stream, which carries a few bytes.
 *
 * OpenSSL has a function that resizes a buffer, but none that returns the buffer, so its pointer is read from OpenSSL's own
 * structures. The offsets of the pointers are searched for once: in the first connection and in the first control stream, while
 * their buffers are new and can be recognized by their contents. If the pointers are not found beyond doubt, all buffers keep their
 * size.
 */

import { type ForeignLibrary, findOpenssl, foreignSignature, type LibrarySimulation } from '../foreign-library.ts';
import { KNOWN_RELEASES } from './channel-runs.ts';
import { MEMORY_SIGNATURES, ProcessMemory } from './process-memory.ts';

const SIGNATURES = {
	...MEMORY_SIGNATURES,
	/** Returns the `QUIC_STREAM_MAP` of a `QUIC_CHANNEL`. */
	ossl_quic_channel_get_qsm: foreignSignature('pointer', 'pointer'),
	/** Returns the `QUIC_STREAM` with an ID. */
	ossl_quic_stream_map_get_by_id: foreignSignature('pointer', 'pointer', 'uint64'),
	ossl_quic_sstream_get_buffer_size: foreignSignature('uint64', 'pointer'),
	/** Resizes the buffer of a `QUIC_SSTREAM`. Returns 0 if its contents need more bytes. */
	ossl_quic_sstream_set_buffer_size: foreignSignature('int32', 'pointer', 'uint64'),
};
type BufferLibrary = ForeignLibrary<keyof typeof SIGNATURES>;

/** Bytes of the buffers that OpenSSL allocates. */
const TLS_BUFFER_BYTES = 16_384;
const STREAM_BUFFER_BYTES = 8192;
/** Bytes to which the buffer for TLS messages is shrunk. The second size is for tickets that contain a client's certificate. */
const SMALL_TLS_BUFFER_BYTES = [1024, 4096] as const;
/** Bytes to which the buffer of a control stream is shrunk. OpenSSL enlarges it if more is written. */
const SMALL_STREAM_BUFFER_BYTES = 256;
/**
 * Maximum bytes that are searched for pointers, from the start of a `QUIC_CHANNEL` (1,624 bytes) and of a `QUIC_STREAM` (264).
 */
const MAX_CHANNEL_BYTES = 1624;
const MAX_STREAM_BYTES = 256;
/**
 * Number of buffers for TLS messages, one for each packet number space: Initial, Handshake and application data (RFC 9000 §12.3).
 * Their pointers are adjacent.
 */
const TLS_BUFFER_COUNT = 3;
const POINTER_BYTES = 8;
/** Bytes of a buffer's description: its address, its size, and the stream offsets of its end and of its start. */
const DESCRIPTION_BYTES = 32;

/** The offset of a pointer; `unknown` before the first search, `absent` after a search without a clear result. */
type PointerOffset = number | 'unknown' | 'absent';

/** Shrinks the buffers of one thread's connections. */
export class SendBufferShrinker {
	readonly #library: BufferLibrary;
	readonly #memory: ProcessMemory;
	#tlsPointerOffset: PointerOffset = 'unknown';
	#streamPointerOffset: PointerOffset = 'unknown';

	constructor(library: BufferLibrary) {
		this.#library = library;
		this.#memory = new ProcessMemory(library, MAX_CHANNEL_BYTES);
	}

	/** Must be called for each new connection, before its first run. `channel` is its `QUIC_CHANNEL`. */
	onConnectionCreated(channel: bigint): void {
		if (this.#tlsPointerOffset !== 'unknown') return;
		this.#tlsPointerOffset = this.#findPointers(channel, MAX_CHANNEL_BYTES, TLS_BUFFER_COUNT, TLS_BUFFER_BYTES);
		// The last pointer refers to the buffer for messages that follow the handshake.
		if (this.#tlsPointerOffset !== 'absent') this.#tlsPointerOffset += (TLS_BUFFER_COUNT - 1) * POINTER_BYTES;
	}

	/**
	 * Shrinks the buffer for TLS messages of a connection whose handshake is complete. Returns its size afterwards, in
	 * bytes; undefined if the buffer is not known.
	 */
	shrinkTlsBuffer(channel: bigint): number | undefined {
		const offset = this.#tlsPointerOffset;
		if (typeof offset === 'string') return undefined;
		return this.#shrink(channel + BigInt(offset), TLS_BUFFER_BYTES, SMALL_TLS_BUFFER_BYTES);
	}

	/** Shrinks the buffer of a new stream to which nothing has been written. Returns the same as {@link shrinkTlsBuffer}. */
	shrinkStreamBuffer(channel: bigint, streamId: number): number | undefined {
		if (this.#streamPointerOffset === 'absent') return undefined;
		const { functions } = this.#library;
		const streams = functions.ossl_quic_channel_get_qsm(channel) as bigint;
		const stream = functions.ossl_quic_stream_map_get_by_id(streams, BigInt(streamId)) as bigint;
		if (stream === 0n) return undefined;
		if (this.#streamPointerOffset === 'unknown')
			this.#streamPointerOffset = this.#findPointers(stream, MAX_STREAM_BYTES, 1, STREAM_BUFFER_BYTES);
		const offset = this.#streamPointerOffset;
		if (offset === 'absent') return undefined;
		return this.#shrink(stream + BigInt(offset), STREAM_BUFFER_BYTES, [SMALL_STREAM_BUFFER_BYTES]);
	}

	/**
	 * Finds adjacent pointers to new buffers in `maxBytes` from `address` on. Returns the offset of the first one; `absent` if there
	 * are none, or more than one group of them.
	 */
	#findPointers(address: bigint, maxBytes: number, count: number, bufferBytes: number): number | 'absent' {
		const memory = Buffer.from(this.#memory.read(address, maxBytes));
		let first: number | 'absent' = 'absent';
		let adjacentCount = 0;
		for (let at = 0; at + POINTER_BYTES <= memory.length; at += POINTER_BYTES) {
			if (!this.#isNewBuffer(memory.readBigUInt64LE(at), bufferBytes)) {
				adjacentCount = 0;
				continue;
			}
			if (++adjacentCount < count) continue;
			if (first !== 'absent') return 'absent';
			first = at - (count - 1) * POINTER_BYTES;
		}
		return first;
	}

	/** Reports whether a word is a pointer to an empty buffer of this size, to which nothing has been written yet. */
	#isNewBuffer(word: bigint, bufferBytes: number): boolean {
		if (word === 0n || word % BigInt(POINTER_BYTES) !== 0n) return false;
		const description = this.#memory.read(word, DESCRIPTION_BYTES);
		return (
			description.length === DESCRIPTION_BYTES &&
			description.readBigUInt64LE(0) !== 0n &&
			description.readBigUInt64LE(8) === BigInt(bufferBytes) &&
			description.readBigUInt64LE(16) === 0n &&
			description.readBigUInt64LE(24) === 0n
		);
	}

	/** Shrinks the buffer whose pointer is at an address to the first of the sizes into which its contents fit. */
	#shrink(pointerAddress: bigint, bufferBytes: number, sizes: readonly number[]): number | undefined {
		const { functions } = this.#library;
		const buffer = this.#library.copyBytes(pointerAddress, POINTER_BYTES).readBigUInt64LE(0);
		if (buffer === 0n) return undefined;
		const currentBytes = Number(functions.ossl_quic_sstream_get_buffer_size(buffer));
		if (currentBytes !== bufferBytes) return currentBytes;
		for (const size of sizes) {
			if ((functions.ossl_quic_sstream_set_buffer_size(buffer, BigInt(size)) as number) === 1) return size;
		}
		return bufferBytes;
	}
}

/** Looks up the functions. Returns undefined if one is missing, or the release of OpenSSL is not known. */
export function findSendBufferShrinker(simulated?: LibrarySimulation): SendBufferShrinker | undefined {
	if (!KNOWN_RELEASES.test(simulated?.openssl ?? process.versions.openssl ?? '')) return undefined;
	const { library } = findOpenssl(SIGNATURES, [], simulated);
	return library && new SendBufferShrinker(library);
}
