/**
 * The sockets on which data-plane threads listen, as the main thread keeps them. The successor of a thread that was lost goes
 * on with its sockets: connections that the kernel has put into their queues are served instead of reset.
 */
import { closeSync } from 'node:fs';
import { detachDescriptor } from '../sockets/duplicate-descriptor.ts';
import type { SocketDescriptors } from '../sockets/listening-socket.ts';
import type { ListenerAddress } from '../threads/messages.ts';

/** The sockets of all threads. */
export class WorkerSockets {
	/** By thread, then by key of the listener. */
	readonly #sockets = new Map<number, Map<string, SocketDescriptors>>();
	#closed = false;

	/** A thread listens. */
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

	/** The listeners for the successor of a thread: with the sockets that there are. */
	inherited(thread: number, listeners: readonly ListenerAddress[]): ListenerAddress[] {
		const ofThread = this.#sockets.get(thread);
		return listeners.map(listener => {
			const descriptor = listener.descriptor ?? ofThread?.get(listener.key)?.copy;
			return descriptor === undefined ? listener : { ...listener, descriptor };
		});
	}

	/**
	 * Takes its sockets away from a thread that is about to be ended: in its last turn of the event loop it would accept what
	 * waits in them, and never serve it.
	 */
	detach(thread: number): void {
		for (const { own, copy } of this.#sockets.get(thread)?.values() ?? []) detachDescriptor(own, copy);
	}

	/** Closes the sockets of listeners that are not served. */
	keep(keys: ReadonlySet<string>): void {
		for (const ofThread of this.#sockets.values()) {
			for (const [key, { copy }] of ofThread) {
				if (keys.has(key)) continue;
				ofThread.delete(key);
				closeSync(copy);
			}
		}
	}

	/** Closes those of one thread. */
	release(thread: number): void {
		for (const { copy } of this.#sockets.get(thread)?.values() ?? []) closeSync(copy);
		this.#sockets.delete(thread);
	}

	/** Closes all of them, and those that come after. */
	close(): void {
		this.#closed = true;
		for (const thread of [...this.#sockets.keys()]) this.release(thread);
	}
}
