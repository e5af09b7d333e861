/** A client certificate's fields, for placeholders and logs. */
import { createHash, type X509Certificate } from 'node:crypto';
import { alternativeNames } from '../../compiler/codegen/plan/certificate-check.ts';
import type { ClientCertificate } from '../../compiler/exchange/exchange.ts';

/** A client certificate received in a TLS handshake. Its fields are computed on access. */
export class PresentedCertificate implements ClientCertificate {
	readonly #certificate: X509Certificate;
	#names: readonly { readonly kind: string; readonly value: string }[] | undefined;
	#key: Buffer | undefined;

	constructor(certificate: X509Certificate) {
		this.#certificate = certificate;
	}

	get fingerprint(): string {
		return this.#certificate.fingerprint256.replaceAll(':', '').toLowerCase();
	}

	get publicKey(): string {
		return this.#keyBytes().toString('hex');
	}

	get publicKeySha256(): string {
		return createHash('sha256').update(this.#keyBytes()).digest('hex');
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
		return this.#alternative('DNS');
	}

	get emails(): readonly string[] {
		return this.#alternative('email');
	}

	get ips(): readonly string[] {
		return this.#alternative('IP Address');
	}

	get uris(): readonly string[] {
		return this.#alternative('URI');
	}

	#alternative(kind: string): string[] {
		this.#names ??= alternativeNames(this.#certificate);
		return this.#names.filter(name => name.kind === kind).map(name => name.value);
	}

	#keyBytes(): Buffer {
		this.#key ??= keyBytes(this.#certificate);
		return this.#key;
	}
}

function keyBytes({ publicKey }: X509Certificate): Buffer {
	if (publicKey.asymmetricKeyType === 'rsa') return publicKey.export({ type: 'pkcs1', format: 'der' });
	const { crv, x, y } = publicKey.export({ format: 'jwk' });
	const part = (text: string | undefined) => Buffer.from(text ?? '', 'base64url');
	return crv?.startsWith('P-') ? Buffer.concat([Buffer.from([4]), part(x), part(y)]) : part(x);
}

/** Converts a name from Node's format, one attribute per line, to RFC 2253: one line, in reverse order. */
function distinguishedName(lines: string | undefined): string {
	return (lines ?? '').split('\n').filter(Boolean).reverse().join(',');
}
