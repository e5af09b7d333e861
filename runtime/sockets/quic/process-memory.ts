/**
 * Reads memory of this process at any address. A system call copies it, which fails, and does not end the process, if the address is
 * invalid.
 */
import { type ForeignLibrary, foreignSignature } from '../foreign-library.ts';

export const MEMORY_SIGNATURES = {
	process_vm_readv: foreignSignature('int64', 'int32', 'pointer', 'uint64', 'pointer', 'uint64', 'uint64'),
};

/** Reads at most as many bytes at a time as its buffer has. */
export class ProcessMemory {
	readonly #library: ForeignLibrary<keyof typeof MEMORY_SIGNATURES>;
	/** The two `iovec`s for `process_vm_readv`: the destination, which is `#found`, and the source. */
	readonly #vectors = Buffer.allocUnsafeSlow(32);
	readonly #vectorsPointer: bigint;
	readonly #found: Buffer;
	readonly #foundPointer: bigint;

	constructor(library: ForeignLibrary<keyof typeof MEMORY_SIGNATURES>, maxBytes: number) {
		this.#library = library;
		this.#found = Buffer.allocUnsafeSlow(maxBytes);
		this.#vectorsPointer = library.addressOf(this.#vectors);
		this.#foundPointer = library.addressOf(this.#found);
	}

	/** Returns as many bytes as could be read. The result is valid until the next call. */
	read(address: bigint, length: number): Buffer {
		const vectors = this.#vectors;
		vectors.writeBigUInt64LE(this.#foundPointer, 0);
		vectors.writeBigUInt64LE(BigInt(length), 8);
		vectors.writeBigUInt64LE(address, 16);
		vectors.writeBigUInt64LE(BigInt(length), 24);
		const target = this.#vectorsPointer;
		const count = Number(this.#library.functions.process_vm_readv(process.pid, target, 1n, target + 16n, 1n, 0n));
		return this.#found.subarray(0, Math.max(0, count));
	}
}
