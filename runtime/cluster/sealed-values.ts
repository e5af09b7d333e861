/** Encryption of private values that are kept in Redis: AES-256-GCM with keys from the configuration. */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const FORMAT_VERSION = 1;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const AUTH_TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES;

interface SealingKey {
	/** The ID by which a sealed value names the key. */
	readonly id: Buffer;
	readonly key: Buffer;
}

/**
 * Seals and opens values. A sealed value consists of a version byte, the ID of its key, a random nonce, the ciphertext and the tag.
 * The name of a value is authenticated, so that nobody can swap values in Redis.
 */
export class SealedValues {
	readonly #keys: readonly SealingKey[];

	/** @param keys Keys of 32 bytes, in base64. Values are sealed with the first key, and opened with any of them. */
	constructor(keys: readonly string[]) {
		this.#keys = keys.map(text => {
			const key = Buffer.from(hkdfSync('sha256', Buffer.from(text, 'base64'), '', 'svc sealed values', 32));
			const id = createHash('sha256').update('svc key id').update(key).digest().subarray(0, KEY_ID_BYTES);
			return { id, key };
		});
	}

	seal(name: string, value: Uint8Array): Buffer {
		const { id, key } = this.#keys[0]!;
		const nonce = randomBytes(NONCE_BYTES);
		const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: AUTH_TAG_BYTES }).setAAD(Buffer.from(name));
		return Buffer.concat([
			Buffer.of(FORMAT_VERSION),
			id,
			nonce,
			cipher.update(value),
			cipher.final(),
			cipher.getAuthTag(),
		]);
	}

	/** Reports whether a sealed value was sealed with the first key. */
	isSealedWithFirst(sealed: Buffer): boolean {
		return sealed.subarray(1, 1 + KEY_ID_BYTES).equals(this.#keys[0]!.id);
	}

	/** Decrypts a value. Returns undefined if it was sealed with another key or under another name, or has been altered. */
	open(name: string, sealed: Buffer): Buffer | undefined {
		if (sealed.length < HEADER_BYTES + AUTH_TAG_BYTES || sealed[0] !== FORMAT_VERSION) return undefined;
		const id = sealed.subarray(1, 1 + KEY_ID_BYTES);
		const nonce = sealed.subarray(1 + KEY_ID_BYTES, HEADER_BYTES);
		const sealingKey = this.#keys.find(candidate => candidate.id.equals(id));
		if (!sealingKey) return undefined;
		try {
			const decipher = createDecipheriv(CIPHER, sealingKey.key, nonce, { authTagLength: AUTH_TAG_BYTES });
			decipher.setAAD(Buffer.from(name)).setAuthTag(sealed.subarray(-AUTH_TAG_BYTES));
			return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES, -AUTH_TAG_BYTES)), decipher.final()]);
		} catch {
			return undefined;
		}
	}
}
