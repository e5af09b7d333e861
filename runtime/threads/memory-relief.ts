/**
 * Returns memory to the operating system after a burst of load. Nothing else does so: an idle thread collects no garbage, and the
 * allocator keeps freed memory.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { memoryTrim } from '../sockets/memory-trim.ts';

/** Milliseconds between two checks. */
const INTERVAL = 5000;
/** Maximum milliseconds between two checks. The interval doubles while collections free too little. */
const MAX_INTERVAL = 60_000;
/** A collection is tried when memory use exceeds the lowest use seen so far by this many bytes. */
const GROWTH = 48 * 1024 * 1024;
/** Minimum number of bytes that a collection must free to count as useful. */
const WORTHWHILE = 8 * 1024 * 1024;
/** A thread counts as idle while at most this share of its time is busy. A collection blocks it for tens of milliseconds. */
const QUIET = 0.1;

/** Collects all garbage and returns free pages to the system. */
type Collect = (options: {
	readonly type: 'major';
	readonly execution: 'sync';
	readonly flavor: 'last-resort';
}) => void;

/** A kind of memory use, and how to lower it. */
interface Pressure {
	/** Returns the number of bytes in use. */
	taken(): number;
	relieve(): void;
}

/** Lowers a memory use when it has grown; less and less often while that frees little. */
class Relief {
	readonly #pressure: Pressure;
	readonly #interval: number;
	/** The lowest use seen so far, in bytes. */
	#least: number;
	#wait: number;
	#nextAt = 0;

	constructor(pressure: Pressure, interval: number) {
		this.#pressure = pressure;
		this.#interval = interval;
		this.#least = pressure.taken();
		this.#wait = interval;
	}

	look(): void {
		const now = performance.now();
		if (now < this.#nextAt) return;
		const taken = this.#pressure.taken();
		this.#least = Math.min(this.#least, taken);
		if (taken - this.#least < GROWTH) return;
		this.#pressure.relieve();
		const after = this.#pressure.taken();
		this.#least = Math.min(this.#least, after);
		this.#wait = taken - after >= WORTHWHILE ? this.#interval : Math.min(this.#wait * 2, MAX_INTERVAL);
		this.#nextAt = now + this.#wait;
	}
}

/** Keeps the heap of the calling thread small while the thread is idle. Returns a function that stops it. */
export function startThreadMemoryRelief(interval: number = INTERVAL): () => void {
	let collect: Collect | undefined;
	const heap: Pressure = {
		taken: () => {
			const { total_heap_size: size, external_memory: outside } = getHeapStatistics();
			return size + outside;
		},
		relieve: () => {
			collect ??= findCollect();
			collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
		},
	};
	const relief = new Relief(heap, interval);
	let before = performance.eventLoopUtilization();
	return every(interval, () => {
		const now = performance.eventLoopUtilization();
		const { utilization } = performance.eventLoopUtilization(now, before);
		before = now;
		if (utilization <= QUIET) relief.look();
	});
}

/**
 * Makes the allocator return the memory that all threads have freed, if it has a function for that. Runs on the main thread.
 * Returns a function that stops it.
 */
export function startProcessMemoryRelief(interval: number = INTERVAL): () => void {
	const trim = memoryTrim();
	if (trim === undefined) return () => {};
	const memory = new Relief({ taken: () => process.memoryUsage.rss(), relieve: trim }, interval);
	return every(interval, () => memory.look());
}

function every(interval: number, look: () => void): () => void {
	const timer = setInterval(look, interval).unref();
	return () => clearInterval(timer);
}

/** Returns V8's `gc` function. Only contexts created after setting the flag, which applies to the whole process, have it. */
function findCollect(): Collect {
	setFlagsFromString('--expose-gc');
	return runInNewContext('gc') as Collect;
}
