/** What the TLS connections of one thread share: OpenSSL's functions, buffers, and the callbacks that OpenSSL calls. */
import { foreignFunctions } from './foreign-functions.ts';
import {
	type ForeignLibrary,
	findOpenssl,
	foreignSignature,
	type LibrarySimulation,
	withoutDirectIo,
} from './foreign-library.ts';
import { stapleCallback } from './ocsp-staple.ts';
import { uncheckedFunctionsOf } from './unchecked-functions.ts';

const P = 'pointer';
const I = 'int32';
const U32 = 'uint32';
const U64 = 'uint64';
const V = 'void';
const L = 'int64';

/** Functions that are called for each connection, read or write. They never call back into JavaScript. */
const HOT = {
	SSL_read: foreignSignature(I, P, P, I),
	SSL_write: foreignSignature(I, P, P, I),
	SSL_has_pending: foreignSignature(I, P),
	SSL_free_buffers: foreignSignature(I, P),
	// The C function returns 64 bits. Only differences of small numbers are needed, so the low 32 bits are sufficient.
	BIO_number_read: foreignSignature(U32, P),
	ERR_clear_error: foreignSignature(V),
	SSL_new: foreignSignature(P, P),
	SSL_free: foreignSignature(V, P),
	SSL_ctrl: foreignSignature(L, P, I, L, P),
	SSL_set_options: foreignSignature(U64, P, U64),
	SSL_set_accept_state: foreignSignature(V, P),
	SSL_set_read_ahead: foreignSignature(V, P, I),
	SSL_set_default_read_buffer_len: foreignSignature(V, P, U64),
	SSL_set0_rbio: foreignSignature(V, P, P),
	SSL_set0_wbio: foreignSignature(V, P, P),
	SSL_shutdown: foreignSignature(I, P),
	SSL_get_error: foreignSignature(I, P, I),
	SSL_version: foreignSignature(I, P),
	SSL_session_reused: foreignSignature(I, P),
	SSL_get_current_cipher: foreignSignature(P, P),
	SSL_select_next_proto: foreignSignature(I, P, P, P, U32, P, U32),
	BIO_new: foreignSignature(P, P),
	BIO_new_socket: foreignSignature(P, I, I),
	BIO_up_ref: foreignSignature(I, P),
	BIO_free: foreignSignature(I, P),
	BIO_write: foreignSignature(I, P, P, I),
	BIO_nread: foreignSignature(I, P, P, I),
} as const;

const SIGNATURES = {
	...HOT,
	SSL_CTX_up_ref: foreignSignature(I, P),
	SSL_CTX_free: foreignSignature(V, P),
	SSL_CTX_set_alpn_select_cb: foreignSignature(V, P, P, P),
	SSL_CTX_callback_ctrl: foreignSignature(L, P, I, P),
	SSL_CTX_set_verify: foreignSignature(V, P, I, P),
	SSL_CTX_set_keylog_callback: foreignSignature(V, P, P),
	SSL_get0_peer_certificate: foreignSignature(P, P),
	SSL_get_verify_result: foreignSignature(L, P),
	i2d_X509: foreignSignature(I, P, P),
	SSL_do_handshake: foreignSignature(I, P),
	SSL_CIPHER_standard_name: foreignSignature(P, P),
	BIO_s_mem: foreignSignature(P),
	BIO_new_bio_pair: foreignSignature(I, P, U64, P, U64),
	CRYPTO_malloc: foreignSignature(P, U64, P, I),
	ERR_get_error: foreignSignature(U64),
	ERR_reason_error_string: foreignSignature(P, U64),
} as const;

/** The functions that TLS over TCP needs. */
export type OpensslLibrary = ForeignLibrary<keyof typeof SIGNATURES>;

/** Maximum bytes of plaintext per write. A record holds sixteen KiB. */
export const WRITE_BYTES = 65_536;
/** Size of the BIO pair: four records with OpenSSL's overhead, and room for an alert. */
const PAIR_BYTES = WRITE_BYTES + 8192;
/** Maximum bytes that OpenSSL reads from a socket at once. */
export const READ_BYTES = 32_768;
/** Maximum number of connections that keep OpenSSL's buffers between requests, about 50 KB each. */
const MAX_BUFFERED = 256;
/** Milliseconds for which an idle connection keeps OpenSSL's buffers. */
const BUFFER_TIME = 1000;
const ALPN_OK = 0;
const ALPN_FATAL = 2;
const ALPN_NONE = 3;
const NEGOTIATED = 1;

