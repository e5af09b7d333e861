/**
 * What a TLS handshake without Node streams needs, and what it results in. The handshake is performed by OpenSSL itself
 * (OpensslHandle) or by Node's handles (TlsHandle).
 */
import type { X509Certificate } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import type { DirectSocket } from './direct-socket.ts';
import type { OpensslContext } from './openssl-context.ts';

/** Parameters of a handshake on the server side. */
export interface HandshakeOptions {
	/** The context for handshakes by Node; undefined if only OpenSSL itself can perform the handshake. */
	readonly context: SecureContext | undefined;
	/** ALPN protocols, each prefixed with its length (RFC 7301 §3.1). */
	readonly protocols: Uint8Array;
	/** The OCSP response for clients that request one (RFC 6066 §8). */
	readonly ocspResponse: Uint8Array | undefined;
	/** The settings for handshakes by OpenSSL without Node; undefined if Node performs the handshakes. */
	readonly openssl?: OpensslContext | undefined;
}

/** Callbacks for the end of a handshake. Exactly one is called, unless we close the connection. */
export interface HandshakeCallbacks {
	onSecured(socket: DirectSocket): void;
	onError(error: Error & { readonly code?: string }, socket: DirectSocket): void;
}

/** What a finished handshake negotiated. The methods are named as in Node's internal TLS objects. */
export interface HandshakeFacts {
	getProtocol(): string | null;
	getCipher(): { readonly standardName?: string } | undefined;
	/** Returns the negotiated ALPN protocol; `false` if there is none. */
	getALPNNegotiatedProtocol(): string | false;
	isSessionReused(): boolean;
}

/** The facts reported for a closed connection. */
export const NO_FACTS: HandshakeFacts = {
	getProtocol: () => null,
	getCipher: () => undefined,
	getALPNNegotiatedProtocol: () => false,
	isSessionReused: () => false,
};

/** A client's certificate and the result of its verification. The last two members are named as in `tls.TLSSocket`. */
export interface ClientProof {
	readonly certificate: X509Certificate | undefined;
	/** True if OpenSSL has verified the certificate. */
	readonly authorized: boolean;
	/** If `authorized` is false, Node's error code for the reason. */
	readonly authorizationError: unknown;
}
