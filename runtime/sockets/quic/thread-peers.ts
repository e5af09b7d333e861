/**
 * Passes datagrams to the thread that has their connection. The kernel selects a thread by the addresses and ports of both ends
 * (SO_REUSEPORT), so once a client's port has changed, its datagrams usually arrive at another thread than before, for the rest of
 * the connection.
 *
 * Each thread has a row in shared memory, with the IDs of its established connections. A thread that receives a datagram with an
 * unknown ID looks for it in all rows. Only the row's own thread writes to it, and the main thread clears it when that thread has
 * ended. The IDs are chosen at random by OpenSSL, so a few of their bits serve as a hash. If the bucket of an ID is full, which
 * hardly happens, that connection cannot be found by other threads.
 *
 * Each row also has a channel (see datagram-relay.ts) to its thread. Its descriptors are created by the first thread of the row
 * and are never closed. If they were, their numbers might belong to a client's connection by the time that another thread uses
 * them.
 */
import { duplicateDescriptor } from '../duplicate-descriptor.ts';
import { createRelayPair, DatagramRelay, type RelayedDatagram } from './datagram-relay.ts';
import { halfOfText, type PacketHeader, SERVER_ID_BYTES } from './packet-header.ts';
import type { QuicLibrary } from './quic-library.ts';

/** Number of buckets in a row. */
const BUCKET_COUNT = 4096;
/** Number of IDs in a bucket. Each takes two slots, which are 0 if there is none. */
const BUCKET_IDS = 8;
const BUCKET_SLOTS = 2 * BUCKET_IDS;

/** Number of Int32 values in a thread's row. */
export const PEER_ROW_SLOTS: number = BUCKET_COUNT * BUCKET_SLOTS;
/** Number of Int32 values for each row after all rows: both descriptors of its channel, plus 1; 0 if there is no channel yet. */
export const PEER_CHANNEL_SLOTS = 2;

/** An endpoint of this thread. */
export interface PeerEndpoint {
	/**
	 * Handles a datagram that another thread has read, if this endpoint or a process before this one has the connection with this
	 * ID. Returns false otherwise.
	 */
	takeFromPeer(id: string, datagram: RelayedDatagram): boolean;
}

/** What one thread knows about the connections of the others. */
export class ThreadPeers {
	/** The endpoints that receive datagrams from other threads. */
	readonly endpoints: Set<PeerEndpoint> = new Set();
	readonly #library: QuicLibrary;
	readonly #slots: Int32Array;
	readonly #rowCount: number;
	readonly #row: number;
	readonly #channelsStart: number;
	/** The channels to other threads, by their rows. */
	readonly #senders: (DatagramRelay | undefined)[] = [];
	#receiver: DatagramRelay | undefined;
	/** True while a datagram from another thread is handled. It is not passed on a second time. */
	#isReceiving = false;

