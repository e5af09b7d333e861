/**
 * The main thread's duplicates of the worker threads' listening sockets. If a thread dies, its replacement listens on duplicates
 * of its sockets, so that connections in the kernel's queues are served instead of reset.
 */
import { closeSync } from 'node:fs';
import { detachDescriptor } from '../sockets/duplicate-descriptor.ts';
import type { SocketDescriptors } from '../sockets/listening-socket.ts';
import type { ListenerAddress } from './listener-address.ts';

/** The sockets of all threads. */
export class WorkerSockets {
	/** Sockets by thread, and then by listener key. */
	readonly #sockets = new Map<number, Map<string, readonly SocketDescriptors[]>>();
	#closed = false;

	/** Adds a thread's listening sockets. */
	add(thread: number, key: string, sockets: readonly SocketDescriptors[]): void {
		if (this.#closed) {
			closeAll(sockets);
			return;
		}
		let ofThread = this.#sockets.get(thread);
		if (!ofThread) {
			ofThread = new Map();
			this.#sockets.set(thread, ofThread);
		}
		closeAll(ofThread.get(key) ?? []);
		ofThread.set(key, sockets);
	}

	/** Returns the descriptors of all threads' sockets for a listener. */
	of(key: string): number[] {
		return [...this.#sockets.values()].flatMap(ofThread => (ofThread.get(key) ?? []).map(({ copy }) => copy));
	}

	/** Returns the listeners for a thread's replacement, with the existing sockets. */
	inherited(thread: number, listeners: readonly ListenerAddress[]): ListenerAddress[] {
		const ofThread = this.#sockets.get(thread);
		return listeners.map(listener => {
			const sockets = ofThread?.get(listener.key);
			if (listener.descriptor !== undefined || sockets === undefined) return listener;
			return { ...listener, inherited: sockets.map(({ copy }) => copy) };
		});
	}

	/**
	 * Takes the sockets away from a thread that is about to be terminated. If it kept them, it would accept waiting connections in
	 * its last turn of the event loop and never serve them.
	 */
	detach(thread: number): void {
		for (const sockets of this.#sockets.get(thread)?.values() ?? []) {
			for (const { own, copy } of sockets) detachDescriptor(own, copy);
		}
	}

	/** Closes the sockets of listeners that are no longer served. */
	keepOnly(keys: ReadonlySet<string>): void {
		for (const ofThread of this.#sockets.values()) {
			for (const [key, sockets] of ofThread) {
				if (keys.has(key)) continue;
				ofThread.delete(key);
				closeAll(sockets);
			}
		}
	}

	/** Closes the sockets of one thread. */
	release(thread: number): void {
		for (const sockets of this.#sockets.get(thread)?.values() ?? []) closeAll(sockets);
		this.#sockets.delete(thread);
	}

	/** Closes all sockets. Sockets that are added later are closed immediately. */
	close(): void {
		this.#closed = true;
		for (const thread of [...this.#sockets.keys()]) this.release(thread);
	}
}

function closeAll(sockets: readonly SocketDescriptors[]): void {
	for (const { copy } of sockets) closeSync(copy);
}
