/** Limits how often refusals of one client are logged, so that guessing tokens does not flood the log. */

/** Number of consecutive refusals of a client that are logged. */
const BURST = 20;
/** Number of refusals forgotten per second. */
const FORGOTTEN = 1;
/** Maximum clients remembered; those refused longest ago are forgotten first. */
const MAX_CLIENTS = 1000;

interface Balance {
	refusals: number;
	/** Time of the last refusal, in milliseconds of the caller's clock. */
	at: number;
}

/** Refusals by client. */
export class RefusalRate {
	readonly #clients = new Map<string, Balance>();

	/** Counts a refusal and reports whether the client has had too many. `now` is in milliseconds. */
	refused(client: string, now: number): boolean {
		const balance = this.#clients.get(client) ?? { refusals: 0, at: now };
		balance.refusals = Math.max(0, balance.refusals - ((now - balance.at) / 1000) * FORGOTTEN);
		balance.at = now;
		const exceeded = balance.refusals >= BURST;
		if (!exceeded) balance.refusals++;
		// Keeps the map ordered by time, so that its first entry is the one to evict.
		this.#clients.delete(client);
		this.#clients.set(client, balance);
		if (this.#clients.size > MAX_CLIENTS) this.#clients.delete(this.#clients.keys().next().value!);
		return exceeded;
	}
}
