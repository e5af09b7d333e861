/** What a finished handshake tells exchanges, logs and placeholders. */
import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { TlsInfo } from '../../compiler/exchange/exchange.ts';
import type { HandshakeFacts } from '../protocols/tls-handle.ts';
import { ShownCertificate } from './client-certificate.ts';

const VERSIONS: { readonly [name: string]: string } = { 'TLSv1.3': 'tls1.3', 'TLSv1.2': 'tls1.2' };

/** Under it a socket that has shaken hands carries its facts to the protocol that takes it over. */
const FACTS = Symbol('TLS facts');

interface WithFacts {
	[FACTS]?: TlsInfo;
}

/** What is told of a handshake; `serverName` is the name of its ClientHello. */
export function tlsInfo(facts: HandshakeFacts, serverName: string, certificate: X509Certificate | undefined): TlsInfo {
	const protocol = facts.getProtocol() ?? '';
	return {
		version: VERSIONS[protocol] ?? protocol,
		cipherSuite: facts.getCipher()?.standardName ?? '',
		protocol: facts.getALPNNegotiatedProtocol() || '',
		serverName,
		resumed: facts.isSessionReused(),
		...(certificate ? { client: new ShownCertificate(certificate) } : {}),
	};
}

/** Remembers the facts of a socket. */
export function rememberTls(socket: TLSSocket, serverName: string, certificate: X509Certificate | undefined): TlsInfo {
	const facts: HandshakeFacts = {
		getProtocol: () => socket.getProtocol(),
		getCipher: () => socket.getCipher(),
		getALPNNegotiatedProtocol: () => socket.alpnProtocol ?? false,
		isSessionReused: () => socket.isSessionReused(),
	};
	const info = tlsInfo(facts, serverName, certificate);
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
