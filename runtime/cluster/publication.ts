/**
 * A published configuration, as it is kept in Redis and on the disks of the machines: encrypted with the cluster's key, so that only
 * holders of the key can read or make one, and optionally signed with a key that the machines do not have, so that none of them can
 * publish.
 */
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign, verify } from 'node:crypto';
import type { PublicationNumber } from './rollout-decision.ts';
import type { SealedValues } from './sealed-values.ts';

/** A published configuration, with its publisher and the time of publication. */
export interface Publication {
	readonly number: PublicationNumber;
	/** A random text that tells apart publications with the same number; see `PublicationReference`. */
	readonly identity?: string | undefined;
	/** When it was published, in milliseconds since 1970, by the clock of Redis. */
	readonly publishedAt: number;
	/** Who published it: `user@host`, as the publishing process reported it. */
	readonly publishedBy: string;
	/** Name of the file that was compiled. */
	readonly fileName: string;
	/** The text of the file {@link fileName}, for display only. Machines load the compiled {@link document}. */
	readonly text: string;
	/** JSON of the compiled document with the source positions of its steps; see `formatPlacedDocument`. */
	readonly document: string;
}

/** Maximum bytes of an encrypted publication. */
export const MAX_PUBLICATION_BYTES: number = 8 * 1024 * 1024;

/** The error for a publication that cannot be used. The message is a sentence that quotes nothing from the publication. */
export class PublicationRefused extends Error {
	/**
	 * `publication/altered`: it was changed, or encrypted with another key. `publication/unsigned` and `publication/wrong-signature`:
	 * it lacks the signature of a publisher that this machine trusts. `publication/missing`: it is neither in Redis nor on the disk.
	 * `publication/other`: another publication has its number.
	 */
	readonly code:
		| 'publication/altered'
		| 'publication/unsigned'
		| 'publication/wrong-signature'
		| 'publication/missing'
		| 'publication/other';

	constructor(code: PublicationRefused['code'], message: string) {
		super(message);
		this.name = 'PublicationRefused';
		this.code = code;
	}
}

/** The plaintext of an encrypted publication: its JSON, and the Ed25519 signature of the JSON's bytes in base64. */
interface SignedContent {
	readonly content: string;
	readonly signature?: string;
}

/** Returns a random identity for a new publication. */
export function newPublicationIdentity(): string {
	return randomBytes(8).toString('hex');
}

/** Encrypts a publication, after signing it if there is a key. */
export function sealPublication(
	sealedValues: SealedValues,
	publication: Publication,
	signingKey: KeyObject | undefined,
): Buffer {
	const content = JSON.stringify(publication);
	const signature = signingKey && sign(null, Buffer.from(content), signingKey).toString('base64');
	const signedContent: SignedContent = { content, ...(signature === undefined ? {} : { signature }) };
	return sealedValues.seal(sealedName(publication.number), Buffer.from(JSON.stringify(signedContent)));
}

/**
 * Decrypts and verifies a publication. OpenSSL makes both checks in constant time. Throws PublicationRefused.
 * @param publishers The trusted publishers; see {@link publisherKey}. If undefined, no signature is required.
 * @param identity The identity that the publication must have; undefined if any will do.
 */
export function openPublication(
	sealedValues: SealedValues,
	number: PublicationNumber,
	sealed: Buffer,
	publishers: readonly string[] | undefined,
	identity?: string,
): Publication {
	const plaintext = sealedValues.open(sealedName(number), sealed);
	if (!plaintext) throw alteredError(number);
	const { content, signature } = JSON.parse(plaintext.toString()) as SignedContent;
	if (publishers) {
		if (signature === undefined)
			throw new PublicationRefused('publication/unsigned', `Publication ${number} is not signed.`);
		const signatureBytes = Buffer.from(signature, 'base64');
		const isTrusted = publishers.some(publisher =>
			verify(null, Buffer.from(content), publisherKey(publisher), signatureBytes),
		);
		if (!isTrusted) {
			throw new PublicationRefused(
				'publication/wrong-signature',
				`Publication ${number} is not signed by a \`publisher\` of \`cluster\`.`,
			);
		}
	}
	const publication = JSON.parse(content) as Publication;
	// Without this check, a machine could encrypt content that a publisher signed as the content of another publication number.
	if (publication.number !== number) throw alteredError(number);
	if (identity !== undefined && publication.identity !== identity) {
		throw new PublicationRefused(
			'publication/other',
			`Publication ${number} in Redis is not the one that the rollout is about.`,
		);
	}
	return publication;
}

function alteredError(number: PublicationNumber): PublicationRefused {
	return new PublicationRefused(
		'publication/altered',
		`Publication ${number} has been altered, or was encrypted with another \`key\` of \`cluster\`.`,
	);
}

/** Returns the public key of a publisher: the DER of an Ed25519 public key in base64, as in the PEM file of `openssl pkey -pubout`. */
export function publisherKey(base64: string): KeyObject {
	return createPublicKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'spki' });
}

/** Parses the PEM of a private key for signatures. Returns undefined if it is not an Ed25519 key. */
export function parseSigningKey(pem: string): KeyObject | undefined {
	try {
		const key = createPrivateKey(pem);
		return key.asymmetricKeyType === 'ed25519' ? key : undefined;
	} catch {
		return undefined;
	}
}

/** Returns the publisher to whom a private key belongs, as the option `cluster` names publishers. */
export function publisherOf(signingKey: KeyObject): string {
	return createPublicKey(signingKey).export({ format: 'der', type: 'spki' }).toString('base64');
}

/**
 * Returns the name under which a publication is encrypted. It includes the number, so that nobody can swap publications in Redis.
 */
function sealedName(number: PublicationNumber): string {
	return `publication ${number}`;
}
