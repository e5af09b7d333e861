/** A client certificate's fields, for placeholders and logs. */
import { createHash, type X509Certificate } from 'node:crypto';
import { alternativeNames } from '../../compiler/codegen/plan/certificate-check.ts';
import type { ClientCertificate } from '../../compiler/exchange/exchange.ts';

/** A client certificate received in a TLS handshake. Its fields are computed when they are accessed. */
export class PresentedCertificate implements ClientCertificate {
	readonly #certificate: X509Certificate;
	#alternativeNames: readonly { readonly kind: string; readonly value: string }[] | undefined;
	#publicKeyBytes: Buffer | undefined;

	constructor(certificate: X509Certificate) {
		this.#certificate = certificate;
	}

	get fingerprint(): string {
		return this.#certificate.fingerprint256.replaceAll(':', '').toLowerCase();
	}

	get publicKey(): string {
		return this.#getPublicKeyBytes().toString('hex');
	}

	get publicKeySha256(): string {
		return createHash('sha256').update(this.#getPublicKeyBytes()).digest('hex');
	}

	get pem(): string {
		return this.#certificate.toString();
	}

	get derBase64(): string {
		return this.#certificate.raw.toString('base64');
	}

	get issuer(): string {
		return distinguishedName(this.#certificate.issuer);
	}

	get subject(): string {
		return distinguishedName(this.#certificate.subject);
	}

	get commonName(): string {
		return /(?:^|\n)CN=(.*)/.exec(this.#certificate.subject ?? '')?.[1] ?? '';
	}

	get serial(): string {
		return BigInt(`0x${this.#certificate.serialNumber || '0'}`).toString();
	}

	get dnsNames(): readonly string[] {
		return this.#alternativeNamesOf('DNS');
	}

	get emails(): readonly string[] {
		return this.#alternativeNamesOf('email');
	}

	get ips(): readonly string[] {
		return this.#alternativeNamesOf('IP Address');
	}

	get uris(): readonly string[] {
		return this.#alternativeNamesOf('URI');
	}

	#alternativeNamesOf(kind: string): string[] {
		this.#alternativeNames ??= alternativeNames(this.#certificate);
		return this.#alternativeNames.filter(name => name.kind === kind).map(name => name.value);
	}

	#getPublicKeyBytes(): Buffer {
		this.#publicKeyBytes ??= publicKeyBytes(this.#certificate);
		return this.#publicKeyBytes;
	}
}

/** Returns a public key as bytes: PKCS #1 for RSA, an uncompressed point for NIST curves, the raw key for Ed25519 and Ed448. */
function publicKeyBytes({ publicKey }: X509Certificate): Buffer {
	if (publicKey.asymmetricKeyType === 'rsa') return publicKey.export({ type: 'pkcs1', format: 'der' });
	const { crv, x, y } = publicKey.export({ format: 'jwk' });
	const decodeBase64Url = (text: string | undefined) => Buffer.from(text ?? '', 'base64url');
	return crv?.startsWith('P-')
		? Buffer.concat([Buffer.from([4]), decodeBase64Url(x), decodeBase64Url(y)])
		: decodeBase64Url(x);
}

/** Converts a name from Node's format, one attribute per line, to RFC 2253: one line, in reverse order. */
function distinguishedName(nameLines: string | undefined): string {
	return (nameLines ?? '').split('\n').filter(Boolean).reverse().join(',');
}
