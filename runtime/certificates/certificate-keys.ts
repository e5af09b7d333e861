/** Private keys: the types of the option `key_type`, generation, PEM, and signatures. */
import { createPrivateKey, generateKeyPair, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';

/** The values of the option `key_type`. */
export const KEY_TYPES = ['ed25519', 'p256', 'p384', 'rsa2048', 'rsa4096'] as const;

export type KeyType = (typeof KEY_TYPES)[number];

const generateKeys = promisify(generateKeyPair);

/** Generates a private key on the libuv thread pool, because generating an RSA key is slow. */
export async function makePrivateKey(type: KeyType): Promise<KeyObject> {
	switch (type) {
		case 'ed25519':
			return (await generateKeys('ed25519')).privateKey;
		case 'p256':
			return (await generateKeys('ec', { namedCurve: 'P-256' })).privateKey;
		case 'p384':
			return (await generateKeys('ec', { namedCurve: 'P-384' })).privateKey;
		case 'rsa2048':
			return (await generateKeys('rsa', { modulusLength: 2048 })).privateKey;
		case 'rsa4096':
			return (await generateKeys('rsa', { modulusLength: 4096 })).privateKey;
	}
}

/** Returns `name` if it is a key type, otherwise undefined. */
export function keyTypeOf(name: string | undefined): KeyType | undefined {
	return KEY_TYPES.find(type => type === name);
}

/** Encodes a key as unencrypted PKCS#8 PEM. */
export function privateKeyPem(key: KeyObject): string {
	return key.export({ type: 'pkcs8', format: 'pem' }) as string;
}

/** Parses a private key in PEM. Returns undefined if the text is not a private key. */
export function parsePrivateKey(pem: string | Uint8Array): KeyObject | undefined {
	try {
		return createPrivateKey(typeof pem === 'string' ? pem : Buffer.from(pem));
	} catch {
		return undefined;
	}
}

/** A signature algorithm: its object identifier and the digest for Node's `sign`. */
export interface SignatureAlgorithm {
	readonly oid: string;
	/** Name of the digest; null for algorithms that include their own hash. */
	readonly digest: string | null;
	/** True if the algorithm identifier has NULL parameters (RFC 4055 §5). */
	readonly hasNullParameters: boolean;
}

/** Returns the algorithm with which a key signs certificates. Throws for unsupported key types. */
export function signatureAlgorithm(key: KeyObject): SignatureAlgorithm {
	switch (key.asymmetricKeyType) {
		case 'ed25519':
			return { oid: '1.3.101.112', digest: null, hasNullParameters: false };
		case 'ec':
			switch (key.asymmetricKeyDetails?.namedCurve) {
				case 'secp384r1':
					return { oid: '1.2.840.10045.4.3.3', digest: 'sha384', hasNullParameters: false };
				case 'secp521r1':
					return { oid: '1.2.840.10045.4.3.4', digest: 'sha512', hasNullParameters: false };
				default:
					return { oid: '1.2.840.10045.4.3.2', digest: 'sha256', hasNullParameters: false };
			}
		case 'rsa':
			return { oid: '1.2.840.113549.1.1.11', digest: 'sha256', hasNullParameters: true };
		default:
			throw new TypeError(`keys of type ${key.asymmetricKeyType} sign no certificates`);
	}
}

/** Signs DER bytes with the algorithm of {@link signatureAlgorithm}. */
export function signDer(key: KeyObject, bytes: Uint8Array): Buffer {
	return sign(signatureAlgorithm(key).digest, bytes, key);
}