/** Provides the data for the callbacks during a handshake. */
export interface CallbackTarget {
	/** The server's ALPN protocols in wire format (RFC 7301 §3.1). */
	readonly protocols: Uint8Array;
	/** Memory address of {@link protocols}. */
	readonly protocolsAt: bigint;
	/** DER of an OCSP response to staple. */
	readonly stapled: Uint8Array | undefined;
	/** Called with the position and length of the negotiated protocol in `protocols`. */
	negotiated(at: number, length: number): void;
	/** Called with each line of the secrets log, if the context has one. */
	secret(line: string): void;
}

/** A connection whose OpenSSL buffers are freed when it is idle. */
export interface BufferOwner {
	/**
	 * Set to true by each read, and to false by each check for idle connections. If it is still false at the next check, the
	 * connection is idle.
	 */
	active: boolean;
	freeBuffers(): void;
}

/** What all TLS connections of one thread share; see the top of this file. */
export class OpensslThread {
	readonly library: OpensslLibrary;
	readonly f: OpensslLibrary['f'];
	/** Buffer for plaintext that is being written. */
	readonly written: Buffer = Buffer.allocUnsafeSlow(WRITE_BYTES);
	readonly writtenAt: bigint;
	/** Buffer for reads whose bytes are discarded. */
	readonly scratch: Buffer = Buffer.allocUnsafeSlow(4096);
	readonly scratchAt: bigint;
	/** Buffer for reads during handshakes. */
	readonly input: Buffer = Buffer.allocUnsafeSlow(16_384);
	readonly inputAt: bigint;
	readonly results: Buffer = Buffer.allocUnsafeSlow(64).fill(0);
	readonly resultsAt: bigint;
	/** The target of callbacks: the connection whose handshake is in progress. */
	current: CallbackTarget | undefined;
	/** Number of SSL objects that have not been freed. */
	connections = 0;
	readonly alpn: bigint;
	readonly status: bigint;
	readonly keyLog: bigint;
	readonly memoryMethod: bigint;
	/** OpenSSL's end of a BIO pair. Records that cannot be written to a socket directly pass through this pair. */
	readonly pairIn: bigint;
	/** Our end of the BIO pair, from which records are taken. */
	readonly #pairOut: bigint;
	readonly #ciphers = new Map<bigint, string>();
	#buffered: BufferOwner[] = [];
	#sweep: NodeJS.Timeout | undefined;

	/** Throws if OpenSSL has no memory. */
	constructor(library: OpensslLibrary) {
		this.library = library;
		const ffi = foreignFunctions()!;
		const f = { ...library.f, ...uncheckedFunctionsOf(ffi, HOT) };
		this.f = f;
		this.writtenAt = library.addressOf(this.written);
		this.scratchAt = library.addressOf(this.scratch);
		this.inputAt = library.addressOf(this.input);
		this.resultsAt = library.addressOf(this.results);
		this.memoryMethod = f.BIO_s_mem() as bigint;
		const size = BigInt(PAIR_BYTES);
		if ((f.BIO_new_bio_pair(this.resultsAt, size, this.resultsAt + 8n, size) as number) !== 1) {
			f.ERR_clear_error();
			throw new Error('OpenSSL makes no BIO pair.');
		}
		this.pairIn = this.results.readBigUInt64LE(0);
		this.#pairOut = this.results.readBigUInt64LE(8);
		// The callbacks must not throw, because OpenSSL calls them, and C code cannot pass an exception on.
		const types = [P, P, P, P, U32, P];
		const chooseAlpn = (_ssl: bigint, out: bigint, outLength: bigint, list: bigint, length: number): number => {
			try {
				return this.#chooseAlpn(out, outLength, list, length);
			} catch {
				return ALPN_FATAL;
			}
		};
		this.alpn = library.callback(I, types, chooseAlpn);
		this.status = stapleCallback(library, () => this.current?.stapled);
		this.keyLog = library.callback(V, [P, P], (_ssl: bigint, line: bigint): void => {
			try {
				this.current?.secret(library.text(line));
			} catch {
				// The connection continues; only the secrets log lacks this line.
			}
		});
	}

