/** Limits how often the log records refusals of one client, so that guessing tokens does not flood the log. */

/** Number of consecutive refusals of a client that are logged. */
const MAX_LOGGED = 20;
/** Number of refusals per second by which each client's count decreases. */
const FORGOTTEN_PER_SECOND = 1;
/** Maximum number of clients that are remembered. Those whose last refusal is oldest are forgotten first. */
const MAX_CLIENTS = 1000;

interface Balance {
	refusals: number;
	/** Time of the last refusal, in milliseconds of the caller's clock. */
	lastAt: number;
}

/** Counts refusals by client. */
export class RefusalRate {
	readonly #clients = new Map<string, Balance>();

	/** Counts a refusal and reports whether the client has had too many. `now` is in milliseconds. */
	countRefusal(client: string, now: number): boolean {
		const balance = this.#clients.get(client) ?? { refusals: 0, lastAt: now };
		balance.refusals = Math.max(0, balance.refusals - ((now - balance.lastAt) / 1000) * FORGOTTEN_PER_SECOND);
		balance.lastAt = now;
		const exceeded = balance.refusals >= MAX_LOGGED;
		if (!exceeded) balance.refusals++;
		// Keeps the map ordered by time, so that the first entry is the one to remove.
		this.#clients.delete(client);
		this.#clients.set(client, balance);
		if (this.#clients.size > MAX_CLIENTS) this.#clients.delete(this.#clients.keys().next().value!);
		return exceeded;
	}
}
