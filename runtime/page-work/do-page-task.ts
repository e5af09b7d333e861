/** Work for pages, on the thread that calls: it takes from a tenth of a second to several. */
import { generateKeyPairSync, type KeyObject, randomBytes, scryptSync } from 'node:crypto';
import { encodeBase64, hashSync } from 'bcryptjs';
import type { PageKeyKind, PageTask } from '../../compiler/exchange/page-work.ts';
import { dsaKeyPem } from './dsa-key.ts';

/** Work that is done on a processor; looking up names is not. */
export type ComputedTask = Exclude<PageTask, { task: 'addresses' }>;

/** Cost of bcrypt: the one of the compatible server. */
const BCRYPT_COST = 10;
/** What deriving a password takes (the Master Password algorithm). */
const SCRYPT = { N: 32_768, r: 8, p: 2, maxmem: 64 * 1024 * 1024 };

/** Does the work. */
export function doPageTask(task: ComputedTask): string {
	switch (task.task) {
		case 'bcrypt':
			return hashSync(task.password, `$2a$${BCRYPT_COST}$${encodeBase64(randomBytes(16), 16)}`);
		case 'scrypt':
			return scryptSync(task.password, Buffer.from(task.salt, 'latin1'), 64, SCRYPT).toString('hex');
		case 'key':
			return privateKey(task.kind);
	}
}

/** A new private key in the form that its kind is traditionally written in. */
function privateKey(kind: PageKeyKind): string {
	switch (kind) {
		case 'rsa':
			return pem(generateKeyPairSync('rsa', { modulusLength: 4096 }).privateKey, 'pkcs1');
		case 'ecdsa':
			return pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'sec1');
		case 'ed25519':
			return pem(generateKeyPairSync('ed25519').privateKey, 'pkcs8');
		case 'dsa':
			return dsaKeyPem(generateKeyPairSync('dsa', { modulusLength: 2048, divisorLength: 256 }).privateKey);
	}
}

function pem(key: KeyObject, type: 'pkcs1' | 'sec1' | 'pkcs8'): string {
	return key.export({ type, format: 'pem' }) as string;
}
