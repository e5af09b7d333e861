/** Makes room for connections by closing idle ones, the longest idle first. */
import type { ClosableConnection, ProtocolServer } from '../protocols/protocol.ts';

/**
 * Maximum number of connections closed at a time. Several are closed at once, because finding idle connections takes time, and
 * more new connections are likely to follow.
 */
const MAX_CLOSED_CONNECTIONS = 32;
/** When room is needed, one in this many idle connections is closed, but at most {@link MAX_CLOSED_CONNECTIONS}. */
const IDLE_PER_CLOSED = 8;
/**
 * After a search that found no idle connection, no search is made for this many times as long as it took, so that searches take
 * at most 5 % of a thread's time.
 */
const SEARCH_PAUSE_FACTOR = 20;
/** Maximum milliseconds of that pause. */
const MAX_SEARCH_PAUSE_MS = 100;

/** Closes idle connections of the given servers, which run on one thread. */
export class PlaceMaker {
	readonly #servers: () => Iterable<ProtocolServer>;
	readonly #onClosed: (connections: number) => void;
	/** Number of slots that have been freed but not used yet. */
	#freedSlotCount = 0;
	#nextSearchAt = 0;

	/** @param onClosed Called with the number of connections that were closed. */
	constructor(servers: () => Iterable<ProtocolServer>, onClosed: (connections: number) => void) {
		this.#servers = servers;
		this.#onClosed = onClosed;
	}

	/** Returns true if a connection has been closed to make room for a new one. */
	makeRoom(): boolean {
		if (this.#freedSlotCount > 0) {
			this.#freedSlotCount--;
			return true;
		}
		const closedCount = this.closeIdle();
		if (closedCount === 0) return false;
		this.#freedSlotCount = closedCount - 1;
		return true;
	}

	/** Closes some of the longest idle connections, at least one if any are found. Returns how many. */
	closeIdle(): number {
		const now = performance.now();
		if (now < this.#nextSearchAt) return 0;
		const idleConnections: ClosableConnection[] = [];
		for (const server of this.#servers()) {
			for (const connection of server.closable()) if (connection.idleSince <= now) idleConnections.push(connection);
		}
		if (idleConnections.length === 0) {
			const end = performance.now();
			this.#nextSearchAt = end + Math.min(MAX_SEARCH_PAUSE_MS, SEARCH_PAUSE_FACTOR * (end - now));
			return 0;
		}
		const longestIdle = idleConnections
			.map(connection => ({ connection, since: connection.idleSince }))
			.sort((a, b) => a.since - b.since)
			.slice(0, Math.max(1, Math.min(MAX_CLOSED_CONNECTIONS, Math.floor(idleConnections.length / IDLE_PER_CLOSED))));
		for (const { connection } of longestIdle) connection.giveWay();
		this.#onClosed(longestIdle.length);
		return longestIdle.length;
	}

	/** Resets the count of freed slots. Called when there is room again. */
	resetFreedSlots(): void {
		this.#freedSlotCount = 0;
	}
}
