/** OCSP stapling (RFC 6066 §8): the callback with which OpenSSL requests a response, for TLS over TCP and over QUIC. */
import type { ForeignLibrary } from './foreign-library.ts';

const STATUS_OK = 0;
const STATUS_NONE = 3;
const CTRL_SET_OCSP_RESPONSE = 71;

/** The control command that sets OpenSSL's callback for OCSP responses. */
export const CTRL_STATUS_CALLBACK = 63;

/** Registers OpenSSL's OCSP callback. `getResponse` returns the DER of the response for the handshake in progress. */
export function registerStapleCallback(
	library: ForeignLibrary<'CRYPTO_malloc' | 'SSL_ctrl'>,
	getResponse: () => Uint8Array | undefined,
): bigint {
	const { functions } = library;
	return library.registerCallback('int32', ['pointer', 'pointer'], (ssl: bigint) => {
		try {
			const response = getResponse();
			if (response === undefined) return STATUS_NONE;
			// OpenSSL frees this memory with the connection.
			const responseAddress = functions.CRYPTO_malloc(BigInt(response.length), 0n, 0) as bigint;
			if (responseAddress === 0n) return STATUS_NONE;
			library.writeBytes(responseAddress, response);
			functions.SSL_ctrl(ssl, CTRL_SET_OCSP_RESPONSE, BigInt(response.length), responseAddress);
			return STATUS_OK;
		} catch {
			return STATUS_NONE;
		}
	});
}
