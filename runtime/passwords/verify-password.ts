/** Verifies a password synchronously, which takes from milliseconds to a second. */
import { argon2Sync, timingSafeEqual } from 'node:crypto';
import { hashSync } from 'bcryptjs';
import type { PasswordHash } from '../../compiler/modules/directives/basic-auth/password-hash.ts';

/** Reports whether a password matches a hash. bcrypt uses only the first 72 bytes of the password. */
export function verifyPassword(hash: PasswordHash, password: string): boolean {
	if (hash.algorithm === 'bcrypt') {
		// Compares the digests in constant time.
		const computedHash = hashSync(password, `$2b${hash.text.slice(3, 29)}`);
		return timingSafeEqual(Buffer.from(computedHash.slice(29)), Buffer.from(hash.text.slice(29)));
	}
	const computedTag = argon2Sync('argon2id', {
		message: password,
		nonce: hash.salt,
		memory: hash.memory,
		passes: hash.passes,
		parallelism: hash.parallelism,
		tagLength: hash.tag.length,
	});
	return timingSafeEqual(computedTag, hash.tag);
}
