/** Random keys and seeds that a server or a thread needs when it starts. */
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';

/** The system's random number generator. It is initialized, because Node has used it before this program starts. */
const RANDOM_DEVICE = '/dev/urandom';

/**
 * Returns random bytes that are fit for a secret key. They are read from the system's generator, because Node's
 * cryptography takes 5 ms to load, and a server of plain HTTP may never need it.
 */
export function randomKey(bytes: number): Buffer {
	const key = Buffer.alloc(bytes);
	try {
		const descriptor = openSync(RANDOM_DEVICE, 'r');
		try {
			if (readSync(descriptor, key) === bytes) return key;
		} finally {
			closeSync(descriptor);
		}
	} catch {
		// A container without devices still has the system call.
	}
	return randomBytes(bytes);
}
