/**
 * Lets OpenSSL judge the certificates of clients within the handshake, so that a client that is refused is told why by an
 * alert (RFC 8446 §6.2). Node lets every handshake with a certificate succeed and leaves the verdict to whoever looks
 * afterwards, when nothing but closing the connection is left.
 */
import type { SecureContext } from 'node:tls';
import { inspect } from 'node:util';
import { foreignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';

/** By what a certificate is judged. */
export interface ClientTerms {
	/** Whether an authority of the context must have signed it. */
	readonly chain: boolean;
	/** SHA-256 fingerprints, `AB:CD:…`, of which it must have one; undefined takes any. */
	readonly leaves: readonly string[] | undefined;
}

/** Judges the clients of contexts. */
export interface ClientVerifier {
	/** Has the certificates of a context's clients judged. Throws if the context is not as Node makes it. */
	judge(context: SecureContext, terms: ClientTerms): void;
	/** Returns whether the certificate that was refused last had expired: what failed is told apart by nothing else. */
	readonly refusedAsExpired: boolean;
}

/** Verdicts of OpenSSL (x509_vfy.h), each with an alert of its own. */
const OK = 0;
const NOT_YET_VALID = 9;
const EXPIRED = 10;
const REJECTED = 28;
const FAILED = 50;

const SHA256_BYTES = 32;

let verifier: ClientVerifier | undefined | null = null;

/** The verifier of this thread; undefined where OpenSSL cannot be reached. */
export function clientVerifier(): ClientVerifier | undefined {
	if (!isDirectIo()) return undefined;
	if (verifier === null) {
		try {
			verifier = makeVerifier();
		} catch {
			// A Node without the module, or with an OpenSSL of which it shows nothing.
			verifier = undefined;
		}
	}
	return verifier;
}

function makeVerifier(): ClientVerifier | undefined {
	const ffi = foreignFunctions();
	if (ffi === undefined) return undefined;
	const { lib, functions } = ffi.dlopen(null, {
		SSL_CTX_set_cert_verify_callback: { return: 'void', arguments: ['pointer', 'pointer', 'pointer'] },
		X509_verify_cert: { return: 'int32', arguments: ['pointer'] },
		X509_STORE_CTX_set_verify_cb: { return: 'void', arguments: ['pointer', 'pointer'] },
		X509_STORE_CTX_get_error: { return: 'int32', arguments: ['pointer'] },
		X509_STORE_CTX_set_error: { return: 'void', arguments: ['pointer', 'int32'] },
		X509_STORE_CTX_get0_cert: { return: 'pointer', arguments: ['pointer'] },
		X509_get0_notBefore: { return: 'pointer', arguments: ['pointer'] },
		X509_get0_notAfter: { return: 'pointer', arguments: ['pointer'] },
		X509_cmp_current_time: { return: 'int32', arguments: ['pointer'] },
		X509_digest: { return: 'int32', arguments: ['pointer', 'pointer', 'pointer', 'pointer'] },
		EVP_sha256: { return: 'pointer', arguments: [] },
	});
	const sha256 = functions.EVP_sha256();
	const digest = Buffer.allocUnsafeSlow(SHA256_BYTES);
	const digestAt = ffi.getRawPointer(digest);
	/** By their number, which OpenSSL is given. They are few, and kept: a handshake that has begun may come back to them. */
	const terms: { readonly chain: boolean; readonly leaves: ReadonlySet<string> | undefined }[] = [];
	const numbers = new Map<string, number>();
	let expired = false;

	// Asked about each certificate: without it, what Node puts there would have every problem passed over.
	const firstProblem = lib.registerCallback({ return: 'int32', arguments: ['int32', 'pointer'] }, sound => sound);
	const leafVerdict = (certificate: bigint, leaves: ReadonlySet<string>): number => {
		if (functions.X509_digest(certificate, sha256, digestAt, 0n) !== 1) return FAILED;
		if (!leaves.has(digest.toString('hex'))) return REJECTED;
		if (functions.X509_cmp_current_time(functions.X509_get0_notBefore(certificate)) > 0) return NOT_YET_VALID;
		return functions.X509_cmp_current_time(functions.X509_get0_notAfter(certificate)) > 0 ? OK : EXPIRED;
	};
	const verdict = (store: bigint, number: bigint): number => {
		const one = terms[Number(number)];
		if (one === undefined) return FAILED;
		if (one.chain) {
			functions.X509_STORE_CTX_set_verify_cb(store, firstProblem);
			if (functions.X509_verify_cert(store) !== 1) return functions.X509_STORE_CTX_get_error(store) || FAILED;
		}
		if (one.leaves === undefined) return OK;
		const certificate = functions.X509_STORE_CTX_get0_cert(store);
		return certificate === 0n ? FAILED : leafVerdict(certificate, one.leaves);
	};
	const callback = lib.registerCallback(
		{ return: 'int32', arguments: ['pointer', 'pointer'] },
		(store, number): number => {
			let error = FAILED;
			try {
				error = verdict(store as bigint, number as bigint);
				functions.X509_STORE_CTX_set_error(store, error);
			} catch {
				error = FAILED;
			}
			expired = error === EXPIRED;
			return error === OK ? 1 : 0;
		},
	);
	return {
		judge(context, { chain, leaves }) {
			const key = JSON.stringify([chain, leaves]);
			let number = numbers.get(key);
			if (number === undefined) {
				number = terms.length;
				const hex = leaves?.map(fingerprint => fingerprint.replaceAll(':', '').toLowerCase());
				terms.push({ chain, leaves: hex && new Set(hex) });
				numbers.set(key, number);
			}
			functions.SSL_CTX_set_cert_verify_callback(addressOf(context), callback, BigInt(number));
		},
		get refusedAsExpired() {
			return expired;
		},
	};
}

/** The address of OpenSSL's own context, of which Node has nothing but an opaque value that it prints. */
function addressOf(context: SecureContext): bigint {
	const { context: inner } = context as SecureContext & { readonly context?: { readonly _external?: unknown } };
	const address = /^\[External: (?:0x)?([0-9a-f]+)\]$/i.exec(inspect(inner?._external))?.[1];
	if (address === undefined || /^0*$/.test(address)) throw new Error('The TLS context has no address.');
	return BigInt(`0x${address}`);
}