	#chooseAlpn(out: bigint, outLength: bigint, list: bigint, length: number): number {
		const target = this.current;
		if (target === undefined) return ALPN_FATAL;
		const { protocols, protocolsAt } = target;
		if (protocols.length === 0) return ALPN_NONE;
		const { resultsAt, results, f, library } = this;
		const found = f.SSL_select_next_proto(resultsAt, resultsAt + 8n, protocolsAt, protocols.length, list, length);
		if (found !== NEGOTIATED) return ALPN_FATAL;
		const at = results.readBigUInt64LE(0);
		const bytes = results[8]!;
		library.writeUint64(out, at);
		library.writeUint8(outLength, bytes);
		target.negotiated(Number(at - protocolsAt), bytes);
		return ALPN_OK;
	}

	/** Returns the IANA name of a connection's cipher suite. */
	cipherOf(ssl: bigint): string | undefined {
		const cipher = this.f.SSL_get_current_cipher(ssl) as bigint;
		if (cipher === 0n) return undefined;
		let name = this.#ciphers.get(cipher);
		if (name === undefined) {
			name = this.library.text(this.f.SSL_CIPHER_standard_name(cipher) as bigint);
			this.#ciphers.set(cipher, name);
		}
		return name;
	}

	/** Returns the certificate of a connection's client, in DER. */
	clientCertificateOf(ssl: bigint): Buffer | undefined {
		const { f, library, results, resultsAt } = this;
		const certificate = f.SSL_get0_peer_certificate(ssl) as bigint;
		const length = certificate === 0n ? 0 : (f.i2d_X509(certificate, 0n) as number);
		if (length <= 0) return undefined;
		const der = Buffer.allocUnsafeSlow(length);
		results.writeBigUInt64LE(library.addressOf(der), 0);
		return f.i2d_X509(certificate, resultsAt) === length ? der : undefined;
	}

	/**
	 * Removes from the BIO pair the records that are contiguous in memory. Returns their size in bytes, or 0 if the pair is empty.
	 * The records are at {@link pairAt} until the next write to the pair.
	 */
	takeRecords(): number {
		const count = this.f.BIO_nread(this.#pairOut, this.resultsAt, PAIR_BYTES) as number;
		return count > 0 ? count : 0;
	}

	/** The address of the records that {@link takeRecords} removed. */
	get pairAt(): bigint {
		return this.results.readBigUInt64LE(0);
	}

	/** Discards all records in the BIO pair. */
	dropRecords(): void {
		while (this.takeRecords() > 0);
	}

	/** Empties OpenSSL's error queue and returns the first error in the form in which Node would throw it. */
	takeError(): Error & { code?: string } {
		const reasons: string[] = [];
		for (let turn = 0; turn < 8; turn++) {
			const number = this.f.ERR_get_error() as bigint;
			if (number === 0n) break;
			const at = this.f.ERR_reason_error_string(number) as bigint;
			reasons.push(at === 0n ? `error ${number.toString(16)}` : this.library.text(at));
		}
		this.f.ERR_clear_error();
		const { stackTraceLimit } = Error;
		Error.stackTraceLimit = 0;
		const error = new Error(reasons.length === 0 ? 'TLS has failed.' : reasons.join('; '));
		Error.stackTraceLimit = stackTraceLimit;
		const code = `ERR_SSL_${(reasons[0] ?? 'unknown').toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}`;
		return Object.assign(error, { code });
	}

	/**
	 * Arranges for a connection's buffers to be freed once it has been idle for a while. Returns false if too many connections keep
	 * theirs.
	 */
	keepBuffers(owner: BufferOwner): boolean {
		if (this.#buffered.length >= MAX_BUFFERED) return false;
		this.#buffered.push(owner);
		this.#sweep ??= setInterval(() => this.#freeIdle(), BUFFER_TIME).unref();
		return true;
	}

	#freeIdle(): void {
		const stillActive: BufferOwner[] = [];
		for (const owner of this.#buffered) {
			if (owner.active) {
				owner.active = false;
				stillActive.push(owner);
			} else owner.freeBuffers();
		}
		this.#buffered = stillActive;
		if (stillActive.length > 0) return;
		clearInterval(this.#sweep);
		this.#sweep = undefined;
	}
}

/** Looks up all functions. Returns undefined if something is missing, which tests can simulate. */
export function findOpensslThread(simulated?: LibrarySimulation): OpensslThread | undefined {
	if (withoutDirectIo()) return undefined;
	const { library } = findOpenssl(SIGNATURES, ['SSL_do_handshake'], simulated);
	if (library === undefined) return undefined;
	try {
		return new OpensslThread(library);
	} catch {
		return undefined;
	}
}

let thread: OpensslThread | undefined | null = null;

/** Returns what the TLS connections of this thread share; undefined if OpenSSL cannot be used directly. The first call decides. */
export function opensslThread(): OpensslThread | undefined {
	if (withoutDirectIo()) return undefined;
	if (thread === null) thread = findOpensslThread();
	return thread;
}
