/**
 * Linux file functions that Node lacks. Sending a file to a socket inside the kernel costs half as much as reading and writing
 * it. Opening a path only if it contains no symbolic links makes it unnecessary to check afterwards which file was opened. The
 * functions are called through `node:ffi`; where they are not available, callers use Node's functions. A call uses its
 * descriptors only until it returns.
 */

import type { FileIdentity } from './file-identity.ts';
import { foreignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';
import { uncheckedFunctionsOf } from './unchecked-functions.ts';

/** The file functions. They never throw. They block only while reading bytes that are not in the page cache. */
export interface SystemCalls {
	/** Sends bytes of a file to a socket. Returns their number, or −1 if the socket is full or the system does not support it. */
	sendFile(socket: number, file: number, offset: number, length: number): number;
	/** Reports whether the byte at an offset is in the page cache. Returns false if the file system cannot tell. */
	isInMemory(file: number, offset: number): boolean;
	/**
	 * Opens `path` below `root` for reading if neither contains a symbolic link. Returns a descriptor, or −1 on failure or if the
	 * path is not ASCII or not normalized. Also opens folders, and opens FIFOs and devices without blocking, so callers must check
	 * `fileIdentity`. The descriptor must be closed with `close`: Node's own function warns about descriptors that it has not
	 * opened.
	 */
	openWithoutLinks(root: string, path: string): number;
	/** Returns the metadata of an open file, or undefined if not available. */
	fileIdentity(descriptor: number): FileIdentity | undefined;
	/**
	 * Reads from the file's current position into the memory at an address. Returns the number of bytes, 0 at the end, −1 on
	 * failure.
	 */
	read(descriptor: number, address: bigint, length: number): number;
	/** Returns the address of memory outside the heap. */
	addressOf(memory: Buffer): bigint;
	close(descriptor: number): void;
}

type BigIntCall = (...values: (number | bigint)[]) => bigint;
type NumberCall = (...values: (number | bigint)[]) => number;

/** Flags of `openat2`: O_NONBLOCK, O_NOCTTY and O_CLOEXEC. They have the same values on all architectures that Node supports. */
const OPEN_FLAGS = 0o4000n | 0o400n | 0o2000000n;
const RESOLVE_NO_SYMLINKS = 4n;
/** System call number of `openat2`, which has no libc function. The number is the same on all architectures. */
const OPENAT2_NUMBER = 437;
const AT_FDCWD = -100;
const RWF_NOWAIT = 8;
/**
 * Arguments of `statx`: an empty path stands for the file of the descriptor, and the mask selects the fields that `stat` returns.
 */
const AT_EMPTY_PATH = 0x1000;
const STATX_BASIC_STATS = 0x7ff;
/** Offset of the result of `statx` within the block of memory that is used for calls. */
const METADATA_OFFSET = 64;
/** Offset of a path within the block of memory that is used for calls. */
const PATH_OFFSET = METADATA_OFFSET + 256;
/** Maximum bytes of a path on Linux. */
const MAX_PATH_BYTES = 4095;
const TWO_POW_32 = 2 ** 32;

/** Loads the functions. Returns undefined if they are not available. */
export function systemCalls(): SystemCalls | undefined {
	if (process.platform !== 'linux' || !isDirectIo()) return undefined;
	try {
		return loadSystemCalls();
	} catch {
		// This Node has no `node:ffi`, or this libc lacks the functions.
		return undefined;
	}
}

function loadSystemCalls(): SystemCalls | undefined {
	const ffi = foreignFunctions();
	if (ffi === undefined) return undefined;
	const functions = uncheckedFunctionsOf(ffi, {
		sendfile: { return: 'int64', arguments: ['int32', 'int32', 'pointer', 'uint64'] },
		preadv2: { return: 'int64', arguments: ['int32', 'pointer', 'int32', 'int64', 'int32'] },
		close: { return: 'int32', arguments: ['int32'] },
		read: { return: 'int32', arguments: ['int32', 'pointer', 'int32'] },
		statx: { return: 'int32', arguments: ['int32', 'pointer', 'int32', 'uint32', 'pointer'] },
		syscall: { return: 'int32', arguments: ['int32', 'int32', 'pointer', 'pointer', 'int32'] },
	});
	const sendfile = functions.sendfile as BigIntCall;
	const preadv2 = functions.preadv2 as BigIntCall;
	const read = functions.read as NumberCall;
	const statx = functions.statx as NumberCall;
	const syscall = functions.syscall as NumberCall;
	const { close } = functions;

	// One block outside the heap, at a fixed address. It holds an offset, an iovec with its one-byte buffer, the arguments of
	// openat2, metadata, and a path.
	const memory = Buffer.allocUnsafeSlow(PATH_OFFSET + MAX_PATH_BYTES + 1).fill(0);
	const memoryAddress = ffi.getRawPointer(memory);
	const iovecAddress = memoryAddress + 8n;
	const openHowAddress = memoryAddress + 32n;
	const metadataAddress = memoryAddress + BigInt(METADATA_OFFSET);
	const pathAddress = memoryAddress + BigInt(PATH_OFFSET);
	/** Address of a byte that is always 0, which is an empty path. */
	const emptyPathAddress = memoryAddress + 56n;
	memory.writeBigUInt64LE(memoryAddress + 24n, 8);
	memory.writeBigUInt64LE(1n, 16);
	memory.writeBigUInt64LE(OPEN_FLAGS, 32);
	memory.writeBigUInt64LE(RESOLVE_NO_SYMLINKS, 48);
	const offsetArgument = new BigInt64Array(memory.buffer, memory.byteOffset, 1);
	const metadataWords = new Int32Array(memory.buffer, memory.byteOffset + METADATA_OFFSET, 64);

	const readUint32 = (offset: number): number => metadataWords[offset >> 2]! >>> 0;
	/** Returns the signed 64-bit number at an offset. */
	const readInt64 = (offset: number): number => metadataWords[(offset >> 2) + 1]! * TWO_POW_32 + readUint32(offset);

	/**
	 * The root whose path is currently in `memory`. `rootLength` is the length of that path in bytes; −1 if the root cannot be used.
	 */
	let currentRoot: string | undefined;
	let rootLength = -1;

	const calls: SystemCalls = {
		sendFile(socket, file, offset, length) {
			offsetArgument[0] = BigInt(offset);
			return Number(sendfile(socket, file, memoryAddress, BigInt(length)));
		},
		isInMemory: (file, offset) => preadv2(file, iovecAddress, 1, BigInt(offset), RWF_NOWAIT) === 1n,
		openWithoutLinks(newRoot, path) {
			if (newRoot !== currentRoot) {
				currentRoot = newRoot;
				rootLength = newRoot === '/' ? 0 : writePath(newRoot, memory, PATH_OFFSET);
			}
			if (rootLength === -1) return -1;
			const length = writePath(path, memory, PATH_OFFSET + rootLength);
			if (length === -1) return -1;
			memory[PATH_OFFSET + rootLength + length] = 0;
			return syscall(OPENAT2_NUMBER, AT_FDCWD, pathAddress, openHowAddress, 24);
		},
		fileIdentity(descriptor) {
			if (statx(descriptor, emptyPathAddress, AT_EMPTY_PATH, STATX_BASIC_STATS, metadataAddress) !== 0)
				return undefined;
			return {
				mode: readUint32(28) & 0xffff,
				size: readInt64(40),
				seconds: readInt64(112),
				nanoseconds: readUint32(120),
				changeSeconds: readInt64(96),
				changeNanoseconds: readUint32(104),
				device: readUint32(136) * TWO_POW_32 + readUint32(140),
				inodeHigh: readUint32(36),
				inodeLow: readUint32(32),
			};
		},
		read,
		addressOf: bytes => ffi.getRawPointer(bytes),
		close: descriptor => void close(descriptor),
	};
	// To check that the functions work as expected, calls with an invalid descriptor must fail in the expected way.
	const failsAsExpected =
		calls.sendFile(-1, -1, 0, 1) === -1 && !calls.isInMemory(-1, 0) && calls.fileIdentity(-1) === undefined;
	return failsAsExpected ? calls : undefined;
}

/**
 * Writes an ASCII path to memory and returns its length. Returns −1 if it is not ASCII, does not start with a slash, is not
 * normalized (`//`, `/./`), or is too long: a truncated path would name another file.
 */
function writePath(path: string, memory: Buffer, at: number): number {
	const length = path.length;
	if (length === 0 || at + length >= memory.length || path.charCodeAt(0) !== SLASH) return -1;
	let previousCode = 0;
	for (let i = 0; i < length; i++) {
		const code = path.charCodeAt(i);
		// A dot after a slash may also begin an ordinary hidden name, but hidden files are rarely requested, so they are refused as
		// well.
		if (code === 0 || code > 0x7e || (previousCode === SLASH && (code === SLASH || code === DOT))) return -1;
		memory[at + i] = code;
		previousCode = code;
	}
	return previousCode === SLASH ? -1 : length;
}

const SLASH = 47;
const DOT = 46;
