/** Limits the rate at which clients can cause lookups of unknown names and tokens. */

/**
 * Number of lookups that one client may cause at once, before {@link RATE} applies. It is generous, because a CA validates hundreds
 * of names in a row.
 */
const BURST = 50;
/** Number of further lookups that one client may cause per second. */
const RATE = 20;
/** Number of lookups that all clients together may cause at once, before {@link TOTAL_RATE} applies. */
const TOTAL_BURST = 500;
/** Number of further lookups that all clients together may cause per second. */
const TOTAL_RATE = 500;
/** Maximum number of tracked clients. An evicted client starts with a full bucket, but the total limit still applies. */
const MAX_CLIENTS = 4096;

interface Bucket {
	tokens: number;
	/** Time of the last refill, by `performance.now()`. */
	at: number;
}

/** Token buckets: one per client, and one for all clients together. */
export class LookupLimiter {
	readonly #totalBucket: Bucket = { tokens: TOTAL_BURST, at: 0 };
	readonly #clients = new Map<string, Bucket>();

	/** Reports whether the client may cause another lookup now, and counts it. */
	take(client: string, now: number = performance.now()): boolean {
		const clientBucket = this.#clients.get(client) ?? { tokens: BURST, at: now };
		this.#clients.delete(client);
		this.#clients.set(client, clientBucket);
		if (this.#clients.size > MAX_CLIENTS) this.#clients.delete(this.#clients.keys().next().value!);
		fill(clientBucket, RATE, BURST, now);
		fill(this.#totalBucket, TOTAL_RATE, TOTAL_BURST, now);
		// A lookup that one client's bucket denies must not take a token from the bucket of all clients.
		if (clientBucket.tokens < 1 || this.#totalBucket.tokens < 1) return false;
		clientBucket.tokens--;
		this.#totalBucket.tokens--;
		return true;
	}
}

function fill(bucket: Bucket, rate: number, most: number, now: number): void {
	bucket.tokens = Math.min(most, bucket.tokens + ((now - bucket.at) * rate) / 1000);
	bucket.at = now;
}
