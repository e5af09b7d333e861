/**
 * Reads and writes sockets without Node's overhead for each: Node's event loop watches one `epoll` instead of every socket, asks
 * it once per turn which of them are readable, and reads them with the C library's `read`. Node's work around each read and write
 * (a handle's callback, its scope, the check of its queues) takes as long as everything that an HTTP server does for a small
 * request.
 *
 * Called through `node:ffi`, on Linux. If something is missing, or fails the self-test at the start of a thread, sockets are
 * handled by Node as usual.
 */
import { foreignFunctions, loadForeignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';
import { uncheckedFunctionsOf } from './unchecked-functions.ts';

/** A readable socket. */
export interface PolledSocket {
	/**
	 * Data has arrived since the last call; with `hasEnd` also the end of the other side, or an error; with `hasMark`, a read may
	 * return less than is available. Edge-triggered: there is no further call for unread data.
	 */
	readable(hasEnd: boolean, hasMark: boolean): void;
	/** Set by the poller, to distinguish the socket from earlier ones with the same descriptor. */
	pollTurn: number;
}

type Call = (...values: (number | bigint)[]) => number;

/** A handle of Node. */
interface PipeHandle {
	onread: () => void;
	readonly fd: number;
	open(descriptor: number): number;
	useUserBuffer(memory: Uint8Array): void;
	readStart(): number;
	unref(): void;
	close(): void;
}

interface PipeBinding {
	readonly Pipe: new (kind: number) => PipeHandle;
	readonly constants: { readonly SOCKET: number };
}

const EPOLL_CTL_ADD = 1;
const EPOLL_CTL_DEL = 2;
const EPOLL_CTL_MOD = 3;
const EPOLLIN = 1;
/** EPOLLRDHUP, EPOLLHUP, EPOLLERR. */
const ENDED = 0x2018;
/** EPOLLPRI: a read stops at the mark of urgent data. */
const MARKED = 2;
/** With EPOLLRDHUP and EPOLLET: each arrival is reported once, so that the system need not check each socket twice. */
const ARRIVALS = EPOLLIN | MARKED | 0x2000 | (1 << 31);
const CLOEXEC = 0o2000000;
const NONBLOCK = 0o4000;
/** Result of `read` if nothing is available now: EAGAIN. */
export const NOTHING = -11;
/** Maximum sockets reported at once; the others follow. */
const MAX_EVENTS = 256;
/** Sockets reported in one turn after which the rest of the event loop gets its own. */
const ENOUGH_EVENTS = 64;
/** Maximum bytes of text written from the poller's memory. */
const MAX_TEXT = 65_536;
/** Maximum descriptor polled; higher ones are left to Node. */
const MAX_DESCRIPTORS = 1 << 20;
/** Size in 32-bit words of `epoll_event`, which is packed on one architecture only, and the position of its data. */
const EVENT_WORDS = process.arch === 'x64' ? 3 : 4;
const NUMBER_WORD = process.arch === 'x64' ? 1 : 2;

/** The poller of one thread. */
export class SocketPoller {
	readonly #read: Call;
	readonly #write: Call;
	readonly #wait: Call;
	readonly #controls: Call;
	readonly #errno: () => number;
	readonly #addressOf: (memory: Uint8Array) => bigint;
	/** Memory for the kernel: an event to add, then the events of a turn. */
	readonly #words: Int32Array;
	readonly #eventAt: bigint;
	readonly #eventsAt: bigint;
	readonly #text: Buffer;
	readonly #textAt: bigint;
	readonly #poll: number;
	/** By descriptor. */
	readonly #sockets: (PolledSocket | undefined)[] = [];
	#turn = 1;
	/** Closing them closes the descriptors, even if the thread is ended from outside. */
	readonly #handles: readonly PipeHandle[];
	#proven = false;

	/** Opens a poller; undefined if not available. It must not be used before it is `proven`. */
	static open(): SocketPoller | undefined {
		if (process.platform !== 'linux' || (process.arch !== 'x64' && process.arch !== 'arm64')) return undefined;
		try {
			return new SocketPoller();
		} catch {
			// A Node without the module, a libc without a function, or no free descriptor.
			return undefined;
		}
	}

	/** @throws Error if it cannot be opened */
	private constructor() {
		const ffi = foreignFunctions();
		const { binding } = process as unknown as { binding(name: string): unknown };
		const pipes = binding.call(process, 'pipe_wrap') as PipeBinding;
		if (ffi === undefined || typeof pipes.Pipe !== 'function') throw new Error('not here');
		const hot = uncheckedFunctionsOf(ffi, {
			epoll_wait: { return: 'int32', arguments: ['int32', 'pointer', 'int32', 'int32'] },
			read: { return: 'int32', arguments: ['int32', 'pointer', 'int32'] },
			write: { return: 'int32', arguments: ['int32', 'pointer', 'int32'] },
		});
		const functions = loadForeignFunctions(ffi, {
			epoll_create1: { return: 'int32', arguments: ['int32'] },
			epoll_ctl: { return: 'int32', arguments: ['int32', 'int32', 'int32', 'pointer'] },
			eventfd: { return: 'int32', arguments: ['uint32', 'int32'] },
			close: { return: 'int32', arguments: ['int32'] },
			uv_backend_fd: { return: 'int32', arguments: ['pointer'] },
			__errno_location: { return: 'pointer', arguments: [] },
		});
		this.#read = hot.read as Call;
		this.#write = hot.write as Call;
		this.#wait = hot.epoll_wait as Call;
		this.#controls = functions.epoll_ctl as Call;
		this.#addressOf = memory => ffi.getRawPointer(memory);
		const errnoAt = (functions.__errno_location as unknown as () => bigint)();
		this.#errno = () => ffi.getInt32(errnoAt);

		const memory = Buffer.allocUnsafeSlow((MAX_EVENTS + 1) * EVENT_WORDS * 4).fill(0);
		this.#words = new Int32Array(memory.buffer, 0, memory.length / 4);
		this.#eventAt = ffi.getRawPointer(memory);
		this.#eventsAt = this.#eventAt + BigInt(EVENT_WORDS * 4);
		this.#text = Buffer.allocUnsafeSlow(MAX_TEXT);
		this.#textAt = ffi.getRawPointer(this.#text);

		const handles: PipeHandle[] = [];
		this.#handles = handles;
		const owned = (descriptor: number): PipeHandle => {
			const pipe = new pipes.Pipe(pipes.constants.SOCKET);
			handles.push(pipe);
			pipe.unref();
			if (descriptor >= 0 && pipe.open(descriptor) === 0) return pipe;
			functions.close(descriptor);
			throw new Error('no descriptor');
		};
		try {
			this.#poll = (functions.epoll_create1 as Call)(CLOEXEC);
			owned(this.#poll);
			// The event loop watches the poller under the number of another descriptor that is never readable: it tries to
			// read that
			// one, finds nothing, and calls back.
			const told = owned((functions.eventfd as Call)(0, CLOEXEC | NONBLOCK));
			told.onread = () => this.#turnOver();
			told.useUserBuffer(Buffer.allocUnsafeSlow(8));
			if (told.readStart() !== 0) throw new Error('not read');
			const loop = (functions.uv_backend_fd as Call)(ffi.getCurrentEventLoop());
			if (!this.#control(loop, EPOLL_CTL_ADD, this.#poll, EPOLLIN, told.fd, 0)) throw new Error('not watched');
			// A first event, from a descriptor that is always readable: when it arrives, everything works.
			const probe = owned((functions.eventfd as Call)(1, CLOEXEC | NONBLOCK));
			const descriptor = probe.fd;
			const prove = (): void => {
				this.#proven = true;
				this.remove(descriptor);
				probe.close();
			};
			this.add(descriptor, { readable: prove, pollTurn: 0 });
		} catch (error) {
			this.close();
			throw error;
		}
	}

	/** Whether it has been seen to work. */
	get proven(): boolean {
		return this.#proven;
	}

	/** Closes it; the sockets that it watches are no longer read. */
	close(): void {
		this.#proven = false;
		for (const handle of this.#handles) handle.close();
	}

	/** Watches a socket until `remove` or until it is closed; returns false if that is not possible. */
	add(descriptor: number, socket: PolledSocket): boolean {
		if (descriptor < 0 || descriptor >= MAX_DESCRIPTORS) return false;
		const turn = this.#turn;
		this.#turn = (turn + 1) | 0;
		if (!this.#control(this.#poll, EPOLL_CTL_ADD, descriptor, ARRIVALS, descriptor, turn)) return false;
		while (this.#sockets.length <= descriptor) this.#sockets.push(undefined);
		this.#sockets[descriptor] = socket;
		socket.pollTurn = turn;
		return true;
	}

	/** Stops watching a socket, which must still be open. */
	remove(descriptor: number): void {
		this.#sockets[descriptor] = undefined;
		this.#controls(this.#poll, EPOLL_CTL_DEL, descriptor, this.#eventAt);
	}

	/** Reports again what a watched socket has to read. */
	tellAgain(descriptor: number, socket: PolledSocket): void {
		this.#control(this.#poll, EPOLL_CTL_MOD, descriptor, ARRIVALS, descriptor, socket.pollTurn);
	}

	/** Called for a watched socket that is being closed. */
	forget(descriptor: number): void {
		this.#sockets[descriptor] = undefined;
	}

	/** Returns the address of memory outside the heap. */
	addressOf(memory: Uint8Array): bigint {
		return this.#addressOf(memory);
	}

	/** Reads to an address; returns the number of bytes, 0 at the end, {@link NOTHING}, or an error number as used by Node. */
	read(descriptor: number, address: bigint, length: number): number {
		const count = this.#read(descriptor, address, length);
		return count >= 0 ? count : -this.#errno();
	}

	/** Writes bytes; returns how many were accepted, −1 for none, even because of an error. */
	write(descriptor: number, bytes: Uint8Array): number {
		return this.#write(descriptor, this.#addressOf(bytes), bytes.byteLength);
	}

	/** Writes Latin-1 text; returns how many bytes were accepted, −1 for none. */
	writeText(descriptor: number, text: string): number {
		const { length } = text;
		if (length > MAX_TEXT) return -1;
		this.#text.write(text, 0, 'latin1');
		return this.#write(descriptor, this.#textAt, length);
	}

	#control(poll: number, what: number, descriptor: number, events: number, number: number, turn: number): boolean {
		const words = this.#words;
		words[0] = events;
		words[NUMBER_WORD] = number;
		words[NUMBER_WORD + 1] = turn;
		return this.#controls(poll, what, descriptor, this.#eventAt) === 0;
	}

	#turnOver(): void {
		let told = 0;
		for (;;) {
			const count = this.#wait(this.#poll, this.#eventsAt, MAX_EVENTS, 0);
			this.#tell(count);
			told += count;
			// After a single event, there is usually no next one yet; after several, asking again is cheaper than another turn.
			if (count < 2 || told >= ENOUGH_EVENTS) return;
		}
	}

	#tell(count: number): void {
		const words = this.#words;
		for (let i = 1; i <= count; i++) {
			const at = i * EVENT_WORDS;
			const socket = this.#sockets[words[at + NUMBER_WORD]!];
			// The socket has been closed, and its descriptor may have been reused.
			if (socket === undefined || socket.pollTurn !== words[at + NUMBER_WORD + 1]) continue;
			try {
				const events = words[at]!;
				socket.readable((events & ENDED) !== 0, (events & MARKED) !== 0);
			} catch (error) {
				// The events of the others are not reported again, so they are handled first.
				queueMicrotask(() => {
					throw error;
				});
			}
		}
	}
}

let opened: SocketPoller | undefined;
let tried = false;
let isOff = false;

/** Returns the poller of this thread, once it is proven; the first call opens it. */
export function threadPoller(): SocketPoller | undefined {
	if (!isDirectIo()) return undefined;
	if (!tried) {
		tried = true;
		opened = SocketPoller.open();
	}
	return opened?.proven && !isOff ? opened : undefined;
}

/** For tests of both implementations: false leaves new sockets to Node. */
export function usePoller(on: boolean): void {
	isOff = !on;
}
