/** Placeholders of the TLS session and the client certificate. They are empty for requests without TLS or certificate. */
import type { ClientCertificate, TlsInfo } from '../../exchange/exchange.ts';
import { definePlaceholder, definePlaceholderFamily, type Placeholder } from './placeholder.ts';

function defineSessionPlaceholder(name: string, summary: string, read: (tls: TlsInfo) => unknown): Placeholder {
	return definePlaceholder(`http.request.tls.${name}`, summary, x => (x.connection.tls ? read(x.connection.tls) : ''));
}

function defineClientPlaceholder(
	name: string,
	summary: string,
	read: (certificate: ClientCertificate) => unknown,
): Placeholder {
	return defineSessionPlaceholder(`client.${name}`, summary, ({ client: certificate }) =>
		certificate ? read(certificate) : '',
	);
}

const SAN_FIELDS = {
	dns_names: 'dnsNames',
	emails: 'emails',
	ips: 'ips',
	uris: 'uris',
} as const satisfies { readonly [kind: string]: keyof ClientCertificate };

/** The placeholders `http.request.tls.*`. */
export const TLS_PLACEHOLDERS: readonly Placeholder[] = [
	defineSessionPlaceholder('version', 'TLS version.', tls => tls.version),
	defineSessionPlaceholder('cipher_suite', 'TLS cipher suite.', tls => tls.cipherSuite),
	defineSessionPlaceholder('resumed', 'True if the TLS session was resumed.', tls => tls.resumed),
	defineSessionPlaceholder('proto', 'Protocol negotiated by ALPN.', tls => tls.protocol),
	defineSessionPlaceholder(
		'proto_mutual',
		'True if ALPN selected a protocol that both sides support.',
		tls => tls.protocol !== '',
	),
	defineSessionPlaceholder('server_name', 'Server name requested by the client.', tls => tls.serverName),
	defineSessionPlaceholder('ech', 'True if the ClientHello was encrypted; always false here.', () => false),
	defineClientPlaceholder(
		'fingerprint',
		'SHA-256 of the client certificate, in hexadecimal.',
		certificate => certificate.fingerprint,
	),
	defineClientPlaceholder(
		'public_key',
		'Public key of the client certificate, in hexadecimal.',
		certificate => certificate.publicKey,
	),
	defineClientPlaceholder(
		'public_key_sha256',
		'SHA-256 of that key, in hexadecimal.',
		certificate => certificate.publicKeySha256,
	),
	defineClientPlaceholder('certificate_pem', 'The client certificate as PEM.', certificate => certificate.pem),
	defineClientPlaceholder(
		'certificate_der_base64',
		'The client certificate as DER in Base64.',
		certificate => certificate.derBase64,
	),
	defineClientPlaceholder('issuer', 'Issuer of the client certificate.', certificate => certificate.issuer),
	defineClientPlaceholder(
		'serial',
		'Serial number of the client certificate, in decimal.',
		certificate => certificate.serial,
	),
	defineClientPlaceholder('subject', 'Subject of the client certificate.', certificate => certificate.subject),
	definePlaceholderFamily(
		'http.request.tls.client.san.*',
		'Names in the client certificate: `dns_names`, `emails`, `ips`, `uris`, alone or with an index.',
		parameter => {
			const [kind = '', index, ...extraParts] = parameter.split('.');
			if (
				!Object.hasOwn(SAN_FIELDS, kind) ||
				extraParts.length > 0 ||
				(index !== undefined && !/^\d{1,4}$/.test(index))
			) {
				return undefined;
			}
			const field = SAN_FIELDS[kind as keyof typeof SAN_FIELDS];
			return x => {
				const names = x.connection.tls?.client?.[field];
				if (!names) return '';
				return index === undefined ? names : (names[Number(index)] ?? '');
			};
		},
	),
];
