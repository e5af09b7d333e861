/** The main thread's connection to the compile thread: sends requests, and resolves to the replies. */
import type { Worker } from 'node:worker_threads';
import type { CompilerReplies, CompilerReply, CompilerRequest } from '../compile/compiler-messages.ts';
import type { CompilerStart } from '../compile/compiler-thread.ts';
import { CHECK_INTERVAL_MS } from '../threads/stall-clock.ts';
import { startThread } from '../threads/thread-source.ts';
import { THREAD_END_LIMIT_MS, ThreadWatch } from '../threads/thread-watch.ts';
import { withTimeLimit } from '../threads/within.ts';

export interface CompilerEvents {
	/** Called when the thread has died, or was abandoned because it did not respond (`hasStalled`). */
	onLost(reason: string, hasStalled: boolean): void;
	/** Called when the thread has been working on one request for a long time. */
	onBusy(request: string, milliseconds: number): void;
}

/**
 * Limits on one request, in milliseconds. Time during which the thread waited for a processor is not counted. The request is
 * reported after `reportAfterMs`, and the thread is abandoned after `abandonAfterMs`.
 */
export interface CompilerLimits {
	readonly reportAfterMs: number;
	readonly abandonAfterMs: number;
}

/** A failure of the compile thread itself: it died, or hit a bug. Never a mistake in the input. */
export class CompilerFailure extends Error {
	/** The stack trace. It may be logged, but must never be shown to a user. */
	readonly stackTrace: string | undefined;

	constructor(message: string, stackTrace?: string) {
		super(message);
		this.name = 'CompilerFailure';
		this.stackTrace = stackTrace;
	}
}

type Request<Op extends CompilerRequest['op']> = Omit<Extract<CompilerRequest, { op: Op }>, 'id' | 'op'>;

interface PendingRequest {
	readonly op: string;
	readonly resolve: (answer: never) => void;
	readonly reject: (error: Error) => void;
}

/** Sends requests to the compile thread. If it dies or is abandoned, pending requests fail and `onLost` is called once. */
export class CompilerClient {
	readonly #thread: Worker;
	readonly #pendingRequests = new Map<number, PendingRequest>();
	readonly #threadWatch = new ThreadWatch();
	readonly #events: CompilerEvents;
	readonly #requestLimits: CompilerLimits;
	#checkTimer: NodeJS.Timeout | undefined;
	#lastCheckAt = 0;
	/** Whether the current request has been reported as slow. */
	#isSlowReported = false;
	#nextRequestId = 1;
	#isEnded = false;

	constructor(start: Omit<CompilerStart, 'activity'>, events: CompilerEvents, limits: CompilerLimits) {
		this.#events = events;
		this.#requestLimits = limits;
		this.#thread = startThread('compiler', { ...start, activity: this.#threadWatch.activity.memory });
		this.#thread.on('message', (reply: CompilerReply) => this.#settleRequest(reply));
		let reason = 'The compile thread ended.';
		this.#thread.on('error', error => {
			reason = `The compile thread failed: ${error instanceof Error ? error.message : String(error)}`;
		});
		this.#thread.on('exit', () => this.#onThreadLost(reason, false));
	}

	/** Sends a request. Rejects with CompilerFailure. */
	ask<Op extends CompilerRequest['op']>(op: Op, request: Request<Op>): Promise<CompilerReplies[Op]> {
		if (this.#isEnded) return Promise.reject(new CompilerFailure('The compile thread has ended.'));
		const id = this.#nextRequestId++;
		return new Promise<CompilerReplies[Op]>((resolve, reject) => {
			this.#pendingRequests.set(id, { op, resolve, reject });
			this.#startChecking();
			this.#thread.postMessage({ ...request, id, op });
		});
	}

	/** Ends the thread. Resolves to false if it cannot be ended. */
	async end(): Promise<boolean> {
		this.#isEnded = true;
		this.#rejectPending('The server is stopping.');
		let hasExited = false;
		const exit = this.#thread.terminate().then(() => {
			hasExited = true;
		});
		await withTimeLimit(exit, THREAD_END_LIMIT_MS);
		return hasExited;
	}

	/** Checks the thread periodically while a request is pending. */
	#startChecking(): void {
		if (this.#checkTimer !== undefined) return;
		this.#lastCheckAt = performance.now();
		this.#checkTimer = setInterval(() => {
			const now = performance.now();
			this.#threadWatch.check(now - this.#lastCheckAt);
			this.#lastCheckAt = now;
			const { unansweredMs } = this.#threadWatch;
			const request = this.#pendingRequests.values().next().value?.op ?? '';
			if (unansweredMs < this.#requestLimits.reportAfterMs) this.#isSlowReported = false;
			else if (!this.#isSlowReported) {
				this.#isSlowReported = true;
				this.#events.onBusy(request, unansweredMs);
			}
			if (unansweredMs < this.#requestLimits.abandonAfterMs) return;
			void this.#thread.terminate();
			const seconds = this.#requestLimits.abandonAfterMs / 1000;
			this.#onThreadLost(`The compile thread did not finish \`${request}\` within ${seconds} s.`, true);
		}, CHECK_INTERVAL_MS).unref();
	}

	#onThreadLost(reason: string, hasStalled: boolean): void {
		const isExpected = this.#isEnded;
		this.#isEnded = true;
		this.#rejectPending(reason);
		if (!isExpected) this.#events.onLost(reason, hasStalled);
	}

	#rejectPending(reason: string): void {
		clearInterval(this.#checkTimer);
		for (const request of this.#pendingRequests.values()) request.reject(new CompilerFailure(reason));
		this.#pendingRequests.clear();
	}

	#settleRequest(reply: CompilerReply): void {
		const request = this.#pendingRequests.get(reply.id);
		this.#pendingRequests.delete(reply.id);
		if (this.#pendingRequests.size === 0) {
			clearInterval(this.#checkTimer);
			this.#checkTimer = undefined;
		}
		if (!request) return;
		if (reply.failure !== undefined) request.reject(new CompilerFailure(reply.failure, reply.stack));
		else request.resolve(reply.answer as never);
	}
}
