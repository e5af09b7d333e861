/** Parses password hashes in their native formats: modular crypt for bcrypt, PHC strings for argon2id. Computes no hashes. */
import { createHash } from 'node:crypto';

/** A bcrypt hash: `$2b$14$` and 53 characters. */
export interface BcryptHash {
	readonly algorithm: 'bcrypt';
	readonly text: string;
	/** Base-2 logarithm of the number of rounds, 4 to 31. */
	readonly cost: number;
}

/** An argon2id hash: `$argon2id$v=19$m=65536,t=1,p=4$SALT$TAG` (RFC 9106). */
export interface Argon2idHash {
	readonly algorithm: 'argon2id';
	readonly text: string;
	/** Memory in KiB. */
	readonly memory: number;
	readonly passes: number;
	readonly parallelism: number;
	readonly salt: Uint8Array;
	readonly tag: Uint8Array;
}

/** A hash of a supported algorithm. */
export type PasswordHash = BcryptHash | Argon2idHash;

/** The names of the algorithms in configurations. */
export const HASH_ALGORITHMS = ['bcrypt', 'argon2id'] as const;

export type HashAlgorithm = (typeof HASH_ALGORITHMS)[number];

/** Limits of argon2id's parameters, which determine the memory and time that a verification takes. */
export const ARGON2ID_LIMITS: {
	readonly [parameter in 'memory' | 'passes' | 'parallelism' | 'tag' | 'salt']: {
		readonly min: number;
		readonly max: number;
	};
} = {
	memory: { min: 8, max: 4 * 1024 * 1024 },
	passes: { min: 1, max: 1024 },
	parallelism: { min: 1, max: 255 },
	tag: { min: 4, max: 1024 },
	salt: { min: 8, max: 1024 },
};

const BCRYPT_HASH_PATTERN = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
const ARGON2ID_HASH_PATTERN =
	/^\$argon2id\$v=(\d{1,4})\$m=(\d{1,10}),t=(\d{1,10}),p=(\d{1,8})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/**
 * Parses a hash, given verbatim or as base64. If it is invalid, returns the reason, which never quotes the hash, because hashes are
 * secret.
 */
export function parsePasswordHash(algorithm: HashAlgorithm, text: string): PasswordHash | string {
	const nativeText = text.startsWith('$') ? text : decodeBase64(text);
	return algorithm === 'bcrypt' ? parseBcrypt(nativeText) : parseArgon2id(nativeText);
}

function decodeBase64(text: string): string {
	return /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64').toString('latin1') : text;
}

function parseBcrypt(text: string): BcryptHash | string {
	const match = BCRYPT_HASH_PATTERN.exec(text);
	if (!match) return 'this is not a bcrypt hash';
	const cost = Number(match[1]);
	return cost >= 4 && cost <= 31 ? { algorithm: 'bcrypt', text, cost } : 'the cost of a bcrypt hash is from 4 to 31';
}

function parseArgon2id(text: string): Argon2idHash | string {
	const match = ARGON2ID_HASH_PATTERN.exec(text);
	if (!match) return 'this is not an argon2id hash';
	const [version, memory, passes, parallelism] = match.slice(1, 5).map(Number) as [number, number, number, number];
	// Copied from Node's buffer pool, because transferring a slice of it to another thread would transfer the whole pool.
	const salt = Uint8Array.from(Buffer.from(match[5]!, 'base64'));
	const tag = Uint8Array.from(Buffer.from(match[6]!, 'base64'));
	if (version !== 19) return 'only version 19 of argon2id is supported';
	const mistake = findArgon2idMistake({ memory, passes, parallelism, tag: tag.length, salt: salt.length });
	return mistake ?? { algorithm: 'argon2id', text, memory, passes, parallelism, salt, tag };
}

/** Returns what is wrong with the parameters of argon2id; undefined if they are valid. */
export function findArgon2idMistake(
	parameters: {
		readonly [name in keyof typeof ARGON2ID_LIMITS]: number;
	},
): string | undefined {
	for (const [name, { min, max }] of Object.entries(ARGON2ID_LIMITS)) {
		const value = parameters[name as keyof typeof ARGON2ID_LIMITS];
		if (value < min || value > max) return `the ${PARAMETER_TITLES[name]} of argon2id is from ${min} to ${max}`;
	}
	if (parameters.memory < 8 * parameters.parallelism) return 'argon2id needs 8 KiB of memory for each thread';
	return undefined;
}

const PARAMETER_TITLES: { readonly [name: string]: string } = {
	memory: 'memory (KiB)',
	passes: 'time (passes)',
	parallelism: 'number of threads',
	tag: 'key length (bytes)',
	salt: 'salt length (bytes)',
};

/** Returns the PHC string of an argon2id hash. */
export function formatArgon2id(hash: Omit<Argon2idHash, 'algorithm' | 'text'>): string {
	const { memory, passes, parallelism, salt, tag } = hash;
	const unpaddedBase64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64').replace(/=+$/, '');
	return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpaddedBase64(salt)}$${unpaddedBase64(tag)}`;
}

/**
 * Returns a hash without a known password and with the parameters of the given hash, so that verification takes equally long. Equal
 * parameters give equal text, so cached results survive a reload, as the results for real hashes do.
 */
export function decoyHashFor(hash: PasswordHash): PasswordHash {
	if (hash.algorithm === 'bcrypt') {
		const bytes = Buffer.from(pseudoRandomBytes(`bcrypt ${hash.cost}`, 64));
		const letters = bytes.toString('base64url').replace(/-/g, '.').replace(/_/g, '/');
		// The last characters of salt and digest encode fewer than six bits, so not every letter is valid there.
		const text = `$2b$${String(hash.cost).padStart(2, '0')}$${letters.slice(0, 21)}O${letters.slice(21, 51)}O`;
		return { algorithm: 'bcrypt', text, cost: hash.cost };
	}
	const { memory, passes, parallelism } = hash;
	const seed = `argon2id ${memory} ${passes} ${parallelism}`;
	const salt = pseudoRandomBytes(`${seed} salt`, hash.salt.length);
	const tag = pseudoRandomBytes(`${seed} tag`, hash.tag.length);
	const fields = { memory, passes, parallelism, salt, tag };
	return { algorithm: 'argon2id', text: formatArgon2id(fields), ...fields };
}

function pseudoRandomBytes(seed: string, length: number): Uint8Array {
	return Uint8Array.from(createHash('shake256', { outputLength: length }).update(seed).digest());
}
