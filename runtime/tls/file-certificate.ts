/** A certificate and key loaded from files, with the OCSP response stapled to it. */
import { createHash } from 'node:crypto';
import type { PublishedCertificate } from '../certificates/certificate-feed.ts';
import type { StapledCertificate } from '../certificates/status-stapler.ts';

/** DER object identifiers of the OCSP responder (RFC 5280 §4.2.2.1) and of the must-staple extension (RFC 7633). */
const RESPONDER = Buffer.from('06082b06010505073001', 'hex');
const TLS_FEATURE = Buffer.from('06082b06010505070118', 'hex');

const FIRST_BLOCK = /-----BEGIN CERTIFICATE-----([\s\S]*?)-----END CERTIFICATE-----/;

/** A certificate loaded from files. It keeps its identity when only its key file is reloaded. */
export class FileCertificate implements StapledCertificate {
	readonly record: NonNullable<StapledCertificate['record']>;
	/** True if clients reject the certificate without a stapled OCSP response. */
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

	get id(): string {
		return this.#pair.id;
	}

	get name(): string {
		return this.record.name;
	}

	/** The certificate in the form that threads serve. */
	get publication(): PublishedCertificate {
		return this.ocsp ? { ...this.#pair, ocsp: this.ocsp } : this.#pair;
	}

	/** Takes over the OCSP response of the object it replaces, if both hold the same certificate. */
	succeed(before: FileCertificate): void {
		if (before.record.fingerprint !== this.record.fingerprint) return;
		this.ocsp = before.ocsp;
		this.statusAt = before.statusAt;
	}

	revoked(): string {
		return 'its files must be replaced';
	}
}
