/**
 * The main thread's duplicates of the worker threads' listening sockets. The replacement of a lost thread continues with its
 * sockets, so that connections in the kernel's queues are served instead of reset.
 */
import { closeSync } from 'node:fs';
import { detachDescriptor } from '../sockets/duplicate-descriptor.ts';
import type { SocketDescriptors } from '../sockets/listening-socket.ts';
import type { ListenerAddress } from '../threads/messages.ts';

/** The sockets of all threads. */
export class WorkerSockets {
	/** By thread, then by listener key. */
	readonly #sockets = new Map<number, Map<string, SocketDescriptors>>();
	#closed = false;

	/** Adds a thread's listening socket. */
	add(thread: number, key: string, socket: SocketDescriptors): void {
		if (this.#closed) {
			closeSync(socket.copy);
			return;
		}
		let ofThread = this.#sockets.get(thread);
		if (!ofThread) {
			ofThread = new Map();
			this.#sockets.set(thread, ofThread);
		}
		const before = ofThread.get(key);
		if (before) closeSync(before.copy);
		ofThread.set(key, socket);
	}

	/** Returns the listeners for a thread's replacement, with the existing sockets. */
	inherited(thread: number, listeners: readonly ListenerAddress[]): ListenerAddress[] {
		const ofThread = this.#sockets.get(thread);
		return listeners.map(listener => {
			const descriptor = listener.descriptor ?? ofThread?.get(listener.key)?.copy;
			return descriptor === undefined ? listener : { ...listener, descriptor };
		});
	}

	/**
	 * Takes the sockets away from a thread that is about to be ended: otherwise, in its last turn of the event loop, it would
	 * accept the waiting connections and never serve them.
	 */
	detach(thread: number): void {
		for (const { own, copy } of this.#sockets.get(thread)?.values() ?? []) detachDescriptor(own, copy);
	}

	/** Closes the sockets of listeners that are no longer served. */
	keep(keys: ReadonlySet<string>): void {
		for (const ofThread of this.#sockets.values()) {
			for (const [key, { copy }] of ofThread) {
				if (keys.has(key)) continue;
				ofThread.delete(key);
				closeSync(copy);
			}
		}
	}

	/** Closes the sockets of one thread. */
	release(thread: number): void {
		for (const { copy } of this.#sockets.get(thread)?.values() ?? []) closeSync(copy);
		this.#sockets.delete(thread);
	}

	/** Closes all sockets, now and in the future. */
	close(): void {
		this.#closed = true;
		for (const thread of [...this.#sockets.keys()]) this.release(thread);
	}
}
