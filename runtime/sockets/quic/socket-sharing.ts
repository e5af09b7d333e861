/**
 * Decides who reads a UDP socket that several processes or threads share, and passes on datagrams to those that do not read it.
 *
 * - During and after a handover, the successor reads, and passes on the datagrams that belong to connections of the processes
 *   before it.
 * - After a handover to more threads, some threads have no socket of their own. Binding more sockets would change the kernel's
 *   choice of a socket for existing connections. Instead, the thread that reads a socket assigns a share of its clients to such a
 *   thread (a branch) and passes on their datagrams. The branch replies through a duplicate of the socket. The choice depends only
 *   on the client's address and port, as the kernel's does.
 */
import type { BequeathedDatagrams, InheritedDatagrams } from '../bequeathed-sockets.ts';
import { duplicateDescriptor } from '../duplicate-descriptor.ts';
import { createRelayPair, DatagramRelay, type RelayedDatagram } from './datagram-relay.ts';
import type { PacketHeader } from './packet-header.ts';
import type { QuicLibrary } from './quic-library.ts';
import type { ThreadPeers } from './thread-peers.ts';
import type { DatagramSink, UdpSocket } from './udp-socket.ts';

/**
 * Milliseconds that the direct predecessor has for sending its connection IDs. After that, this process reads the socket anyway.
 */
const LIST_TIMEOUT_MS = 2000;

/** A process before this one, and the IDs of its connections. */
interface Predecessor {
	readonly relay: DatagramRelay;
	readonly ids: Set<string>;
}

/** The endpoint that uses the socket. */
export interface SharingEndpoint extends DatagramSink {
	/** The IDs of this endpoint's connections, including connections that ended recently. */
	connectionIds(): Iterable<string>;
}

/** Decides, for one socket on one thread, who reads the socket, and passes on the datagrams of other threads and processes. */
export class SocketSharing {
	readonly #library: QuicLibrary;
	readonly #socket: UdpSocket;
	readonly #endpoint: SharingEndpoint;
	readonly #peers: ThreadPeers | undefined;
	/** The processes before this one, as inherited: the direct predecessor first, then older ones. */
	readonly #inheritedPredecessors: Predecessor[] = [];
	/** Members of `#inheritedPredecessors` that have not ended. */
	#predecessors: readonly Predecessor[] = [];
	/**
	 * The channels to threads without a socket. An element becomes undefined when its thread ends; this thread then takes that
	 * thread's share of clients.
	 */
	readonly #branches: (DatagramRelay | undefined)[] = [];
	/** The number of branches that have not yet listed the IDs of their connections for the successor. */
	#unlistedBranchCount = 0;
	readonly #trunk: DatagramRelay | undefined;
	#successorRelay: DatagramRelay | undefined;
	#isOpen = false;
	/** False while the direct predecessor may still read the socket. */
	#isReader = true;
	#isSuccessorReading = false;
	/** True once the handover is final: the successor keeps the socket as long as it lives. */
	#isHandoverFinal = false;
	/** True once this thread must send the IDs of its new connections to the thread or process that reads the socket. */
	#announcesIds = false;
	#listTimer: NodeJS.Timeout | undefined;

	/** Duplicates the inherited descriptors. Throws an error with the system's code. */
	constructor(
		library: QuicLibrary,
		socket: UdpSocket,
		endpoint: SharingEndpoint,
		inherited?: InheritedDatagrams,
		peers?: ThreadPeers,
	) {
		this.#library = library;
		this.#socket = socket;
		this.#endpoint = endpoint;
		this.#peers = peers;
		const { relay, older = [], branches = [], trunk } = inherited ?? {};
		try {
			if (relay !== undefined) {
				this.#isReader = false;
				for (const descriptor of [relay, ...older])
					this.#inheritedPredecessors.push(this.#createPredecessor(descriptor));
				this.#predecessors = this.#inheritedPredecessors;
			}
			for (const [index, descriptor] of branches.entries()) this.#branches.push(this.#createBranch(index, descriptor));
			this.#trunk = trunk === undefined ? undefined : this.#createTrunk(trunk);
		} catch (error) {
			this.close();
			throw error;
		}
	}

