/**
 * The descriptors that a thread owns without Node handles. When a thread is terminated, Node closes its handles, but nothing
 * closes these descriptors. Therefore the thread records them in shared memory, and the main thread closes all that are left.
 */
import { closeSync } from 'node:fs';

/** The set holds descriptors below this number. A connection with any other descriptor gets a Node handle, which Node closes. */
export const OWNED_DESCRIPTOR_LIMIT = 1 << 16;

/** A set of descriptors in shared memory. */
export class OwnedDescriptors {
	readonly #bits: Int32Array;

	/** Shared by the thread and the main thread. */
	readonly memory: SharedArrayBuffer;

	constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(OWNED_DESCRIPTOR_LIMIT / 8)) {
		this.memory = memory;
		this.#bits = new Int32Array(memory);
	}

	add(descriptor: number): void {
		this.#bits[descriptor >> 5]! |= 1 << (descriptor & 31);
	}

	delete(descriptor: number): void {
		this.#bits[descriptor >> 5]! &= ~(1 << (descriptor & 31));
	}

	has(descriptor: number): boolean {
		return (this.#bits[descriptor >> 5]! & (1 << (descriptor & 31))) !== 0;
	}

	/** Closes all descriptors, after their thread has ended. Returns how many there were. */
	closeAll(): number {
		let closedCount = 0;
		for (const [wordIndex, bits] of this.#bits.entries()) {
			if (bits === 0) continue;
			for (let bit = 0; bit < 32; bit++) {
				if ((bits & (1 << bit)) === 0) continue;
				try {
					closeSync(wordIndex * 32 + bit);
					closedCount++;
				} catch {
					// The descriptor is closed already: the thread was terminated after closing it, and before removing it from the set.
				}
			}
			this.#bits[wordIndex] = 0;
		}
		return closedCount;
	}
}

let ownDescriptors: OwnedDescriptors | undefined;

/** Makes this thread record its descriptors in memory that it shares with the main thread. */
export function shareDescriptors(memory: SharedArrayBuffer): void {
	ownDescriptors = new OwnedDescriptors(memory);
}

/**
 * Returns the set in the memory given to {@link shareDescriptors}. In a thread without such memory, returns a set that is not
 * shared.
 */
export function threadDescriptors(): OwnedDescriptors {
	ownDescriptors ??= new OwnedDescriptors();
	return ownDescriptors;
}
