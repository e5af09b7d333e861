/** Which private keys are too weak for TLS: what OpenSSL refuses when a certificate is used is said when it is read. */
import type { KeyObject } from 'node:crypto';

/** Bits that the library asks of keys at its level of security (2: as strong as 112 bits). */
const LEAST_RSA = 2048;
const LEAST_CURVE = 224;

/** What is weak about a key, as part of a sentence: `has 1024 bits where 2048 are the least`; undefined for a good one. */
export function weaknessOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): string | undefined {
	if (type === 'rsa' || type === 'rsa-pss' || type === 'dsa') return tooFew(details?.modulusLength, LEAST_RSA);
	// Curves have their sizes in their names: secp192k1, prime256v1.
	return type === 'ec' ? tooFew(Number(/\d{3}/.exec(details?.namedCurve ?? '')?.[0]), LEAST_CURVE) : undefined;
}

function tooFew(bits: number | undefined, least: number): string | undefined {
	return bits !== undefined && bits < least ? `has ${bits} bits where ${least} are the least` : undefined;
}
