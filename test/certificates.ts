/** Certificates for tests: an authority and the certificates it signs, generated in the test process. */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

type KeyPair = { readonly publicKey: webcrypto.CryptoKey; readonly privateKey: webcrypto.CryptoKey };

/** A PEM certificate with its key. */
export interface TestCertificate {
	readonly certificate: string;
	readonly key: string;
}

/** The properties of a requested certificate. */
export interface CertificateProperties {
	/** Subject alternative names. The form of a name shows whether it is an IP address. */
	readonly names?: readonly string[];
	/** Subject, such as `CN=someone,O=Here`. */
	readonly subject?: string;
	/** Start of the validity period, in seconds from now. */
	readonly from?: number;
	/** End of the validity period, in seconds from now. */
	readonly until?: number;
	readonly rsa?: boolean;
	/** Size of an RSA key in bits; the default is 2048. */
	readonly bits?: number;
	readonly emails?: readonly string[];
	readonly serial?: string;
}

const EC = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const RSA = {
	name: 'RSASSA-PKCS1-v1_5',
	modulusLength: 2048,
	publicExponent: new Uint8Array([1, 0, 1]),
	hash: 'SHA-256',
} as const;

/** A certificate authority whose key is in this process. */
export class TestAuthority {
	readonly pem: string;
	readonly certificate: x509.X509Certificate;
	readonly #keys: KeyPair;

	private constructor(certificate: x509.X509Certificate, keys: KeyPair) {
		this.certificate = certificate;
		this.pem = `${certificate.toString('pem')}\n`;
		this.#keys = keys;
	}

	static async make(name = 'CN=Test Authority'): Promise<TestAuthority> {
		const keys = (await webcrypto.subtle.generateKey(EC, true, ['sign', 'verify'])) as KeyPair;
		const certificate = await x509.X509CertificateGenerator.createSelfSigned(
			{
				name,
				keys,
				signingAlgorithm: EC,
				notBefore: new Date(Date.now() - 3_600_000),
				notAfter: new Date(Date.now() + 86_400_000),
				extensions: [
					new x509.BasicConstraintsExtension(true, 2, true),
					new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
				],
			},
			webcrypto as unknown as Crypto,
		);
		return new TestAuthority(certificate, keys);
	}

	/** Signs a certificate for servers and clients. */
	async issue(properties: CertificateProperties): Promise<TestCertificate> {
		const algorithm =
			properties.rsa || properties.bits ? { ...RSA, modulusLength: properties.bits ?? RSA.modulusLength } : EC;
		const keys = (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as KeyPair;
		const names: x509.JsonGeneralNames = [
			...(properties.names ?? []).map(value => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value }) as const),
			...(properties.emails ?? []).map(value => ({ type: 'email', value }) as const),
		];
		const certificate = await x509.X509CertificateGenerator.create(
			{
				subject: properties.subject ?? `CN=${properties.names?.[0] ?? 'nobody'}`,
				issuer: this.certificate.subject,
				publicKey: keys.publicKey,
				signingKey: this.#keys.privateKey,
				signingAlgorithm: EC,
				notBefore: new Date(Date.now() + (properties.from ?? -3600) * 1000),
				notAfter: new Date(Date.now() + (properties.until ?? 86_400) * 1000),
				extensions: names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : [],
				...(properties.serial === undefined ? {} : { serialNumber: properties.serial }),
			},
			webcrypto as unknown as Crypto,
		);
		const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
		const lines = pkcs8.toString('base64').replace(/(.{64})/g, '$1\n');
		return {
			certificate: `${certificate.toString('pem')}\n`,
			key: `-----BEGIN PRIVATE KEY-----\n${lines.trimEnd()}\n-----END PRIVATE KEY-----\n`,
		};
	}
}
