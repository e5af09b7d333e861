/** What a finished handshake tells exchanges, logs and placeholders. */
import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { TlsInfo } from '../../compiler/exchange/exchange.ts';
import { ShownCertificate } from './client-certificate.ts';

const VERSIONS: { readonly [name: string]: string } = { 'TLSv1.3': 'tls1.3', 'TLSv1.2': 'tls1.2' };

/** Under it a socket that has shaken hands carries its facts to the protocol that takes it over. */
const FACTS = Symbol('TLS facts');

interface WithFacts {
	[FACTS]?: TlsInfo;
}

/** Remembers the facts of a socket; `serverName` is the name of its ClientHello. */
export function rememberTls(socket: TLSSocket, serverName: string, certificate: X509Certificate | undefined): TlsInfo {
	const protocol = socket.getProtocol() ?? '';
	const info: TlsInfo = {
		version: VERSIONS[protocol] ?? protocol,
		cipherSuite: socket.getCipher()?.standardName ?? '',
		protocol: socket.alpnProtocol || '',
		serverName,
		resumed: socket.isSessionReused(),
		...(certificate ? { client: new ShownCertificate(certificate) } : {}),
	};
	(socket as WithFacts)[FACTS] = info;
	return info;
}

/** The facts of a socket. */
export function tlsInfoOf(socket: TLSSocket): TlsInfo {
	return (
		(socket as WithFacts)[FACTS] ??
		rememberTls(socket, typeof socket.servername === 'string' ? socket.servername : '', undefined)
	);
}
