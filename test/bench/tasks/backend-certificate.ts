/** The certificate of the bench's TLS backend. */
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { privateKeyPem } from '../../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../../runtime/certificates/issue-certificate.ts';
import { temporaryFolder } from '../../harness.ts';

/** Creates a certificate for localhost. Returns the paths of PEM files. */
export function backendCertificate(): { readonly certificate: string; readonly key: string } {
	const folder = temporaryFolder();
	chmodSync(folder, 0o755);
	const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
	const day = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };
	const certificate = path.join(folder, 'backend.crt');
	const key = path.join(folder, 'backend.key');
	writeFileSync(certificate, certificatePem(issueCertificate({ names: ['localhost'], key: privateKey, ...day })));
	writeFileSync(key, privateKeyPem(privateKey));
	return { certificate, key };
}