	/**
	 * @param memory `rowCount` rows of {@link PEER_ROW_SLOTS} values, followed by {@link PEER_CHANNEL_SLOTS} for each row.
	 * @param row This thread's row.
	 */
	constructor(library: QuicLibrary, memory: SharedArrayBuffer, rowCount: number, row: number) {
		this.#library = library;
		this.#slots = new Int32Array(memory);
		this.#rowCount = rowCount;
		this.#row = row;
		this.#channelsStart = rowCount * PEER_ROW_SLOTS;
		const channel = this.#channelsStart + row * PEER_CHANNEL_SLOTS;
		try {
			if (Atomics.load(this.#slots, channel) === 0) {
				const pair = createRelayPair(library);
				if (pair === undefined) return;
				for (const [i, descriptor] of pair.entries()) Atomics.store(this.#slots, channel + i, descriptor + 1);
			}
			const descriptor = duplicateDescriptor(Atomics.load(this.#slots, channel) - 1);
			this.#receiver = new DatagramRelay(library, descriptor, {
				onDatagram: datagram => this.#receive(datagram),
				onEnded: () => {},
			});
		} catch {
			// There are too few descriptors. Other threads cannot pass on datagrams to this one.
		}
	}

	/** Adds the ID of a connection of this thread, or of an earlier process whose datagrams this thread passes on. */
	add(id: string): void {
		if (id.length !== SERVER_ID_BYTES || this.#receiver === undefined) return;
		const high = halfOfText(id, 0);
		const start = bucketStart(this.#row, high);
		for (let at = start; at < start + BUCKET_SLOTS; at += 2) {
			if (this.#slots[at] !== 0 || this.#slots[at + 1] !== 0) continue;
			Atomics.store(this.#slots, at + 1, halfOfText(id, 4));
			Atomics.store(this.#slots, at, high);
			return;
		}
	}

	/** Removes an ID, if it has been added. */
	remove(id: string): void {
		if (id.length !== SERVER_ID_BYTES) return;
		const at = this.#find(this.#row, halfOfText(id, 0), halfOfText(id, 4));
		if (at < 0) return;
		Atomics.store(this.#slots, at, 0);
		Atomics.store(this.#slots, at + 1, 0);
	}

	/**
	 * Passes a datagram with this header to the thread that has its connection. That may be this thread, which has several sockets
	 * after a handover to fewer threads. Returns false if no thread has it.
	 */
	pass(header: PacketHeader, toRelayed: () => RelayedDatagram): boolean {
		if (this.#isReceiving) return false;
		let { shortIdHigh: idHigh, shortIdLow: idLow } = header;
		if (header.kind !== 'short') {
			// The client's last packets of the handshake have long headers, and may be sent again after its port has changed.
			const { destinationId } = header;
			if (destinationId.length !== SERVER_ID_BYTES) return false;
			idHigh = halfOfText(destinationId, 0);
			idLow = halfOfText(destinationId, 4);
		}
		for (let row = 0; row < this.#rowCount; row++) {
			if (this.#find(row, idHigh, idLow) < 0) continue;
			const sender = this.#senderTo(row);
			if (sender === undefined) return false;
			sender.passDatagram(toRelayed());
			return true;
		}
		return false;
	}

	/** Closes this thread's ends of the channels. */
	close(): void {
		this.#receiver?.close();
		this.#receiver = undefined;
		for (const sender of this.#senders.splice(0)) sender?.close();
	}

	#receive(datagram: RelayedDatagram): void {
		const { payload } = datagram;
		const idStart = (payload[0]! & 0x80) === 0 ? 1 : 6;
		const id = payload.toString('latin1', idStart, idStart + SERVER_ID_BYTES);
		this.#isReceiving = true;
		try {
			for (const endpoint of this.endpoints) if (endpoint.takeFromPeer(id, datagram)) return;
		} finally {
			this.#isReceiving = false;
		}
	}

	/** Returns the index of an ID in a row; −1 if it is not there. Slots without an ID are 0, so an ID of zeros is never found. */
	#find(row: number, high: number, low: number): number {
		if (high === 0 && low === 0) return -1;
		const start = bucketStart(row, high);
		for (let at = start; at < start + BUCKET_SLOTS; at += 2) {
			if (Atomics.load(this.#slots, at) === high && Atomics.load(this.#slots, at + 1) === low) return at;
		}
		return -1;
	}

	#senderTo(row: number): DatagramRelay | undefined {
		const known = this.#senders[row];
		if (known !== undefined) return known;
		const descriptor = Atomics.load(this.#slots, this.#channelsStart + row * PEER_CHANNEL_SLOTS + 1) - 1;
		try {
			// The other end never sends anything, so nothing is received.
			const sender = new DatagramRelay(this.#library, duplicateDescriptor(descriptor), { onEnded: () => {} }, true);
			this.#senders[row] = sender;
			return sender;
		} catch {
			return undefined;
		}
	}
}

/** Returns the index of the first slot of an ID's bucket in a row. */
function bucketStart(row: number, high: number): number {
	return row * PEER_ROW_SLOTS + (high & (BUCKET_COUNT - 1)) * BUCKET_SLOTS;
}