	/** Starts receiving datagrams. Throws an error with the system's code. */
	open(): void {
		this.#isOpen = true;
		this.#socket.attach(this.#endpoint);
		if (!this.#isReader && this.#trunk === undefined) {
			// The two processes must not read the socket at the same time, because each would receive datagrams of the other.
			this.#listTimer = setTimeout(() => this.#takeSocket(), LIST_TIMEOUT_MS);
			this.#inheritedPredecessors[0]?.relay.sendHello();
		}
		this.#updateReading();
	}

	/**
	 * Returns descriptors for a successor: the socket and channels, which the caller must close. Returns undefined if there are no
	 * descriptors left, or if another thread reads the socket.
	 */
	bequeath(): BequeathedDatagrams | undefined {
		if (this.#trunk !== undefined) return undefined;
		const relayPair = createRelayPair(this.#library);
		if (relayPair === undefined) return undefined;
		this.#successorRelay?.close();
		this.#takeBack();
		const predecessors = this.#predecessors;
		const relay: DatagramRelay = new DatagramRelay(this.#library, relayPair[0], {
			onHello: () => this.#handOver(relay, predecessors),
			onDatagram: datagram => this.#deliverRelayed(datagram),
			onEnded: () => this.#takeBack(),
		});
		this.#successorRelay = relay;
		const older = predecessors.map(({ relay: { descriptor } }) => duplicateDescriptor(descriptor));
		return { descriptor: this.#socket.descriptor, relay: relayPair[1], ...(older.length > 0 && { older }) };
	}

	/** Called with the ID of a new connection, before the client can use it. */
	announceId(id: string): void {
		if (this.#isSuccessorReading) this.#successorRelay?.sendIds([id]);
		if (this.#announcesIds) this.#trunk?.sendIds([id]);
	}

	/**
	 * Passes on the datagram that is being delivered, which belongs to no connection of this thread. Returns false if no other
	 * thread or process should receive it.
	 * @param addressOffset Offset of the peer's address, as in {@link DatagramSink.onDatagram}.
	 * @param header The header of the datagram's first packet.
	 */
	passOn(start: number, end: number, addressOffset: number, header: PacketHeader): boolean {
		for (const { relay, ids } of this.#predecessors) {
			// The channel may hold IDs of new connections, which are read before the datagram is assigned.
			relay.onReadable();
			if (relay.closed || !ids.has(header.destinationId)) continue;
			relay.passDatagram(this.#socket.toRelayed(start, end, addressOffset));
			return true;
		}
		if (this.#peers?.pass(header, () => this.#socket.toRelayed(start, end, addressOffset))) return true;
		if (this.#branches.length === 0) return false;
		const branch = this.#branches[this.#socket.hashPeer(addressOffset, this.#branches.length + 1)];
		branch?.passDatagram(this.#socket.toRelayed(start, end, addressOffset));
		return branch !== undefined;
	}

	/** Called when the handover is final: the successor accepts all new connections as long as it lives. */
	finalizeHandover(): void {
		this.#isHandoverFinal = true;
		this.#closeChannelsIfFinal();
	}

	close(): void {
		this.#isOpen = false;
		clearTimeout(this.#listTimer);
		this.#closePredecessors();
		for (const branch of this.#branches.splice(0)) branch?.close();
		this.#trunk?.close();
		this.#successorRelay?.close();
	}

	#createPredecessor(descriptor: number): Predecessor {
		const ids = new Set<string>();
		const isFirst = this.#inheritedPredecessors.length === 0;
		const relay: DatagramRelay = new DatagramRelay(
			this.#library,
			duplicateDescriptor(descriptor),
			{
				onIds: newIds => {
					this.#addIds(ids, newIds);
				},
				onOlderIds: (index, newIds) => {
					const older = this.#inheritedPredecessors[index + 1];
					if (older !== undefined) this.#addIds(older.ids, newIds);
				},
				onListed: () => this.#takeSocket(),
				onEnded: () => {
					this.#predecessors = this.#predecessors.filter(predecessor => predecessor.relay !== relay);
					this.#removeIds(ids);
					if (isFirst) this.#takeSocket();
				},
			},
			// The direct predecessor receives the messages of older processes itself until it has sent all IDs, so the channels to
			// older processes start paused.
			!isFirst,
		);
		return { relay, ids };
	}

	/** Adds connection IDs of a process before this one, whose datagrams this thread passes on. */
	#addIds(ids: Set<string>, newIds: readonly string[]): void {
		for (const id of newIds) {
			if (!ids.has(id)) this.#peers?.add(id);
			ids.add(id);
		}
	}

	#removeIds(ids: Set<string>): void {
		for (const id of ids) this.#peers?.remove(id);
		ids.clear();
	}

	#createBranch(index: number, descriptor: number): DatagramRelay {
		return new DatagramRelay(this.#library, duplicateDescriptor(descriptor), {
			onIds: ids => {
				if (this.#isSuccessorReading) this.#successorRelay?.sendIds(ids);
			},
			onListed: () => this.#onBranchListed(),
			onEnded: () => {
				this.#branches[index] = undefined;
				this.#onBranchListed();
			},
		});
	}

	#createTrunk(descriptor: number): DatagramRelay {
		this.#isReader = false;
		const relay: DatagramRelay = new DatagramRelay(this.#library, duplicateDescriptor(descriptor), {
			onHello: () => {
				this.#announcesIds = true;
				relay.sendIds(this.#endpoint.connectionIds());
				relay.sendListed();
			},
			onDatagram: datagram => this.#deliverRelayed(datagram),
			// If the thread that reads the socket has died, this thread can do nothing about it.
			onEnded: () => {},
		});
		return relay;
	}

	/** Leaves the socket to the successor, and sends it the IDs of connections that it must not treat as its own. */
	#handOver(successor: DatagramRelay, bequeathedPredecessors: readonly Predecessor[]): void {
		this.#isSuccessorReading = true;
		this.#updateReading();
		successor.sendIds(this.#endpoint.connectionIds());
		for (const [index, { relay, ids }] of bequeathedPredecessors.entries()) {
			// From now on, the successor receives the older process's messages.
			relay.pause();
			successor.sendOlderIds(index, ids);
		}
		const branches = this.#branches.filter(branch => branch !== undefined);
		this.#unlistedBranchCount = branches.length;
		for (const branch of branches) branch.sendHello();
		if (this.#unlistedBranchCount === 0) successor.sendListed();
		this.#closeChannelsIfFinal();
	}

	/** Reports whether a process before this one has the connection with this ID. */
	hasPredecessorWith(id: string): boolean {
		return this.#predecessors.some(({ ids }) => ids.has(id));
	}

	/** Delivers a datagram that another thread has read. */
	deliverFromPeer(datagram: RelayedDatagram): void {
		this.#deliverRelayed(datagram);
	}

	#deliverRelayed(datagram: RelayedDatagram): void {
		this.#socket.deliverRelayed(datagram);
		this.#endpoint.onDatagramsRead();
	}

	/** Called when a branch has sent its list of connection IDs, or will never send it. */
	#onBranchListed(): void {
		if (this.#unlistedBranchCount > 0 && --this.#unlistedBranchCount === 0) this.#successorRelay?.sendListed();
	}

	/** Reads the socket again, because the successor has ended, or never began to read. */
	#takeBack(): void {
		this.#isSuccessorReading = false;
		this.#isHandoverFinal = false;
		this.#unlistedBranchCount = 0;
		this.#resumePredecessors();
		this.#updateReading();
	}

	#resumePredecessors(): void {
		if (this.#isSuccessorReading) return;
		for (const predecessor of this.#predecessors) {
			if (this.#isReader || predecessor === this.#inheritedPredecessors[0]) predecessor.relay.resume();
		}
	}

	/** Reads the socket, because this process's predecessor no longer does. */
	#takeSocket(): void {
		clearTimeout(this.#listTimer);
		if (this.#isReader || this.#trunk !== undefined) return;
		this.#isReader = true;
		this.#resumePredecessors();
		this.#updateReading();
	}

	#updateReading(): void {
		if (!this.#isOpen) return;
		if (this.#isReader && !this.#isSuccessorReading) this.#socket.resume();
		else this.#socket.pause();
	}

	/**
	 * Closes this process's channels to its predecessors, which the successor uses now. While they were open here, the predecessors
	 * would not notice the successor's end.
	 */
	#closeChannelsIfFinal(): void {
		if (this.#isHandoverFinal && this.#isSuccessorReading) this.#closePredecessors();
	}

	#closePredecessors(): void {
		for (const { relay, ids } of this.#inheritedPredecessors) {
			relay.close();
			this.#removeIds(ids);
		}
		this.#predecessors = [];
	}
}
