/**
 * Files that are in memory only (`memfd_create`): what stands in one the system can move to a socket without copying it.
 * Descriptors are the process's: whichever thread made a file, all read it. Called by `node:ffi`; without it there are none.
 */
import { writeSync } from 'node:fs';
import { type SystemCalls, systemCalls } from './file-calls.ts';
import { foreignFunctions } from './foreign-functions.ts';

/** Bytes of a page, at which the system gives and takes memory. */
export const PAGE = 4096;

/** Flag of memfd_create: no child process gets it. And of madvise: what stands there is not needed, read as 0 from now on. */
const MFD_CLOEXEC = 1;
const MADV_DONTNEED = 4;

/** The calls. They never throw. */
export interface MemoryFiles {
	readonly calls: SystemCalls;
	/** A file with these bytes; its descriptor, −1 when there can be none. */
	make(pieces: Iterable<Uint8Array>): number;
	close(descriptor: number): void;
	/** Bytes of a page that stand before the first byte of memory. */
	behindPage(memory: Uint8Array): number;
	/** Gives whole pages back that private memory has from an offset on; false when they stay. */
	giveBack(memory: Uint8Array, offset: number, length: number): boolean;
}

/** Loads them; undefined where there are none. */
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
