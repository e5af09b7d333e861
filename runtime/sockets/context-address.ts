/** The address of the OpenSSL object in a TLS context of Node. */
import type { SecureContext } from 'node:tls';
import { inspect } from 'node:util';

/** Returns the address of the SSL_CTX. Node exposes it only as an opaque value that can be printed. */
export function contextAddress(context: SecureContext): bigint {
	const { context: internalContext } = context as SecureContext & {
		readonly context?: { readonly _external?: unknown };
	};
	const address = /^\[External: (?:0x)?([0-9a-f]+)\]$/i.exec(inspect(internalContext?._external))?.[1];
	if (address === undefined || /^0*$/.test(address)) throw new Error('The TLS context has no address.');
	return BigInt(`0x${address}`);
}
