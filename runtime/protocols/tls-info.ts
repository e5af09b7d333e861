/** The properties of a completed TLS handshake, for exchanges, logs and placeholders. */
import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { TlsInfo } from '../../compiler/exchange/exchange.ts';
import type { HandshakeFacts } from '../sockets/direct-handshake.ts';
import { PresentedCertificate } from './client-certificate.ts';

const VERSION_NAMES: { readonly [name: string]: string } = { 'TLSv1.3': 'tls1.3', 'TLSv1.2': 'tls1.2' };

/** The property of a socket that holds its TlsInfo for the protocol that takes over the socket. */
const TLS_INFO = Symbol('TLS info');

interface SocketWithInfo {
	[TLS_INFO]?: TlsInfo;
}

/** Describes a completed handshake. `serverName` is the name in its ClientHello. */
export function describeHandshake(
	handshake: HandshakeFacts,
	serverName: string,
	certificate: X509Certificate | undefined,
): TlsInfo {
	const protocol = handshake.getProtocol() ?? '';
	const info: TlsInfo = {
		version: VERSION_NAMES[protocol] ?? protocol,
		cipherSuite: handshake.getCipher()?.standardName ?? '',
		protocol: handshake.getALPNNegotiatedProtocol() || '',
		serverName,
		resumed: handshake.isSessionReused(),
	};
	return certificate ? { ...info, client: new PresentedCertificate(certificate) } : info;
}

/** Describes a socket's handshake. The result is attached to the socket, for {@link tlsInfoOf}. */
export function attachTlsInfo(
	socket: TLSSocket,
	serverName: string,
	certificate: X509Certificate | undefined,
): TlsInfo {
	const handshake: HandshakeFacts = {
		getProtocol: () => socket.getProtocol(),
		getCipher: () => socket.getCipher(),
		getALPNNegotiatedProtocol: () => socket.alpnProtocol ?? false,
		isSessionReused: () => socket.isSessionReused(),
	};
	const info = describeHandshake(handshake, serverName, certificate);
	(socket as SocketWithInfo)[TLS_INFO] = info;
	return info;
}

/** Returns what {@link attachTlsInfo} attached to a socket. If it attached nothing, describes the handshake now. */
export function tlsInfoOf(socket: TLSSocket): TlsInfo {
	return (
		(socket as SocketWithInfo)[TLS_INFO] ??
		attachTlsInfo(socket, typeof socket.servername === 'string' ? socket.servername : '', undefined)
	);
}
