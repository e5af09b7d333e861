/** Detects private keys too weak for TLS when they are read: OpenSSL would refuse them only when they are used. */
import type { KeyObject } from 'node:crypto';

/** Minimum key sizes at the library's security level 2, equivalent to 112 bits. */
const MIN_RSA = 2048;
const MIN_CURVE = 224;

/**
 * Returns what is weak about a key, as part of a sentence: `has 1024 bits but at least 2048 are required`; undefined for a good one.
 */
export function weaknessOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): string | undefined {
	if (type === 'rsa' || type === 'rsa-pss' || type === 'dsa') return tooFew(details?.modulusLength, MIN_RSA);
	// The names of curves contain their sizes: secp192k1, prime256v1.
	return type === 'ec' ? tooFew(Number(/\d{3}/.exec(details?.namedCurve ?? '')?.[0]), MIN_CURVE) : undefined;
}

function tooFew(bits: number | undefined, least: number): string | undefined {
	return bits !== undefined && bits < least ? `has ${bits} bits but at least ${least} are required` : undefined;
}
