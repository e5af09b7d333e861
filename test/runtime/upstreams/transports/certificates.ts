/** Certificates for tests: an authority, and leaf certificates for names and addresses on this machine. */
import { makePrivateKey, privateKeyPem } from '../../../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../../../runtime/certificates/issue-certificate.ts';

/** A certificate and its key as PEM. */
export interface TestCertificate {
	readonly cert: string;
	readonly key: string;
}

/** An authority that issues leaf certificates. */
export interface TestAuthority extends TestCertificate {
	issue(names: readonly string[]): Promise<TestCertificate>;
}

/** Creates an authority that is valid for a day. */
export async function testAuthority(name = 'Test Authority'): Promise<TestAuthority> {
	const key = await makePrivateKey('p256');
	const day = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };
	const certificate = issueCertificate({ commonName: name, authority: { pathLength: 0 }, key, ...day });
	return {
		cert: certificatePem(certificate),
		key: privateKeyPem(key),
		async issue(names) {
			const own = await makePrivateKey('p256');
			const leaf = issueCertificate({ commonName: names[0], names, key: own, signer: { certificate, key }, ...day });
			return { cert: certificatePem(leaf), key: privateKeyPem(own) };
		},
	};
}
