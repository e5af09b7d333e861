/**
 * What Linux can do with files and Node has no function for. Bytes that go from a file to a socket without passing through
 * this program cost half of what they cost otherwise; and a path that is opened only if no link stands in it needs no second
 * look at where it led. Called by `node:ffi`: where that is missing, as on other systems, callers do without. A call uses the
 * descriptors that it is given until it returns, and no longer.
 */
import { constants } from 'node:fs';
import { foreignFunctions } from '../foreign-functions.ts';

/** The calls. They never throw and never wait, but for `sendFile` on bytes that are not in memory. */
export interface SystemCalls {
	/** Moves bytes of a file to a socket; how many, −1 when it takes none now or cannot be written this way. */
	sendFile(socket: number, file: number, offset: number, length: number): number;
	/** Whether the byte at an offset is in memory, so that nobody waits for a disk. False where the file system cannot say. */
	isInMemory(file: number, offset: number): boolean;
	/**
	 * Opens a regular file for reading by an absolute path of which no element is a symbolic link; a descriptor, −1 when that
	 * cannot be done. It is looked at first: opening a device or a fifo can already have an effect. `close` has to close it: Node's own warns of each descriptor that it has not opened.
	 */
	openWithoutLinks(path: string): number;
	close(descriptor: number): void;
}

type Call = (...values: (number | bigint)[]) => bigint;

/** Flags of `openat2`: O_NONBLOCK, O_NOCTTY, O_CLOEXEC; RESOLVE_NO_SYMLINKS. The same on every machine that Node runs on. */
const OPEN_FLAGS = 0o4000n | 0o400n | 0o2000000n;
const RESOLVE_NO_SYMLINKS = 4n;
/** Number of `openat2`, which libc has no function for: the same on every machine too. */
const OPENAT2 = 437n;
const AT_FDCWD = -100n;
const RWF_NOWAIT = 8;
/** What `statx` is asked for, and where it stands in the answer. */
const AT_SYMLINK_NOFOLLOW = 0x100;
const STATX_TYPE = 1;
const MODE = 28;
/** Where the answer of `statx` stands in the memory of the calls, and where a path does. */
const FACTS = 64;
const PATH = FACTS + 256;
/** Bytes of a path, as Linux takes it. */
const LONGEST_PATH = 4095;

/** Loads the calls; undefined where there are none. */
export function systemCalls(): SystemCalls | undefined {
	if (process.platform !== 'linux') return undefined;
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
	const { functions } = ffi.dlopen(null, {
		sendfile: { return: 'int64', arguments: ['int32', 'int32', 'pointer', 'uint64'] },
		preadv2: { return: 'int64', arguments: ['int32', 'pointer', 'int32', 'int64', 'int32'] },
		close: { return: 'int32', arguments: ['int32'] },
		statx: { return: 'int32', arguments: ['int32', 'pointer', 'int32', 'uint32', 'pointer'] },
		syscall: { return: 'int64', arguments: ['int64', 'int64', 'pointer', 'pointer', 'uint64'] },
	});
	const sendfile = functions.sendfile as Call;
	const preadv2 = functions.preadv2 as Call;
	const syscall = functions.syscall as Call;
	const { close, statx } = functions;

	// One block outside the heap, whose place never changes: an offset, an iovec with its byte, how to open, what is known of a file, its path.
	const memory = Buffer.allocUnsafeSlow(PATH + LONGEST_PATH + 1).fill(0);
	const start = ffi.getRawPointer(memory);
	const iovec = start + 8n;
	const how = start + 32n;
	const facts = start + BigInt(FACTS);
	const name = start + BigInt(PATH);
	memory.writeBigUInt64LE(start + 24n, 8);
	memory.writeBigUInt64LE(1n, 16);
	memory.writeBigUInt64LE(OPEN_FLAGS, 32);
	memory.writeBigUInt64LE(RESOLVE_NO_SYMLINKS, 48);
	const offsets = new BigInt64Array(memory.buffer, memory.byteOffset, 1);
	const modes = new Uint16Array(memory.buffer, memory.byteOffset + FACTS + MODE, 1);

	const calls: SystemCalls = {
		sendFile(socket, file, offset, length) {
			offsets[0] = BigInt(offset);
			return Number(sendfile(socket, file, start, BigInt(length)));
		},
		isInMemory: (file, offset) => preadv2(file, iovec, 1, BigInt(offset), RWF_NOWAIT) === 1n,
		openWithoutLinks(path) {
			// A name that is cut, at a NUL or at its end, would be another's. A character takes three bytes at most.
			if (path.length > LONGEST_PATH / 3 || path.includes('\0')) return -1;
			memory[PATH + memory.write(path, PATH)] = 0;
			if (statx(Number(AT_FDCWD), name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, facts) !== 0) return -1;
			if ((modes[0]! & constants.S_IFMT) !== constants.S_IFREG) return -1;
			return Number(syscall(OPENAT2, AT_FDCWD, name, how, 24n));
		},
		close: descriptor => void close(descriptor),
	};
	// What is called on a descriptor that is none must fail, and not in another way.
	return calls.sendFile(-1, -1, 0, 1) === -1 && !calls.isInMemory(-1, 0) ? calls : undefined;
}
