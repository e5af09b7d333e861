/** Verdicts on passwords, remembered without the passwords. */
import { createHmac, randomBytes } from 'node:crypto';

/** Right credentials that are remembered: more than the accounts of a large site. */
const MOST_RIGHT = 16_384;
/** Wrong ones. They are bounded apart, so that guesses cannot push out what is known to be right. */
const MOST_WRONG = 1024;

/**
 * A bounded table of verdicts. Its keys are HMACs under a secret that never leaves this object: a dump of the table tells
 * nothing about a password, and the time that a lookup takes nothing about the credentials in the table, because nobody
 * outside can choose or predict a digest.
 */
export class VerdictMemory {
	readonly #secret = randomBytes(32);
	readonly #right: BoundedSet;
	readonly #wrong: BoundedSet;

	constructor(mostRight: number = MOST_RIGHT, mostWrong: number = MOST_WRONG) {
		this.#right = new BoundedSet(mostRight);
		this.#wrong = new BoundedSet(mostWrong);
	}

	/**
	 * Returns the key of credentials. The user is part of it: otherwise an unknown user would be answered quickly because
	 * another unknown user had tried the same password.
	 */
	keyOf(user: string, hash: string, password: string): string {
		const hmac = createHmac('sha256', this.#secret);
		return hmac.update(`${user.length}:${user}${hash.length}:${hash}${password}`).digest('binary');
	}

	/** Returns the verdict on credentials, or undefined if it is not remembered. */
	recall(key: string): boolean | undefined {
		if (this.#right.use(key)) return true;
		return this.#wrong.use(key) ? false : undefined;
	}

	/** Remembers a verdict; the least recently used one makes room. */
	remember(key: string, verdict: boolean): void {
		(verdict ? this.#right : this.#wrong).add(key);
	}
}

/** A set of bounded size that drops its least recently used member. */
class BoundedSet {
	readonly #most: number;
	readonly #members = new Set<string>();

	constructor(most: number) {
		this.#most = most;
	}

	/** Reports whether the key is a member, which becomes the most recently used. */
	use(key: string): boolean {
		if (!this.#members.delete(key)) return false;
		this.#members.add(key);
		return true;
	}

	add(key: string): void {
		this.#members.add(key);
		if (this.#members.size > this.#most) this.#members.delete(this.#members.values().next().value!);
	}
}
