/** Password verification on a worker thread: cached verdicts, and requests to the main thread for all others. */

import { randomUUID } from 'node:crypto';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { HttpError } from '../../compiler/exchange/http-error.ts';
import { lazily } from '../../compiler/exchange/lazily.ts';
import type { PasswordHash } from '../../compiler/modules/directives/basic-auth/password-hash.ts';
import type { PasswordVerifier } from '../../compiler/modules/directives/basic-auth/password-verifier.ts';
import { clientKey } from '../threads/client-counts.ts';
import {
	MAX_CHECKS_PER_CLIENT,
	type PasswordAnswer,
	type PasswordCheck,
	type PasswordRefusal,
} from './password-check.ts';
import { VerdictMemory } from './verdict-memory.ts';

/**
 * For this many milliseconds, a refused client is refused again without asking the main thread, which protects that thread from
 * floods.
 */
const REFUSAL_PAUSE_MS = 250;
/** Maximum number of paused clients to remember. */
const MAX_PAUSED_CLIENTS = 1024;
/** `Retry-After` in seconds after a failed verification. */
const RETRY_AFTER_FAILURE_SECONDS = 2;

/** The connection of a thread's verifier to the main thread. */
export interface PasswordPort {
	/** Sends a check to the main thread. Resolves to its answer. */
	sendCheck(check: PasswordCheck): Promise<PasswordAnswer>;
	/** Tells the main thread that the answer to a check is no longer needed. */
	withdraw(id: string): void;
	/** Returns the client's address, as reported by trusted proxies. */
	clientOf(x: Exchange): string;
	/** Counts a check that was refused because too many are pending. */
	countRefusal(): void;
}

interface PendingCheck {
	readonly id: string;
	readonly client: string;
	readonly waiters: { readonly x: Exchange; resolve(verdict: boolean): void; reject(error: HttpError): void }[];
}

interface Pause {
	/** When the client's pause ends, by `performance.now()`. */
	readonly endsAt: number;
	readonly refusal: PasswordRefusal;
}

export class ThreadPasswords implements PasswordVerifier {
	readonly isLive = true;
	readonly #port: PasswordPort;
	readonly #verdictMemory = new VerdictMemory();
	/** Checks sent to the main thread. Equal checks are coalesced. */
	readonly #pendingChecks = new Map<string, PendingCheck>();
	/** Number of pending checks by client. */
	readonly #pendingByClient = new Map<string, number>();
	readonly #pausesByClient = new Map<string, Pause>();
	/** Prefix of this thread's check IDs. A replacement thread has a different prefix. */
	readonly #idPrefix = lazily(() => ({ text: randomUUID() }));
	#lastCheckNumber = 0;

	constructor(port: PasswordPort) {
		this.#port = port;
	}

	/** Number of checks sent to the main thread and not yet answered. */
	get pendingCount(): number {
		return this.#pendingChecks.size;
	}

	verify(x: Exchange, user: string, hash: PasswordHash, password: string): boolean | Promise<boolean> {
		const key = this.#verdictMemory.keyOf(user, hash.text, password);
		const verdict = this.#verdictMemory.recallVerdict(key);
		if (verdict !== undefined) return verdict;
		return new Promise((resolve, reject) => {
			const pendingCheck =
				this.#pendingChecks.get(key) ?? this.#sendCheck(key, clientKey(this.#port.clientOf(x)), user, hash, password);
			pendingCheck.waiters.push({ x, resolve, reject });
			x.onGone(() => this.#onGone(key, pendingCheck));
		});
	}

	/** Sends a check. Throws HttpError if the client has too many pending checks. */
	#sendCheck(key: string, client: string, user: string, hash: PasswordHash, password: string): PendingCheck {
		const clientCount = this.#pendingByClient.get(client) ?? 0;
		const pause = this.#pausesByClient.get(client);
		if (pause && performance.now() < pause.endsAt) throw this.#createRefusalError(pause.refusal);
		if (clientCount >= MAX_CHECKS_PER_CLIENT)
			throw this.#createRefusalError(pause?.refusal ?? { refused: 'client', retryAfter: 1 });
		const pendingCheck: PendingCheck = {
			id: `${this.#idPrefix().text} ${++this.#lastCheckNumber}`,
			client,
			waiters: [],
		};
		this.#pendingByClient.set(client, clientCount + 1);
		this.#pendingChecks.set(key, pendingCheck);
		this.#port.sendCheck({ id: pendingCheck.id, client, user, task: { hash, password } }).then(
			answer => this.#onAnswer(key, pendingCheck, answer),
			() => this.#onAnswer(key, pendingCheck, null),
		);
		return pendingCheck;
	}

	#onAnswer(key: string, pendingCheck: PendingCheck, answer: PasswordAnswer): void {
		// The check has been withdrawn, and perhaps sent again. Its answer is ignored.
		if (this.#pendingChecks.get(key) !== pendingCheck) return;
		this.#forgetCheck(key, pendingCheck);
		if (typeof answer === 'boolean') {
			this.#verdictMemory.rememberVerdict(key, answer);
			for (const { resolve } of pendingCheck.waiters) resolve(answer);
			return;
		}
		if (answer) this.#pauseClient(pendingCheck.client, answer);
		for (const { reject } of pendingCheck.waiters)
			reject(answer ? this.#createRefusalError(answer) : unverifiedError());
	}

	#pauseClient(client: string, refusal: PasswordRefusal): void {
		this.#pausesByClient.delete(client);
		this.#pausesByClient.set(client, { endsAt: performance.now() + REFUSAL_PAUSE_MS, refusal });
		if (this.#pausesByClient.size > MAX_PAUSED_CLIENTS)
			this.#pausesByClient.delete(this.#pausesByClient.keys().next().value!);
	}

	#createRefusalError({ refused, retryAfter }: PasswordRefusal): HttpError {
		this.#port.countRefusal();
		const headers = [['Retry-After', String(retryAfter)]] as const;
		return refused === 'client'
			? new HttpError(429, 'Too many passwords from this client are waiting to be verified.', { headers })
			: new HttpError(503, 'Too many passwords are waiting to be verified.', { headers });
	}

	/** Handles the disconnect of a client. Withdraws the check if no other client waits for its verdict. */
	#onGone(key: string, pendingCheck: PendingCheck): void {
		if (this.#pendingChecks.get(key) !== pendingCheck || pendingCheck.waiters.some(({ x }) => !x.isGone)) return;
		this.#forgetCheck(key, pendingCheck);
		this.#port.withdraw(pendingCheck.id);
		for (const { resolve } of pendingCheck.waiters) resolve(false);
	}

	#forgetCheck(key: string, { client }: PendingCheck): void {
		this.#pendingChecks.delete(key);
		const remainingCount = (this.#pendingByClient.get(client) ?? 1) - 1;
		if (remainingCount === 0) this.#pendingByClient.delete(client);
		else this.#pendingByClient.set(client, remainingCount);
	}
}

function unverifiedError(): HttpError {
	return new HttpError(503, 'The password could not be verified.', {
		headers: [['Retry-After', String(RETRY_AFTER_FAILURE_SECONDS)]],
	});
}
