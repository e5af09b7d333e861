/** Verifying a password against its hash, on the thread that calls: takes from milliseconds to a second. */
import { argon2Sync, timingSafeEqual } from 'node:crypto';
import { hashSync } from 'bcryptjs';
import type { PasswordHash } from '../../compiler/directives/basic-auth/password-hash.ts';

/** True when the password is the one that was hashed. bcrypt looks at its first 72 bytes only. */
export function verifyPassword(hash: PasswordHash, password: string): boolean {
	if (hash.algorithm === 'bcrypt') {
		// The digest is compared here, so that a difference at its beginning takes no less time than one at its end.
		const salted = hashSync(password, `$2b${hash.text.slice(3, 29)}`);
		return timingSafeEqual(Buffer.from(salted.slice(29)), Buffer.from(hash.text.slice(29)));
	}
	const tag = argon2Sync('argon2id', {
		message: password,
		nonce: hash.salt,
		memory: hash.memory,
		passes: hash.passes,
		parallelism: hash.parallelism,
		tagLength: hash.tag.length,
	});
	return timingSafeEqual(tag, hash.tag);
}
