/**
 * A TLS context whose connections are SSL objects without a Node object. Node creates the context, so that versions, ciphers,
 * certificates and tickets are the same as everywhere else. Node's own connections must not use the context, because its
 * callbacks are replaced by ours.
 */
import type { SecureContext } from 'node:tls';
import { type ClientCertificateTerms, clientVerifier } from './client-verifier.ts';
import { contextAddress } from './context-address.ts';
import { CTRL_STATUS_CALLBACK } from './ocsp-staple.ts';
import { MAX_READ_BYTES, type OpensslThread } from './openssl-thread.ts';

const VERIFY_PEER = 1;
const FAIL_IF_NO_PEER_CERT = 2;
export const CTRL_MODE = 33;
/** The modes SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER and SSL_MODE_AUTO_RETRY. */
export const SSL_MODES = 6n;
const CTRL_SET_READ_AHEAD = 41;
const CTRL_SET_SESSION_CACHE_MODE = 44;
/** A peer that has closed its half without `close_notify` still gets its response. */
const SSL_OP_IGNORE_UNEXPECTED_EOF = 128n;

/** Tasks that our context performs during handshakes, but Node's context does not. */
export interface HandshakeDuties {
	/** The OCSP response for clients that request one (RFC 6066 §8). */
	readonly ocspResponse?: Uint8Array | undefined;
	/** Whether client certificates are requested, and on which terms. OpenSSL verifies them during the handshake. */
	readonly clientTerms?: ClientCertificateTerms | undefined;
	/** Receives each line of the log of TLS secrets (NSS key log format), without its line break. */
	readonly onSecret?: ((line: string) => void) | undefined;
}

/** A TLS context (`SSL_CTX`) with one certificate and one set of TLS settings. */
export class OpensslContext {
	readonly thread: OpensslThread;
	/** Node's object. OpenSSL's ticket callback refers to it, so each connection must keep it from being garbage-collected. */
	readonly context: SecureContext;
	readonly protocols: Buffer;
	readonly protocolsAddress: bigint;
	readonly duties: HandshakeDuties;
	#address: bigint;

	/**
	 * @param protocols ALPN protocols, each prefixed with its length (RFC 7301 §3.1).
	 * @throws If client certificates are to be verified and OpenSSL's verification cannot be accessed.
	 */
	constructor(thread: OpensslThread, context: SecureContext, protocols: Uint8Array, duties: HandshakeDuties) {
		this.thread = thread;
		this.context = context;
		// OpenSSL receives addresses within this list, so the list is copied into memory that is never moved.
		const protocolsCopy = Buffer.allocUnsafeSlow(Math.max(1, protocols.length)).subarray(0, protocols.length);
		protocolsCopy.set(protocols);
		this.protocols = protocolsCopy;
		this.protocolsAddress = protocols.length === 0 ? 0n : thread.library.addressOf(protocolsCopy);
		this.duties = duties;
		const address = contextAddress(context);
		const { functions } = thread;
		const { clientTerms, onSecret } = duties;
		if (clientTerms) {
			clientVerifier()!.enableFor(context, clientTerms.criteria);
			functions.SSL_CTX_set_verify(address, VERIFY_PEER | (clientTerms.required ? FAIL_IF_NO_PEER_CERT : 0), 0n);
		}
		if (onSecret) functions.SSL_CTX_set_keylog_callback(address, thread.keyLogCallback);
		functions.SSL_CTX_up_ref(address);
		this.#address = address;
		// The SSL objects of connections inherit these settings.
		functions.SSL_CTX_ctrl(address, CTRL_MODE, SSL_MODES, 0n);
		functions.SSL_CTX_ctrl(address, CTRL_SET_READ_AHEAD, 1n, 0n);
		functions.SSL_CTX_set_default_read_buffer_len(address, BigInt(MAX_READ_BYTES));
		functions.SSL_CTX_set_options(address, SSL_OP_IGNORE_UNEXPECTED_EOF);
		// Sessions are kept in tickets only, not in OpenSSL's cache.
		functions.SSL_CTX_ctrl(address, CTRL_SET_SESSION_CACHE_MODE, 0n, 0n);
		functions.SSL_CTX_set_alpn_select_cb(address, thread.alpnCallback, 0n);
		functions.SSL_CTX_callback_ctrl(address, CTRL_STATUS_CALLBACK, thread.statusCallback);
		functions.ERR_clear_error();
	}

	/** Creates the SSL object of a connection; 0 if there is no memory or the context has been closed. */
	createSsl(): bigint {
		return this.#address === 0n ? 0n : (this.thread.functions.SSL_new(this.#address) as bigint);
	}

	/** Releases the context. Connections hold their own references. */
	close(): void {
		if (this.#address === 0n) return;
		this.thread.functions.SSL_CTX_free(this.#address);
		this.#address = 0n;
	}
}
