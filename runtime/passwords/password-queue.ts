/** The main thread's queue of passwords to verify: bounded, fair between clients, and shared by all threads. */
import type { OnThreadFailure } from '../threads/task-threads.ts';
import {
	MAX_CHECKS_PER_CLIENT,
	type PasswordAnswer,
	type PasswordCheck,
	type PasswordRefusal,
} from './password-check.ts';
import type { PasswordTask } from './password-thread.ts';
import { PasswordThreads, type PasswordVerificationRunner } from './password-threads.ts';
import { VerdictMemory } from './verdict-memory.ts';

/** Maximum pending verifications of all clients. */
const MAX_PENDING_VERIFICATIONS = 64;
/** Number of milliseconds that a verification is assumed to take until one has been measured. */
const INITIAL_ESTIMATE_MS = 1000;
/** Weight of the latest measurement in the moving average. */
const LATEST_DURATION_WEIGHT = 0.25;
const MAX_RETRY_AFTER_SECONDS = 60;

/** The verification of one password, which all equal checks share. */
interface Verification {
	readonly key: string;
	readonly task: PasswordTask;
	/** The clients that sent the password. The password is verified as soon as any of these clients is scheduled. */
	readonly clients: Set<Client>;
	/** Callbacks that wait for the verdict, by the IDs of their checks. */
	readonly resolvers: Map<string, (answer: PasswordAnswer) => void>;
	isStarted: boolean;
}

interface Client {
	readonly name: string;
	readonly waitingVerifications: Set<Verification>;
	runningCount: number;
}

/**
 * Schedules verifications fairly. The client with the fewest running verifications is next; among several such clients, the one
 * that has waited longest since it arrived or since its last verification ended. No client can occupy all threads, so a client
 * that floods the queue delays only itself.
 */
export class PasswordQueue {
	readonly #verifier: PasswordVerificationRunner;
	readonly #verdictMemory = new VerdictMemory();
	readonly #verificationsByKey = new Map<string, Verification>();
	/** The verification for which each unanswered check waits, by the check's ID. */
	readonly #verificationsByCheck = new Map<string, Verification>();
	/** Clients with pending verifications, ordered by how long they have waited. */
	readonly #clientsByName = new Map<string, Client>();
	#runningCount = 0;
	#averageMs = INITIAL_ESTIMATE_MS;

	/** @param verifier Performs the verifications. It is terminated together with the queue. */
	constructor(verifier: PasswordVerificationRunner) {
		this.#verifier = verifier;
	}

	/**
	 * Returns a queue that verifies on dedicated threads. `onFailure` is called with the reason if a thread dies or is terminated.
	 */
	static onThreads(onFailure: OnThreadFailure): PasswordQueue {
		return new PasswordQueue(new PasswordThreads(onFailure));
	}

	/** Number of waiting and running verifications. */
	get pendingCount(): number {
		return this.#verificationsByKey.size;
	}

	/** Verifies a password. Resolves to the verdict, or to a refusal if too many are pending. */
	verify({ id, client, user, task }: PasswordCheck): Promise<PasswordAnswer> {
		const key = this.#verdictMemory.keyOf(user, task.hash.text, task.password);
		const verdict = this.#verdictMemory.recallVerdict(key);
		if (verdict !== undefined) return Promise.resolve(verdict);
		const existingVerification = this.#verificationsByKey.get(key);
		const refusal = existingVerification ? undefined : this.#refusalFor(client);
		if (refusal) return Promise.resolve(refusal);
		const verification = existingVerification ?? {
			key,
			task,
			clients: new Set(),
			resolvers: new Map(),
			isStarted: false,
		};
		this.#verificationsByKey.set(key, verification);
		this.#verificationsByCheck.set(id, verification);
		if (!verification.isStarted) this.#enqueue(verification, client);
		return new Promise(resolve => {
			verification.resolvers.set(id, resolve);
			this.#startNext();
		});
	}

	/** Withdraws a check. The verification is canceled unless it has started or another check needs it. */
	withdraw(id: string): void {
		const verification = this.#verificationsByCheck.get(id);
		if (!verification) return;
		this.#verificationsByCheck.delete(id);
		verification.resolvers.get(id)!(null);
		verification.resolvers.delete(id);
		if (verification.resolvers.size === 0 && !verification.isStarted) this.#cancelVerification(verification);
	}

	/** Stops verifying. Waiting checks get no verdict. */
	end(): Promise<boolean> {
		return this.#verifier.end();
	}

