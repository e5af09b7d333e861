/**
 * Reads the packet numbers of established connections, which show whether a datagram contained a new packet of the client, and
 * whether the client has received what was sent to it.
 *
 * OpenSSL's public interface shows neither: it reports streams, and a client may send packets with acknowledgments only. OpenSSL's ACK
 * manager knows all packets, and only those that were decrypted and are not duplicates. It has a function for the highest number
 * that the client has acknowledged, but none for the highest that was received, so that number is read from the ACK manager itself.
 * Its offset is found in an ACK manager that belongs to no connection: packets are reported to it, and the number must follow the
 * highest of them. If no number does so beyond doubt, nothing is read, and connections do not follow their clients to other ports.
 *
 * The alternative would be to decrypt each datagram a second time, with keys from the key log of every handshake. That needs
 * secrets in JavaScript, and the state of key updates and packet numbers, which only OpenSSL has.
 */
import { type ForeignLibrary, findOpenssl, foreignSignature, type LibrarySimulation } from '../foreign-library.ts';
import { KNOWN_RELEASES } from './channel-runs.ts';
import type { LossDetection } from './loss-probes.ts';
import { MEMORY_SIGNATURES, ProcessMemory } from './process-memory.ts';

const SIGNATURES = {
	...MEMORY_SIGNATURES,
	/** Creates an `OSSL_ACKM` from a clock, its argument, statistics, and congestion control with its data. */
	ossl_ackm_new: foreignSignature('pointer', 'pointer', 'pointer', 'pointer', 'pointer', 'pointer', 'int32'),
	ossl_ackm_free: foreignSignature('void', 'pointer'),
	/** Reports a received packet, an `OSSL_ACKM_RX_PKT`, to an `OSSL_ACKM`. */
	ossl_ackm_on_rx_packet: foreignSignature('int32', 'pointer', 'pointer'),
	/** Returns the highest packet number of a space that the peer has acknowledged. */
	ossl_ackm_get_largest_acked: foreignSignature('uint64', 'pointer', 'int32'),
	/** Returns the number of the next packet of a space that an `OSSL_QUIC_TX_PACKETISER` sends. */
	ossl_quic_tx_packetiser_get_next_pn: foreignSignature('uint64', 'pointer', 'uint32'),
};
type NumbersLibrary = ForeignLibrary<keyof typeof SIGNATURES>;

/** The space of the packets that are sent after the handshake (QUIC_PN_SPACE_APP). */
const APPLICATION_SPACE = 2;
/** The packet number that stands for none. */
const NO_NUMBER = 0xffff_ffff_ffff_ffffn;
/** Bytes that are searched from the start of an `OSSL_ACKM`. */
const SEARCHED_BYTES = 4096;
const NUMBER_BYTES = 8;
/** An `OSSL_ACKM_RX_PKT`: number, time, and bits of which the lowest two are the space. */
const RECEIVED_PACKET_BYTES = 24;
/**
 * Numbers of the packets that are reported during the search, less the first number. The second is the highest, so the number that
 * is searched for follows the second, but not the third.
 */
const SAMPLE_DISTANCES = [0n, 9n, 2n] as const;

/** The packet numbers of a connection that decide where its datagrams are sent. */
export interface PacketNumberReader {
	/** Returns the highest number of a packet of the client that was decrypted. */
	highestReceived(detection: LossDetection): bigint;
	/** Returns the highest number of a packet that the client has acknowledged; −1 if it has acknowledged none. */
	highestAcknowledged(detection: LossDetection): bigint;
	/** Returns the number of the next packet to be sent. */
	nextSent(detection: LossDetection): bigint;
}

/** Reads the packet numbers of one thread's connections. */
class PacketNumbers implements PacketNumberReader {
	readonly #library: NumbersLibrary;
	/** Offset of the highest received number in an `OSSL_ACKM`. */
	readonly #receivedOffset: bigint;

	constructor(library: NumbersLibrary, receivedOffset: number) {
		this.#library = library;
		this.#receivedOffset = BigInt(receivedOffset);
	}

	highestReceived({ ackManager }: LossDetection): bigint {
		return this.#library.copyBytes(ackManager + this.#receivedOffset, NUMBER_BYTES).readBigUInt64LE(0);
	}

	highestAcknowledged({ ackManager }: LossDetection): bigint {
		const number = this.#library.functions.ossl_ackm_get_largest_acked(ackManager, APPLICATION_SPACE) as bigint;
		return number === NO_NUMBER ? -1n : number;
	}

	nextSent({ packetizer }: LossDetection): bigint {
		return this.#library.functions.ossl_quic_tx_packetiser_get_next_pn(packetizer, APPLICATION_SPACE) as bigint;
	}
}

/** Returns the offset of the highest received number in an `OSSL_ACKM`; −1 if it was not found beyond doubt. */
function findReceivedOffset(library: NumbersLibrary): number {
	const { functions } = library;
	const ackManager = functions.ossl_ackm_new(0n, 0n, 0n, 0n, 0n, 1) as bigint;
	if (ackManager === 0n) return -1;
	const memory = new ProcessMemory(library, SEARCHED_BYTES);
	const packet = Buffer.allocUnsafeSlow(RECEIVED_PACKET_BYTES).fill(0);
	packet.writeUInt32LE(APPLICATION_SPACE, 16);
	const indexesOf = (number: bigint): number[] => {
		const bytes = memory.read(ackManager, SEARCHED_BYTES);
		const words = new BigUint64Array(bytes.buffer, bytes.byteOffset, bytes.length >> 3);
		return [...words.keys()].filter(i => words[i] === number);
	};
	// No other memory contains these numbers, not even that of a search on another thread.
	const firstNumber = ackManager << 8n;
	let candidates: number[] | undefined;
	let highest = 0n;
	for (const distance of SAMPLE_DISTANCES) {
		const number = firstNumber + distance;
		if (number > highest) highest = number;
		packet.writeBigUInt64LE(number, 0);
		const isRecorded = (functions.ossl_ackm_on_rx_packet(ackManager, library.addressOf(packet)) as number) === 1;
		// OpenSSL also has a list of all received packets, which may be next to the ACK manager. No element of it ever changes.
		const indexes = isRecorded ? indexesOf(highest) : [];
		candidates = candidates?.filter(index => indexes.includes(index)) ?? indexes;
	}
	functions.ossl_ackm_free(ackManager);
	return candidates?.length === 1 ? candidates[0]! * NUMBER_BYTES : -1;
}

/**
 * Looks up the functions and the offset. Returns undefined if one is missing, or the release of OpenSSL is not known.
 */
export function findPacketNumbers(simulated?: LibrarySimulation): PacketNumberReader | undefined {
	if (!KNOWN_RELEASES.test(simulated?.openssl ?? process.versions.openssl ?? '')) return undefined;
	const { library } = findOpenssl(SIGNATURES, [], simulated);
	if (library === undefined) return undefined;
	const offset = findReceivedOffset(library);
	return offset < 0 ? undefined : new PacketNumbers(library, offset);
}
