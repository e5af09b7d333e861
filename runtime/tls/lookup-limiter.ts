/** Limits the rate at which clients can cause lookups of unknown names and tokens. */

/**
 * Number of lookups that one client may cause at once, before {@link RATE_PER_SECOND} applies. It is generous,
 * because a CA validates hundreds of names in a row.
 */
const CLIENT_BURST = 50;
/** Number of further lookups that one client may cause per second. */
const RATE_PER_SECOND = 20;
/** Number of lookups that all clients together may cause at once, before {@link TOTAL_RATE_PER_SECOND} applies. */
const TOTAL_BURST = 500;
/** Number of further lookups that all clients together may cause per second. */
const TOTAL_RATE_PER_SECOND = 500;
/** Maximum number of tracked clients. An evicted client starts with a full bucket, but the total limit still applies. */
const MAX_TRACKED_CLIENTS = 4096;

interface Bucket {
	tokens: number;
	/** Time of the last refill, by `performance.now()`. */
	refilledAt: number;
}

/** Token buckets: one per client, and one for all clients together. */
export class LookupLimiter {
	readonly #totalBucket: Bucket = { tokens: TOTAL_BURST, refilledAt: 0 };
	readonly #bucketsByClient = new Map<string, Bucket>();

	/** Reports whether the client may cause another lookup now. If it may, counts the lookup. */
	admits(client: string, now: number = performance.now()): boolean {
		const clientBucket = this.#bucketsByClient.get(client) ?? { tokens: CLIENT_BURST, refilledAt: now };
		this.#bucketsByClient.delete(client);
		this.#bucketsByClient.set(client, clientBucket);
		if (this.#bucketsByClient.size > MAX_TRACKED_CLIENTS)
			this.#bucketsByClient.delete(this.#bucketsByClient.keys().next().value!);
		refillBucket(clientBucket, RATE_PER_SECOND, CLIENT_BURST, now);
		refillBucket(this.#totalBucket, TOTAL_RATE_PER_SECOND, TOTAL_BURST, now);
		// A lookup that one client's bucket denies must not take a token from the bucket of all clients.
		if (clientBucket.tokens < 1 || this.#totalBucket.tokens < 1) return false;
		clientBucket.tokens--;
		this.#totalBucket.tokens--;
		return true;
	}
}

function refillBucket(bucket: Bucket, tokensPerSecond: number, maxTokens: number, now: number): void {
	bucket.tokens = Math.min(maxTokens, bucket.tokens + ((now - bucket.refilledAt) * tokensPerSecond) / 1000);
	bucket.refilledAt = now;
}
