/** A thread's copy of a certificate, and the choice between several certificates for one name. */
import { X509Certificate } from 'node:crypto';
import type { PublishedCertificate } from '../certificates/certificate-feed.ts';
import type { ClientHello } from './client-hello.ts';

/** The parts of a ClientHello that show which certificates the client can verify. */
export type ClientAbilities = Pick<ClientHello, 'cipherSuites' | 'signatureSchemes'>;

/** What the choice of a certificate depends on. */
interface CertificateFacts {
	readonly keyKind: string;
	/** Expiry, in milliseconds since the epoch. */
	readonly notAfter: number;
}

/** A thread's copy of a published certificate. Publishing it again creates a new object. */
export class TableCertificate {
	readonly published: PublishedCertificate;
	/** Number of the publication. Later publications have higher numbers. */
	readonly serial: number;
	#facts: CertificateFacts | undefined;

	constructor(published: PublishedCertificate, serial: number) {
		this.published = published;
		this.serial = serial;
	}

	/** The kind of the certificate's key: `rsa`, `ed25519`, or the name of an elliptic curve. */
	get keyKind(): string {
		this.#facts ??= readFacts(this.published.chain);
		return this.#facts.keyKind;
	}

	get isExpired(): boolean {
		this.#facts ??= readFacts(this.published.chain);
		return this.#facts.notAfter <= Date.now();
	}

	/** True if the certificate comes from files; false if the certificate manager obtained it. */
	get isFromFile(): boolean {
		return this.published.id.startsWith('file ');
	}
}

/** The signature scheme (RFC 8446 §4.2.3) that each kind of non-RSA key requires. */
const SCHEME_BY_KEY_KIND: { readonly [kind: string]: string } = {
	prime256v1: '0403',
	secp384r1: '0503',
	secp521r1: '0603',
	ed25519: '0807',
	ed448: '0808',
};

/** IDs of the TLS 1.2 suites with ECDSA. TLS 1.3 suites begin with 13 and work with every certificate. */
const ECDSA_SUITES: ReadonlySet<string> = new Set([
	...['c02b', 'c02c', 'cca9', 'c009', 'c00a', 'c023', 'c024', 'c0ac', 'c0ad'],
]);

/**
 * Chooses a certificate for a client among those that have not expired, or among all if all have: the first elliptic-curve certificate that the client can verify, because its signatures are
 * the cheapest, or else the first RSA certificate, or else the first certificate of any kind.
 */
export function chooseCertificate(
	allCandidates: readonly TableCertificate[],
	client: ClientAbilities,
): TableCertificate {
	const validCandidates = allCandidates.filter(({ isExpired }) => !isExpired);
	const candidates = validCandidates.length > 0 ? validCandidates : allCandidates;
	const firstCandidate = candidates[0]!;
	let rsaCandidate: TableCertificate | undefined;
	let clientSchemes: readonly string[] | undefined;
	for (const candidate of candidates) {
		// Managed certificates come first in the list. They take precedence over certificates from files, because a site has
		// requested them.
		if (candidate.isFromFile !== firstCandidate.isFromFile) break;
		if (candidate.keyKind === 'rsa') {
			rsaCandidate ??= candidate;
			continue;
		}
		clientSchemes ??= supportsEcdsa(client) ? client.signatureSchemes : [];
		if (clientSchemes.includes(SCHEME_BY_KEY_KIND[candidate.keyKind] ?? '')) return candidate;
	}
	return rsaCandidate ?? firstCandidate;
}

function supportsEcdsa({ cipherSuites }: ClientAbilities): boolean {
	return cipherSuites.some(suite => suite.startsWith('13') || ECDSA_SUITES.has(suite));
}

function readFacts(chain: string): CertificateFacts {
	try {
		const { publicKey, validToDate } = new X509Certificate(chain);
		const { asymmetricKeyType: type, asymmetricKeyDetails: details } = publicKey;
		return {
			keyKind: type === 'ec' ? (details?.namedCurve ?? 'ec') : (type ?? ''),
			notAfter: validToDate.getTime(),
		};
	} catch {
		return { keyKind: '', notAfter: Number.POSITIVE_INFINITY };
	}
}
