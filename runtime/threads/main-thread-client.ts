/** Questions of a data-plane thread that the main thread answers: verdicts on passwords, the metrics of the process. */

import type { MainThreadAnswers, MainThreadQuestion } from './main-thread-questions.ts';
import type { FromWorker } from './messages.ts';

/** Asks, and hands answers to who asked. */
export class MainThreadClient {
	readonly #send: (message: FromWorker) => void;
	readonly #asked = new Map<number, (answer: unknown) => void>();
	#last = 0;

	constructor(send: (message: FromWorker) => void) {
		this.#send = send;
	}

	/** Resolves to the answer. The main thread always answers while it lives. */
	ask<Q extends MainThreadQuestion>(question: Q): Promise<MainThreadAnswers[Q['about']]> {
		const id = ++this.#last;
		return new Promise(resolve => {
			this.#asked.set(id, resolve as (answer: unknown) => void);
			this.#send({ type: 'ask', id, question });
		});
	}

	/** An answer has come. */
	answered(id: number, answer: unknown): void {
		const resolve = this.#asked.get(id);
		this.#asked.delete(id);
		resolve?.(answer);
	}
}
