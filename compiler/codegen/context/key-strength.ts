/** Finds private keys that are too weak for TLS when a configuration is checked. OpenSSL rejects them only in a handshake. */
import type { KeyObject } from 'node:crypto';

/** Minimum key sizes in bits at OpenSSL's security level 2, which is equivalent to a 112-bit symmetric key. */
const MIN_RSA_BITS = 2048;
const MIN_CURVE_BITS = 224;

/**
 * Returns why a key is too weak, as part of a sentence, such as `has 1024 bits but at least 2048 are required`; undefined if the
 * key is strong enough.
 */
export function keyWeakness({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): string | undefined {
	if (type === 'rsa' || type === 'rsa-pss' || type === 'dsa') return sizeWeakness(details?.modulusLength, MIN_RSA_BITS);
	// The name of a curve contains its size in bits: secp192k1, prime256v1.
	return type === 'ec' ? sizeWeakness(Number(/\d{3}/.exec(details?.namedCurve ?? '')?.[0]), MIN_CURVE_BITS) : undefined;
}

function sizeWeakness(bits: number | undefined, minBits: number): string | undefined {
	return bits !== undefined && bits < minBits ? `has ${bits} bits but at least ${minBits} are required` : undefined;
}