	/**
	 * Returns why a client's check cannot be queued, or undefined if it can. If the queue is full but another client has more
	 * pending checks, that client's last check is dropped to make room.
	 */
	#refusalFor(clientName: string): PasswordRefusal | undefined {
		const client = this.#clientsByName.get(clientName);
		const ownCount = client ? pendingCount(client) : 0;
		if (ownCount >= MAX_CHECKS_PER_CLIENT) return this.#createRefusal('client', ownCount, this.#maxPerClient);
		if (this.#verificationsByKey.size < MAX_PENDING_VERIFICATIONS) return undefined;
		const [busiestClient] = [...this.#clientsByName.values()].sort(
			(a, b) => b.waitingVerifications.size - a.waitingVerifications.size,
		);
		if (!busiestClient || busiestClient.waitingVerifications.size === 0 || pendingCount(busiestClient) <= ownCount + 1)
			return this.#createRefusal('all', MAX_PENDING_VERIFICATIONS, this.#verifier.maxThreads);
		const lastVerification = [...busiestClient.waitingVerifications].at(-1)!;
		const refusal = this.#createRefusal('client', pendingCount(busiestClient), this.#maxPerClient);
		this.#cancelVerification(lastVerification);
		this.#answerChecks(lastVerification, refusal);
		return undefined;
	}

	#createRefusal(refused: PasswordRefusal['refused'], aheadCount: number, threadCount: number): PasswordRefusal {
		const retrySeconds = Math.ceil((aheadCount * this.#averageMs) / (1000 * threadCount));
		return { refused, retryAfter: Math.min(Math.max(retrySeconds, 1), MAX_RETRY_AFTER_SECONDS) };
	}

	/** Maximum threads per client. One thread is left for other clients. */
	get #maxPerClient(): number {
		return Math.max(1, this.#verifier.maxThreads - 1);
	}

	#enqueue(verification: Verification, clientName: string): void {
		const client = this.#clientsByName.get(clientName) ?? {
			name: clientName,
			waitingVerifications: new Set<Verification>(),
			runningCount: 0,
		};
		this.#clientsByName.set(clientName, client);
		client.waitingVerifications.add(verification);
		verification.clients.add(client);
	}

	#startNext(): void {
		while (this.#runningCount < this.#verifier.maxThreads) {
			const client = this.#nextClient();
			if (!client) return;
			void this.#runVerification(client, client.waitingVerifications.values().next().value!);
		}
	}

	#nextClient(): Client | undefined {
		let bestClient: Client | undefined;
		for (const client of this.#clientsByName.values()) {
			if (client.waitingVerifications.size === 0 || client.runningCount >= this.#maxPerClient) continue;
			if (!bestClient || client.runningCount < bestClient.runningCount) bestClient = client;
		}
		return bestClient;
	}

	async #runVerification(client: Client, verification: Verification): Promise<void> {
		this.#runningCount++;
		client.runningCount++;
		verification.isStarted = true;
		this.#dequeue(verification);
		const startedAt = performance.now();
		const verdict = await this.#verifier.verify(verification.task);
		this.#runningCount--;
		client.runningCount--;
		// The client has just been served, so it moves to the end of the order.
		this.#clientsByName.delete(client.name);
		if (pendingCount(client) > 0) this.#clientsByName.set(client.name, client);
		this.#verificationsByKey.delete(verification.key);
		if (verdict !== null) {
			this.#averageMs += LATEST_DURATION_WEIGHT * (performance.now() - startedAt - this.#averageMs);
			this.#verdictMemory.rememberVerdict(verification.key, verdict);
		}
		this.#answerChecks(verification, verdict);
		this.#startNext();
	}

	/** Cancels a verification that has not started. */
	#cancelVerification(verification: Verification): void {
		this.#verificationsByKey.delete(verification.key);
		this.#dequeue(verification);
	}

	#dequeue(verification: Verification): void {
		for (const client of verification.clients) {
			client.waitingVerifications.delete(verification);
			if (pendingCount(client) === 0) this.#clientsByName.delete(client.name);
		}
		verification.clients.clear();
	}

	#answerChecks({ resolvers }: Verification, answer: PasswordAnswer): void {
		for (const [id, resolve] of resolvers) {
			this.#verificationsByCheck.delete(id);
			resolve(answer);
		}
		resolvers.clear();
	}
}

function pendingCount(client: Client): number {
	return client.waitingVerifications.size + client.runningCount;
}
