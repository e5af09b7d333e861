/** The queue of passwords to verify, on the main thread: fair between clients, bounded, with verdicts for all threads. */
import type { ThreadFailed } from '../threads/task-threads.ts';
import { MOST_OF_CLIENT, type PasswordAnswer, type PasswordCheck, type PasswordRefusal } from './password-check.ts';
import type { PasswordTask } from './password-thread.ts';
import { PasswordThreads, type Verifier } from './password-threads.ts';
import { VerdictMemory } from './verdict-memory.ts';

/** Verifications of all clients that wait or run. */
const MOST = 64;
/** Milliseconds that a verification is thought to take until one has been measured. */
const FIRST_GUESS_MS = 1000;
/** Share of the latest measurement in the average. */
const WEIGHT = 0.25;
/** Longest `Retry-After`, in seconds. */
const LONGEST_RETRY = 60;

/** Equal checks, which are verified once. */
interface Verification {
	readonly key: string;
	readonly task: PasswordTask;
	/** The clients that sent it; the turn of any of them serves. */
	readonly clients: Set<Client>;
	/** Those who wait for the verdict, by the ids of their checks. */
	readonly asking: Map<string, (answer: PasswordAnswer) => void>;
	started: boolean;
}

interface Client {
	readonly name: string;
	readonly waiting: Set<Verification>;
	running: number;
}

/**
 * Gives each client its turn. The next verification is one of the client that has fewest running and, among those, has
 * waited longest since it came or since its last verification ended; no client may hold every thread. Whoever floods the
 * queue waits for itself.
 */
export class PasswordQueue {
	readonly #verifier: Verifier;
	readonly #verdicts = new VerdictMemory();
	readonly #verifications = new Map<string, Verification>();
	/** By the id of a check, while it waits for its answer. */
	readonly #asked = new Map<string, Verification>();
	/** Clients that have something waiting or running, in the order of their turns. */
	readonly #clients = new Map<string, Client>();
	#running = 0;
	#averageMs = FIRST_GUESS_MS;

	/** `verifier` is ended with the queue. */
	constructor(verifier: Verifier) {
		this.#verifier = verifier;
	}

	/** Returns a queue whose passwords are verified on threads of their own. `failed` is told why one died or was ended. */
	static onThreads(failed: ThreadFailed): PasswordQueue {
		return new PasswordQueue(new PasswordThreads(failed));
	}

	/** Number of verifications that wait or run. */
	get pending(): number {
		return this.#verifications.size;
	}

	/** Resolves to the verdict, or to a refusal when too many wait. */
	verify({ id, client, user, task }: PasswordCheck): Promise<PasswordAnswer> {
		const key = this.#verdicts.keyOf(user, task.hash.text, task.password);
		const known = this.#verdicts.recall(key);
		if (known !== undefined) return Promise.resolve(known);
		const found = this.#verifications.get(key);
		const refusal = found ? undefined : this.#refusal(client);
		if (refusal) return Promise.resolve(refusal);
		const verification = found ?? { key, task, clients: new Set(), asking: new Map(), started: false };
		this.#verifications.set(key, verification);
		this.#asked.set(id, verification);
		if (!verification.started) this.#enqueue(verification, client);
		return new Promise(resolve => {
			verification.asking.set(id, resolve);
			this.#next();
		});
	}

	/** Withdraws a check. Its password is not verified unless it is already, or somebody else asks for the same. */
	withdraw(id: string): void {
		const verification = this.#asked.get(id);
		if (!verification) return;
		this.#asked.delete(id);
		verification.asking.get(id)!(null);
		verification.asking.delete(id);
		if (verification.asking.size === 0 && !verification.started) this.#drop(verification);
	}

	/** Ends verifying; what waits gets no verdict. */
	end(): Promise<boolean> {
		return this.#verifier.end();
	}

	/** Why a check of a client cannot be taken; undefined if it can, if need be in place of one of the busiest client. */
	#refusal(name: string): PasswordRefusal | undefined {
		const client = this.#clients.get(name);
		const own = client ? load(client) : 0;
		if (own >= MOST_OF_CLIENT) return this.#refuse('client', own, this.#share);
		if (this.#verifications.size < MOST) return undefined;
		const [busiest] = [...this.#clients.values()].sort((a, b) => b.waiting.size - a.waiting.size);
		if (!busiest || busiest.waiting.size === 0 || load(busiest) <= own + 1)
			return this.#refuse('all', MOST, this.#verifier.most);
		const last = [...busiest.waiting].at(-1)!;
		const refusal = this.#refuse('client', load(busiest), this.#share);
		this.#drop(last);
		this.#answer(last, refusal);
		return undefined;
	}

	#refuse(refused: PasswordRefusal['refused'], ahead: number, threads: number): PasswordRefusal {
		const seconds = Math.ceil((ahead * this.#averageMs) / (1000 * threads));
		return { refused, retryAfter: Math.min(Math.max(seconds, 1), LONGEST_RETRY) };
	}

	/** Threads that one client may hold: a thread is left for whoever comes next. */
	get #share(): number {
		return Math.max(1, this.#verifier.most - 1);
	}

	#enqueue(verification: Verification, name: string): void {
		const client = this.#clients.get(name) ?? { name, waiting: new Set<Verification>(), running: 0 };
		this.#clients.set(name, client);
		client.waiting.add(verification);
		verification.clients.add(client);
	}

	#next(): void {
		while (this.#running < this.#verifier.most) {
			const client = this.#turn();
			if (!client) return;
			void this.#run(client, client.waiting.values().next().value!);
		}
	}

	#turn(): Client | undefined {
		let next: Client | undefined;
		for (const client of this.#clients.values()) {
			if (client.waiting.size === 0 || client.running >= this.#share) continue;
			if (!next || client.running < next.running) next = client;
		}
		return next;
	}

	async #run(client: Client, verification: Verification): Promise<void> {
		this.#running++;
		client.running++;
		verification.started = true;
		this.#dequeue(verification);
		const begin = performance.now();
		const verdict = await this.#verifier.verify(verification.task);
		this.#running--;
		client.running--;
		// It goes behind everybody who waits now.
		this.#clients.delete(client.name);
		if (load(client) > 0) this.#clients.set(client.name, client);
		this.#verifications.delete(verification.key);
		if (verdict !== null) {
			this.#averageMs += WEIGHT * (performance.now() - begin - this.#averageMs);
			this.#verdicts.remember(verification.key, verdict);
		}
		this.#answer(verification, verdict);
		this.#next();
	}

	/** Forgets a verification that has not been started. */
	#drop(verification: Verification): void {
		this.#verifications.delete(verification.key);
		this.#dequeue(verification);
	}

	#dequeue(verification: Verification): void {
		for (const client of verification.clients) {
			client.waiting.delete(verification);
			if (load(client) === 0) this.#clients.delete(client.name);
		}
		verification.clients.clear();
	}

	#answer({ asking }: Verification, answer: PasswordAnswer): void {
		for (const [id, resolve] of asking) {
			this.#asked.delete(id);
			resolve(answer);
		}
		asking.clear();
	}
}

function load(client: Client): number {
	return client.waiting.size + client.running;
}
