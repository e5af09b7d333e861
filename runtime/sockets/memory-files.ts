/**
 * In-memory files (`memfd_create`), which the kernel can send to a socket without copying. Their descriptors belong to the
 * process, so all threads can read a file. They need `node:ffi`.
 */
import { writeSync } from 'node:fs';
import { type SystemCalls, systemCalls } from './file-calls.ts';
import { foreignFunctions } from './foreign-functions.ts';

/** Page size in bytes: the unit in which the system allocates memory. */
export const PAGE_BYTES = 4096;

/** Flag of memfd_create: child processes do not inherit the descriptor. */
const MFD_CLOEXEC = 1;
/** Advice of madvise: the pages are released, and read as zeros from then on. */
const MADV_DONTNEED = 4;

/** Functions for in-memory files. They never throw. */
export interface MemoryFiles {
	readonly calls: SystemCalls;
	/** Creates a file that contains `pieces`. Returns its descriptor, or −1 on failure. */
	create(pieces: Iterable<Uint8Array>): number;
	close(descriptor: number): void;
	/** Returns the offset in bytes of a piece of memory from the start of its page. */
	pageOffset(memory: Uint8Array): number;
	/** Gives whole pages of private memory, starting at an offset, back to the system. Returns false on failure. */
	giveBack(memory: Uint8Array, offset: number, length: number): boolean;
}

/** Loads the functions. Returns undefined if they are not available. */
export function memoryFiles(): MemoryFiles | undefined {
	try {
		return loadMemoryFiles();
	} catch {
		// This libc lacks the functions.
		return undefined;
	}
}

function loadMemoryFiles(): MemoryFiles | undefined {
	const calls = systemCalls();
	const ffi = foreignFunctions();
	if (calls === undefined || ffi === undefined) return undefined;
	const { functions } = ffi.dlopen(null, {
		memfd_create: { return: 'int32', arguments: ['pointer', 'uint32'] },
		madvise: { return: 'int32', arguments: ['pointer', 'uint64', 'int32'] },
		close: { return: 'int32', arguments: ['int32'] },
	});
	const create = functions.memfd_create as (name: bigint, flags: number) => number;
	const advise = functions.madvise as (address: bigint, length: bigint, advice: number) => number;
	const close = functions.close as (descriptor: number) => number;
	const fileName = Buffer.allocUnsafeSlow(16).fill(0);
	fileName.write('svc-cache', 'latin1');
	return {
		calls,
		create(pieces) {
			const descriptor = create(ffi.getRawPointer(fileName), MFD_CLOEXEC);
			if (descriptor < 0) return -1;
			try {
				let at = 0;
				for (const piece of pieces) {
					if (writeSync(descriptor, piece, 0, piece.byteLength, at) !== piece.byteLength)
						throw new Error('The write was incomplete.');
					at += piece.byteLength;
				}
				return descriptor;
			} catch {
				close(descriptor);
				return -1;
			}
		},
		close: descriptor => void close(descriptor),
		pageOffset: memory => Number(ffi.getRawPointer(memory) % BigInt(PAGE_BYTES)),
		giveBack: (memory, offset, length) =>
			advise(ffi.getRawPointer(memory) + BigInt(offset), BigInt(length), MADV_DONTNEED) === 0,
	};
}
