/** ACME Renewal Information (RFC 9773): when a server suggests renewing a certificate. */

import { X509Certificate } from 'node:crypto';
import { AsnConvert } from '@peculiar/asn1-schema';
import { AuthorityKeyIdentifier, Certificate, id_ce_authorityKeyIdentifier } from '@peculiar/asn1-x509';
import type { RenewalAdvice } from '../issuer.ts';
import type { AcmeConnection } from './acme-connection.ts';

/** Milliseconds until the server is asked again if its response has no `Retry-After`. */
const DEFAULT_POLL_MS = 6 * 3_600_000;
/** The shortest and the longest time until the next poll that a `Retry-After` can cause, in milliseconds. */
const MIN_POLL_MS = 60_000;
const MAX_POLL_MS = 86_400_000;

/** Returns the certificate's identifier (§4.1); undefined if the certificate has no authority key identifier. */
export function certificateId(chain: string): string | undefined {
	const { tbsCertificate } = AsnConvert.parse(new X509Certificate(chain).raw, Certificate);
	const extension = tbsCertificate.extensions?.find(({ extnID }) => extnID === id_ce_authorityKeyIdentifier);
	const authorityKeyId = extension && AsnConvert.parse(extension.extnValue, AuthorityKeyIdentifier).keyIdentifier;
	if (!authorityKeyId) return undefined;
	const toBase64Url = (bytes: ArrayBuffer): string => Buffer.from(bytes).toString('base64url');
	return `${toBase64Url(authorityKeyId.buffer)}.${toBase64Url(tbsCertificate.serialNumber)}`;
}

/**
 * Asks the server when the certificate should be renewed. Resolves to undefined if the server makes no suggestion. `chance`, from
 * 0 to 1, selects a time within the window that the server suggests.
 */
export async function renewalAdvice(
	connection: AcmeConnection,
	chain: string,
	chance: number,
): Promise<RenewalAdvice | undefined> {
	const { renewalInfo } = await connection.readDirectory();
	const id = renewalInfo === undefined ? undefined : certificateId(chain);
	if (renewalInfo === undefined || id === undefined) return undefined;
	const { body, retryAt } = await connection.get(`${renewalInfo.replace(/\/$/, '')}/${id}`);
	const window = body?.suggestedWindow as { readonly start?: unknown; readonly end?: unknown } | undefined;
	const windowStart = Date.parse(String(window?.start));
	const windowEnd = Date.parse(String(window?.end));
	if (!(windowStart < windowEnd)) return undefined;
	const now = Date.now();
	const pollMs = retryAt === undefined ? DEFAULT_POLL_MS : Math.min(Math.max(retryAt - now, MIN_POLL_MS), MAX_POLL_MS);
	return { renewAt: windowStart + (windowEnd - windowStart) * chance, askAgainAt: now + pollMs };
}
