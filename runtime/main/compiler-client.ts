/** The main thread's end of the compile thread: sends requests and resolves promises. */
import type { Worker } from 'node:worker_threads';
import type { CompilerReplies, CompilerReply, CompilerRequest } from '../compile/compiler-messages.ts';
import type { CompilerStart } from '../compile/compiler-thread.ts';
import { CHECK_INTERVAL_MS } from '../threads/stall-clock.ts';
import { startThread } from '../threads/thread-source.ts';
import { THREAD_END_LIMIT_MS, ThreadWatch } from '../threads/thread-watch.ts';
import { withTimeLimit } from '../threads/within.ts';

/** Callbacks of {@link CompilerClient}. */
export interface CompilerEvents {
	/** Called when the thread has died, or was abandoned because it did not respond (`stalled`). */
	lost(reason: string, stalled: boolean): void;
	/** Called when the thread has been working on one request for a long time. */
	busy(request: string, milliseconds: number): void;
}

/** Limits on one request, in milliseconds of the thread's own time: after `long` it is reported, after `most` abandoned. */
export interface CompilerLimits {
	readonly long: number;
	readonly most: number;
}

/** A failure of the compile thread itself: it died, or hit a bug. Never a mistake in the input. */
export class CompilerFailure extends Error {
	/** The stack trace. It may be logged, but must never be shown to a user. */
	readonly detail: string | undefined;

	constructor(message: string, detail?: string) {
		super(message);
		this.name = 'CompilerFailure';
		this.detail = detail;
	}
}

type Request<Op extends CompilerRequest['op']> = Omit<Extract<CompilerRequest, { op: Op }>, 'id' | 'op'>;

interface Waiting {
	readonly op: string;
	readonly resolve: (answer: never) => void;
	readonly reject: (error: Error) => void;
}

/** Sends requests to the compile thread. If it dies or is abandoned, pending requests fail and `lost` is called once. */
export class CompilerClient {
	readonly #thread: Worker;
	readonly #waiting = new Map<number, Waiting>();
	readonly #watch = new ThreadWatch();
	readonly #events: CompilerEvents;
	readonly #limits: CompilerLimits;
	#looks: NodeJS.Timeout | undefined;
	#lookedAt = 0;
	/** Whether the current request has been reported as taking long. */
	#reported = false;
	#nextId = 1;
	#ended = false;

	constructor(start: Omit<CompilerStart, 'activity'>, events: CompilerEvents, limits: CompilerLimits) {
		this.#events = events;
		this.#limits = limits;
		this.#thread = startThread('compiler', { ...start, activity: this.#watch.activity.memory });
		this.#thread.on('message', (reply: CompilerReply) => this.#settle(reply));
		let reason = 'The compile thread ended.';
		this.#thread.on('error', error => {
			reason = `The compile thread failed: ${error instanceof Error ? error.message : String(error)}`;
		});
		this.#thread.on('exit', () => this.#lost(reason, false));
	}

	/** Sends a request. Rejects with CompilerFailure. */
	ask<Op extends CompilerRequest['op']>(op: Op, request: Request<Op>): Promise<CompilerReplies[Op]> {
		if (this.#ended) return Promise.reject(new CompilerFailure('The compile thread has ended.'));
		const id = this.#nextId++;
		return new Promise<CompilerReplies[Op]>((resolve, reject) => {
			this.#waiting.set(id, { op, resolve, reject });
			this.#look();
			this.#thread.postMessage({ ...request, id, op });
		});
	}

	/** Ends the thread. Resolves to false if it cannot be ended. */
	async end(): Promise<boolean> {
		this.#ended = true;
		this.#fail('The server is stopping.');
		let ended = false;
		const exit = this.#thread.terminate().then(() => {
			ended = true;
		});
		await withTimeLimit(exit, THREAD_END_LIMIT_MS);
		return ended;
	}

	/** Checks the thread periodically while a request is pending. */
	#look(): void {
		if (this.#looks !== undefined) return;
		this.#lookedAt = performance.now();
		this.#looks = setInterval(() => {
			const now = performance.now();
			this.#watch.look(now - this.#lookedAt);
			this.#lookedAt = now;
			const { unanswered } = this.#watch;
			const request = this.#waiting.values().next().value?.op ?? '';
			if (unanswered < this.#limits.long) this.#reported = false;
			else if (!this.#reported) {
				this.#reported = true;
				this.#events.busy(request, unanswered);
			}
			if (unanswered < this.#limits.most) return;
			void this.#thread.terminate();
			const seconds = this.#limits.most / 1000;
			this.#lost(`The compile thread did not finish \`${request}\` within ${seconds} s.`, true);
		}, CHECK_INTERVAL_MS).unref();
	}

	#lost(reason: string, stalled: boolean): void {
		const expected = this.#ended;
		this.#ended = true;
		this.#fail(reason);
		if (!expected) this.#events.lost(reason, stalled);
	}

	#fail(reason: string): void {
		clearInterval(this.#looks);
		for (const waiting of this.#waiting.values()) waiting.reject(new CompilerFailure(reason));
		this.#waiting.clear();
	}

	#settle(reply: CompilerReply): void {
		const waiting = this.#waiting.get(reply.id);
		this.#waiting.delete(reply.id);
		if (this.#waiting.size === 0) {
			clearInterval(this.#looks);
			this.#looks = undefined;
		}
		if (!waiting) return;
		if (reply.failure !== undefined) waiting.reject(new CompilerFailure(reply.failure, reply.stack));
		else waiting.resolve(reply.answer as never);
	}
}
