/** Certificates for tests: an authority, and leaves for names and addresses of this machine. */
import { keyPem, makePrivateKey } from '../../../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../../../runtime/certificates/issue-certificate.ts';

/** PEM of a certificate and its key. */
export interface TestCertificate {
	readonly cert: string;
	readonly key: string;
}

/** An authority that issues. */
export interface TestAuthority extends TestCertificate {
	issue(names: readonly string[]): Promise<TestCertificate>;
}

/** Makes an authority that is valid for a day. */
export async function testAuthority(name = 'Test Authority'): Promise<TestAuthority> {
	const key = await makePrivateKey('p256');
	const day = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };
	const certificate = issueCertificate({ commonName: name, authority: { pathLength: 0 }, key, ...day });
	return {
		cert: certificatePem(certificate),
		key: keyPem(key),
		async issue(names) {
			const own = await makePrivateKey('p256');
			const leaf = issueCertificate({ commonName: names[0], names, key: own, signer: { certificate, key }, ...day });
			return { cert: certificatePem(leaf), key: keyPem(own) };
		},
	};
}
