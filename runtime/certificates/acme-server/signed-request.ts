/** Parses signed requests (RFC 8555 §6.2) and verifies their signatures. */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { AcmeRefusal } from './acme-refusal.ts';

/** The protected header of a request. */
export interface SignedHeader {
	readonly alg: string;
	readonly url: string;
	readonly nonce: string | undefined;
	/** URL of the account; undefined if the request contains the key instead. */
	readonly kid: string | undefined;
	readonly jwk: PublicJwk | undefined;
}

/** A public key as a JSON Web Key, reduced to the members from which its thumbprint is computed (RFC 7638). */
export interface PublicJwk {
	readonly kty: string;
	readonly [member: string]: string;
}

/** A well-formed request whose signature has not been verified yet. */
export interface SignedRequest {
	readonly header: SignedHeader;
	/** The bytes that the signature covers. */
	readonly signedBytes: Buffer;
	readonly signature: Buffer;
	/** The decoded payload; '' for POST-as-GET. */
	readonly payload: string;
}

/** Members of a JSON Web Key that its thumbprint covers, in the order of RFC 7638 §3.3, by key type. */
const THUMBPRINT_MEMBERS: { readonly [kty: string]: readonly string[] } = {
	EC: ['crv', 'kty', 'x', 'y'],
	OKP: ['crv', 'kty', 'x'],
	RSA: ['e', 'kty', 'n'],
};

/** Parses a flattened JSON Web Signature. Throws {@link AcmeRefusal} if it is malformed. */
export function parseSignedRequest(text: string): SignedRequest {
	const jws = parseJsonObject(text);
	const { protected: encodedHeader, payload, signature } = jws;
	if (typeof encodedHeader !== 'string' || typeof payload !== 'string' || typeof signature !== 'string') {
		throw new AcmeRefusal('malformed', 400, 'The request is not a flattened JSON Web Signature.');
	}
	const header = parseJsonObject(Buffer.from(encodedHeader, 'base64url').toString('utf8'));
	const { alg, url, nonce, kid, jwk, crit, b64 } = header;
	if (typeof alg !== 'string' || typeof url !== 'string' || crit !== undefined || b64 !== undefined) {
		throw new AcmeRefusal('malformed', 400, 'The protected header is not valid for ACME.');
	}
	if ((kid === undefined) === (jwk === undefined)) {
		throw new AcmeRefusal('malformed', 400, 'The protected header needs either `kid` or `jwk`.');
	}
	return {
		header: {
			alg,
			url,
			nonce: typeof nonce === 'string' ? nonce : undefined,
			kid: typeof kid === 'string' ? kid : undefined,
			jwk: jwk === undefined ? undefined : publicJwk(jwk),
		},
		signedBytes: Buffer.from(`${encodedHeader}.${payload}`),
		signature: Buffer.from(signature, 'base64url'),
		payload: Buffer.from(payload, 'base64url').toString('utf8'),
	};
}

/** Throws {@link AcmeRefusal} unless the request was signed with the key, by a suitable algorithm. */
export function checkSignature({ header, signedBytes, signature }: SignedRequest, jwk: PublicJwk): void {
	const { key, digest, encoding } = selectAlgorithm(header.alg, jwk);
	const isValid = verify(digest, signedBytes, encoding === undefined ? key : { key, dsaEncoding: encoding }, signature);
	if (!isValid) throw new AcmeRefusal('malformed', 400, 'The signature is wrong.');
}

/** Parses a JSON object. Throws {@link AcmeRefusal} if the text is anything else. */
export function parseJsonObject(text: string): { readonly [member: string]: unknown } {
	try {
		const value: unknown = JSON.parse(text);
		if (typeof value === 'object' && value !== null && !Array.isArray(value))
			return value as { [member: string]: unknown };
	} catch {
		// Invalid JSON is reported by the `throw` below.
	}
	throw new AcmeRefusal('malformed', 400, 'The request is not a JSON object.');
}

/** Returns the thumbprint of a key (RFC 7638), which identifies its account. */
export function jwkThumbprint(jwk: PublicJwk): string {
	return createHash('sha256').update(JSON.stringify(jwk)).digest('base64url');
}

/** Reduces a JSON Web Key to the members that its thumbprint covers. Throws {@link AcmeRefusal} if the key is invalid. */
export function publicJwk(value: unknown): PublicJwk {
	const jwk = (typeof value === 'object' ? value : null) as { readonly [member: string]: unknown } | null;
	const members =
		typeof jwk?.kty === 'string' && Object.hasOwn(THUMBPRINT_MEMBERS, jwk.kty)
			? THUMBPRINT_MEMBERS[jwk.kty]
			: undefined;
	if (!jwk || !members || members.some(name => typeof jwk[name] !== 'string' || jwk[name] === '')) {
		throw new AcmeRefusal('badPublicKey', 400, 'The type of the key is not supported.');
	}
	if (jwk.d !== undefined) throw new AcmeRefusal('badPublicKey', 400, 'The key is a private key.');
	return Object.fromEntries(members.map(name => [name, jwk[name] as string])) as PublicJwk;
}

function selectAlgorithm(
	alg: string,
	jwk: PublicJwk,
): { readonly key: KeyObject; readonly digest: string | null; readonly encoding: 'ieee-p1363' | undefined } {
	const algorithmKind = `${alg} ${jwk.kty}${jwk.crv === undefined ? '' : ` ${jwk.crv}`}`;
	let key: KeyObject;
	try {
		key = createPublicKey({ key: { ...jwk }, format: 'jwk' });
	} catch {
		throw new AcmeRefusal('badPublicKey', 400, 'The key cannot be parsed.');
	}
	switch (algorithmKind) {
		case 'ES256 EC P-256':
			return { key, digest: 'sha256', encoding: 'ieee-p1363' };
		case 'ES384 EC P-384':
			return { key, digest: 'sha384', encoding: 'ieee-p1363' };
		case 'ES512 EC P-521':
			return { key, digest: 'sha512', encoding: 'ieee-p1363' };
		case 'EdDSA OKP Ed25519':
			return { key, digest: null, encoding: undefined };
		case 'RS256 RSA': {
			const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
			if (bits >= 2048 && bits <= 8192) return { key, digest: 'sha256', encoding: undefined };
			throw new AcmeRefusal('badPublicKey', 400, 'RSA keys must have from 2048 to 8192 bits.');
		}
		default:
			throw new AcmeRefusal('badSignatureAlgorithm', 400, 'The algorithm is not supported or does not match the key.');
	}
}
