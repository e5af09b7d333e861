/** Passwords on a data-plane thread: verdicts that are remembered, and a bounded queue of those to be asked for. */
import { createHmac, randomBytes } from 'node:crypto';
import type { PasswordHash } from '../../compiler/directives/basic-auth/password-hash.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { HttpError } from '../../compiler/exchange/http-error.ts';
import type { PasswordVerifier } from '../../compiler/exchange/leases.ts';
import type { PasswordTask, PasswordVerdict } from './password-thread.ts';

/** Verifications that may wait on this thread. */
const MOST = 32;
/** Of one client address. */
const MOST_OF_CLIENT = 8;
/** Verifications that this thread has under way at once; the rest wait here, where they can be given up. */
const UNDER_WAY = 2;
/** Verdicts that are remembered, right ones and wrong ones apart: guesses cannot push out what is known to be right. */
const REMEMBERED = 1024;
/** Seconds after which a client that was turned away may come back. */
const RETRY_AFTER = '2';

interface Check {
	readonly key: string;
	readonly client: string;
	readonly task: PasswordTask;
	readonly waiters: { readonly x: Exchange; resolve(verdict: boolean): void; reject(error: HttpError): void }[];
}

/** What is asked of the main thread. */
export type AskVerdict = (task: PasswordTask) => Promise<PasswordVerdict>;

/** The verifier of one thread. */
export class PasswordQueue implements PasswordVerifier {
	readonly live = true;
	readonly #ask: AskVerdict;
	readonly #clientOf: (x: Exchange) => string;
	/** Of this thread and process only: a dump of the table tells nothing about a password. */
	readonly #secret = randomBytes(32);
	readonly #right = new Map<string, boolean>();
	readonly #wrong = new Map<string, boolean>();
	/** Checks that wait or are under way: equal ones are made once. */
	readonly #checks = new Map<string, Check>();
	readonly #clients = new Map<string, number>();
	#waiting: Check[] = [];
	#underWay = 0;

	/** `clientOf` gives the address of the client behind trusted proxies. */
	constructor(ask: AskVerdict, clientOf: (x: Exchange) => string) {
		this.#ask = ask;
		this.#clientOf = clientOf;
	}

	/** Checks that wait or are under way. */
	get pending(): number {
		return this.#checks.size;
	}

	verify(x: Exchange, user: string, hash: PasswordHash, password: string): boolean | Promise<boolean> {
		const key = this.#keyOf(user, hash.text, password);
		const known = recall(this.#right, key) ?? recall(this.#wrong, key);
		if (known !== undefined) return known;
		const check = this.#checks.get(key) ?? this.#enqueue(x, key, { hash, password });
		return new Promise((resolve, reject) => {
			check.waiters.push({ x, resolve, reject });
			x.onGone(() => this.#gone(check));
		});
	}

	/** The user is part of it: an unknown one must not be quick because another unknown one tried the same password. */
	#keyOf(user: string, hash: string, password: string): string {
		const hmac = createHmac('sha256', this.#secret);
		return hmac.update(`${user.length}:${user}${hash.length}:${hash}${password}`).digest('binary');
	}

	#enqueue(x: Exchange, key: string, task: PasswordTask): Check {
		const client = this.#clientOf(x);
		const ofClient = this.#clients.get(client) ?? 0;
		if (this.#checks.size >= MOST || ofClient >= MOST_OF_CLIENT) {
			throw new HttpError(503, 'Too many passwords wait to be verified.', { headers: [['Retry-After', RETRY_AFTER]] });
		}
		const check: Check = { key, client, task, waiters: [] };
		this.#clients.set(client, ofClient + 1);
		this.#checks.set(key, check);
		this.#waiting.push(check);
		// Its first waiter has to be there before it can be found that nobody waits.
		queueMicrotask(() => this.#next());
		return check;
	}

	#next(): void {
		while (this.#underWay < UNDER_WAY) {
			const check = this.#waiting.shift();
			if (!check) return;
			this.#underWay++;
			this.#ask(check.task).then(
				verdict => this.#answered(check, verdict),
				() => this.#answered(check, null),
			);
		}
	}

	#answered(check: Check, verdict: PasswordVerdict): void {
		this.#underWay--;
		this.#forget(check);
		if (verdict === null) {
			for (const { reject } of check.waiters) {
				reject(new HttpError(503, 'The password could not be verified.', { headers: [['Retry-After', RETRY_AFTER]] }));
			}
		} else {
			remember(verdict ? this.#right : this.#wrong, check.key, verdict);
			for (const { resolve } of check.waiters) resolve(verdict);
		}
		this.#next();
	}

	/** Nobody waits for a check any more: it is not made, unless it is under way. */
	#gone(check: Check): void {
		const at = this.#waiting.indexOf(check);
		if (at === -1 || check.waiters.some(({ x }) => !x.isGone)) return;
		this.#waiting.splice(at, 1);
		this.#forget(check);
		for (const { resolve } of check.waiters) resolve(false);
	}

	#forget(check: Check): void {
		this.#checks.delete(check.key);
		const left = (this.#clients.get(check.client) ?? 1) - 1;
		if (left === 0) this.#clients.delete(check.client);
		else this.#clients.set(check.client, left);
	}
}

/** A verdict, which becomes the youngest. */
function recall(verdicts: Map<string, boolean>, key: string): boolean | undefined {
	const verdict = verdicts.get(key);
	if (verdict === undefined) return undefined;
	verdicts.delete(key);
	verdicts.set(key, verdict);
	return verdict;
}

function remember(verdicts: Map<string, boolean>, key: string, verdict: boolean): void {
	verdicts.set(key, verdict);
	if (verdicts.size > REMEMBERED) verdicts.delete(verdicts.keys().next().value!);
}
