/**
 * Completion by callback, without allocating a promise. When the work for which a handler waits is done, it calls back, and the
 * exchange continues within that call.
 */
import type { Exchange } from './exchange.ts';

/** The first receiver of a handler's outcome. It converts an error to a response. */
export interface AnswerOutcomeHandler {
	onAnswered(x: Exchange): void;
	onFailed(x: Exchange, error: unknown): void;
}

/** The last receiver of a handler's outcome. It writes the response. */
export interface AnswerWaiter {
	/**
	 * Called when the response is ready, whether or not the handler succeeded. `now` is `performance.now()`, if known. Must not
	 * throw.
	 */
	responseReady(now?: number): void;
}

/** Knows whether the protocol copies a response body, so that the body's memory can be reused. */
export interface AnswerWriter {
	/**
	 * Reports whether `responseReady` writes or copies a complete body of this length before it returns. If so, the body's memory
	 * may be reused afterwards.
	 */
	copiesBody(length: number): boolean;
}

/**
 * The pending result of a handler. It settles once, after its creator has returned it. The runtime uses it directly, through
 * `setOutcomeHandler` and `setWaiter`. For all other code it is a promise: `instanceof Promise`, `then` and `await` work as usual.
 */
export class PendingAnswer {
	readonly #x: Exchange;
	#isSettled = false;
	#hasFailed = false;
	#error: unknown = undefined;
	#outcomeHandler: AnswerOutcomeHandler | undefined = undefined;
	#waiter: AnswerWaiter | undefined = undefined;
	#writer: AnswerWriter | undefined = undefined;
	#successWork: ((x: Exchange) => void | Promise<void>) | undefined = undefined;
	#promise: Promise<undefined> | undefined = undefined;
	#resolvePromise: ((value: undefined) => void) | undefined = undefined;
	#rejectPromise: ((error: unknown) => void) | undefined = undefined;

	constructor(x: Exchange) {
		this.#x = x;
	}

	/**
	 * Sets the first receiver of the outcome, which handles a failure, so that all later receivers see a success. For use by the
	 * runtime.
	 */
	setOutcomeHandler(handler: AnswerOutcomeHandler): void {
		this.#outcomeHandler = handler;
	}

	/**
	 * Sets the last receiver of the outcome, which is called after all handlers. The protocol calls this after `setOutcomeHandler`.
	 */
	setWaiter(waiter: AnswerWaiter, writer: AnswerWriter): void {
		this.#waiter = waiter;
		this.#writer = writer;
	}

	/**
	 * Runs `work` on the response before the outcome is reported, unless the handler failed. After `work` has returned, the owner
	 * of a complete body may reuse its memory. Returns this object, for handlers that return the result of the next handler. If
	 * `work` throws, the handler fails.
	 */
	onSuccess(work: (x: Exchange) => void | Promise<void>): Promise<void> {
		const earlierWork = this.#successWork;
		this.#successWork =
			earlierWork === undefined
				? work
				: x => {
						const earlierPromise = earlierWork(x);
						return earlierPromise === undefined ? work(x) : earlierPromise.then(() => work(x));
					};
		return this as unknown as Promise<void>;
	}

	/** Reports whether a complete body of this length is no longer in use after `resolve` has returned. */
	copiesBody(length: number): boolean {
		return this.#writer !== undefined && this.#promise === undefined && this.#writer.copiesBody(length);
	}

	/** Makes this object usable as a promise. Continuations run in a microtask. */
	// biome-ignore lint/suspicious/noThenProperty: it is a promise
	then<T = void, F = never>(
		onFulfilled?: ((value: undefined) => T | PromiseLike<T>) | null,
		onRejected?: ((error: unknown) => F | PromiseLike<F>) | null,
	): Promise<T | F> {
		this.#promise ??= new Promise((resolve, reject) => {
			if (!this.#isSettled) {
				this.#resolvePromise = resolve;
				this.#rejectPromise = reject;
			} else if (this.#hasFailed) reject(this.#error);
			else resolve(undefined);
		});
		return this.#promise.then(onFulfilled, onRejected);
	}

	/**
	 * Returns this object, as the result for the handler to return, or undefined if the work has already ended. The creator calls
	 * this after it has started the work.
	 * @throws the error with which the work failed
	 */
	handlerResult(): void | Promise<void> {
		if (!this.#isSettled) return this as unknown as Promise<void>;
		if (this.#hasFailed) throw this.#error;
		return undefined;
	}

	/** Ends the handler successfully. `now` is `performance.now()`, if known. */
	resolve(now?: number): void {
		if (this.#isSettled) return;
		const work = this.#successWork;
		if (work !== undefined) {
			this.#successWork = undefined;
			let workPromise: void | Promise<void>;
			try {
				workPromise = work(this.#x);
			} catch (error) {
				this.reject(error);
				return;
			}
			if (workPromise !== undefined) {
				workPromise.then(
					() => this.resolve(),
					error => this.reject(error),
				);
				return;
			}
		}
		this.#isSettled = true;
		this.#outcomeHandler?.onAnswered(this.#x);
		this.#resolvePromise?.(undefined);
		this.#waiter?.responseReady(now);
	}

	reject(error: unknown): void {
		if (this.#isSettled) return;
		this.#isSettled = true;
		if (this.#outcomeHandler !== undefined) {
			this.#outcomeHandler.onFailed(this.#x, error);
			this.#resolvePromise?.(undefined);
			this.#waiter?.responseReady();
			return;
		}
		this.#hasFailed = true;
		this.#error = error;
		this.#rejectPromise?.(error);
		if (this.#waiter === undefined) return;
		// No outcome handler has converted the failure to a response.
		this.#x.abort();
		this.#waiter.responseReady();
	}
}

// Callers in the handler graph test results with `instanceof Promise`.
Object.setPrototypeOf(PendingAnswer.prototype, Promise.prototype);
