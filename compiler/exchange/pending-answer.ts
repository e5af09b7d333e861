/** A handler's promise that costs none: what it waits for calls back, and whoever serves the exchange goes on within that call. */
import type { Exchange } from './exchange.ts';

/** Who turns what a handler throws into a response. */
export interface AnswerJudge {
	answered(x: Exchange): void;
	failed(x: Exchange, error: unknown): void;
}

/** Who has the response written. */
export interface AnswerWaiter {
	/** The response is there, whatever became of the handler; `now` is `performance.now()`, if that is known. Must not throw. */
	handled(now?: number): void;
}

/** What writes it. */
export interface AnswerWriter {
	/**
	 * Whether `handled` has a whole body of so many bytes written, or copied, before it returns: it may stand in memory that is
	 * used for something else then.
	 */
	copies(length: number): boolean;
}

/**
 * Settles once, later than its maker has returned it. The runtime takes it as what it is by `judge` and `write`; to
 * everybody else it is a promise: `instanceof Promise`, `then`, `await` and the rest do what they do.
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

	/** For the runtime: hears first how it ended. To all others it cannot fail any more. */
	judge(judge: AnswerJudge): void {
		this.#judge = judge;
	}

	/** For the protocol, behind `judge`: hears last. */
	write(waiter: AnswerWaiter, writer: AnswerWriter): void {
		this.#waiter = waiter;
		this.#writer = writer;
	}

	/**
	 * Has something done to the answer before anybody hears of it; not done to a failure. A whole body is out of its hands, or
	 * the response's, when it returns. For handlers that pass this on: what they return is this again. What it throws is what
	 * the handler failed with.
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

	/** Whether a whole body of so many bytes is out of everybody's hands once `resolve` has returned. */
	copies(length: number): boolean {
		return this.#writer !== undefined && this.#promise === undefined && this.#writer.copies(length);
	}

	/** As a promise: what is done then comes in a microtask. */
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

	/** What its maker returns once it has begun: nothing when it has ended already. @throws what it failed with */
	started(): void | Promise<void> {
		if (!this.#settled) return this as unknown as Promise<void>;
		if (this.#failed) throw this.#error;
		return undefined;
	}

	/** `now` is `performance.now()`, if that is known. */
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
		// Nobody has made a response of it.
		this.#x.abort();
		this.#waiter.handled();
	}
}

// The graph asks `instanceof Promise` of what a handler returns.
Object.setPrototypeOf(PendingAnswer.prototype, Promise.prototype);
