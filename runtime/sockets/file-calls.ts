/**
 * What Linux can do with files and Node has no function for. Bytes that go from a file to a socket without passing through
 * this program cost half of what they cost otherwise; and a path that is opened only if no link stands in it needs no second
 * look at where it led. Called by `node:ffi`: where that is missing, as on other systems, callers do without. A call uses the
 * descriptors that it is given until it returns, and no longer.
 */

import type { FileIdentity } from './file-identity.ts';
import { foreignFunctions, foreignFunctionsOf } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';

/** The calls. They never throw and never wait, but for reading bytes that are not in memory. */
export interface SystemCalls {
	/** Moves bytes of a file to a socket; how many, −1 when it takes none now or cannot be written this way. */
	sendFile(socket: number, file: number, offset: number, length: number): number;
	/** Whether the byte at an offset is in memory, so that nobody waits for a disk. False where the file system cannot say. */
	isInMemory(file: number, offset: number): boolean;
	/**
	 * Opens for reading what is at `path` below `root`, with no element of either a symbolic link; a descriptor, −1 when that
	 * cannot be done, or when the path is not ASCII or not the shortest way to say it. A folder is opened too, and a fifo or a
	 * device without waiting: `identity` tells. `close` has to close it: Node's own warns of each descriptor that it has not opened.
	 */
	openWithoutLinks(root: string, path: string): number;
	/** What is said of an open file; undefined when that cannot be told. */
	identity(descriptor: number): FileIdentity | undefined;
	/** Reads from where the descriptor stands to an address; how many bytes, 0 at the end, −1 when that fails. */
	read(descriptor: number, address: bigint, length: number): number;
	/** Where memory outside the heap begins. */
	addressOf(memory: Buffer): bigint;
	close(descriptor: number): void;
}

type Call = (...values: (number | bigint)[]) => bigint;
type ShortCall = (...values: (number | bigint)[]) => number;

/** Flags of `openat2`: O_NONBLOCK, O_NOCTTY, O_CLOEXEC; RESOLVE_NO_SYMLINKS. The same on every machine that Node runs on. */
const OPEN_FLAGS = 0o4000n | 0o400n | 0o2000000n;
const RESOLVE_NO_SYMLINKS = 4n;
/** Number of `openat2`, which libc has no function for: the same on every machine too. */
const OPENAT2 = 437;
const AT_FDCWD = -100;
const RWF_NOWAIT = 8;
/** What `statx` is asked for: of an open file, all that `stat` tells. */
const AT_EMPTY_PATH = 0x1000;
const STATX_BASIC_STATS = 0x7ff;
/** Where the answer of `statx` stands in the memory of the calls, and where a path does. */
const FACTS = 64;
const PATH = FACTS + 256;
/** Bytes of a path, as Linux takes it. */
const LONGEST_PATH = 4095;
const HALF = 2 ** 32;

/** Loads the calls; undefined where there are none. */
export function systemCalls(): SystemCalls | undefined {
	if (process.platform !== 'linux' || !isDirectIo()) return undefined;
	try {
		return load();
	} catch {
		// A Node without the module, or a libc without the function.
		return undefined;
	}
}

