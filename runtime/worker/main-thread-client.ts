/** Requests of a worker thread to the main thread: password verification, metrics of the process. */

import type { MainThreadReplies, MainThreadRequest } from './main-thread-requests.ts';
import type { MessageFromWorker, MessageToWorker } from './worker-messages.ts';

interface Asked {
	readonly resolve: (answer: never) => void;
	readonly reject: (error: Error) => void;
}

/** Sends requests and resolves their replies. */
export class MainThreadClient {
	readonly #send: (message: MessageFromWorker) => void;
	readonly #asked = new Map<number, Asked>();
	#last = 0;

	constructor(send: (message: MessageFromWorker) => void) {
		this.#send = send;
	}

	/**
	 * Resolves to the reply. Rejects if the main thread reports that it failed. As long as the main thread runs, it replies to
	 * every request.
	 */
	ask<Q extends MainThreadRequest>(question: Q): Promise<MainThreadReplies[Q['about']]> {
		const id = ++this.#last;
		return new Promise((resolve, reject) => {
			this.#asked.set(id, { resolve, reject });
			this.#send({ type: 'ask', id, question });
		});
	}

	/** Handles a reply. */
	answered({ id, answer, failed }: Extract<MessageToWorker, { type: 'answer' }>): void {
		const asked = this.#asked.get(id);
		this.#asked.delete(id);
		if (failed === undefined) asked?.resolve(answer as never);
		else asked?.reject(new Error(failed));
	}
}
