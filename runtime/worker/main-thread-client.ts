/** Requests of a worker thread to the main thread: password verification, metrics of the process. */

import type { MainThreadReplies, MainThreadRequest } from './main-thread-requests.ts';
import type { MessageFromWorker, MessageToWorker } from './worker-messages.ts';

interface PendingRequest {
	readonly resolve: (answer: never) => void;
	readonly reject: (error: Error) => void;
}

/** Sends requests to the main thread, and returns promises for the replies. */
export class MainThreadClient {
	readonly #sendMessage: (message: MessageFromWorker) => void;
	readonly #pendingRequests = new Map<number, PendingRequest>();
	#lastRequestId = 0;

	constructor(sendMessage: (message: MessageFromWorker) => void) {
		this.#sendMessage = sendMessage;
	}

	/**
	 * Sends a request. Resolves to the reply, or rejects if the main thread reports a failure. As long as the main thread runs, it
	 * replies to every request.
	 */
	ask<Q extends MainThreadRequest>(question: Q): Promise<MainThreadReplies[Q['about']]> {
		const id = ++this.#lastRequestId;
		return new Promise((resolve, reject) => {
			this.#pendingRequests.set(id, { resolve, reject });
			this.#sendMessage({ type: 'ask', id, question });
		});
	}

	handleReply({ id, answer, failure }: Extract<MessageToWorker, { type: 'answer' }>): void {
		const pendingRequest = this.#pendingRequests.get(id);
		this.#pendingRequests.delete(id);
		if (failure === undefined) pendingRequest?.resolve(answer as never);
		else pendingRequest?.reject(new Error(failure));
	}
}
