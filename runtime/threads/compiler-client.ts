/** The main thread's end of the compile thread: questions in, promises out. */
import type { Worker } from 'node:worker_threads';
import type { CompilerStart } from '../compiler-thread.ts';
import { startThread } from '../thread-source.ts';
import type { CompilerAnswers, CompilerReply, CompilerRequest } from './messages.ts';

/** A fault of the compile thread itself: it died, or a bug threw. Never a mistake in the input. */
export class CompilerFailure extends Error {
	/** Where it happened, for the log; never for a user. */
	readonly detail: string | undefined;

	constructor(message: string, detail?: string) {
		super(message);
		this.name = 'CompilerFailure';
		this.detail = detail;
	}
}

type Request<Op extends CompilerRequest['op']> = Omit<Extract<CompilerRequest, { op: Op }>, 'id' | 'op'>;

interface Waiting {
	readonly resolve: (answer: never) => void;
	readonly reject: (error: Error) => void;
}

/** Asks the compile thread. A thread that dies fails what it was asked and `died` is called once. */
export class CompilerClient {
	readonly #thread: Worker;
	readonly #waiting = new Map<number, Waiting>();
	#nextId = 1;
	#ended = false;

	constructor(start: CompilerStart, died: (reason: string) => void) {
		this.#thread = startThread('compiler', start);
		this.#thread.on('message', (reply: CompilerReply) => this.#settle(reply));
		let reason = 'The compile thread ended.';
		this.#thread.on('error', error => {
			reason = `The compile thread failed: ${error instanceof Error ? error.message : String(error)}`;
		});
		this.#thread.on('exit', () => {
			const expected = this.#ended;
			this.#ended = true;
			for (const waiting of this.#waiting.values()) waiting.reject(new CompilerFailure(reason));
			this.#waiting.clear();
			if (!expected) died(reason);
		});
	}

	/** Asks; rejects with CompilerFailure. */
	ask<Op extends CompilerRequest['op']>(op: Op, request: Request<Op>): Promise<CompilerAnswers[Op]> {
		if (this.#ended) return Promise.reject(new CompilerFailure('The compile thread has ended.'));
		const id = this.#nextId++;
		return new Promise<CompilerAnswers[Op]>((resolve, reject) => {
			this.#waiting.set(id, { resolve, reject });
			this.#thread.postMessage({ ...request, id, op });
		});
	}

	/** Ends the thread. */
	async end(): Promise<void> {
		this.#ended = true;
		await this.#thread.terminate();
	}

	#settle(reply: CompilerReply): void {
		const waiting = this.#waiting.get(reply.id);
		this.#waiting.delete(reply.id);
		if (!waiting) return;
		if (reply.failure !== undefined) waiting.reject(new CompilerFailure(reply.failure, reply.stack));
		else waiting.resolve(reply.answer as never);
	}
}
