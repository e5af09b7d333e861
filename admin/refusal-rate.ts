/** Bounds how often one client may be refused: guessing a token, or filling the log with failures, takes for ever. */

/** Refusals that a client may gather before it has to wait. */
const BURST = 20;
/** Refusals forgiven each second. */
const FORGIVEN = 1;
/** Clients remembered at most; those refused longest ago are forgotten first. */
const MOST_CLIENTS = 1000;

interface Balance {
	refusals: number;
	/** Milliseconds of the clock that is passed in. */
	at: number;
}

/** Refusals by client. A request that is admitted never looks here: nobody can lock out who has the token. */
export class RefusalRate {
	readonly #clients = new Map<string, Balance>();

	/** Counts a refusal; true when the client has had too many. `now` in milliseconds. */
	refused(client: string, now: number): boolean {
		const balance = this.#clients.get(client) ?? { refusals: 0, at: now };
		balance.refusals = Math.max(0, balance.refusals - ((now - balance.at) / 1000) * FORGIVEN);
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
