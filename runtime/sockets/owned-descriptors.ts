/**
 * The descriptors that a thread owns without Node handles. When a thread is terminated, Node closes its handles, but nothing closes
 * these descriptors. Therefore the thread records them in shared memory, and the main thread closes those that are left.
 */
import { closeSync } from 'node:fs';

/** Descriptors from this number on are left to Node handles. */
export const MAX_OWNED = 1 << 16;

/** A set of descriptors in shared memory. */
export class OwnedDescriptors {
	readonly #bits: Int32Array;

	/** Shared by the thread and the main thread. */
	readonly memory: SharedArrayBuffer;

	constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(MAX_OWNED / 8)) {
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
		let closed = 0;
		for (const [at, bits] of this.#bits.entries()) {
			if (bits === 0) continue;
			for (let bit = 0; bit < 32; bit++) {
				if ((bits & (1 << bit)) === 0) continue;
				try {
					closeSync(at * 32 + bit);
					closed++;
				} catch {
					// The thread was terminated between the two steps of closing it.
				}
			}
			this.#bits[at] = 0;
		}
		return closed;
	}
}

let own: OwnedDescriptors | undefined;

/** Makes a thread note its descriptors in memory that it shares with the main thread. */
export function shareDescriptors(memory: SharedArrayBuffer): void {
	own = new OwnedDescriptors(memory);
}

/** Returns the set in the memory given to {@link shareDescriptors}, or one that nobody else knows. */
export function threadDescriptors(): OwnedDescriptors {
	own ??= new OwnedDescriptors();
	return own;
}
