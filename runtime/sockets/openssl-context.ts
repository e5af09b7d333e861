/**
 * A TLS context whose connections are SSL objects without a Node object. Node creates the context, so that versions, ciphers,
 * certificates and tickets are the same as everywhere else. Node's own connections must not use it, because its callbacks are ours.
 */
import type { SecureContext } from 'node:tls';
import { contextAddress } from './context-address.ts';
import { CTRL_STATUS_CALLBACK } from './ocsp-staple.ts';
import type { OpensslThread } from './openssl-thread.ts';

/** The context of one certificate and policy. */
export class OpensslContext {
	readonly thread: OpensslThread;
	/** Node's object. OpenSSL's ticket callback refers to it, so each connection must keep it from being garbage-collected. */
	readonly context: SecureContext;
	readonly protocols: Buffer;
	readonly protocolsAt: bigint;
	readonly stapled: Uint8Array | undefined;
	#address: bigint;

	/**
	 * @param protocols ALPN protocols, each prefixed with its length (RFC 7301 §3.1).
	 * @param stapled The OCSP response for clients that request one (RFC 6066 §8).
	 */
	constructor(thread: OpensslThread, context: SecureContext, protocols: Uint8Array, stapled: Uint8Array | undefined) {
		this.thread = thread;
		this.context = context;
		// Copied into memory of its own, because OpenSSL receives addresses within it.
		const kept = Buffer.allocUnsafeSlow(Math.max(1, protocols.length)).subarray(0, protocols.length);
		kept.set(protocols);
		this.protocols = kept;
		this.protocolsAt = protocols.length === 0 ? 0n : thread.library.addressOf(kept);
		this.stapled = stapled;
		const address = contextAddress(context);
		const { f } = thread;
		f.SSL_CTX_up_ref(address);
		this.#address = address;
		f.SSL_CTX_set_alpn_select_cb(address, thread.alpn, 0n);
		f.SSL_CTX_callback_ctrl(address, CTRL_STATUS_CALLBACK, thread.status);
		f.ERR_clear_error();
	}

	/** Creates the SSL object of a connection; 0 if there is no memory or the context has been closed. */
	connection(): bigint {
		return this.#address === 0n ? 0n : (this.thread.f.SSL_new(this.#address) as bigint);
	}

	/** Releases the context. Connections hold their own references. */
	close(): void {
		if (this.#address === 0n) return;
		this.thread.f.SSL_CTX_free(this.#address);
		this.#address = 0n;
	}
}
