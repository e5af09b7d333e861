/** Classifies handshake failures for metrics and logs. */
import type { TLSSocket } from 'node:tls';
import { clientVerifier } from '../sockets/client-verifier.ts';
import { DirectSocket } from '../sockets/direct-socket.ts';
import { nodeRefusalReason } from './client-verification.ts';

/** Maps an OpenSSL or Node error to one of a few reasons for metrics and logs. */
export function classifyHandshakeFailure(
	{ code, message }: Error & { readonly code?: string },
	socket: TLSSocket | DirectSocket,
): string {
	// If Node has rejected the client's certificate, the error only says that the connection was closed, so the
	// reason is taken from the socket.
	if (!(socket instanceof DirectSocket) && socket.authorizationError) return nodeRefusalReason(socket);
	if (code === 'ECONNRESET' || code === 'EPIPE') return 'closed';
	if (code === 'ERR_TLS_HANDSHAKE_TIMEOUT') return 'timeout';
	const text = `${code ?? ''} ${message}`.toUpperCase();
	if (text.includes('NO_APPLICATION_PROTOCOL')) return 'no_application_protocol';
	if (text.includes('VERSION') || text.includes('UNSUPPORTED_PROTOCOL')) return 'version';
	if (text.includes('NO_SHARED_CIPHER') || text.includes('NO SHARED') || text.includes('NO_SUITABLE'))
		return 'no_shared_cipher';
	if (text.includes('PEER_DID_NOT_RETURN')) return 'client_certificate_missing';
	if (text.includes('CERTIFICATE_VERIFY_FAILED')) {
		return clientVerifier()?.refusedAsExpired ? 'client_certificate_expired' : 'client_certificate_untrusted';
	}
	if (text.includes('ALERT')) return 'alert';
	return 'protocol';
}
