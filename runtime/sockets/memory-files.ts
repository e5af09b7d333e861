/**
 * Files that exist only in memory (`memfd_create`). The kernel can send their contents without copying them. Descriptors belong
 * to the process: all threads can read a file, whichever made it.
 */
import { writeSync } from 'node:fs';
import { type SystemCalls, systemCalls } from './file-calls.ts';
import { foreignFunctions } from './foreign-functions.ts';

/** Bytes of a page, the unit in which the system gives and takes memory. */
export const PAGE = 4096;

/** Flag of memfd_create: child processes do not inherit the descriptor. */
const MFD_CLOEXEC = 1;
/** Advice to madvise: the pages are released, and read as zeros from then on. */
const MADV_DONTNEED = 4;

/** The calls. They never throw. */
export interface MemoryFiles {
	readonly calls: SystemCalls;
	/** Creates a file with these bytes. Returns its descriptor; −1 on failure. */
	make(pieces: Iterable<Uint8Array>): number;
	close(descriptor: number): void;
	/** Returns the offset of the memory within its first page. */
	behindPage(memory: Uint8Array): number;
	/**
	 * Releases whole pages of private memory, whose contents are lost. The caller holds the lock of that memory, and nobody reads
	 * these pages before they are written again. Returns false if the pages stay. test/long/cache-filed.test.ts proves it for
	 * the response cache: three threads read, store and evict at the ceiling, every byte is compared, and without this the
	 * ceiling would not hold.
	 */
	giveBack(memory: Uint8Array, offset: number, length: number): boolean;
}

/** Loads the calls; undefined where they do not exist, and with `node` I/O. */
export function memoryFiles(): MemoryFiles | undefined {
	try {
		return load();
	} catch {
		// A libc without the functions.
		return undefined;
	}
}

function load(): MemoryFiles | undefined {
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
	const name = Buffer.allocUnsafeSlow(16).fill(0);
	name.write('svc-cache', 'latin1');
	return {
		calls,
		make(pieces) {
			const file = create(ffi.getRawPointer(name), MFD_CLOEXEC);
			if (file < 0) return -1;
			try {
				let at = 0;
				for (const piece of pieces) {
					if (writeSync(file, piece, 0, piece.byteLength, at) !== piece.byteLength) throw new Error('It is not whole.');
					at += piece.byteLength;
				}
				return file;
			} catch {
				close(file);
				return -1;
			}
		},
		close: descriptor => void close(descriptor),
		behindPage: memory => Number(ffi.getRawPointer(memory) % BigInt(PAGE)),
		giveBack: (memory, offset, length) =>
			advise(ffi.getRawPointer(memory) + BigInt(offset), BigInt(length), MADV_DONTNEED) === 0,
	};
}
