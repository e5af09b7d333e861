/** Fake client certificates for dry runs, without keys and signatures. */
import { createHash } from 'node:crypto';
import type { ClientCertificate } from '../exchange/exchange.ts';
import type { RequestMistake } from './dry-run-request.ts';

const CERTIFICATE_FACT_NAMES = ['issuer', 'serial', 'fingerprint', 'dns', 'email', 'ip', 'uri'] as const;

export const CERTIFICATE_USAGE = `client_certificate <subject> [${CERTIFICATE_FACT_NAMES.map(fact => `${fact}=<value>`).join('] [')}]`;

/** A fact about a certificate; `dns`, `email`, `ip` and `uri` are subject alternative names. */
export interface CertificateFact {
	readonly name: (typeof CERTIFICATE_FACT_NAMES)[number];
	readonly value: string;
}

/** Parses a fact such as `serial=7`. */
export function parseCertificateFact(text: string): CertificateFact | RequestMistake {
	const [, key, value] = /^(\w+)=(.+)$/s.exec(text) ?? [];
	const name = CERTIFICATE_FACT_NAMES.find(fact => fact === key);
	if (name === undefined) {
		return { message: `\`${text}\` is not a fact of a certificate.`, hint: `Usage: ${CERTIFICATE_USAGE}` };
	}
	if (name === 'serial' && !/^\d{1,50}$/.test(value!)) {
		return { message: `\`${value}\` is not a serial number.`, hint: 'Write it in decimal.' };
	}
	if (name === 'fingerprint' && !/^[0-9a-f]{64}$/i.test(value!)) {
		return { message: `\`${value}\` is not a fingerprint.`, hint: 'Write a SHA-256 hash of 64 hexadecimal digits.' };
	}
	return { name, value: value! };
}

/**
 * Returns a client certificate with the given facts. `subject` is a complete subject such as `CN=alice,O=Example`, or only a common
 * name.
 */
export function imaginedCertificate(
	subject: string,
	facts: readonly CertificateFact[],
): ClientCertificate | RequestMistake {
	const fullSubject = subject.includes('=') ? subject : `CN=${subject}`;
	const [, commonName] = /(?:^|,)\s*CN=((?:[^,\\]|\\.)*)/.exec(fullSubject) ?? [];
	if (subject.trim() === '' || commonName === undefined) {
		return {
			message: `\`${subject}\` has no common name.`,
			hint: 'Write a name, or a subject such as `CN=alice,O=Example`.',
		};
	}
	const valuesOf = (name: CertificateFact['name']): string[] =>
		facts.filter(fact => fact.name === name).map(({ value }) => value);
	const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex');
	const certificateBytes = Buffer.from(`certificate of ${fullSubject}`);
	const base64 = certificateBytes.toString('base64');
	return {
		fingerprint: (valuesOf('fingerprint').at(-1) ?? sha256Hex(base64)).toLowerCase(),
		publicKey: sha256Hex(`key of ${fullSubject}`),
		publicKeySha256: sha256Hex(sha256Hex(`key of ${fullSubject}`)),
		pem: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
		derBase64: base64,
		issuer: valuesOf('issuer').at(-1) ?? 'CN=an imagined authority',
		subject: fullSubject,
		commonName,
		serial: valuesOf('serial').at(-1) ?? '1',
		dnsNames: valuesOf('dns'),
		emails: valuesOf('email'),
		ips: valuesOf('ip'),
		uris: valuesOf('uri'),
	};
}
