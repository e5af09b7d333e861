/**
 * Returns memory to the operating system after the start and after a burst of load. Without this, the memory would stay
 * allocated: an idle thread collects no garbage, and the allocator keeps freed memory.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { lazily } from '../../compiler/exchange/lazily.ts';
import { arenaTrim } from '../sockets/arena-trim.ts';
import { executablePageRelease } from '../sockets/executable-pages.ts';
import { memoryTrim } from '../sockets/memory-trim.ts';

/** Milliseconds between two checks of a thread until its first collection, which frees what only the start needed. */
const FIRST_THREAD_INTERVAL_MS = 1000;
/** Milliseconds until the first check of the process. It follows the threads' first collections, to return what they freed. */
const FIRST_PROCESS_INTERVAL_MS = 2000;
/** Milliseconds between two later checks of memory use. */
const CHECK_INTERVAL_MS = 5000;
/** Maximum milliseconds between two checks. The interval doubles while collections free too little. */
const MAX_INTERVAL_MS = 60_000;
/** A collection is tried when memory use exceeds its lowest value so far by this many bytes. */
const MIN_GROWTH_BYTES = 48 * 1024 * 1024;
/** Minimum number of bytes that a collection must free. If it frees fewer, the next check is delayed. */
const MIN_FREED_BYTES = 8 * 1024 * 1024;
/**
 * A thread is considered idle while it uses at most this share of a processor. A collection blocks it for tens of milliseconds.
 */
const IDLE_UTILIZATION = 0.1;

/** Collects all garbage and returns free pages to the system. */
type CollectGarbage = (options: {
	readonly type: 'major';
	readonly execution: 'sync';
	readonly flavor: 'last-resort';
}) => void;

/** A kind of memory use, and the way to reduce it. */
interface MemoryUse {
	bytesInUse(): number;
	/** Returns false if it could not try. */
	reduceUsage(): boolean;
}

/**
 * Reduces one kind of memory use: once after the start, then whenever the use has grown. After an attempt that has freed little,
 * the next one comes later.
 */
class MemoryReclaimer {
	readonly #memoryUse: MemoryUse;
	readonly #intervalMs: number;
	/** The lowest memory use so far, in bytes; undefined before the first attempt to reduce it. */
	#leastBytes: number | undefined;
	#checkDelayMs: number;
	#nextCheckAt = 0;

	constructor(memoryUse: MemoryUse, intervalMs: number) {
		this.#memoryUse = memoryUse;
		this.#intervalMs = intervalMs;
		this.#checkDelayMs = intervalMs;
	}

	/** True once the memory use has been reduced for the first time. */
	get hasBegun(): boolean {
		return this.#leastBytes !== undefined;
	}

	reclaimIfDue(): void {
		const now = performance.now();
		if (now < this.#nextCheckAt) return;
		if (this.#leastBytes === undefined) {
			if (this.#memoryUse.reduceUsage()) this.#leastBytes = this.#memoryUse.bytesInUse();
			return;
		}
		const bytesInUse = this.#memoryUse.bytesInUse();
		this.#leastBytes = Math.min(this.#leastBytes, bytesInUse);
		if (bytesInUse - this.#leastBytes < MIN_GROWTH_BYTES) return;
		this.#memoryUse.reduceUsage();
		const bytesAfter = this.#memoryUse.bytesInUse();
		this.#leastBytes = Math.min(this.#leastBytes, bytesAfter);
		this.#checkDelayMs =
			bytesInUse - bytesAfter >= MIN_FREED_BYTES ? this.#intervalMs : Math.min(this.#checkDelayMs * 2, MAX_INTERVAL_MS);
		this.#nextCheckAt = now + this.#checkDelayMs;
	}
}

/** Keeps the heap of the calling thread small while the thread is idle. Returns a function that stops it. */
export function startReclaimingThreadMemory(intervalMs: number = CHECK_INTERVAL_MS): () => void {
	const trim = lazily(arenaTrim);
	const heap: MemoryUse = {
		bytesInUse: () => {
			const { total_heap_size: size, external_memory: external } = getHeapStatistics();
			return size + external;
		},
		reduceUsage: () => {
			const collectGarbage = garbageCollector();
			collectGarbage?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
			trim()();
			return collectGarbage !== undefined;
		},
	};
	const reclaimer = new MemoryReclaimer(heap, intervalMs);
	let { time, usage } = { time: performance.now(), usage: process.threadCpuUsage() };
	return startChecking(reclaimer, FIRST_THREAD_INTERVAL_MS, intervalMs, () => {
		const now = performance.now();
		const { user, system } = process.threadCpuUsage(usage);
		const utilization = (user + system) / 1000 / (now - time);
		({ time, usage } = { time: now, usage: process.threadCpuUsage() });
		if (utilization <= IDLE_UTILIZATION) reclaimer.reclaimIfDue();
	});
}

/**
 * Makes the allocator return the memory that all threads have freed, if it has a function for that. The first time, also evicts
 * the pages of the executable file, but not again later, when a busy server would need most of them at once. Runs on the main
 * thread. Returns a function that stops it.
 */
export function startReclaimingProcessMemory(intervalMs: number = CHECK_INTERVAL_MS): () => void {
	const trim = memoryTrim();
	let evictExecutablePages = executablePageRelease();
	if (trim === undefined && evictExecutablePages === undefined) return () => {};
	const reclaimer = new MemoryReclaimer(
		{
			bytesInUse: () => process.memoryUsage.rss(),
			reduceUsage: () => {
				trim?.();
				evictExecutablePages?.();
				evictExecutablePages = undefined;
				return true;
			},
		},
		intervalMs,
	);
	return startChecking(reclaimer, FIRST_PROCESS_INTERVAL_MS, intervalMs, () => reclaimer.reclaimIfDue());
}

function startChecking(
	reclaimer: MemoryReclaimer,
	firstIntervalMs: number,
	intervalMs: number,
	check: () => void,
): () => void {
	let timer: NodeJS.Timeout;
	const waitForNextCheck = () => {
		const delayMs = reclaimer.hasBegun ? intervalMs : Math.min(firstIntervalMs, intervalMs);
		timer = setTimeout(() => {
			check();
			waitForNextCheck();
		}, delayMs).unref();
	};
	waitForNextCheck();
	return () => clearTimeout(timer);
}

/**
 * Returns V8's `gc` function, which exists only in contexts created while the flag `--expose-gc` is set. The flag applies to the
 * whole process, and V8 ignores code caches while it is set, so it is cleared at once. Returns undefined if another thread has
 * cleared it at the same moment.
 */
function garbageCollector(): CollectGarbage | undefined {
	setFlagsFromString('--expose-gc');
	try {
		return runInNewContext('globalThis.gc');
	} finally {
		setFlagsFromString('--no-expose-gc');
	}
}
