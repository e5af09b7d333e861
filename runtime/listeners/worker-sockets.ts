/**
 * The main thread's duplicates of the worker threads' listening sockets. If a thread dies, its replacement listens on duplicates
 * of its sockets, so that connections in the kernel's queues are served instead of reset.
 */
import { closeSync } from 'node:fs';
import { detachDescriptor } from '../sockets/duplicate-descriptor.ts';
import type { SocketDescriptors } from '../sockets/listening-socket.ts';
import type { ListenerAddress } from './listener-address.ts';

export class WorkerSockets {
	/** Sockets by thread, and then by listener key. */
	readonly #socketsByThread = new Map<number, Map<string, readonly SocketDescriptors[]>>();
	#isClosed = false;

	/** Adds a thread's listening sockets for the listener with this key. */
	add(thread: number, key: string, sockets: readonly SocketDescriptors[]): void {
		if (this.#isClosed) {
			closeAll(sockets);
			return;
		}
		let socketsByKey = this.#socketsByThread.get(thread);
		if (!socketsByKey) {
			socketsByKey = new Map();
			this.#socketsByThread.set(thread, socketsByKey);
		}
		closeAll(socketsByKey.get(key) ?? []);
		socketsByKey.set(key, sockets);
	}

	/** Returns the descriptors of all threads' sockets for a listener. */
	descriptorsOf(key: string): number[] {
		return [...this.#socketsByThread.values()].flatMap(socketsByKey =>
			(socketsByKey.get(key) ?? []).map(({ copy }) => copy),
		);
	}

	/** Returns the listeners for a thread's replacement, with the existing sockets. */
	withInherited(thread: number, listeners: readonly ListenerAddress[]): ListenerAddress[] {
		const socketsByKey = this.#socketsByThread.get(thread);
		return listeners.map(listener => {
			const sockets = socketsByKey?.get(listener.key);
			if (listener.descriptor !== undefined || sockets === undefined) return listener;
			return { ...listener, inherited: sockets.map(({ copy }) => copy) };
		});
	}

	/**
	 * Takes the sockets away from a thread that is about to be terminated. If it kept them, it would accept waiting connections in
	 * its last turn of the event loop and never serve them.
	 */
	detach(thread: number): void {
		for (const sockets of this.#socketsByThread.get(thread)?.values() ?? []) {
			for (const { own, copy } of sockets) detachDescriptor(own, copy);
		}
	}

	/** Closes the sockets of listeners that are no longer served. */
	keepOnly(keys: ReadonlySet<string>): void {
		for (const socketsByKey of this.#socketsByThread.values()) {
			for (const [key, sockets] of socketsByKey) {
				if (keys.has(key)) continue;
				socketsByKey.delete(key);
				closeAll(sockets);
			}
		}
	}

	/** Closes the sockets of one thread. */
	release(thread: number): void {
		for (const sockets of this.#socketsByThread.get(thread)?.values() ?? []) closeAll(sockets);
		this.#socketsByThread.delete(thread);
	}

	/** Closes all sockets. Sockets that are added later are closed immediately. */
	close(): void {
		this.#isClosed = true;
		for (const thread of [...this.#socketsByThread.keys()]) this.release(thread);
	}
}

function closeAll(sockets: readonly SocketDescriptors[]): void {
	for (const { copy } of sockets) closeSync(copy);
}