function load(): SystemCalls | undefined {
	const ffi = foreignFunctions();
	if (ffi === undefined) return undefined;
	const functions = foreignFunctionsOf(ffi, {
		sendfile: { return: 'int64', arguments: ['int32', 'int32', 'pointer', 'uint64'] },
		preadv2: { return: 'int64', arguments: ['int32', 'pointer', 'int32', 'int64', 'int32'] },
		close: { return: 'int32', arguments: ['int32'] },
		read: { return: 'int32', arguments: ['int32', 'pointer', 'int32'] },
		statx: { return: 'int32', arguments: ['int32', 'pointer', 'int32', 'uint32', 'pointer'] },
		syscall: { return: 'int32', arguments: ['int32', 'int32', 'pointer', 'pointer', 'int32'] },
	});
	const sendfile = functions.sendfile as Call;
	const preadv2 = functions.preadv2 as Call;
	const read = functions.read as ShortCall;
	const statx = functions.statx as ShortCall;
	const syscall = functions.syscall as ShortCall;
	const { close } = functions;

	// One block outside the heap, whose place never changes: an offset, an iovec with its byte, how to open, what is known of a file, its path.
	const memory = Buffer.allocUnsafeSlow(PATH + LONGEST_PATH + 1).fill(0);
	const start = ffi.getRawPointer(memory);
	const iovec = start + 8n;
	const how = start + 32n;
	const facts = start + BigInt(FACTS);
	const name = start + BigInt(PATH);
	/** A byte that is always 0. */
	const noName = start + 56n;
	memory.writeBigUInt64LE(start + 24n, 8);
	memory.writeBigUInt64LE(1n, 16);
	memory.writeBigUInt64LE(OPEN_FLAGS, 32);
	memory.writeBigUInt64LE(RESOLVE_NO_SYMLINKS, 48);
	const offsets = new BigInt64Array(memory.buffer, memory.byteOffset, 1);
	const words = new Int32Array(memory.buffer, memory.byteOffset + FACTS, 64);

	const word = (offset: number): number => words[offset >> 2]! >>> 0;
	/** Eight bytes, the upper half with its sign. */
	const long = (offset: number): number => words[(offset >> 2) + 1]! * HALF + word(offset);

	/** The root that stands in the memory, and its bytes; −1 where it is none that can stand there. */
	let root: string | undefined;
	let rootLength = -1;

	const calls: SystemCalls = {
		sendFile(socket, file, offset, length) {
			offsets[0] = BigInt(offset);
			return Number(sendfile(socket, file, start, BigInt(length)));
		},
		isInMemory: (file, offset) => preadv2(file, iovec, 1, BigInt(offset), RWF_NOWAIT) === 1n,
		openWithoutLinks(below, path) {
			if (below !== root) {
				root = below;
				rootLength = below === '/' ? 0 : writeTidy(below, memory, PATH);
			}
			if (rootLength === -1) return -1;
			const length = writeTidy(path, memory, PATH + rootLength);
			if (length === -1) return -1;
			memory[PATH + rootLength + length] = 0;
			return syscall(OPENAT2, AT_FDCWD, name, how, 24);
		},
		identity(descriptor) {
			if (statx(descriptor, noName, AT_EMPTY_PATH, STATX_BASIC_STATS, facts) !== 0) return undefined;
			return {
				mode: word(28) & 0xffff,
				size: long(40),
				seconds: long(112),
				nanoseconds: word(120),
				changeSeconds: long(96),
				changeNanoseconds: word(104),
				device: word(136) * HALF + word(140),
				inodeHigh: word(36),
				inodeLow: word(32),
			};
		},
		read,
		addressOf: bytes => ffi.getRawPointer(bytes),
		close: descriptor => void close(descriptor),
	};
	// What is called on a descriptor that is none must fail, and not in another way.
	const fails = calls.sendFile(-1, -1, 0, 1) === -1 && !calls.isInMemory(-1, 0) && calls.identity(-1) === undefined;
	return fails ? calls : undefined;
}

/**
 * Writes a path of ASCII into memory, and says how many bytes. −1 when it is no such path, does not begin with a slash, or says
 * what a shorter one would say, as `//` and `/./` do, or is cut at its end: a name that is cut would be another's.
 */
function writeTidy(path: string, memory: Buffer, at: number): number {
	const length = path.length;
	if (length === 0 || at + length >= memory.length || path.charCodeAt(0) !== SLASH) return -1;
	let last = 0;
	for (let i = 0; i < length; i++) {
		const code = path.charCodeAt(i);
		// A dot after a slash may be a name of its own, and mostly is none that is asked for.
		if (code === 0 || code > 0x7e || (last === SLASH && (code === SLASH || code === DOT))) return -1;
		memory[at + i] = code;
		last = code;
	}
	return last === SLASH ? -1 : length;
}

const SLASH = 47;
const DOT = 46;
