/**
 * Completion by callback: a handler's result that costs no promise, because whatever it waits for calls back, and the exchange
 * continues within that call.
 */
import type { Exchange } from './exchange.ts';

/** Converts what a handler throws to a response. */
export interface AnswerJudge {
	answered(x: Exchange): void;
	failed(x: Exchange, error: unknown): void;
}

/** Has the response written. */
export interface AnswerWaiter {
	/**
	 * Called when the response is ready, whatever the outcome of the handler; `now` is `performance.now()`, if known. Must not
	 * throw.
	 */
	handled(now?: number): void;
}

/** Writes the response. */
export interface AnswerWriter {
	/**
	 * Reports whether `handled` writes or copies a complete body of this length before it returns, so that its memory may be
	 * reused then.
	 */
	copies(length: number): boolean;
}

/**
 * Settles once, after its creator has returned it. The runtime handles it directly through `judge` and `write`; to all other
 * code it is a promise: `instanceof Promise`, `then` and `await` work as usual.
 */
export class PendingAnswer {
	readonly #x: Exchange;
	#settled = false;
	#failed = false;
	#error: unknown = undefined;
	#judge: AnswerJudge | undefined = undefined;
	#waiter: AnswerWaiter | undefined = undefined;
	#writer: AnswerWriter | undefined = undefined;
	#work: ((x: Exchange) => void | Promise<void>) | undefined = undefined;
	#promise: Promise<undefined> | undefined = undefined;
	#resolve: ((value: undefined) => void) | undefined = undefined;
	#reject: ((error: unknown) => void) | undefined = undefined;

	constructor(x: Exchange) {
		this.#x = x;
	}

	/** For the runtime: is told the outcome first. To all others it can no longer fail. */
	judge(judge: AnswerJudge): void {
		this.#judge = judge;
	}

	/** For the protocol, after `judge`: is told the outcome last. */
	write(waiter: AnswerWaiter, writer: AnswerWriter): void {
		this.#waiter = waiter;
		this.#writer = writer;
	}

	/**
	 * Runs a function on the response before anybody is notified; skipped on failure. A complete body may be reused by its
	 * owner when it returns. For handlers that pass the result on: they return this object again. An exception becomes the
	 * handler's failure.
	 */
	after(work: (x: Exchange) => void | Promise<void>): Promise<void> {
		const before = this.#work;
		this.#work =
			before === undefined
				? work
				: x => {
						const pending = before(x);
						return pending === undefined ? work(x) : pending.then(() => work(x));
					};
		return this as unknown as Promise<void>;
	}

	/** Reports whether a complete body of this length is no longer in use once `resolve` has returned. */
	copies(length: number): boolean {
		return this.#writer !== undefined && this.#promise === undefined && this.#writer.copies(length);
	}

	/** Behaves as a promise; continuations then run in a microtask. */
	// biome-ignore lint/suspicious/noThenProperty: it is a promise
	then<T = void, F = never>(
		fulfilled?: ((value: undefined) => T | PromiseLike<T>) | null,
		rejected?: ((error: unknown) => F | PromiseLike<F>) | null,
	): Promise<T | F> {
		this.#promise ??= new Promise((resolve, reject) => {
			if (!this.#settled) {
				this.#resolve = resolve;
				this.#reject = reject;
			} else if (this.#failed) reject(this.#error);
			else resolve(undefined);
		});
		return this.#promise.then(fulfilled, rejected);
	}

	/** Returned by its creator once it has started: nothing if it has already ended. @throws the error with which it failed */
	started(): void | Promise<void> {
		if (!this.#settled) return this as unknown as Promise<void>;
		if (this.#failed) throw this.#error;
		return undefined;
	}

	/** `now` is `performance.now()`, if known. */
	resolve(now?: number): void {
		if (this.#settled) return;
		const work = this.#work;
		if (work !== undefined) {
			this.#work = undefined;
			let pending: void | Promise<void>;
			try {
				pending = work(this.#x);
			} catch (error) {
				this.reject(error);
				return;
			}
			if (pending !== undefined) {
				pending.then(
					() => this.resolve(),
					error => this.reject(error),
				);
				return;
			}
		}
		this.#settled = true;
		this.#judge?.answered(this.#x);
		this.#resolve?.(undefined);
		this.#waiter?.handled(now);
	}

	reject(error: unknown): void {
		if (this.#settled) return;
		this.#settled = true;
		if (this.#judge !== undefined) {
			this.#judge.failed(this.#x, error);
			this.#resolve?.(undefined);
			this.#waiter?.handled();
			return;
		}
		this.#failed = true;
		this.#error = error;
		this.#reject?.(error);
		if (this.#waiter === undefined) return;
		// Nothing converted the failure to a response.
		this.#x.abort();
		this.#waiter.handled();
	}
}

// The graph tests a handler's result with `instanceof Promise`.
Object.setPrototypeOf(PendingAnswer.prototype, Promise.prototype);
