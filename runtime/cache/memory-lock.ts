/** The lock of a store's shared memory: a word that holds the number of the owning thread. */
import { HEADER_WORD } from './memory-layout.ts';

/** Number of attempts before the thread sleeps. */
const SPINS_BEFORE_SLEEP = 200;
/**
 * Length of one sleep in milliseconds. Sleeps have a time limit, because a thread that died with the lock never wakes the others.
 */
const LOCK_SLEEP_MS = 5;

/** Thrown if a dead thread holds the lock and its end has not been reported to the main thread yet. */
export class LockLost extends Error {
	constructor() {
		super('The store of the response cache is locked by a thread that has died.');
	}
}

/** One thread's handle on the lock. */
export class MemoryLock {
	readonly #words: Int32Array;
	readonly #threadNumber: number;
	readonly #maxSleeps: number;

	/**
	 * @param threadNumber The thread, counted from 1.
	 * @param maxSleeps Maximum number of sleeps. Sleeps are counted instead of time, because time that passes while the process is
	 * suspended is not waiting. The main thread needs a limit, because only it releases the lock of a thread that has died.
	 */
	constructor(words: Int32Array, threadNumber: number, maxSleeps: number) {
		this.#words = words;
		this.#threadNumber = threadNumber;
		this.#maxSleeps = maxSleeps;
	}

	/** Runs a function with the lock held. Throws LockLost after the maximum number of sleeps. */
	runLocked<T>(run: () => T): T {
		const words = this.#words;
		let sleepCount = 0;
		for (let spins = 0; Atomics.compareExchange(words, HEADER_WORD.lock, 0, this.#threadNumber) !== 0; spins++) {
			if (spins < SPINS_BEFORE_SLEEP) continue;
			if (sleepCount++ >= this.#maxSleeps) throw new LockLost();
			Atomics.add(words, HEADER_WORD.lockWaiters, 1);
			const holder = Atomics.load(words, HEADER_WORD.lock);
			if (holder !== 0) Atomics.wait(words, HEADER_WORD.lock, holder, LOCK_SLEEP_MS);
			Atomics.sub(words, HEADER_WORD.lockWaiters, 1);
		}
		try {
			return run();
		} finally {
			this.#releaseLock(this.#threadNumber);
		}
	}

	/**
	 * Takes over the lock of a thread that died while holding it: runs a function and releases the lock. Returns false if the thread
	 * did not hold it. Called on the main thread.
	 */
	takeOver(deadThread: number, run: () => void): boolean {
		if (Atomics.load(this.#words, HEADER_WORD.lock) !== deadThread) return false;
		run();
		this.#releaseLock(deadThread);
		return true;
	}

	#releaseLock(holder: number): void {
		const words = this.#words;
		if (Atomics.compareExchange(words, HEADER_WORD.lock, holder, 0) !== holder) return;
		if (Atomics.load(words, HEADER_WORD.lockWaiters) > 0) Atomics.notify(words, HEADER_WORD.lock, 1);
	}
}
