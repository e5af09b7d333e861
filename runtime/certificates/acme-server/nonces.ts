/**
 * Nonces of an ACME server (RFC 8555 §6.5). Issued nonces are not stored but recognized by their seal, so that a client cannot
 * evict the nonces of others by requesting many. Only nonces used in valid requests are remembered.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Milliseconds for which nonces are sealed with the same key. A nonce is valid for at least that long and at most twice as long. */
const KEY_LIFE = 600_000;
/** Maximum number of used nonces remembered per key. After that, a new key is used, and clients with old nonces must try again. */
const MAX_USED = 50_000;
/** Number of random bytes at the start of a nonce. */
const RANDOM_BYTES = 12;
/** Number of bytes of the seal at the end of a nonce. */
const SEAL_BYTES = 16;

/** A sealing key, and the nonces sealed with it that have been used. */
interface Sealing {
	readonly key: Buffer;
	readonly until: number;
	readonly used: Set<string>;
}

/** The nonces of one server. */
export class Nonces {
	#newest: Sealing = begin();
	#previous: Sealing | undefined;

	/** Issues a nonce. */
	issue(): string {
		this.#turn();
		const chance = randomBytes(RANDOM_BYTES);
		return Buffer.concat([chance, sealOf(this.#newest.key, chance)]).toString('base64url');
	}

	/** Reports whether a nonce is valid: issued recently and not used. */
	isGood(nonce: string): boolean {
		const sealing = this.#sealingOf(nonce);
		return sealing !== undefined && !sealing.used.has(nonce);
	}

	/** Marks a nonce as used. Returns false if it was not valid; see {@link isGood}. */
	use(nonce: string): boolean {
		const sealing = this.#sealingOf(nonce);
		if (sealing === undefined || sealing.used.has(nonce)) return false;
		sealing.used.add(nonce);
		return true;
	}

	#sealingOf(nonce: string): Sealing | undefined {
		this.#turn();
		const bytes = Buffer.from(nonce, 'base64url');
		// Only one encoding of a nonce is accepted. If others were accepted, the same nonce could be used once in each of its
		// encodings.
		if (bytes.length !== RANDOM_BYTES + SEAL_BYTES || bytes.toString('base64url') !== nonce) return undefined;
		const chance = bytes.subarray(0, RANDOM_BYTES);
		const sealed = (sealing: Sealing | undefined): boolean =>
			sealing !== undefined && timingSafeEqual(sealOf(sealing.key, chance), bytes.subarray(RANDOM_BYTES));
		if (sealed(this.#newest)) return this.#newest;
		return sealed(this.#previous) ? this.#previous : undefined;
	}

	#turn(): void {
		const { until, used } = this.#newest;
		if (performance.now() < until && used.size < MAX_USED) return;
		this.#previous = this.#newest;
		this.#newest = begin();
	}
}

function begin(): Sealing {
	return { key: randomBytes(32), until: performance.now() + KEY_LIFE, used: new Set() };
}

function sealOf(key: Buffer, chance: Buffer): Buffer {
	return createHmac('sha256', key).update(chance).digest().subarray(0, SEAL_BYTES);
}
