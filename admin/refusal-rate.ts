/** Limits how often the log records refusals of one client, so that guessing tokens does not flood the log. */

/** The count of a client's recent refusals from which further ones are not logged. */
const MAX_LOGGED_REFUSALS = 20;
/** By how much each client's count decreases per second. */
const FORGOTTEN_PER_SECOND = 1;
/** Maximum number of clients that are remembered. Those whose last refusal is oldest are forgotten first. */
const MAX_REMEMBERED_CLIENTS = 1000;

interface ClientRefusals {
	refusals: number;
	/** Time of the last refusal, in milliseconds of the caller's clock. */
	lastRefusalMs: number;
}

/** Counts refusals by client. */
export class RefusalRate {
	readonly #refusalsByClient = new Map<string, ClientRefusals>();

	/** Counts a refusal. Returns true if the client has had so many that this one must not be logged. `now` is in milliseconds. */
	countRefusal(client: string, now: number): boolean {
		const clientRefusals = this.#refusalsByClient.get(client) ?? { refusals: 0, lastRefusalMs: now };
		clientRefusals.refusals = Math.max(
			0,
			clientRefusals.refusals - ((now - clientRefusals.lastRefusalMs) / 1000) * FORGOTTEN_PER_SECOND,
		);
		clientRefusals.lastRefusalMs = now;
		const hasTooMany = clientRefusals.refusals >= MAX_LOGGED_REFUSALS;
		if (!hasTooMany) clientRefusals.refusals++;
		// Moves the client to the end of the map, so that the first entry is the one with the oldest refusal.
		this.#refusalsByClient.delete(client);
		this.#refusalsByClient.set(client, clientRefusals);
		if (this.#refusalsByClient.size > MAX_REMEMBERED_CLIENTS)
			this.#refusalsByClient.delete(this.#refusalsByClient.keys().next().value!);
		return hasTooMany;
	}
}
