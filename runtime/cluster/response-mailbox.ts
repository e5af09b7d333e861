/**
 * Notifications about the ends of other machines' fetches. Each process has a stream in Redis, its mailbox. The process that ends a
 * fetch adds an entry to the mailboxes of the processes that wait for it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { FetchOutcome } from '../../compiler/exchange/response-cache.ts';
import type { RedisAccess, WaitingConnection } from './redis-access.ts';
import type { RedisReply } from './redis-connection.ts';
import { entriesOf, fieldOf, isEarlyEmptyAnswer, READ_BLOCK_MS } from './shared-purges.ts';

/** Milliseconds, in addition to READ_BLOCK_MS, within which Redis must answer a read. */
const EXTRA_ANSWER_MS = 3000;
/** Milliseconds before the next read if a read failed, or if Redis returned an empty result before the blocking time was over. */
const RETRY_DELAY_MS = 100;

/** The result of a wait: the outcome of the fetch, or 'unknown' if there was no notification. */
export type WaitOutcome = FetchOutcome | 'unknown';

/** A wait that has been prepared before it is known whether it is needed, so that no notification is missed. */
export interface PreparedWait {
	/**
	 * Resolves when the fetch has ended, or after `limitMs` milliseconds at the latest. Notifications that Redis recorded before
	 * `sinceMs` (milliseconds since 1970, by the clock of Redis) are ignored: they are about earlier fetches of the same response,
	 * and stayed in the mailbox because it is read only while a request waits.
	 */
	wait(limitMs: number, sinceMs: number): Promise<WaitOutcome>;
	/** Stops waiting for the notification. */
	cancel(): void;
}

/** Receives the outcome of a fetch, and the time at which Redis recorded it, in milliseconds since 1970. */
type OutcomeListener = (outcome: WaitOutcome, recordedAt: number) => void;

export class ResponseMailbox {
	readonly #redis: RedisAccess;
	/** Name of this process's mailbox in Redis. */
	readonly key: string;
	readonly #listenersByLease = new Map<string, Set<OutcomeListener>>();
	#connection: WaitingConnection | undefined;
	#lastId = '0-0';
	#waitCount = 0;
	#isReading = false;
	#isClosed = false;

	constructor(redis: RedisAccess, key: string) {
		this.#redis = redis;
		this.key = key;
	}

	/** Prepares to wait for the end of a fetch. `leaseKey` is the name in Redis of the fetch's lease. */
	prepare(leaseKey: string): PreparedWait {
		const { promise, resolve } = Promise.withResolvers<WaitOutcome>();
		const listeners = this.#listenersByLease.get(leaseKey) ?? new Set();
		this.#listenersByLease.set(leaseKey, listeners);
		// A notification can arrive before `wait` is called, which sets the time before which notifications are ignored.
		let latest: { readonly outcome: WaitOutcome; readonly recordedAt: number } | undefined;
		let ignoredBefore: number | undefined;
		const settle = (): void => {
			if (latest && ignoredBefore !== undefined && latest.recordedAt >= ignoredBefore) resolve(latest.outcome);
		};
		const listener: OutcomeListener = (outcome, recordedAt) => {
			latest = { outcome, recordedAt };
			settle();
		};
		listeners.add(listener);
		const cancel = (): void => {
			listeners.delete(listener);
			if (listeners.size === 0 && this.#listenersByLease.get(leaseKey) === listeners)
				this.#listenersByLease.delete(leaseKey);
		};
		const wait = async (limitMs: number, sinceMs: number): Promise<WaitOutcome> => {
			ignoredBefore = sinceMs;
			settle();
			this.#waitCount++;
			if (!this.#isReading) void this.#read();
			const timer = setTimeout(() => resolve('unknown'), limitMs);
			const outcome = await promise;
			clearTimeout(timer);
			this.#waitCount--;
			cancel();
			return outcome;
		};
		return { wait, cancel };
	}

	/** Ends all waits with the outcome 'unknown'. */
	wakeAll(): void {
		for (const listeners of this.#listenersByLease.values())
			for (const listener of listeners) listener('unknown', Number.POSITIVE_INFINITY);
	}

	close(): void {
		this.#isClosed = true;
		this.wakeAll();
		this.#connection?.close();
	}

	/** Reads the mailbox while requests wait. */
	async #read(): Promise<void> {
		this.#isReading = true;
		try {
			this.#connection ??= await this.#redis.openConnection();
			if (this.#isClosed) this.#connection.close();
			while (this.#waitCount > 0 && !this.#isClosed) {
				const args = ['XREAD', 'COUNT', '1000', 'BLOCK', String(READ_BLOCK_MS), 'STREAMS', this.key, this.#lastId];
				const sentAt = performance.now();
				try {
					const reply = await this.#connection.sendCommand(args, READ_BLOCK_MS + EXTRA_ANSWER_MS);
					this.#distribute(reply);
					// Without the pause, a Redis that ignores BLOCK would be read in a busy loop.
					if (isEarlyEmptyAnswer(reply, performance.now() - sentAt))
						await pause(RETRY_DELAY_MS, undefined, { ref: false });
				} catch {
					// The failure is ignored: the waits have time limits, and the mailbox is read again after the pause.
					await pause(RETRY_DELAY_MS, undefined, { ref: false });
				}
			}
		} finally {
			this.#isReading = false;
		}
	}

	#distribute(reply: RedisReply): void {
		for (const [, entries] of (reply ?? []) as readonly (readonly [Buffer, RedisReply])[]) {
			for (const entry of entriesOf(entries)) {
				this.#lastId = entry.id;
				const listeners = this.#listenersByLease.get(String(fieldOf(entry, 'lease')));
				const outcome = String(fieldOf(entry, 'outcome')) as WaitOutcome;
				const recordedAt = Number.parseInt(entry.id, 10);
				for (const listener of listeners ?? []) listener(outcome, recordedAt);
			}
		}
	}
}
