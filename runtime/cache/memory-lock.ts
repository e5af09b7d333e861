/** The lock of a store's shared memory: a word that holds the number of the owning thread. */
import { HEADER_WORD } from './memory-layout.ts';

/** Number of attempts before the thread sleeps. */
const SPINS = 200;
/** Length of one sleep in milliseconds. A sleep ends by itself, because a holder that has died wakes nobody. */
const NAP = 5;

/** Thrown if a dead thread holds the lock and its end has not been reported to the main thread yet. */
export class LockLost extends Error {
	constructor() {
		super('The store of the response cache is locked by a thread that has died.');
	}
}

/** One thread's view of the lock. */
export class MemoryLock {
	readonly #words: Int32Array;
	readonly #self: number;
	readonly #mostNaps: number;

	/**
	 * @param self The thread, counted from 1.
	 * @param mostNaps Maximum number of sleeps. Sleeps are counted instead of time, because a suspended process has not waited. The
	 * thread that handles deaths must not wait forever, because no other thread releases what a dead thread holds.
	 */
	constructor(words: Int32Array, self: number, mostNaps: number) {
		this.#words = words;
		this.#self = self;
		this.#mostNaps = mostNaps;
	}

	/** Runs a function with the lock held. Throws LockLost after the maximum number of sleeps. */
	hold<T>(run: () => T): T {
		const words = this.#words;
		let naps = 0;
		for (let spins = 0; Atomics.compareExchange(words, HEADER_WORD.lock, 0, this.#self) !== 0; spins++) {
			if (spins < SPINS) continue;
			if (naps++ >= this.#mostNaps) throw new LockLost();
			Atomics.add(words, HEADER_WORD.lockWaiters, 1);
			const holder = Atomics.load(words, HEADER_WORD.lock);
			if (holder !== 0) Atomics.wait(words, HEADER_WORD.lock, holder, NAP);
			Atomics.sub(words, HEADER_WORD.lockWaiters, 1);
		}
		try {
			return run();
		} finally {
			this.#free(this.#self);
		}
	}

	/** Takes over the lock of a thread that died while holding it: runs a function and releases it. Called on the main thread. Returns false if the thread did not hold the lock. */
	inherit(dead: number, run: () => void): boolean {
		if (Atomics.load(this.#words, HEADER_WORD.lock) !== dead) return false;
		run();
		this.#free(dead);
		return true;
	}

	#free(holder: number): void {
		const words = this.#words;
		if (Atomics.compareExchange(words, HEADER_WORD.lock, holder, 0) !== holder) return;
		if (Atomics.load(words, HEADER_WORD.lockWaiters) > 0) Atomics.notify(words, HEADER_WORD.lock, 1);
	}
}
