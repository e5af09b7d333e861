/**
 * Completion by callback, which avoids allocating a promise. When the work for which a handler waits is done, it calls back, and
 * the exchange continues within that call.
 */
import type { Exchange } from './exchange.ts';

/** Receives a handler's outcome first, and converts what it throws to a response. */
export interface AnswerOutcomeHandler {
	onAnswered(x: Exchange): void;
	onFailed(x: Exchange, error: unknown): void;
}

/** Receives a handler's outcome last, and has the response written. */
export interface AnswerWaiter {
	/**
	 * Called when the response is ready, whether or not the handler succeeded. `now` is `performance.now()`, if known. Must not
	 * throw.
	 */
	responseReady(now?: number): void;
}

/** Says how the response will be written. */
export interface AnswerWriter {
	/**
	 * Reports whether `responseReady` writes or copies a complete body of this length before it returns. If so, the body's memory
	 * may be reused afterwards.
	 */
	copiesBody(length: number): boolean;
}

/**
 * The pending result of a handler. It settles once, after its creator has returned it. The runtime handles it directly, through
 * `setOutcomeHandler` and `setWaiter`. For all other code it is a promise: `instanceof Promise`, `then` and `await` work as
 * usual.
 */
export class PendingAnswer {
	readonly #x: Exchange;
	#settled = false;
	#failed = false;
	#error: unknown = undefined;
	#outcomeHandler: AnswerOutcomeHandler | undefined = undefined;
	#waiter: AnswerWaiter | undefined = undefined;
	#writer: AnswerWriter | undefined = undefined;
	#successWork: ((x: Exchange) => void | Promise<void>) | undefined = undefined;
	#promise: Promise<undefined> | undefined = undefined;
	#resolve: ((value: undefined) => void) | undefined = undefined;
	#reject: ((error: unknown) => void) | undefined = undefined;

	constructor(x: Exchange) {
		this.#x = x;
	}

	/**
	 * For the runtime: sets the first receiver of the outcome, which handles a failure. All later receivers then see a success.
	 */
	setOutcomeHandler(handler: AnswerOutcomeHandler): void {
		this.#outcomeHandler = handler;
	}

	/** Sets the receiver of the outcome that comes after all handlers. The protocol calls this, after `setOutcomeHandler`. */
	setWaiter(waiter: AnswerWaiter, writer: AnswerWriter): void {
		this.#waiter = waiter;
		this.#writer = writer;
	}

	/**
	 * Runs a function on the response before the outcome is reported, unless the handler failed. When the function returns, a
	 * complete body may be reused by its owner. Returns this object, for handlers that return the result of the next handler. An
	 * exception becomes the handler's failure.
	 */
	onSuccess(work: (x: Exchange) => void | Promise<void>): Promise<void> {
		const earlierWork = this.#successWork;
		this.#successWork =
			earlierWork === undefined
				? work
				: x => {
						const pending = earlierWork(x);
						return pending === undefined ? work(x) : pending.then(() => work(x));
					};
		return this as unknown as Promise<void>;
	}

	/** Reports whether a complete body of this length will no longer be in use after `resolve` has returned. */
	copiesBody(length: number): boolean {
		return this.#writer !== undefined && this.#promise === undefined && this.#writer.copiesBody(length);
	}

	/** Behaves like a promise. Continuations then run in a microtask. */
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

	/**
	 * For the creator, once the work has started: returns what the handler should return. This is undefined if the work has
	 * already ended.
	 * @throws the error with which it failed
	 */
	handlerResult(): void | Promise<void> {
		if (!this.#settled) return this as unknown as Promise<void>;
		if (this.#failed) throw this.#error;
		return undefined;
	}

	/** Ends the handler successfully. `now` is `performance.now()`, if known. */
	resolve(now?: number): void {
		if (this.#settled) return;
		const work = this.#successWork;
		if (work !== undefined) {
			this.#successWork = undefined;
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
		this.#outcomeHandler?.onAnswered(this.#x);
		this.#resolve?.(undefined);
		this.#waiter?.responseReady(now);
	}

	reject(error: unknown): void {
		if (this.#settled) return;
		this.#settled = true;
		if (this.#outcomeHandler !== undefined) {
			this.#outcomeHandler.onFailed(this.#x, error);
			this.#resolve?.(undefined);
			this.#waiter?.responseReady();
			return;
		}
		this.#failed = true;
		this.#error = error;
		this.#reject?.(error);
		if (this.#waiter === undefined) return;
		// Nothing converted the failure to a response.
		this.#x.abort();
		this.#waiter.responseReady();
	}
}

// The handler graph tests results with `instanceof Promise`.
Object.setPrototypeOf(PendingAnswer.prototype, Promise.prototype);
