/** Runs expensive template functions on the calling thread. Each takes from a tenth of a second to several seconds. */
import { generateKeyPairSync, type KeyObject, randomBytes, scryptSync } from 'node:crypto';
import { encodeBase64, hashSync } from 'bcryptjs';
import type { PageKeyKind, PageTask } from '../../compiler/exchange/page-work.ts';
import { dsaKeyPem } from './dsa-key.ts';

/** Tasks that compute something, as opposed to tasks that look up names. */
export type ComputedTask = Exclude<PageTask, { task: 'addresses' }>;

/** The cost of bcrypt hashes, the same as in Caddy. */
const BCRYPT_COST = 10;
/** Parameters of scrypt, as in the Master Password algorithm. */
const SCRYPT_OPTIONS = { N: 32_768, r: 8, p: 2, maxmem: 64 * 1024 * 1024 };

export function runPageTask(task: ComputedTask): string {
	switch (task.task) {
		case 'bcrypt':
			return hashSync(task.password, `$2a$${BCRYPT_COST}$${encodeBase64(randomBytes(16), 16)}`);
		case 'scrypt':
			return scryptSync(task.password, Buffer.from(task.salt, 'latin1'), 64, SCRYPT_OPTIONS).toString('hex');
		case 'key':
			return generatePrivateKey(task.kind);
	}
}

/** Generates a private key and returns it in the traditional PEM format of its kind. */
function generatePrivateKey(kind: PageKeyKind): string {
	switch (kind) {
		case 'rsa':
			return exportPem(generateKeyPairSync('rsa', { modulusLength: 4096 }).privateKey, 'pkcs1');
		case 'ecdsa':
			return exportPem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'sec1');
		case 'ed25519':
			return exportPem(generateKeyPairSync('ed25519').privateKey, 'pkcs8');
		case 'dsa':
			return dsaKeyPem(generateKeyPairSync('dsa', { modulusLength: 2048, divisorLength: 256 }).privateKey);
	}
}

function exportPem(key: KeyObject, type: 'pkcs1' | 'sec1' | 'pkcs8'): string {
	return key.export({ type, format: 'pem' }) as string;
}
