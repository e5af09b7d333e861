/** Whether a thread has file descriptors left for further connections, and what it does if it has none. */
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import { ROW_SLOT } from '../metrics/counter-row.ts';
import { overloadSlot } from '../metrics/refusals.ts';
import type { ProtocolServer } from '../protocols/protocol.ts';
import { DescriptorShortage } from './descriptor-shortage.ts';
import type { ListenerAddress } from './listener-address.ts';
import { PlaceMaker } from './place-maker.ts';

/** The members of a listener that are counted here. */
interface CountedListener {
	readonly connections: number;
	readonly protocol: ProtocolServer;
}

/** The room for connections on all listeners of one thread. */
export class ConnectionRoom {
	readonly #maxConnections: number;
	readonly #counters: Float64Array;
	readonly #listeners: ReadonlyMap<string, CountedListener>;
	readonly #descriptorShortage: DescriptorShortage;
	readonly #placeMaker: PlaceMaker;

	/**
	 * @param maxConnections Maximum number of connections of the thread.
	 * @param counters The thread's row of counters; see counter-row.ts.
	 * @param listeners The thread's listeners, which may change.
	 */
	constructor(
		maxConnections: number,
		counters: Float64Array,
		listeners: ReadonlyMap<string, CountedListener>,
		log: (entry: LogEntry) => void,
	) {
		this.#maxConnections = maxConnections;
		this.#counters = counters;
		this.#listeners = listeners;
		this.#descriptorShortage = new DescriptorShortage(log);
		this.#placeMaker = new PlaceMaker(
			() => this.#protocols(),
			connections => this.countDisplaced(connections),
		);
	}

	/**
	 * Reports whether descriptors are left for a connection. Without this check, a flood of connections would use up the
	 * descriptors that the Admin API and logs need.
	 */
	hasRoom(): boolean {
		let connectionCount = 0;
		for (const listener of this.#listeners.values()) connectionCount += listener.connections;
		if (connectionCount < this.#maxConnections) {
			this.#placeMaker.resetFreedSlots();
			return true;
		}
		if (this.#placeMaker.makeRoom()) return true;
		this.#counters[overloadSlot('descriptors')]!++;
		this.#descriptorShortage.onRefusal(this.#maxConnections, performance.now());
		return false;
	}

	/** Counts idle connections that were closed to make room for others. */
	countDisplaced(connections: number): void {
		this.#counters[ROW_SLOT.gaveWay]! += connections;
	}

	/** Called when a connection to an address could not be accepted. */
	onAcceptFailed(address: ListenerAddress, error: NodeJS.ErrnoException): void {
		this.#counters[ROW_SLOT.acceptFailures]!++;
		// Closes idle connections, which frees descriptors for new connections.
		this.#placeMaker.makeRoom();
		this.#descriptorShortage.onAcceptFailure(socketText(address), error, performance.now());
	}

	*#protocols(): Generator<ProtocolServer> {
		for (const { protocol } of this.#listeners.values()) yield protocol;
	}
}
