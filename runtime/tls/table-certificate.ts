/** A certificate as a thread has it, and which of several for one name a client is shown. */
import { X509Certificate } from 'node:crypto';
import type { PublishedCertificate } from './certificate-feed.ts';
import type { ClientHello } from './client-hello.ts';

/** What of a ClientHello says which certificates the client can verify. */
export type ClientAbilities = Pick<ClientHello, 'cipherSuites' | 'signatureSchemes'>;

/** A certificate as this thread has it; published again it is another object. */
export class TableCertificate {
	readonly published: PublishedCertificate;
	/** Order of publication. */
	readonly serial: number;
	#keyKind: string | undefined;

	constructor(published: PublishedCertificate, serial: number) {
		this.published = published;
		this.serial = serial;
	}

	/** `rsa`, `ed25519`, or the name of an elliptic curve. */
	get keyKind(): string {
		this.#keyKind ??= kindOf(this.published.chain);
		return this.#keyKind;
	}

	/** Whether it comes from files; else the manager looks after it. */
	get fromFile(): boolean {
		return this.published.id.startsWith('file ');
	}
}

/** Schemes (RFC 8446 §4.2.3) by which a client verifies signatures of keys that are not RSA. */
const SCHEMES: { readonly [kind: string]: string } = {
	prime256v1: '0403',
	secp384r1: '0503',
	secp521r1: '0603',
	ed25519: '0807',
	ed448: '0808',
};

/** Suites of TLS 1.2 with ECDSA, by their numbers; those of TLS 1.3 begin with 13 and go with every certificate. */
const ECDSA_SUITES: ReadonlySet<string> = new Set([
	...['c02b', 'c02c', 'cca9', 'c009', 'c00a', 'c023', 'c024', 'c0ac', 'c0ad'],
]);

/**
 * Of certificates for one name the one for a client: the first with an elliptic curve that the client can verify, because
 * signing costs least, else the first with RSA, else the first.
 */
export function certificateFor(candidates: readonly TableCertificate[], client: ClientAbilities): TableCertificate {
	const first = candidates[0]!;
	let rsa: TableCertificate | undefined;
	let schemes: readonly string[] | undefined;
	for (const candidate of candidates) {
		// What is managed is there because it is wanted, even beside files.
		if (candidate.fromFile !== first.fromFile) break;
		if (candidate.keyKind === 'rsa') {
			rsa ??= candidate;
			continue;
		}
		schemes ??= takesCurves(client) ? client.signatureSchemes : [];
		if (schemes.includes(SCHEMES[candidate.keyKind] ?? '')) return candidate;
	}
	return rsa ?? first;
}

function takesCurves({ cipherSuites }: ClientAbilities): boolean {
	return cipherSuites.some(suite => suite.startsWith('13') || ECDSA_SUITES.has(suite));
}

function kindOf(chain: string): string {
	try {
		const { asymmetricKeyType: type, asymmetricKeyDetails: details } = new X509Certificate(chain).publicKey;
		return type === 'ec' ? (details?.namedCurve ?? 'ec') : (type ?? '');
	} catch {
		return '';
	}
}
