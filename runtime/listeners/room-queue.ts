/** Connections that wait until other threads have closed idle ones, because their listener has as many as it may have. */
import type { Socket } from 'node:net';
import type { DirectSocket } from '../sockets/direct-socket.ts';

/** Maximum number of connections of one listener that wait on one thread. Further ones are rejected at once. */
const MAX_WAITING_CONNECTIONS = 64;
/** Maximum milliseconds that a connection waits. */
const MAX_WAIT_MS = 200;
/** Milliseconds between two checks for room. */
const CHECK_INTERVAL_MS = 5;
/** Milliseconds between two requests to the other threads. */
const REQUEST_INTERVAL_MS = 50;
/** Milliseconds during which no connection waits, after one has waited in vain: probably, all connections are in use. */
const PAUSE_MS = 1000;

interface WaitingConnection {
	readonly socket: Socket | DirectSocket;
	/** Admits the connection, or rejects it if there is no room. */
	readonly admit: () => void;
	readonly deadline: number;
}

/** The waiting connections of one listener on one thread. */
export class RoomQueue {
	readonly #hasRoom: () => boolean;
	readonly #askOtherThreads: () => void;
	#waiting: WaitingConnection[] = [];
	#timer: NodeJS.Timeout | undefined;
	#pauseEnd = 0;
	#nextRequestAt = 0;

	/** @param askOtherThreads Asks the other threads to close idle connections of the listener. */
	constructor(hasRoom: () => boolean, askOtherThreads: () => void) {
		this.#hasRoom = hasRoom;
		this.#askOtherThreads = askOtherThreads;
	}

	get hasWaiting(): boolean {
		return this.#waiting.length > 0;
	}

	/** Lets a connection wait, until `admit` is called. Returns false if it must be rejected at once. */
	add(socket: Socket | DirectSocket, admit: () => void): boolean {
		const now = performance.now();
		if (this.#waiting.length >= MAX_WAITING_CONNECTIONS || now < this.#pauseEnd) return false;
		if (this.#waiting.length === 0) {
			this.#ask(now);
			this.#timer = setInterval(() => this.#check(), CHECK_INTERVAL_MS);
		}
		this.#waiting.push({ socket, admit, deadline: now + MAX_WAIT_MS });
		return true;
	}

	#check(): void {
		const now = performance.now();
		let hasAdmitted = false;
		for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
			const hasRoom = this.#hasRoom();
			if (!hasRoom && now < next.deadline) break;
			if (!hasRoom) this.#pauseEnd = now + PAUSE_MS;
			else hasAdmitted = true;
			this.#waiting.shift();
			next.admit();
		}
		if (this.#waiting.length === 0) clearInterval(this.#timer);
		// The others may have closed only one connection, or may have had no idle ones yet.
		else if (hasAdmitted || now >= this.#nextRequestAt) this.#ask(now);
	}

	#ask(now: number): void {
		this.#nextRequestAt = now + REQUEST_INTERVAL_MS;
		this.#askOtherThreads();
	}

	/** Closes the waiting connections. */
	close(): void {
		clearInterval(this.#timer);
		for (const { socket } of this.#waiting) socket.destroy();
		this.#waiting = [];
	}
}
