/** Makes room for connections by closing those that nobody uses, the longest unused first. */
import type { Closable, ProtocolServer } from '../protocols/protocol.ts';

/** Connections that are closed at once at most: looking for them takes time, and where one comes more do. */
const MOST = 32;
/** The part of the idle connections that is closed at once. */
const PART = 8;
/** Milliseconds during which none is looked for after there was none. */
const QUIET = 100;

/** Closes connections of some servers of one thread. */
export class PlaceMaker {
	readonly #servers: () => Iterable<ProtocolServer>;
	readonly #closed: (connections: number) => void;
	/** Places that have been made and not been taken. */
	#free = 0;
	#quietUntil = 0;

	/** `closed` is told how many connections have been closed. */
	constructor(servers: () => Iterable<ProtocolServer>, closed: (connections: number) => void) {
		this.#servers = servers;
		this.#closed = closed;
	}

	/** Returns true if there is a place for one more, though there was no room: a connection has been closed for it. */
	make(): boolean {
		if (this.#free > 0) {
			this.#free--;
			return true;
		}
		const now = performance.now();
		if (now < this.#quietUntil) return false;
		const idle: Closable[] = [];
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

	/** There is room again: places made before are not needed. */
	reset(): void {
		this.#free = 0;
	}
}
