/**
 * Reads and writes sockets without Node's per-call overhead. Node's event loop watches a single `epoll` descriptor instead of
 * every socket. When it is readable, the poller asks it which sockets are readable, and these are read with the C library's `recv`.
 * Node's own work around each read and write (a handle's callback, its scope, the check of its queues) takes as long as
 * everything that an HTTP server does for a small request.
 *
 * Afterwards, the poller waits for the next events itself, in place of the event loop, until that has other work. Waking up in the
 * event loop takes four system calls, in the poller one: a resumed TLS handshake, which wakes up three times, costs 0.93 of the
 * CPU time.
 *
 * Uses `node:ffi`, on Linux only. If a function is missing or fails the self-test at the start of a thread, Node handles the
 * sockets as usual.
 */
import { currentEventLoop, type EventLoop } from './event-loop.ts';
import { foreignFunctions, loadForeignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';
import { uncheckedFunctionsOf } from './unchecked-functions.ts';

/** A socket that the poller watches. */
export interface PolledSocket {
	/**
	 * Called when new data has arrived. `hasEnd` is true if the other side has also closed its half, or an error has occurred.
	 * `hasUrgentMark` is true if a read may return less than is available. Reports are edge-triggered, which means that there is no
	 * further call for unread data.
	 */
	onReadable(hasEnd: boolean, hasUrgentMark: boolean): void;
	/** Set by the poller, to distinguish the socket from earlier ones that had the same descriptor. */
	registrationNumber: number;
}

type SystemCall = (...values: (number | bigint)[]) => number;

/** Observes when the poller waits in place of the event loop. Node counts this time as busy. */
export interface WaitObserver {
	/** Called before the poller waits. */
	onWait(): void;
	/** Called when it has waited, before it reports the events. */
	onWake(): void;
}

/** Node's handle of a pipe, used here to own a descriptor of the poller, whatever its kind. */
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
/** The events EPOLLRDHUP, EPOLLHUP and EPOLLERR: the peer has closed its half or the whole connection, or an error occurred. */
const END_EVENTS = 0x2018;
/** EPOLLPRI: urgent data has arrived. A read ends at its mark, although more data may follow. */
const URGENT_MARK_EVENT = 2;
/** Includes EPOLLRDHUP and EPOLLET. With the latter, the system reports each arrival once and need not check the socket again. */
const ARRIVAL_EVENTS = EPOLLIN | URGENT_MARK_EVENT | 0x2000 | (1 << 31);
const CLOEXEC = 0o2000000;
const NONBLOCK = 0o4000;
/** MSG_NOSIGNAL: no signal if the peer has closed the connection. */
const NO_SIGNAL = 0x4000;
/** Result of `read` if no data is available (EAGAIN). */
export const WOULD_BLOCK = -11;
/** Maximum number of sockets reported by one call. The next call reports the remaining ones. */
const MAX_EVENTS_PER_CALL = 256;
/** Number of sockets reported in one turn after which the event loop continues with other work. */
const MAX_TURN_EVENTS = 64;
/**
 * Number of times that the poller waits in place of the event loop before it returns to it. The event loop may have work for which
 * it would not have been woken up, such as `setImmediate` with `unref`.
 */
const MAX_OWN_WAITS = 128;
/** Maximum bytes of text that are copied to the poller's memory for one write. */
const MAX_TEXT_BYTES = 65_536;
/** Only descriptors below this number are polled. Node handles sockets with other descriptors. */
const MAX_DESCRIPTORS = 1 << 20;
/** Size in 32-bit words of `epoll_event`, which the kernel packs (without padding) only on x64. */
const EVENT_WORDS = process.arch === 'x64' ? 3 : 4;
/** Offset of the event's data in an `epoll_event`, in 32-bit words. */
const DATA_WORD = process.arch === 'x64' ? 1 : 2;

/** Milliseconds between two attempts to make the event loop watch the poller. */
const RETRY_MS = 1;

/** The poller of one thread. */
export class SocketPoller {
	readonly #recv: SystemCall;
	readonly #send: SystemCall;
	readonly #epollWait: SystemCall;
	readonly #epollCtl: SystemCall;
	readonly #errno: () => number;
	readonly #addressOf: (memory: Uint8Array) => bigint;
	/** The memory that was last passed to {@link addressOf}, and its address: usually, all connections are read into the same memory. */
	#lastMemory: Uint8Array | undefined;
	#lastMemoryAddress = 0n;
	/** Memory that the kernel reads and writes: one event to register, followed by the events of a turn. */
	readonly #eventWords: Int32Array;
	readonly #eventPointer: bigint;
	readonly #eventsPointer: bigint;
	readonly #textBuffer: Buffer;
	readonly #textBufferPointer: bigint;
	readonly #epoll: number;
	readonly #eventLoop: EventLoop;
	/** The descriptor through which the event loop watches the poller's `epoll`. */
	readonly #wakeUpDescriptor: number;
	/** True if an event of the event loop has been reported while the poller was waiting in its place. */
	#hasLoopEvents = false;
	/** The watched sockets, indexed by descriptor. */
	readonly #socketsByDescriptor: (PolledSocket | undefined)[] = [];
	#nextRegistrationNumber = 1;
	/** Node handles that own the poller's descriptors, so that Node closes them even if the thread is terminated. */
	readonly #ownerHandles: readonly PipeHandle[];
	#isProven = false;
	#isClosed = false;

	/** Opens a poller; undefined if not available. It must not be used until `isProven` is true. */
	static open(): SocketPoller | undefined {
		if (process.platform !== 'linux' || (process.arch !== 'x64' && process.arch !== 'arm64')) return undefined;
		try {
			return new SocketPoller();
		} catch {
			// Node has no `node:ffi`, the C library lacks a function, or no descriptor is free.
			return undefined;
		}
	}

	/** @throws Error if it cannot be opened */
	private constructor() {
		const ffi = foreignFunctions();
		const { binding } = process as unknown as { binding(name: string): unknown };
		const pipes = binding.call(process, 'pipe_wrap') as PipeBinding;
		if (ffi === undefined || typeof pipes.Pipe !== 'function') throw new Error('not here');
		const uncheckedFunctions = uncheckedFunctionsOf(ffi, {
			epoll_wait: { return: 'int32', arguments: ['int32', 'pointer', 'int32', 'int32'] },
			epoll_ctl: { return: 'int32', arguments: ['int32', 'int32', 'int32', 'pointer'] },
			// For sockets, the kernel takes a shorter way than for `read` and `write`, which are for files of any kind.
			recv: { return: 'int32', arguments: ['int32', 'pointer', 'int32', 'int32'] },
			send: { return: 'int32', arguments: ['int32', 'pointer', 'int32', 'int32'] },
		});
		const functions = loadForeignFunctions(ffi, {
			epoll_create1: { return: 'int32', arguments: ['int32'] },
			eventfd: { return: 'int32', arguments: ['uint32', 'int32'] },
			close: { return: 'int32', arguments: ['int32'] },
			__errno_location: { return: 'pointer', arguments: [] },
		});
		this.#recv = uncheckedFunctions.recv as SystemCall;
		this.#send = uncheckedFunctions.send as SystemCall;
		this.#epollWait = uncheckedFunctions.epoll_wait as SystemCall;
		this.#epollCtl = uncheckedFunctions.epoll_ctl as SystemCall;
		this.#addressOf = memory => ffi.getRawPointer(memory);
		const errnoPointer = (functions.__errno_location as unknown as () => bigint)();
		this.#errno = () => ffi.getInt32(errnoPointer);

		this.#eventLoop = currentEventLoop(ffi);

		const memory = Buffer.allocUnsafeSlow((MAX_EVENTS_PER_CALL + 1) * EVENT_WORDS * 4).fill(0);
		this.#eventWords = new Int32Array(memory.buffer, 0, memory.length / 4);
		this.#eventPointer = ffi.getRawPointer(memory);
		this.#eventsPointer = this.#eventPointer + BigInt(EVENT_WORDS * 4);
		this.#textBuffer = Buffer.allocUnsafeSlow(MAX_TEXT_BYTES);
		this.#textBufferPointer = ffi.getRawPointer(this.#textBuffer);

		const handles: PipeHandle[] = [];
		this.#ownerHandles = handles;
		const takeOwnership = (descriptor: number): PipeHandle => {
			const pipe = new pipes.Pipe(pipes.constants.SOCKET);
			handles.push(pipe);
			pipe.unref();
			if (descriptor >= 0 && pipe.open(descriptor) === 0) return pipe;
			functions.close(descriptor);
			throw new Error('no descriptor');
		};
		try {
			this.#epoll = (functions.epoll_create1 as SystemCall)(CLOEXEC);
			takeOwnership(this.#epoll);
			// The event loop watches the `epoll` through a handle for another descriptor, which is never readable: the handle tries to
			// read that descriptor, finds nothing, and calls us back.
			const wakeUpHandle = takeOwnership((functions.eventfd as SystemCall)(0, CLOEXEC | NONBLOCK));
			wakeUpHandle.onread = () => this.#reportEvents();
			wakeUpHandle.useUserBuffer(Buffer.allocUnsafeSlow(8));
			if (wakeUpHandle.readStart() !== 0) throw new Error('not read');
			this.#wakeUpDescriptor = wakeUpHandle.fd;
			if (!this.#returnToEventLoop()) throw new Error('not watched');
			this.#register(this.#eventLoop.epoll, {
				onReadable: () => {
					this.#hasLoopEvents = true;
				},
				registrationNumber: 0,
			});
			// The self-test: a descriptor that is always readable. Once its event arrives, everything works.
			const probeHandle = takeOwnership((functions.eventfd as SystemCall)(1, CLOEXEC | NONBLOCK));
			const descriptor = probeHandle.fd;
			const markProven = (): void => {
				this.#isProven = true;
				this.remove(descriptor);
				probeHandle.close();
			};
			this.add(descriptor, { onReadable: markProven, registrationNumber: 0 });
		} catch (error) {
			this.close();
			throw error;
		}
	}

	/** True once the self-test has succeeded. */
	get isProven(): boolean {
		return this.#isProven;
	}

	/** Closes the poller. The sockets that it watches are no longer read. */
	close(): void {
		this.#isProven = false;
		this.#isClosed = true;
		for (const handle of this.#ownerHandles) handle.close();
	}

	/** Watches a socket until it is removed or closed. Returns false if that is not possible. */
	add(descriptor: number, socket: PolledSocket): boolean {
		return this.#add(descriptor, socket, ARRIVAL_EVENTS);
	}

	/**
	 * Watches a listening socket until it is removed, and reports it as long as connections are waiting. Returns false if that is
	 * not possible.
	 */
	addListening(descriptor: number, socket: PolledSocket): boolean {
		return this.#add(descriptor, socket, EPOLLIN);
	}

	/** Makes Node's event loop stop watching a descriptor. Returns false if the loop does not watch it. */
	takeFromLoop(descriptor: number): boolean {
		return this.#epollCtl(this.#eventLoop.epoll, EPOLL_CTL_DEL, descriptor, this.#eventPointer) === 0;
	}

	/** Makes Node's event loop watch a descriptor again. */
	returnToLoop(descriptor: number): void {
		this.#controlEpoll(this.#eventLoop.epoll, EPOLL_CTL_ADD, descriptor, EPOLLIN, descriptor, 0);
	}

	#add(descriptor: number, socket: PolledSocket, events: number): boolean {
		if (descriptor < 0 || descriptor >= MAX_DESCRIPTORS) return false;
		const registrationNumber = this.#nextRegistrationNumber;
		this.#nextRegistrationNumber = (registrationNumber + 1) | 0;
		if (!this.#controlEpoll(this.#epoll, EPOLL_CTL_ADD, descriptor, events, descriptor, registrationNumber))
			return false;
		socket.registrationNumber = registrationNumber;
		this.#register(descriptor, socket);
		return true;
	}

	#register(descriptor: number, socket: PolledSocket): void {
		while (this.#socketsByDescriptor.length <= descriptor) this.#socketsByDescriptor.push(undefined);
		this.#socketsByDescriptor[descriptor] = socket;
	}

	/** Stops watching a socket, which must still be open. */
	remove(descriptor: number): void {
		this.#socketsByDescriptor[descriptor] = undefined;
		this.#epollCtl(this.#epoll, EPOLL_CTL_DEL, descriptor, this.#eventPointer);
	}

	/** Makes the poller report a watched socket again if it has unread data. */
	reportAgain(descriptor: number, socket: PolledSocket): void {
		this.#controlEpoll(this.#epoll, EPOLL_CTL_MOD, descriptor, ARRIVAL_EVENTS, descriptor, socket.registrationNumber);
	}

	/** Replaces the socket object to which the events of a watched descriptor are reported. */
	replace(descriptor: number, socket: PolledSocket, newSocket: PolledSocket): void {
		this.#socketsByDescriptor[descriptor] = newSocket;
		newSocket.registrationNumber = socket.registrationNumber;
	}

	/** Stops watching a socket that is being closed. */
	forget(descriptor: number): void {
		this.#socketsByDescriptor[descriptor] = undefined;
	}

	/** Returns the address of memory outside the heap. */
	addressOf(memory: Uint8Array): bigint {
		if (memory !== this.#lastMemory) {
			this.#lastMemoryAddress = this.#addressOf(memory);
			this.#lastMemory = memory;
		}
		return this.#lastMemoryAddress;
	}

	/**
	 * Reads to an address. Returns the number of bytes, 0 at the end, {@link WOULD_BLOCK}, or a negative error number as Node uses
	 * it.
	 */
	read(descriptor: number, address: bigint, length: number): number {
		const count = this.#recv(descriptor, address, length, 0);
		return count >= 0 ? count : -this.#errno();
	}

	/**
	 * Writes the bytes at an address. Returns the number of bytes that the system accepted, or a negative error number as Node uses
	 * it.
	 */
	writeAt(descriptor: number, address: bigint, length: number): number {
		const count = this.#send(descriptor, address, length, NO_SIGNAL);
		return count >= 0 ? count : -this.#errno();
	}

	/** Writes bytes. Returns the number that the system accepted, or −1 if it accepted none or an error occurred. */
	write(descriptor: number, bytes: Uint8Array): number {
		return this.#send(descriptor, this.#addressOf(bytes), bytes.byteLength, NO_SIGNAL);
	}

	/** Writes text as Latin-1. Returns the same as {@link write}. */
	writeText(descriptor: number, text: string): number {
		const { length } = text;
		if (length > MAX_TEXT_BYTES) return -1;
		this.#textBuffer.write(text, 0, 'latin1');
		return this.#send(descriptor, this.#textBufferPointer, length, NO_SIGNAL);
	}

	#controlEpoll(
		epoll: number,
		operation: number,
		descriptor: number,
		events: number,
		watchedDescriptor: number,
		registrationNumber: number,
	): boolean {
		const words = this.#eventWords;
		words[0] = events;
		words[DATA_WORD] = watchedDescriptor;
		words[DATA_WORD + 1] = registrationNumber;
		return this.#epollCtl(epoll, operation, descriptor, this.#eventPointer) === 0;
	}

	#reportEvents(): void {
		let reportedCount = 0;
		for (;;) {
			const count = this.#epollWait(this.#epoll, this.#eventsPointer, MAX_EVENTS_PER_CALL, 0);
			this.#reportBatch(count);
			reportedCount += count;
			// After a single event, usually no other one is waiting. After several, asking again is cheaper than another turn of
			// the event loop.
			if (count < 2 || reportedCount >= MAX_TURN_EVENTS) break;
		}
		const { runQueuedCallbacks } = this.#eventLoop;
		if (runQueuedCallbacks !== undefined) this.#waitForEvents(runQueuedCallbacks);
	}

	/** Waits for events and reports them until the event loop has other work. */
	#waitForEvents(runQueuedCallbacks: () => void): void {
		const { waitMilliseconds, updateTime } = this.#eventLoop;
		runQueuedCallbacks();
		updateTime();
		let milliseconds = waitMilliseconds();
		if (milliseconds === 0 || this.#isClosed || !this.#takeFromEventLoop()) return;
		this.#hasLoopEvents = false;
		try {
			for (let waits = 0; waits < MAX_OWN_WAITS; waits++) {
				waitObserver?.onWait();
				const count = this.#epollWait(this.#epoll, this.#eventsPointer, MAX_EVENTS_PER_CALL, milliseconds);
				waitObserver?.onWake();
				updateTime();
				// It is time for a timer, or a signal has arrived.
				if (count <= 0) return;
				this.#reportBatch(count);
				runQueuedCallbacks();
				if (this.#hasLoopEvents || this.#isClosed) return;
				// The callbacks have taken time, by which timers would be late.
				updateTime();
				milliseconds = waitMilliseconds();
				if (milliseconds === 0) return;
			}
		} finally {
			if (!this.#isClosed && !this.#returnToEventLoop()) this.#returnLater();
		}
	}

	/**
	 * Makes the poller's `epoll` watch that of the event loop, instead of the reverse: the system refuses that both watch each other.
	 * Returns false if that is not possible.
	 */
	#takeFromEventLoop(): boolean {
		const { epoll } = this.#eventLoop;
		if (this.#epollCtl(epoll, EPOLL_CTL_DEL, this.#epoll, this.#eventPointer) !== 0) return false;
		if (this.#controlEpoll(this.#epoll, EPOLL_CTL_ADD, epoll, EPOLLIN, epoll, 0)) return true;
		if (!this.#returnToEventLoop()) this.#returnLater();
		return false;
	}

	/** Makes the event loop watch the poller's `epoll`. Returns false if the system lacks memory. */
	#returnToEventLoop(): boolean {
		const { epoll } = this.#eventLoop;
		this.#epollCtl(this.#epoll, EPOLL_CTL_DEL, epoll, this.#eventPointer);
		return this.#controlEpoll(epoll, EPOLL_CTL_ADD, this.#epoll, EPOLLIN, this.#wakeUpDescriptor, 0);
	}

	/** Tries again until the event loop watches the poller, and meanwhile reports the events. */
	#returnLater(): void {
		setTimeout(() => {
			if (this.#isClosed || this.#returnToEventLoop()) return;
			this.#returnLater();
			// Does not wait, because the event loop does not watch the poller. Waiting in a timer would delay all other timers.
			this.#reportEvents();
		}, RETRY_MS);
	}

	#reportBatch(count: number): void {
		const words = this.#eventWords;
		for (let i = 1; i <= count; i++) {
			const at = i * EVENT_WORDS;
			const socket = this.#socketsByDescriptor[words[at + DATA_WORD]!];
			// If the socket has been closed, its descriptor may belong to another socket by now.
			if (socket === undefined || socket.registrationNumber !== words[at + DATA_WORD + 1]) continue;
			try {
				const events = words[at]!;
				socket.onReadable((events & END_EVENTS) !== 0, (events & URGENT_MARK_EVENT) !== 0);
			} catch (error) {
				// The system does not report the events of the other sockets again, so they are handled before the error is thrown.
				queueMicrotask(() => {
					throw error;
				});
			}
		}
	}
}

let sharedPoller: SocketPoller | undefined;
let hasTriedOpening = false;
let isDisabled = false;
let waitObserver: WaitObserver | undefined;

/** Returns this thread's poller once it has passed its self-test. The first call opens it. */
export function threadPoller(): SocketPoller | undefined {
	if (!isDirectIo()) return undefined;
	if (!hasTriedOpening) {
		hasTriedOpening = true;
		sharedPoller = SocketPoller.open();
	}
	return sharedPoller?.isProven && !isDisabled ? sharedPoller : undefined;
}

/** Makes this thread's poller report its waits to an observer from now on. */
export function observeWaits(observer: WaitObserver): void {
	waitObserver = observer;
}

/** Enables or disables pollers for new sockets, for tests of both implementations: without a poller, Node handles the sockets. */
export function setPollerEnabled(isEnabled: boolean): void {
	isDisabled = !isEnabled;
}
