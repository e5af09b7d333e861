/** The sockets that a process keeps after a handover, until the successor's configuration has been confirmed. */
import { closeSync, fstatSync } from 'node:fs';
import type { BequeathedDatagrams, BequeathedListener } from '../../sockets/bequeathed-sockets.ts';
import { duplicateDescriptor } from '../../sockets/duplicate-descriptor.ts';
import type { Inheritance } from './handover-protocol.ts';

/** Duplicates of all sockets that a successor has inherited. They are needed if another successor must be started. */
export class KeptSockets {
	readonly #otherParts: Omit<Inheritance, 'sockets'>;
	readonly #passedSockets: Inheritance['sockets']['passed'];
	#heldSockets: Inheritance['sockets']['held'];
	#listeners: readonly BequeathedListener[];
	readonly #openDescriptors = new Set<number>();

	/** Duplicates all descriptors of an inheritance, except those of channels. Throws an error with the system's code. */
	constructor({ sockets, ...otherParts }: Inheritance) {
		this.#otherParts = otherParts;
		const withDuplicate = <T extends { readonly descriptor: number }>(socket: T): T => ({
			...socket,
			descriptor: this.#duplicateDescriptor(socket.descriptor),
		});
		try {
			this.#passedSockets = sockets.passed.map(withDuplicate);
			this.#heldSockets = sockets.held.map(withDuplicate);
			this.#listeners = sockets.listeners.map(({ descriptors, datagrams, ...listener }) => ({
				...listener,
				descriptors: descriptors.map(descriptor => this.#duplicateDescriptor(descriptor)),
				datagrams: datagrams?.map(({ descriptor }) => ({ descriptor: this.#duplicateDescriptor(descriptor) })),
			}));
		} catch (error) {
			this.close();
			throw error;
		}
	}

	/**
	 * Closes the sockets that the successor does not use, because nobody would accept connections on them. Their addresses can be
	 * bound again when they are needed.
	 * @param used See `UnconfirmedTerms.used`.
	 */
	keepOnly(used: readonly string[]): void {
		const usedKeys = new Set(used);
		const keptListeners: BequeathedListener[] = [];
		for (const { datagrams = [], ...listener } of this.#listeners) {
			const usesDatagrams = usedKeys.has(`udp ${listener.key}`);
			if (!usesDatagrams) for (const { descriptor } of datagrams) this.#closeDescriptor(descriptor);
			if (usedKeys.has(listener.key)) keptListeners.push({ ...listener, ...(usesDatagrams && { datagrams }) });
			else for (const descriptor of listener.descriptors) this.#closeDescriptor(descriptor);
		}
		this.#listeners = keptListeners;
		for (const { key, descriptor } of this.#heldSockets) if (!usedKeys.has(key)) this.#closeDescriptor(descriptor);
		this.#heldSockets = this.#heldSockets.filter(({ key }) => usedKeys.has(key));
	}

	/**
	 * Returns the inheritance for another successor. `openDatagrams` are the UDP sockets on which this process still has
	 * connections, with new channels.
	 */
	createInheritance(openDatagrams: Iterable<BequeathedDatagrams>): Inheritance {
		const channels = new Map([...openDatagrams].map(socket => [inodeOf(socket.descriptor), socket]));
		const listeners = this.#listeners.map(listener => ({
			...listener,
			datagrams: listener.datagrams?.map(socket => channels.get(inodeOf(socket.descriptor)) ?? socket),
		}));
		return { ...this.#otherParts, sockets: { listeners, held: this.#heldSockets, passed: this.#passedSockets } };
	}

	close(): void {
		for (const descriptor of [...this.#openDescriptors]) this.#closeDescriptor(descriptor);
	}

	#duplicateDescriptor(descriptor: number): number {
		const copy = duplicateDescriptor(descriptor);
		this.#openDescriptors.add(copy);
		return copy;
	}

	#closeDescriptor(descriptor: number): void {
		if (this.#openDescriptors.delete(descriptor)) closeSync(descriptor);
	}
}

function inodeOf(descriptor: number): number {
	return fstatSync(descriptor).ino;
}
