/**
 * Nonces of an ACME server (RFC 8555 §6.5). What is given out is not kept: it is known again by its seal, so that nobody can
 * drive out the nonces of others by asking for many. Only those that a right request has used are remembered.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Milliseconds for which one key seals; a nonce is good for that long at least, and for twice as long at most. */
const KEY_LIFE = 600_000;
/** Used nonces that are remembered for one key: then another seals, and clients that are late are told to try again. */
const MAX_USED = 50_000;
/** Bytes of chance and of the seal in a nonce. */
const CHANCE = 12;
const SEAL = 16;

/** A key, and the nonces under it that have been used. */
interface Sealing {
	readonly key: Buffer;
	readonly until: number;
	readonly used: Set<string>;
}

/** The nonces of one server. */
export class Nonces {
	#newest: Sealing = begin();
	#before: Sealing | undefined;

	/** A new one. */
	issue(): string {
		this.#turn();
		const chance = randomBytes(CHANCE);
		return Buffer.concat([chance, sealOf(this.#newest.key, chance)]).toString('base64url');
	}

	/** Whether it was given out not too long ago and was not used. */
	isGood(nonce: string): boolean {
		const sealing = this.#sealingOf(nonce);
		return sealing !== undefined && !sealing.used.has(nonce);
	}

	/** The same, and from now on it is used. */
	use(nonce: string): boolean {
		const sealing = this.#sealingOf(nonce);
		if (sealing === undefined || sealing.used.has(nonce)) return false;
		sealing.used.add(nonce);
		return true;
	}

	#sealingOf(nonce: string): Sealing | undefined {
		this.#turn();
		const bytes = Buffer.from(nonce, 'base64url');
		// One text for one nonce: with others it could be used again.
		if (bytes.length !== CHANCE + SEAL || bytes.toString('base64url') !== nonce) return undefined;
		const chance = bytes.subarray(0, CHANCE);
		const sealed = (sealing: Sealing | undefined): boolean =>
			sealing !== undefined && timingSafeEqual(sealOf(sealing.key, chance), bytes.subarray(CHANCE));
		if (sealed(this.#newest)) return this.#newest;
		return sealed(this.#before) ? this.#before : undefined;
	}

	#turn(): void {
		const { until, used } = this.#newest;
		if (performance.now() < until && used.size < MAX_USED) return;
		this.#before = this.#newest;
		this.#newest = begin();
	}
}

function begin(): Sealing {
	return { key: randomBytes(32), until: performance.now() + KEY_LIFE, used: new Set() };
}

function sealOf(key: Buffer, chance: Buffer): Buffer {
	return createHmac('sha256', key).update(chance).digest().subarray(0, SEAL);
}
