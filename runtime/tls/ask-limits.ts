/** How often clients may make this process look something up that it does not know. */

/** Looks that one client may cause at once, and how many more a second: an authority validates hundreds of names in a row. */
const BURST = 50;
const RATE = 20;
/** The same for all clients together. */
const TOTAL_BURST = 500;
const TOTAL_RATE = 500;
/** Clients that are remembered. Whoever is forgotten begins anew, which the bound of all still holds back. */
const MOST_CLIENTS = 4096;

interface Bucket {
	tokens: number;
	/** When it was filled, by `performance.now()`. */
	at: number;
}

/** Token buckets, one for each client and one for all. */
export class AskLimits {
	readonly #all: Bucket = { tokens: TOTAL_BURST, at: 0 };
	readonly #clients = new Map<string, Bucket>();

	/** Reports whether the client may cause one more look now, and counts it. */
	take(client: string, now: number = performance.now()): boolean {
		const own = this.#clients.get(client) ?? { tokens: BURST, at: now };
		this.#clients.delete(client);
		this.#clients.set(client, own);
		if (this.#clients.size > MOST_CLIENTS) this.#clients.delete(this.#clients.keys().next().value!);
		fill(own, RATE, BURST, now);
		fill(this.#all, TOTAL_RATE, TOTAL_BURST, now);
		// What one client is refused must not cost the others anything.
		if (own.tokens < 1 || this.#all.tokens < 1) return false;
		own.tokens--;
		this.#all.tokens--;
		return true;
	}
}

function fill(bucket: Bucket, rate: number, most: number, now: number): void {
	bucket.tokens = Math.min(most, bucket.tokens + ((now - bucket.at) * rate) / 1000);
	bucket.at = now;
}
