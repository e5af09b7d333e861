/** Placeholders of the TLS session and of the client's certificate; nothing where there is none. */
import type { ClientCertificate, TlsInfo } from '../../exchange/exchange.ts';
import { family, type Placeholder, plain } from './placeholder.ts';

function session(name: string, summary: string, read: (tls: TlsInfo) => unknown): Placeholder {
	return plain(`http.request.tls.${name}`, summary, x => (x.connection.tls ? read(x.connection.tls) : ''));
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

/** Every placeholder of TLS. */
export const TLS_PLACEHOLDERS: readonly Placeholder[] = [
	session('version', 'TLS version.', tls => tls.version),
	session('cipher_suite', 'TLS cipher suite.', tls => tls.cipherSuite),
	session('resumed', 'True if the TLS session was resumed.', tls => tls.resumed),
	session('proto', 'Protocol negotiated by ALPN.', tls => tls.protocol),
	session('proto_mutual', 'True if ALPN chose a protocol that both sides have.', tls => tls.protocol !== ''),
	session('server_name', 'Server name that the client asked for.', tls => tls.serverName),
	session('ech', 'True if the ClientHello was encrypted: never here.', () => false),
	client('fingerprint', "SHA-256 of the client's certificate, hexadecimal.", shown => shown.fingerprint),
	client('public_key', "The public key of the client's certificate, hexadecimal.", shown => shown.publicKey),
	client('public_key_sha256', 'SHA-256 of that key, hexadecimal.', shown => shown.publicKeySha256),
	client('certificate_pem', "The client's certificate in PEM.", shown => shown.pem),
	client('certificate_der_base64', "The client's certificate, DER in Base64.", shown => shown.derBase64),
	client('issuer', "Who issued the client's certificate.", shown => shown.issuer),
	client('serial', "Serial number of the client's certificate, decimal.", shown => shown.serial),
	client('subject', "Whom the client's certificate is for.", shown => shown.subject),
	family(
		'http.request.tls.client.san.*',
		"Names in the client's certificate: `dns_names`, `emails`, `ips`, `uris`, each alone or with an index.",
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
