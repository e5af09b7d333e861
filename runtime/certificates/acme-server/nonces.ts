/**
 * Nonces of an ACME server (RFC 8555 §6.5). Issued nonces are not stored. Each one ends with a seal, a message authentication
 * code by which the server recognizes it, so a client that requests many nonces cannot evict those of other clients. Only
 * nonces used in valid requests are remembered.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/**
 * Milliseconds until the sealing key is replaced. A nonce stays valid until the key has been replaced twice, which takes one to
 * two such periods.
 */
const KEY_ROTATION_MS = 600_000;
/** Maximum number of used nonces remembered per key. When it is reached, the key is replaced early, so nonces expire sooner. */
const MAX_USED_NONCES = 50_000;
/** Number of random bytes at the start of a nonce. */
const RANDOM_BYTES = 12;
/** Number of bytes of the seal at the end of a nonce. */
const SEAL_BYTES = 16;

/** A sealing key, and the nonces sealed with it that have been used. */
interface SealingKey {
	readonly key: Buffer;
	/** Time at which a new key replaces this one, on the clock of `performance.now()`. */
	readonly rotateAt: number;
	readonly usedNonces: Set<string>;
}

/** The nonces of one server. */
export class Nonces {
	#currentKey: SealingKey = createSealingKey();
	#previousKey: SealingKey | undefined;

	issue(): string {
		this.#rotateIfDue();
		const randomPart = randomBytes(RANDOM_BYTES);
		return Buffer.concat([randomPart, computeSeal(this.#currentKey.key, randomPart)]).toString('base64url');
	}

	/** Reports whether a nonce is valid: issued recently and not used. */
	isValid(nonce: string): boolean {
		const sealingKey = this.#sealingKeyOf(nonce);
		return sealingKey !== undefined && !sealingKey.usedNonces.has(nonce);
	}

	/** Marks a nonce as used. Returns false if the nonce was not valid; see {@link isValid}. */
	markUsed(nonce: string): boolean {
		const sealingKey = this.#sealingKeyOf(nonce);
		if (sealingKey === undefined || sealingKey.usedNonces.has(nonce)) return false;
		sealingKey.usedNonces.add(nonce);
		return true;
	}

	#sealingKeyOf(nonce: string): SealingKey | undefined {
		this.#rotateIfDue();
		const bytes = Buffer.from(nonce, 'base64url');
		// Only the canonical encoding of a nonce is accepted. Otherwise, the same nonce could be used once in each encoding.
		if (bytes.length !== RANDOM_BYTES + SEAL_BYTES || bytes.toString('base64url') !== nonce) return undefined;
		const randomPart = bytes.subarray(0, RANDOM_BYTES);
		const isSealedBy = (sealingKey: SealingKey | undefined): boolean =>
			sealingKey !== undefined &&
			timingSafeEqual(computeSeal(sealingKey.key, randomPart), bytes.subarray(RANDOM_BYTES));
		if (isSealedBy(this.#currentKey)) return this.#currentKey;
		return isSealedBy(this.#previousKey) ? this.#previousKey : undefined;
	}

	#rotateIfDue(): void {
		const { rotateAt, usedNonces } = this.#currentKey;
		if (performance.now() < rotateAt && usedNonces.size < MAX_USED_NONCES) return;
		this.#previousKey = this.#currentKey;
		this.#currentKey = createSealingKey();
	}
}

function createSealingKey(): SealingKey {
	return { key: randomBytes(32), rotateAt: performance.now() + KEY_ROTATION_MS, usedNonces: new Set() };
}

function computeSeal(key: Buffer, randomPart: Buffer): Buffer {
	return createHmac('sha256', key).update(randomPart).digest().subarray(0, SEAL_BYTES);
}
