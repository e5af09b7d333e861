/** Starts TLS on accepted connections that have no Node stream, either with OpenSSL directly or with Node's handles. */
import type { ClientProof, HandshakeCallbacks, HandshakeFacts, HandshakeOptions } from './direct-handshake.ts';
import type { DirectSocket } from './direct-socket.ts';
import { OpensslHandle } from './openssl-handle.ts';
import { type OpensslThread, opensslThread } from './openssl-thread.ts';
import { TlsHandle } from './tls-handle.ts';
import { tlsMode } from './tls-mode.ts';

/** Reports whether {@link startTls} can perform a handshake. If not, the connection must become a `net.Socket`. */
export function canStartTls(socket: DirectSocket, options: HandshakeOptions): boolean {
	return (socket.poller !== undefined && options.openssl !== undefined) || options.context !== undefined;
}

/**
 * Starts a handshake on a connection whose first bytes, part of the ClientHello, have been read. Throws if OpenSSL
 * rejects the options.
 */
export function startTls(
	socket: DirectSocket,
	firstBytes: Uint8Array,
	options: HandshakeOptions,
	callbacks: HandshakeCallbacks,
): void {
	const { poller } = socket;
	const context = poller && options.openssl;
	if (context) {
		const handle = OpensslHandle.accept(socket, poller, context, callbacks, socket.hasMore);
		socket.switchHandle(handle, handle);
		handle.handleFirstBytes(firstBytes);
		return;
	}
	const handle = new TlsHandle(socket, options, callbacks);
	socket.switchHandle(handle);
	handle.handleFirstBytes(firstBytes);
}

/** Returns the facts of a handshake that {@link startTls} started. */
export function handshakeFacts(socket: DirectSocket): HandshakeFacts {
	return (socket._handle as TlsHandle | OpensslHandle).facts;
}

/**
 * Returns the client's certificate and the result of its verification; undefined if the certificate cannot be read, in which case
 * the client must be rejected.
 */
export function clientProof(socket: DirectSocket): ClientProof | undefined {
	try {
		return socket._handle instanceof OpensslHandle ? socket._handle.clientProof : undefined;
	} catch {
		// Node cannot parse a certificate that OpenSSL has accepted.
		return undefined;
	}
}

/** Returns what all TLS connections of this thread share if OpenSSL is used directly; undefined if Node's handles are used. */
export function directTlsThread(): OpensslThread | undefined {
	return tlsMode() === 'openssl' ? opensslThread() : undefined;
}
