/** The sockets that a process keeps after a handover, until the successor's configuration has been confirmed. */
import { closeSync, fstatSync } from 'node:fs';
import type { BequeathedDatagrams, BequeathedListener } from '../../sockets/bequeathed-sockets.ts';
import { duplicateDescriptor } from '../../sockets/duplicate-descriptor.ts';
import type { Inheritance } from './handover-protocol.ts';

/** Duplicates of all sockets that a successor has inherited, in case another successor must be started. */
export class KeptSockets {
	readonly #rest: Omit<Inheritance, 'sockets'>;
	readonly #passed: Inheritance['sockets']['passed'];
	#held: Inheritance['sockets']['held'];
	#listeners: readonly BequeathedListener[];
	readonly #open = new Set<number>();

	/** Duplicates all descriptors of an inheritance, except those of channels. Throws an error with the system's code. */
	constructor({ sockets, ...rest }: Inheritance) {
		this.#rest = rest;
		const kept = <T extends { readonly descriptor: number }>(one: T): T => ({
			...one,
			descriptor: this.#duplicate(one.descriptor),
		});
		try {
			this.#passed = sockets.passed.map(kept);
			this.#held = sockets.held.map(kept);
			this.#listeners = sockets.listeners.map(({ descriptors, datagrams, ...listener }) => ({
				...listener,
				descriptors: descriptors.map(descriptor => this.#duplicate(descriptor)),
				datagrams: datagrams?.map(({ descriptor }) => ({ descriptor: this.#duplicate(descriptor) })),
			}));
		} catch (error) {
			this.close();
			throw error;
		}
	}

	/**
	 * Closes the sockets that the successor does not use: nobody would accept their connections. Their addresses can be bound again when
	 * they are needed.
	 * @param used See `UnconfirmedTerms.used`.
	 */
	keepOnly(used: readonly string[]): void {
		const names = new Set(used);
		const wanted: BequeathedListener[] = [];
		for (const { datagrams = [], ...listener } of this.#listeners) {
			const usesDatagrams = names.has(`udp ${listener.key}`);
			if (!usesDatagrams) for (const { descriptor } of datagrams) this.#close(descriptor);
			if (names.has(listener.key)) wanted.push({ ...listener, ...(usesDatagrams && { datagrams }) });
			else for (const descriptor of listener.descriptors) this.#close(descriptor);
		}
		this.#listeners = wanted;
		for (const { key, descriptor } of this.#held) if (!names.has(key)) this.#close(descriptor);
		this.#held = this.#held.filter(({ key }) => names.has(key));
	}

	/**
	 * Returns the inheritance for another successor. `open` has the UDP sockets on which this process still has connections, with
	 * new channels.
	 */
	inheritance(open: Iterable<BequeathedDatagrams>): Inheritance {
		const channels = new Map([...open].map(one => [inodeOf(one.descriptor), one]));
		const listeners = this.#listeners.map(listener => ({
			...listener,
			datagrams: listener.datagrams?.map(one => channels.get(inodeOf(one.descriptor)) ?? one),
		}));
		return { ...this.#rest, sockets: { listeners, held: this.#held, passed: this.#passed } };
	}

	close(): void {
		for (const descriptor of [...this.#open]) this.#close(descriptor);
	}

	#duplicate(descriptor: number): number {
		const copy = duplicateDescriptor(descriptor);
		this.#open.add(copy);
		return copy;
	}

	#close(descriptor: number): void {
		if (this.#open.delete(descriptor)) closeSync(descriptor);
	}
}

function inodeOf(descriptor: number): number {
	return fstatSync(descriptor).ino;
}
