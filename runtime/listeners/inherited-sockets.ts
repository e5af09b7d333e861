/**
 * The listening sockets inherited from the predecessor. Both processes listen on the very same sockets for a moment, so that no
 * connection waits in a queue from which nobody accepts. The successor does not bind a second socket to an inherited address.
 */
import { closeSync } from 'node:fs';
import {
	type BequeathedListener,
	type BequeathedSocket,
	type BequeathedSockets,
	descriptorsOf,
} from '../sockets/bequeathed-sockets.ts';
import type { ListenerAddress } from './listener-address.ts';

/** The inherited sockets that the successor has not taken over yet. */
export class InheritedSockets {
	readonly #listeners: ReadonlyMap<string, BequeathedListener>;
	readonly #held: ReadonlyMap<string, BequeathedSocket>;

	constructor({ listeners, held }: BequeathedSockets) {
		this.#listeners = new Map(listeners.map(listener => [listener.key, listener]));
		this.#held = new Map(held.map(socket => [socket.key, socket]));
	}

	/**
	 * Returns an address for threads that they must not use before the process accepts connections: either its sockets are inherited, or
	 * it shares a port with inherited sockets, from which it cannot be told apart before.
	 */
	deferred(address: ListenerAddress): ListenerAddress | undefined {
		const found = this.#listeners.get(address.key);
		if (found) {
			const { port, descriptors: inherited, datagrams } = found;
			return { ...address, port, inherited, ...(datagrams && { datagrams }), deferred: true };
		}
		const { port } = address;
		for (const listener of this.#listeners.values()) if (listener.port === port) return { ...address, deferred: true };
		return undefined;
	}

	/** Returns the inherited socket of a key. */
	held(key: string): BequeathedSocket | undefined {
		return this.#held.get(key);
	}

	/** Returns the inherited sockets that the new configuration does not use, given the keys that it uses. */
	abandoned(keys: ReadonlySet<string>): BequeathedSocket[] {
		return [...this.#held.values()].filter(socket => !keys.has(socket.key));
	}

	/** Closes the inherited descriptors of TCP and UDP sockets. Threads have duplicates of those that are served. */
	close(): void {
		for (const { descriptors, datagrams = [] } of this.#listeners.values()) {
			for (const descriptor of descriptors) closeSync(descriptor);
			for (const one of datagrams) for (const descriptor of descriptorsOf(one)) closeSync(descriptor);
		}
	}
}

/**
 * Returns the addresses for one of `threads` threads, with its share of the inherited sockets. Every socket gets a thread, also
 * if there are fewer threads than sockets. With more threads, some share a TCP socket; for UDP sockets, see `withBranches`.
 */
export function addressesForThread(
	listeners: readonly ListenerAddress[],
	thread: number,
	threads: number,
): ListenerAddress[] {
	const ownOf = <T>(all: readonly T[]): T[] => all.filter((_, at) => at % threads === thread);
	return listeners.map(listener => {
		const { inherited: all, datagrams } = listener;
		if (all === undefined || all.length === 0) return listener;
		const own = ownOf(all);
		return {
			...listener,
			inherited: own.length > 0 ? own : [all[thread % all.length]!],
			...(datagrams && { datagrams: ownOf(datagrams) }),
		};
	});
}

/** Returns an address without the parts that concern only the handover, for later loads. */
export function withoutHandoverParts({
	inherited: _,
	datagrams: __,
	deferred: ___,
	...address
}: ListenerAddress): ListenerAddress {
	return address;
}
