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
const MAX_TOTAL_PENDING = 64;
/** Number of milliseconds that a verification is assumed to take until one has been measured. */
const INITIAL_ESTIMATE_MS = 1000;
/** Weight of the latest measurement in the moving average. */
const LATEST_WEIGHT = 0.25;
/** Maximum `Retry-After`, in seconds. */
const MAX_RETRY_AFTER_SECONDS = 60;

/** One verification. Equal checks share it. */
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
 * that has waited longest since it arrived or since its last verification ended. No client can occupy all threads, so a client that
 * floods the queue delays only itself.
 */
export class PasswordQueue {
	readonly #verifier: PasswordVerificationRunner;
	readonly #verdicts = new VerdictMemory();
	readonly #verifications = new Map<string, Verification>();
	/** Unanswered checks by ID. */
	readonly #checks = new Map<string, Verification>();
	/** Clients with pending verifications, ordered by how long they have waited. */
	readonly #clients = new Map<string, Client>();
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
		return this.#verifications.size;
	}

	/** Verifies a password. Resolves to the verdict, or to a refusal if too many are pending. */
	verify({ id, client, user, task }: PasswordCheck): Promise<PasswordAnswer> {
		const key = this.#verdicts.keyOf(user, task.hash.text, task.password);
		const verdict = this.#verdicts.recall(key);
		if (verdict !== undefined) return Promise.resolve(verdict);
		const existing = this.#verifications.get(key);
		const refusal = existing ? undefined : this.#refusalFor(client);
		if (refusal) return Promise.resolve(refusal);
		const verification = existing ?? { key, task, clients: new Set(), resolvers: new Map(), isStarted: false };
		this.#verifications.set(key, verification);
		this.#checks.set(id, verification);
		if (!verification.isStarted) this.#enqueue(verification, client);
		return new Promise(resolve => {
			verification.resolvers.set(id, resolve);
			this.#startNext();
		});
	}

	/** Withdraws a check. The verification is canceled unless it has started or another check needs it. */
	withdraw(id: string): void {
		const verification = this.#checks.get(id);
		if (!verification) return;
		this.#checks.delete(id);
		verification.resolvers.get(id)!(null);
		verification.resolvers.delete(id);
		if (verification.resolvers.size === 0 && !verification.isStarted) this.#cancel(verification);
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
		const client = this.#clients.get(clientName);
		const ownCount = client ? pendingCount(client) : 0;
		if (ownCount >= MAX_CHECKS_PER_CLIENT) return this.#createRefusal('client', ownCount, this.#maxPerClient);
		if (this.#verifications.size < MAX_TOTAL_PENDING) return undefined;
		const [busiest] = [...this.#clients.values()].sort(
			(a, b) => b.waitingVerifications.size - a.waitingVerifications.size,
		);
		if (!busiest || busiest.waitingVerifications.size === 0 || pendingCount(busiest) <= ownCount + 1)
			return this.#createRefusal('all', MAX_TOTAL_PENDING, this.#verifier.maxThreads);
		const lastVerification = [...busiest.waitingVerifications].at(-1)!;
		const refusal = this.#createRefusal('client', pendingCount(busiest), this.#maxPerClient);
		this.#cancel(lastVerification);
		this.#answer(lastVerification, refusal);
		return undefined;
	}

	#createRefusal(refused: PasswordRefusal['refused'], aheadCount: number, threads: number): PasswordRefusal {
		const seconds = Math.ceil((aheadCount * this.#averageMs) / (1000 * threads));
		return { refused, retryAfter: Math.min(Math.max(seconds, 1), MAX_RETRY_AFTER_SECONDS) };
	}

	/** Maximum threads per client. One thread is left for other clients. */
	get #maxPerClient(): number {
		return Math.max(1, this.#verifier.maxThreads - 1);
	}

	#enqueue(verification: Verification, clientName: string): void {
		const client = this.#clients.get(clientName) ?? {
			name: clientName,
			waitingVerifications: new Set<Verification>(),
			runningCount: 0,
		};
		this.#clients.set(clientName, client);
		client.waitingVerifications.add(verification);
		verification.clients.add(client);
	}

	#startNext(): void {
		while (this.#runningCount < this.#verifier.maxThreads) {
			const client = this.#nextClient();
			if (!client) return;
			void this.#run(client, client.waitingVerifications.values().next().value!);
		}
	}

	#nextClient(): Client | undefined {
		let bestClient: Client | undefined;
		for (const client of this.#clients.values()) {
			if (client.waitingVerifications.size === 0 || client.runningCount >= this.#maxPerClient) continue;
			if (!bestClient || client.runningCount < bestClient.runningCount) bestClient = client;
		}
		return bestClient;
	}

	async #run(client: Client, verification: Verification): Promise<void> {
		this.#runningCount++;
		client.runningCount++;
		verification.isStarted = true;
		this.#dequeue(verification);
		const startedAt = performance.now();
		const verdict = await this.#verifier.verify(verification.task);
		this.#runningCount--;
		client.runningCount--;
		// The client has just been served, so it moves to the end of the order.
		this.#clients.delete(client.name);
		if (pendingCount(client) > 0) this.#clients.set(client.name, client);
		this.#verifications.delete(verification.key);
		if (verdict !== null) {
			this.#averageMs += LATEST_WEIGHT * (performance.now() - startedAt - this.#averageMs);
			this.#verdicts.remember(verification.key, verdict);
		}
		this.#answer(verification, verdict);
		this.#startNext();
	}

	/** Cancels a verification that has not started. */
	#cancel(verification: Verification): void {
		this.#verifications.delete(verification.key);
		this.#dequeue(verification);
	}

	#dequeue(verification: Verification): void {
		for (const client of verification.clients) {
			client.waitingVerifications.delete(verification);
			if (pendingCount(client) === 0) this.#clients.delete(client.name);
		}
		verification.clients.clear();
	}

	#answer({ resolvers }: Verification, answer: PasswordAnswer): void {
		for (const [id, resolve] of resolvers) {
			this.#checks.delete(id);
			resolve(answer);
		}
		resolvers.clear();
	}
}

function pendingCount(client: Client): number {
	return client.waitingVerifications.size + client.runningCount;
}
