/** A cache of password verdicts that does not store the passwords. */

import { createHmac, randomBytes } from 'node:crypto';
import { lazily } from '../../compiler/exchange/lazily.ts';

/** Maximum number of valid credentials to remember. Even a large site has fewer accounts. */
const MAX_VALID_CREDENTIALS = 16_384;
/** Maximum invalid credentials to remember. They have their own limit, so that guesses cannot evict valid credentials. */
const MAX_INVALID_CREDENTIALS = 1024;

/**
 * A bounded table of verdicts. Its keys are HMACs with a secret that never leaves this object. Therefore a dump of the table
 * reveals nothing about passwords, and the timing of lookups reveals nothing about the table, because an attacker can
 * neither choose nor predict a digest.
 */
export class VerdictMemory {
	readonly #secret: () => Buffer = lazily(() => randomBytes(32));
	readonly #validKeys: BoundedSet;
	readonly #invalidKeys: BoundedSet;

	constructor(maxValid: number = MAX_VALID_CREDENTIALS, maxInvalid: number = MAX_INVALID_CREDENTIALS) {
		this.#validKeys = new BoundedSet(maxValid);
		this.#invalidKeys = new BoundedSet(maxInvalid);
	}

	/**
	 * Returns the key for credentials. It includes the user name. Without it, a cached verdict on one unknown user could answer
	 * another unknown user with the same password faster, which would reveal that both are unknown.
	 */
	keyOf(user: string, hash: string, password: string): string {
		const hmac = createHmac('sha256', this.#secret());
		return hmac.update(`${user.length}:${user}${hash.length}:${hash}${password}`).digest('binary');
	}

	/** Returns the verdict on credentials, or undefined if it is not in the table. */
	recallVerdict(key: string): boolean | undefined {
		if (this.#validKeys.markUsed(key)) return true;
		return this.#invalidKeys.markUsed(key) ? false : undefined;
	}

	/** Adds a verdict. If the table is full, the least recently used verdict is evicted. */
	rememberVerdict(key: string, verdict: boolean): void {
		(verdict ? this.#validKeys : this.#invalidKeys).add(key);
	}
}

class BoundedSet {
	readonly #maxSize: number;
	readonly #members = new Set<string>();

	constructor(maxSize: number) {
		this.#maxSize = maxSize;
	}

	/** Reports whether the set contains a key, and marks the key as the most recently used. */
	markUsed(key: string): boolean {
		if (!this.#members.delete(key)) return false;
		this.#members.add(key);
		return true;
	}

	add(key: string): void {
		this.#members.add(key);
		if (this.#members.size > this.#maxSize) this.#members.delete(this.#members.values().next().value!);
	}
}
