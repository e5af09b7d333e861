/** Makes room for connections by closing idle ones, the longest idle first. */
import type { ClosableConnection, ProtocolServer } from '../protocols/protocol.ts';

/** Maximum number of connections closed at a time. Finding them takes time, and further connections are likely to come. */
const MOST = 32;
/** The reciprocal of the share of idle connections that is closed at a time. */
const PART = 8;
/** Milliseconds without further searches after one found nothing. */
const QUIET = 100;

/** Closes idle connections of some of a thread's servers. */
export class PlaceMaker {
	readonly #servers: () => Iterable<ProtocolServer>;
	readonly #closed: (connections: number) => void;
	/** Number of slots that have been freed but not used yet. */
	#free = 0;
	#quietUntil = 0;

	/** @param closed Called with the number of connections that were closed. */
	constructor(servers: () => Iterable<ProtocolServer>, closed: (connections: number) => void) {
		this.#servers = servers;
		this.#closed = closed;
	}

	/** Returns true if a connection has been closed to make room for a new one. */
	make(): boolean {
		if (this.#free > 0) {
			this.#free--;
			return true;
		}
		const now = performance.now();
		if (now < this.#quietUntil) return false;
		const idle: ClosableConnection[] = [];
		for (const server of this.#servers()) {
			for (const connection of server.closable()) if (connection.idleSince <= now) idle.push(connection);
		}
		if (idle.length === 0) {
			this.#quietUntil = now + QUIET;
			return false;
		}
		const longest = idle
			.map(connection => ({ connection, since: connection.idleSince }))
			.sort((a, b) => a.since - b.since)
			.slice(0, Math.max(1, Math.min(MOST, Math.floor(idle.length / PART))));
		for (const { connection } of longest) connection.giveWay();
		this.#closed(longest.length);
		this.#free = longest.length - 1;
		return true;
	}

	/** Resets the count of freed slots. Called when there is room again. */
	reset(): void {
		this.#free = 0;
	}
}
