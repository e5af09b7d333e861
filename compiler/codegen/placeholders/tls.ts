/** Placeholders of the TLS session and the client certificate; empty if there is none. */
import type { ClientCertificate, TlsInfo } from '../../exchange/exchange.ts';
import { definePlaceholder, definePlaceholderFamily, type Placeholder } from './placeholder.ts';

function session(name: string, summary: string, read: (tls: TlsInfo) => unknown): Placeholder {
	return definePlaceholder(`http.request.tls.${name}`, summary, x => (x.connection.tls ? read(x.connection.tls) : ''));
}

function client(name: string, summary: string, read: (certificate: ClientCertificate) => unknown): Placeholder {
	return session(`client.${name}`, summary, ({ client: shown }) => (shown ? read(shown) : ''));
}

const NAMES = {
	dns_names: 'dnsNames',
	emails: 'emails',
	ips: 'ips',
	uris: 'uris',
} as const satisfies { readonly [kind: string]: keyof ClientCertificate };

/** `http.request.tls.*`. */
export const TLS_PLACEHOLDERS: readonly Placeholder[] = [
	session('version', 'TLS version.', tls => tls.version),
	session('cipher_suite', 'TLS cipher suite.', tls => tls.cipherSuite),
	session('resumed', 'True if the TLS session was resumed.', tls => tls.resumed),
	session('proto', 'Protocol negotiated by ALPN.', tls => tls.protocol),
	session('proto_mutual', 'True if ALPN selected a protocol that both sides support.', tls => tls.protocol !== ''),
	session('server_name', 'Server name requested by the client.', tls => tls.serverName),
	session('ech', 'True if the ClientHello was encrypted; always false here.', () => false),
	client('fingerprint', 'SHA-256 of the client certificate, in hexadecimal.', shown => shown.fingerprint),
	client('public_key', 'Public key of the client certificate, in hexadecimal.', shown => shown.publicKey),
	client('public_key_sha256', 'SHA-256 of that key, in hexadecimal.', shown => shown.publicKeySha256),
	client('certificate_pem', 'The client certificate as PEM.', shown => shown.pem),
	client('certificate_der_base64', 'The client certificate as DER in Base64.', shown => shown.derBase64),
	client('issuer', 'Issuer of the client certificate.', shown => shown.issuer),
	client('serial', 'Serial number of the client certificate, in decimal.', shown => shown.serial),
	client('subject', 'Subject of the client certificate.', shown => shown.subject),
	definePlaceholderFamily(
		'http.request.tls.client.san.*',
		'Names in the client certificate: `dns_names`, `emails`, `ips`, `uris`, alone or with an index.',
		parameter => {
			const [kind = '', index, ...more] = parameter.split('.');
			if (!Object.hasOwn(NAMES, kind) || more.length > 0 || (index !== undefined && !/^\d{1,4}$/.test(index))) {
				return undefined;
			}
			const field = NAMES[kind as keyof typeof NAMES];
			return x => {
				const names = x.connection.tls?.client?.[field];
				if (!names) return '';
				return index === undefined ? names : (names[Number(index)] ?? '');
			};
		},
	),
];
