/** OCSP stapling (RFC 6066 §8): the callback with which OpenSSL requests a response, for TLS over TCP and over QUIC. */
import type { ForeignLibrary } from './foreign-library.ts';

const STATUS_OK = 0;
const STATUS_NONE = 3;
const CTRL_SET_OCSP_RESPONSE = 71;

/** The control command that sets OpenSSL's callback for OCSP responses. */
export const CTRL_STATUS_CALLBACK = 63;

/** Registers the callback. `stapled` returns the DER of the response for the handshake in progress. */
export function stapleCallback(
	library: ForeignLibrary<'CRYPTO_malloc' | 'SSL_ctrl'>,
	stapled: () => Uint8Array | undefined,
): bigint {
	const { f } = library;
	return library.callback('int32', ['pointer', 'pointer'], (ssl: bigint) => {
		try {
			const response = stapled();
			if (response === undefined) return STATUS_NONE;
			// OpenSSL frees this memory with the connection.
			const at = f.CRYPTO_malloc(BigInt(response.length), 0n, 0) as bigint;
			if (at === 0n) return STATUS_NONE;
			library.write(at, response);
			f.SSL_ctrl(ssl, CTRL_SET_OCSP_RESPONSE, BigInt(response.length), at);
			return STATUS_OK;
		} catch {
			return STATUS_NONE;
		}
	});
}
