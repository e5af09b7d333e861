/**
 * Returns memory to the operating system after a burst of load. Without this, the memory would stay allocated: an idle thread
 * collects no garbage, and the allocator keeps freed memory.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { memoryTrim } from '../sockets/memory-trim.ts';

/** Milliseconds between two checks. */
const CHECK_INTERVAL_MS = 5000;
/** Maximum milliseconds between two checks. The interval doubles while collections free too little. */
const MAX_INTERVAL_MS = 60_000;
/** A collection is tried when memory use exceeds its lowest value so far by this many bytes. */
const MIN_GROWTH_BYTES = 48 * 1024 * 1024;
/** Minimum number of bytes that a collection must free to count as useful. */
const MIN_FREED_BYTES = 8 * 1024 * 1024;
/** A thread counts as idle while it is busy for at most this share of the time. A collection blocks it for tens of milliseconds. */
const IDLE_UTILIZATION = 0.1;

/** Collects all garbage and returns free pages to the system. */
type CollectGarbage = (options: {
	readonly type: 'major';
	readonly execution: 'sync';
	readonly flavor: 'last-resort';
}) => void;

/** A kind of memory use, and the way to lower it. */
interface MemoryUse {
	/** Returns the number of bytes in use. */
	bytesInUse(): number;
	reduceUsage(): void;
}

/** Lowers a kind of memory use whenever it has grown. The attempts become less frequent while they free little. */
class MemoryRelief {
	readonly #memoryUse: MemoryUse;
	readonly #intervalMs: number;
	/** The lowest use seen so far, in bytes. */
	#leastBytes: number;
	#checkDelayMs: number;
	#nextCheckAt = 0;

	constructor(memoryUse: MemoryUse, intervalMs: number) {
		this.#memoryUse = memoryUse;
		this.#intervalMs = intervalMs;
		this.#leastBytes = memoryUse.bytesInUse();
		this.#checkDelayMs = intervalMs;
	}

	relieveIfDue(): void {
		const now = performance.now();
		if (now < this.#nextCheckAt) return;
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
export function startThreadMemoryRelief(intervalMs: number = CHECK_INTERVAL_MS): () => void {
	let collectGarbage: CollectGarbage | undefined;
	const heap: MemoryUse = {
		bytesInUse: () => {
			const { total_heap_size: size, external_memory: external } = getHeapStatistics();
			return size + external;
		},
		reduceUsage: () => {
			collectGarbage ??= exposeGarbageCollector();
			collectGarbage({ type: 'major', execution: 'sync', flavor: 'last-resort' });
		},
	};
	const relief = new MemoryRelief(heap, intervalMs);
	let previousUtilization = performance.eventLoopUtilization();
	return startChecking(intervalMs, () => {
		const currentUtilization = performance.eventLoopUtilization();
		const { utilization } = performance.eventLoopUtilization(currentUtilization, previousUtilization);
		previousUtilization = currentUtilization;
		if (utilization <= IDLE_UTILIZATION) relief.relieveIfDue();
	});
}

/**
 * Makes the allocator return the memory that all threads have freed, if it has a function for that. Runs on the main thread.
 * Returns a function that stops it.
 */
export function startProcessMemoryRelief(intervalMs: number = CHECK_INTERVAL_MS): () => void {
	const trim = memoryTrim();
	if (trim === undefined) return () => {};
	const memory = new MemoryRelief({ bytesInUse: () => process.memoryUsage.rss(), reduceUsage: trim }, intervalMs);
	return startChecking(intervalMs, () => memory.relieveIfDue());
}

function startChecking(intervalMs: number, check: () => void): () => void {
	const timer = setInterval(check, intervalMs).unref();
	return () => clearInterval(timer);
}

/**
 * Returns V8's `gc` function. Only contexts that are created after setting a flag have this function. The flag applies to the whole
 * process.
 */
function exposeGarbageCollector(): CollectGarbage {
	setFlagsFromString('--expose-gc');
	return runInNewContext('gc') as CollectGarbage;
}
