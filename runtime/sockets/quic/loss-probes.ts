/**
 * Keeps OpenSSL from closing connections that probe for lost packets (RFC 9002 §6.2.4).
 *
 * OpenSSL reserves one byte of a probe for a PING frame, which makes the client acknowledge the packet. A STREAM frame does this as
 * well, so the byte is released after the first one. If that frame has filled the packet and therefore has no length, three bytes seem
 * to be left: the released one, and two that were meant for the length. OpenSSL takes this for room for another frame of the
 * stream, finds that none can follow a frame without a length, and closes the connection with INTERNAL_ERROR. It happens
 * when a frame that filled a probe is lost and sent again in another probe, while the stream has more to send.
 *
 * A frame before the STREAM frames releases the byte in time. HANDSHAKE_DONE is used: it takes one byte, and clients must expect it
 * again at any time, because a server repeats it until it is acknowledged (RFC 9000 §13.3).
 *
 * OpenSSL has a function that schedules this frame, but none that returns its parameter, so the pointer is read from OpenSSL's own
 * structures. Its offset is searched for once, in the first connection. If it is not found beyond doubt, nothing is scheduled.
 */
import { type ForeignLibrary, findOpenssl, foreignSignature, type LibrarySimulation } from '../foreign-library.ts';
import { KNOWN_RELEASES } from './channel-runs.ts';
import { MEMORY_SIGNATURES, ProcessMemory } from './process-memory.ts';

const SIGNATURES = {
	...MEMORY_SIGNATURES,
	/** Returns the `QUIC_STREAM_MAP` of a `QUIC_CHANNEL`. */
	ossl_quic_channel_get_qsm: foreignSignature('pointer', 'pointer'),
	/** Adds HANDSHAKE_DONE to the next packet of an `OSSL_QUIC_TX_PACKETISER`. */
	ossl_quic_tx_packetiser_schedule_handshake_done: foreignSignature('void', 'pointer'),
	/** Returns the time at which an `OSSL_ACKM` takes a packet for lost or sends a probe, in nanoseconds; 0 for never. */
	ossl_ackm_get_loss_detection_deadline: foreignSignature('uint64', 'pointer'),
};
type ProbeLibrary = ForeignLibrary<keyof typeof SIGNATURES>;

/** Bytes that are searched, from the start of a `QUIC_CHANNEL` (1,624 bytes) and of an `OSSL_QUIC_TX_PACKETISER`. */
const MAX_CHANNEL_BYTES = 1624;
const MAX_PACKETIZER_BYTES = 488;
const POINTER_BYTES = 8;

/** The parts of a connection that send packets and detect losses. */
export interface LossDetection {
	/** The connection's `OSSL_QUIC_TX_PACKETISER`. */
	readonly packetizer: bigint;
	/** The connection's `OSSL_ACKM`. */
	readonly ackManager: bigint;
}

/** Offsets of the pointers to the packetizer, in a channel, and to the ACK manager, in a packetizer. */
interface Offsets {
	readonly packetizer: number;
	readonly ackManager: number;
}

/** Prepares the loss probes of one thread's connections. */
export class LossProbes {
	readonly #library: ProbeLibrary;
	readonly #channelMemory: ProcessMemory;
	readonly #packetizerMemory: ProcessMemory;
	/** `unknown` before the first search, `absent` after a search without a clear result. */
	#offsets: Offsets | 'unknown' | 'absent' = 'unknown';

	constructor(library: ProbeLibrary) {
		this.#library = library;
		this.#channelMemory = new ProcessMemory(library, MAX_CHANNEL_BYTES);
		this.#packetizerMemory = new ProcessMemory(library, MAX_PACKETIZER_BYTES);
	}

	/** Returns the parts of a connection, which are valid as long as the connection; undefined if they are not known. */
	detectionOf(channel: bigint): LossDetection | undefined {
		if (this.#offsets === 'unknown') this.#offsets = this.#findOffsets(channel);
		const offsets = this.#offsets;
		if (offsets === 'absent') return undefined;
		const packetizer = this.#pointerAt(channel + BigInt(offsets.packetizer));
		return { packetizer, ackManager: this.#pointerAt(packetizer + BigInt(offsets.ackManager)) };
	}

	/**
	 * Reports whether the connection's next run takes a packet for lost or sends a probe.
	 * @param time `ChannelRuns.time`.
	 */
	isDue({ ackManager }: LossDetection, time: number): boolean {
		const deadline = this.#library.functions.ossl_ackm_get_loss_detection_deadline(ackManager) as bigint;
		return deadline !== 0n && deadline <= time;
	}

	/** Lets the connection's next packet begin with HANDSHAKE_DONE. The handshake must be complete. */
	prepare({ packetizer }: LossDetection): void {
		this.#library.functions.ossl_quic_tx_packetiser_schedule_handshake_done(packetizer);
	}

	#pointerAt(address: bigint): bigint {
		return this.#library.copyBytes(address, POINTER_BYTES).readBigUInt64LE(0);
	}

	/**
	 * Finds the offsets. In a channel, the pointer to the packetizer is followed by those to two other parts. The packetizer has the
	 * same two pointers, followed by those to the ACK manager, which the channel has as well, and to the streams.
	 */
	#findOffsets(channel: bigint): Offsets | 'absent' {
		const streams = this.#library.functions.ossl_quic_channel_get_qsm(channel) as bigint;
		const words = wordsOf(this.#channelMemory.read(channel, MAX_CHANNEL_BYTES));
		let found: Offsets | 'absent' = 'absent';
		for (let i = 0; i + 2 < words.length; i++) {
			const [packetizer, first, second] = words.subarray(i, i + 3) as unknown as [bigint, bigint, bigint];
			if ([packetizer, first, second].some(word => word === 0n || word % BigInt(POINTER_BYTES) !== 0n)) continue;
			const parts = wordsOf(this.#packetizerMemory.read(packetizer, MAX_PACKETIZER_BYTES));
			for (let k = 0; k + 3 < parts.length; k++) {
				if (parts[k] !== first || parts[k + 1] !== second || parts[k + 3] !== streams) continue;
				if (found !== 'absent' || !words.includes(parts[k + 2]!)) return 'absent';
				found = { packetizer: i * POINTER_BYTES, ackManager: (k + 2) * POINTER_BYTES };
			}
		}
		return found;
	}
}

function wordsOf(memory: Buffer): BigUint64Array {
	return new BigUint64Array(memory.buffer, memory.byteOffset, memory.length >> 3);
}

/** Looks up the functions. Returns undefined if one is missing, or the release of OpenSSL is not known. */
export function findLossProbes(simulated?: LibrarySimulation): LossProbes | undefined {
	if (!KNOWN_RELEASES.test(simulated?.openssl ?? process.versions.openssl ?? '')) return undefined;
	const { library } = findOpenssl(SIGNATURES, [], simulated);
	return library && new LossProbes(library);
}
