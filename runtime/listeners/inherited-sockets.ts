/**
 * The listening sockets inherited from the predecessor. For a moment, both processes listen on the same sockets, so that every
 * queued connection is accepted by one of them. A second socket bound to the address would have a queue of its own, so the
 * successor binds no sockets of its own.
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
	readonly #listenersByKey: ReadonlyMap<string, BequeathedListener>;
	readonly #heldByKey: ReadonlyMap<string, BequeathedSocket>;

	constructor({ listeners, held }: BequeathedSockets) {
		this.#listenersByKey = new Map(listeners.map(listener => [listener.key, listener]));
		this.#heldByKey = new Map(held.map(socket => [socket.key, socket]));
	}

	/** The keys of all inherited listeners. */
	get keys(): string[] {
		return [...this.#listenersByKey.keys(), ...this.#heldByKey.keys()];
	}

	/**
	 * If the address's sockets are inherited, or an inherited listener has the same port and would conflict with it, returns the
	 * address, marked so that threads do not use it before this process takes over. Otherwise returns undefined.
	 */
	findDeferred(address: ListenerAddress): ListenerAddress | undefined {
		const inheritedListener = this.#listenersByKey.get(address.key);
		if (inheritedListener) {
			const { port, descriptors: inherited, datagrams } = inheritedListener;
			return { ...address, port, inherited, ...(datagrams && { datagrams }), deferred: true };
		}
		const { port } = address;
		for (const listener of this.#listenersByKey.values())
			if (listener.port === port) return { ...address, deferred: true };
		return undefined;
	}

	/** Returns the inherited socket with this listener key, among those that the main thread holds. */
	findHeld(key: string): BequeathedSocket | undefined {
		return this.#heldByKey.get(key);
	}

	/** Returns the inherited sockets that the new configuration does not use, given the keys that it uses. */
	findAbandoned(keys: ReadonlySet<string>): BequeathedSocket[] {
		return [...this.#heldByKey.values()].filter(socket => !keys.has(socket.key));
	}

	/** Closes the inherited descriptors of TCP and UDP sockets. The threads have duplicates of the sockets that they serve. */
	close(): void {
		for (const { descriptors, datagrams = [] } of this.#listenersByKey.values()) {
			for (const descriptor of descriptors) closeSync(descriptor);
			for (const datagramSocket of datagrams)
				for (const descriptor of descriptorsOf(datagramSocket)) closeSync(descriptor);
		}
	}
}

/**
 * Returns the addresses for one of `threadCount` threads, with its share of the inherited sockets. Every socket is assigned to a
 * thread. If there are more sockets than threads, a thread gets several; if there are fewer, threads share a TCP socket. For UDP
 * sockets, see `withBranches`.
 */
export function addressesForThread(
	listeners: readonly ListenerAddress[],
	threadIndex: number,
	threadCount: number,
): ListenerAddress[] {
	const shareOf = <T>(sockets: readonly T[]): T[] => sockets.filter((_, at) => at % threadCount === threadIndex);
	return listeners.map(listener => {
		const { inherited: inheritedSockets, datagrams } = listener;
		if (inheritedSockets === undefined || inheritedSockets.length === 0) return listener;
		const ownSockets = shareOf(inheritedSockets);
		return {
			...listener,
			inherited: ownSockets.length > 0 ? ownSockets : [inheritedSockets[threadIndex % inheritedSockets.length]!],
			...(datagrams && { datagrams: shareOf(datagrams) }),
		};
	});
}

/** Returns an address without the properties that apply only during a handover, for use in later loads. */
export function withoutHandoverParts({
	inherited: _,
	datagrams: __,
	deferred: ___,
	...address
}: ListenerAddress): ListenerAddress {
	return address;
}
