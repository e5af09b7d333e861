/** Bounds how often the log tells that one client was refused: who guesses tokens must not fill it. */

/** Refusals of a client that are told one after another. */
const BURST = 20;
/** Refusals forgotten each second. */
const FORGOTTEN = 1;
/** Clients remembered at most; those refused longest ago are forgotten first. */
const MOST_CLIENTS = 1000;

interface Balance {
	refusals: number;
	/** Milliseconds of the clock that is passed in. */
	at: number;
}

/** Refusals by client. */
export class RefusalRate {
	readonly #clients = new Map<string, Balance>();

	/** Counts a refusal; true when the client has had too many. `now` in milliseconds. */
	refused(client: string, now: number): boolean {
		const balance = this.#clients.get(client) ?? { refusals: 0, at: now };
		balance.refusals = Math.max(0, balance.refusals - ((now - balance.at) / 1000) * FORGOTTEN);
		balance.at = now;
		const exceeded = balance.refusals >= BURST;
		if (!exceeded) balance.refusals++;
		// The latest stand last, so that the first is the one to forget.
		this.#clients.delete(client);
		this.#clients.set(client, balance);
		if (this.#clients.size > MOST_CLIENTS) this.#clients.delete(this.#clients.keys().next().value!);
		return exceeded;
	}
}
