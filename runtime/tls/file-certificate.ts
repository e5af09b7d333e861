/** A pair of files that has been read, with the OCSP response that is stapled to it. */
import { createHash } from 'node:crypto';
import type { StapledCertificate } from '../certificates/status-stapler.ts';
import type { PublishedCertificate } from './certificate-feed.ts';

/** DER of the identifiers of an OCSP responder (RFC 5280 §4.2.2.1), and of the extension that demands stapling (RFC 7633). */
const RESPONDER = Buffer.from('06082b06010505073001', 'hex');
const TLS_FEATURE = Buffer.from('06082b06010505070118', 'hex');

const FIRST_BLOCK = /-----BEGIN CERTIFICATE-----([\s\S]*?)-----END CERTIFICATE-----/;

/** A certificate from files. Its key file may be read again without making it another one. */
export class FileCertificate implements StapledCertificate {
	readonly record: NonNullable<StapledCertificate['record']>;
	/** Whether clients refuse it without a response. */
	readonly mustStaple: boolean;
	ocsp: Uint8Array | undefined = undefined;
	statusAt = 0;
	statusFailures = 0;
	gone = false;
	readonly #pair: PublishedCertificate;

	constructor(pair: PublishedCertificate) {
		this.#pair = pair;
		const der = Buffer.from(FIRST_BLOCK.exec(pair.chain)?.[1] ?? '', 'base64');
		this.mustStaple = der.includes(TLS_FEATURE);
		this.record = {
			name: pair.names[0] ?? pair.id,
			chain: pair.chain,
			fingerprint: createHash('sha256').update(der).digest('hex'),
			hasResponder: der.includes(RESPONDER),
		};
	}

	/** What the threads call it. */
	get id(): string {
		return this.#pair.id;
	}

	get name(): string {
		return this.record.name;
	}

	/** For the threads. */
	get publication(): PublishedCertificate {
		return this.ocsp ? { ...this.#pair, ocsp: this.ocsp } : this.#pair;
	}

	/** Takes over the response of the one that it replaces, if that was the same certificate. */
	succeed(before: FileCertificate): void {
		if (before.record.fingerprint !== this.record.fingerprint) return;
		this.ocsp = before.ocsp;
		this.statusAt = before.statusAt;
	}

	revoked(): string {
		return 'its files must be replaced';
	}
}
