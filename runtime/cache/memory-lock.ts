/** The lock of a store's shared memory: a word with the thread that holds it. */
import { WORD } from './memory-layout.ts';

/** Times that the lock is asked for before the thread sleeps. */
const SPINS = 200;
/** Milliseconds of a sleep: who held it may have died, and wakes nobody. */
const NAP = 5;

/** The lock could not be had: whoever holds it has died, and the main thread has not heard of it yet. */
export class LockLost extends Error {
	constructor() {
		super('The store of the response cache is locked by a thread that has died.');
	}
}

/** The lock as one thread takes it. */
export class MemoryLock {
	readonly #words: Int32Array;
	readonly #self: number;
	readonly #mostNaps: number;

	/**
	 * `self` is the thread, from 1. Naps are counted, not time: a process that was stopped has not waited. The thread that
	 * is told of deaths must not wait for good: nobody else frees what a dead one holds.
	 */
	constructor(words: Int32Array, self: number, mostNaps: number) {
		this.#words = words;
		this.#self = self;
		this.#mostNaps = mostNaps;
	}

	/** Runs something with the lock held. Throws LockLost after so many naps. */
	hold<T>(run: () => T): T {
		const words = this.#words;
		let naps = 0;
		for (let spins = 0; Atomics.compareExchange(words, WORD.lock, 0, this.#self) !== 0; spins++) {
			if (spins < SPINS) continue;
			if (naps++ >= this.#mostNaps) throw new LockLost();
			Atomics.add(words, WORD.lockWaiters, 1);
			const holder = Atomics.load(words, WORD.lock);
			if (holder !== 0) Atomics.wait(words, WORD.lock, holder, NAP);
			Atomics.sub(words, WORD.lockWaiters, 1);
		}
		try {
			return run();
		} finally {
			this.#free(this.#self);
		}
	}

	/** For the main thread: does something in the place of a thread that died with the lock, and frees it; false when it had it not. */
	inherit(dead: number, run: () => void): boolean {
		if (Atomics.load(this.#words, WORD.lock) !== dead) return false;
		run();
		this.#free(dead);
		return true;
	}

	#free(holder: number): void {
		const words = this.#words;
		if (Atomics.compareExchange(words, WORD.lock, holder, 0) !== holder) return;
		if (Atomics.load(words, WORD.lockWaiters) > 0) Atomics.notify(words, WORD.lock, 1);
	}
}
