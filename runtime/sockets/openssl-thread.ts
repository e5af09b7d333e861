/** What the TLS connections of one thread share: OpenSSL's functions, buffers, and the callbacks that OpenSSL calls. */
import { DenseSet, type DenseSetMember } from './dense-set.ts';
import { foreignFunctions } from './foreign-functions.ts';
import {
	directIoProblem,
	type ForeignLibrary,
	findOpenssl,
	foreignSignature,
	hasOpensslFunctions,
	type LibrarySimulation,
} from './foreign-library.ts';
import { registerStapleCallback } from './ocsp-staple.ts';
import { uncheckedFunctionsOf } from './unchecked-functions.ts';

const POINTER = 'pointer';
const INT32 = 'int32';
const UINT32 = 'uint32';
const UINT64 = 'uint64';
const VOID = 'void';
const INT64 = 'int64';

/** Functions that are called for each connection, read or write. They never call back into JavaScript. */
const HOT_SIGNATURES = {
	SSL_read: foreignSignature(INT32, POINTER, POINTER, INT32),
	SSL_write: foreignSignature(INT32, POINTER, POINTER, INT32),
	SSL_has_pending: foreignSignature(INT32, POINTER),
	SSL_free_buffers: foreignSignature(INT32, POINTER),
	// The C function returns 64 bits. Only differences of small numbers are needed, so the low 32 bits are sufficient.
	BIO_number_read: foreignSignature(UINT32, POINTER),
	ERR_clear_error: foreignSignature(VOID),
	SSL_new: foreignSignature(POINTER, POINTER),
	SSL_free: foreignSignature(VOID, POINTER),
	SSL_set_bio: foreignSignature(VOID, POINTER, POINTER, POINTER),
	SSL_set0_rbio: foreignSignature(VOID, POINTER, POINTER),
	SSL_set0_wbio: foreignSignature(VOID, POINTER, POINTER),
	SSL_shutdown: foreignSignature(INT32, POINTER),
	SSL_get_error: foreignSignature(INT32, POINTER, INT32),
	SSL_session_reused: foreignSignature(INT32, POINTER),
	SSL_get_current_cipher: foreignSignature(POINTER, POINTER),
	SSL_select_next_proto: foreignSignature(INT32, POINTER, POINTER, POINTER, UINT32, POINTER, UINT32),
	BIO_new_socket: foreignSignature(POINTER, INT32, INT32),
	BIO_up_ref: foreignSignature(INT32, POINTER),
	BIO_free: foreignSignature(INT32, POINTER),
	BIO_ctrl: foreignSignature(INT64, POINTER, INT32, INT64, POINTER),
	BIO_write: foreignSignature(INT32, POINTER, POINTER, INT32),
	BIO_nread: foreignSignature(INT32, POINTER, POINTER, INT32),
} as const;

const SIGNATURES = {
	...HOT_SIGNATURES,
	SSL_up_ref: foreignSignature(INT32, POINTER),
	SSL_get_rbio: foreignSignature(POINTER, POINTER),
	SSL_get_wbio: foreignSignature(POINTER, POINTER),
	SSL_set_info_callback: foreignSignature(VOID, POINTER, POINTER),
	SSL_set_options: foreignSignature(UINT64, POINTER, UINT64),
	SSL_set_read_ahead: foreignSignature(VOID, POINTER, INT32),
	SSL_get_session: foreignSignature(POINTER, POINTER),
	SSL_SESSION_is_resumable: foreignSignature(INT32, POINTER),
	i2d_SSL_SESSION: foreignSignature(INT32, POINTER, POINTER),
	SSL_ctrl: foreignSignature(INT64, POINTER, INT32, INT64, POINTER),
	SSL_CTX_up_ref: foreignSignature(INT32, POINTER),
	SSL_CTX_ctrl: foreignSignature(INT64, POINTER, INT32, INT64, POINTER),
	SSL_CTX_set_options: foreignSignature(UINT64, POINTER, UINT64),
	SSL_CTX_set_default_read_buffer_len: foreignSignature(VOID, POINTER, UINT64),
	SSL_CTX_free: foreignSignature(VOID, POINTER),
	SSL_CTX_set_alpn_select_cb: foreignSignature(VOID, POINTER, POINTER, POINTER),
	SSL_CTX_callback_ctrl: foreignSignature(INT64, POINTER, INT32, POINTER),
	SSL_CTX_set_verify: foreignSignature(VOID, POINTER, INT32, POINTER),
	SSL_CTX_set_keylog_callback: foreignSignature(VOID, POINTER, POINTER),
	SSL_get0_peer_certificate: foreignSignature(POINTER, POINTER),
	SSL_get_verify_result: foreignSignature(INT64, POINTER),
	i2d_X509: foreignSignature(INT32, POINTER, POINTER),
	// Calls SSL_set_accept_state first if the connection is new.
	SSL_accept: foreignSignature(INT32, POINTER),
	SSL_version: foreignSignature(INT32, POINTER),
	SSL_CIPHER_standard_name: foreignSignature(POINTER, POINTER),
	BIO_s_mem: foreignSignature(POINTER),
	BIO_new: foreignSignature(POINTER, POINTER),
	BIO_new_bio_pair: foreignSignature(INT32, POINTER, UINT64, POINTER, UINT64),
	CRYPTO_malloc: foreignSignature(POINTER, UINT64, POINTER, INT32),
	ERR_get_error: foreignSignature(UINT64),
	ERR_reason_error_string: foreignSignature(POINTER, UINT64),
} as const;

/** The functions that TLS over TCP needs. */
export type OpensslLibrary = ForeignLibrary<keyof typeof SIGNATURES>;

/** Maximum bytes of plaintext per write. A record holds sixteen KiB. */
export const MAX_WRITE_BYTES = 65_536;
/** Maximum bytes of a handshake's input that are passed to OpenSSL at once. */
export const MAX_INPUT_BYTES = 32_768;
/** Size of each half of the BIO pair: four records with OpenSSL's overhead, and room for an alert. */
const PAIR_BYTES = MAX_WRITE_BYTES + 8192;
/** Maximum bytes that OpenSSL reads from a socket at once. */
export const MAX_READ_BYTES = 32_768;
/** Maximum number of connections that keep OpenSSL's buffers between requests, about 50 KB each. */
const MAX_BUFFER_OWNERS = 256;
/** Milliseconds for which an idle connection keeps OpenSSL's buffers. */
const BUFFER_KEEP_MS = 1000;
const ALPN_OK = 0;
const ALPN_FATAL = 2;
const ALPN_NONE = 3;
const NEGOTIATED = 1;
const BIO_CTRL_RESET = 1;
export const BIO_CTRL_PENDING = 10;
const VERSION_NAMES: { readonly [versionNumber: number]: string } = { 771: 'TLSv1.2', 772: 'TLSv1.3' };

/** Provides the data for the callbacks during a handshake. */
export interface CallbackTarget {
	/** The server's ALPN protocols in wire format (RFC 7301 §3.1). */
	readonly protocols: Uint8Array;
	/** Memory address of {@link protocols}. */
	readonly protocolsAddress: bigint;
	/** DER of an OCSP response to staple. */
	readonly ocspResponse: Uint8Array | undefined;
	/** Called with the position and length of the negotiated protocol in `protocols`. */
	onNegotiated(at: number, length: number): void;
	/** Called with each line of the log of TLS secrets, if the context has such a log. */
	onSecretLine(line: string): void;
}

/** The cipher suite of a connection, and the TLS version that it implies. */
export interface CipherFacts {
	/** The IANA name of the cipher suite. */
	readonly standardName: string;
	/**
	 * The TLS version, as Node names it; null if it is neither 1.2 nor 1.3. The suite determines it, because TLS 1.3 shares no suite
	 * with other versions (RFC 8446 §B.4).
	 */
	readonly version: string | null;
}

/** A connection whose OpenSSL buffers are freed when it is idle. */
export interface BufferOwner extends DenseSetMember {
	/**
	 * Set to true by each read, and to false by each check for idle connections. If it is still false at the next check, the
	 * connection is idle.
	 */
	usedSinceCheck: boolean;
	freeBuffers(): void;
}

/** What all TLS connections of one thread share: OpenSSL's functions, buffers and callbacks. */
export class OpensslThread {
	readonly library: OpensslLibrary;
	readonly functions: OpensslLibrary['functions'];
	/** Buffer for plaintext that is being written. */
	readonly plaintext: Buffer = Buffer.allocUnsafeSlow(MAX_WRITE_BYTES);
	readonly plaintextAddress: bigint;
	/** Buffer for reads whose bytes are discarded. */
	readonly discardBuffer: Buffer = Buffer.allocUnsafeSlow(4096);
	readonly discardAddress: bigint;
	/** Buffer for reads during handshakes. */
	readonly handshakeInput: Buffer = Buffer.allocUnsafeSlow(16_384);
	readonly handshakeInputAddress: bigint;
	/** Memory for results that OpenSSL returns through pointers. */
	readonly results: Buffer = Buffer.allocUnsafeSlow(64).fill(0);
	readonly resultsAddress: bigint;
	/** The target of callbacks: the connection whose handshake is in progress. */
	currentTarget: CallbackTarget | undefined;
	/** Number of SSL objects that have not been freed. */
	connectionCount = 0;
	readonly alpnCallback: bigint;
	readonly statusCallback: bigint;
	readonly keyLogCallback: bigint;
	/**
	 * OpenSSL's end of a BIO pair, which all connections share. The input and output of handshakes pass through this pair, and so do
	 * records that cannot be written to a socket directly. Nothing stays in it between two uses.
	 */
	readonly opensslPairEnd: bigint;
	/** Our end of the BIO pair, to which input is written and from which records are taken. */
	readonly #ourPairEnd: bigint;
	/** True if the pair may hold input that the connection for which it was written has not read. */
	#hasUnreadInput = false;
	readonly #memoryBioMethod: bigint;
	readonly #cipherFacts = new Map<bigint, CipherFacts>();
	/** The cipher that {@link cipherOf} found last, and what it returned: most connections have the same cipher suite. */
	#lastCipher = 0n;
	#lastCipherFacts: CipherFacts | undefined;
	/** The memory that was last passed to {@link addressOfReadMemory}, and its address. */
	#lastReadMemory: Uint8Array | undefined;
	#lastReadMemoryAddress = 0n;
	readonly #bufferOwners = new DenseSet<BufferOwner>();
	#sweepTimer: NodeJS.Timeout | undefined;

	/** Throws if OpenSSL has no memory. */
	constructor(library: OpensslLibrary) {
		this.library = library;
		const ffi = foreignFunctions()!;
		const functions = { ...library.functions, ...uncheckedFunctionsOf(ffi, HOT_SIGNATURES) };
		this.functions = functions;
		this.plaintextAddress = library.addressOf(this.plaintext);
		this.discardAddress = library.addressOf(this.discardBuffer);
		this.handshakeInputAddress = library.addressOf(this.handshakeInput);
		this.resultsAddress = library.addressOf(this.results);
		this.#memoryBioMethod = functions.BIO_s_mem() as bigint;
		const pairBytes = BigInt(PAIR_BYTES);
		if (
			(functions.BIO_new_bio_pair(this.resultsAddress, pairBytes, this.resultsAddress + 8n, pairBytes) as number) !== 1
		) {
			functions.ERR_clear_error();
			throw new Error('OpenSSL makes no BIO pair.');
		}
		this.opensslPairEnd = this.results.readBigUInt64LE(0);
		this.#ourPairEnd = this.results.readBigUInt64LE(8);
		// The callbacks must not throw, because OpenSSL calls them, and C code cannot pass an exception on.
		const alpnParameterTypes = [POINTER, POINTER, POINTER, POINTER, UINT32, POINTER];
		const chooseAlpn = (_ssl: bigint, out: bigint, outLength: bigint, list: bigint, length: number): number => {
			try {
				return this.#chooseAlpn(out, outLength, list, length);
			} catch {
				return ALPN_FATAL;
			}
		};
		this.alpnCallback = library.registerCallback(INT32, alpnParameterTypes, chooseAlpn);
		this.statusCallback = registerStapleCallback(library, () => this.currentTarget?.ocspResponse);
		this.keyLogCallback = library.registerCallback(VOID, [POINTER, POINTER], (_ssl: bigint, line: bigint): void => {
			try {
				this.currentTarget?.onSecretLine(library.readText(line));
			} catch {
				// The connection continues; only the log of TLS secrets lacks this line.
			}
		});
	}

	#chooseAlpn(outAddress: bigint, outLengthAddress: bigint, listAddress: bigint, listBytes: number): number {
		const target = this.currentTarget;
		if (target === undefined) return ALPN_FATAL;
		const { protocols, protocolsAddress } = target;
		if (protocols.length === 0) return ALPN_NONE;
		const { resultsAddress, results, functions, library } = this;
		const selectResult = functions.SSL_select_next_proto(
			resultsAddress,
			resultsAddress + 8n,
			protocolsAddress,
			protocols.length,
			listAddress,
			listBytes,
		);
		if (selectResult !== NEGOTIATED) return ALPN_FATAL;
		const protocolAddress = results.readBigUInt64LE(0);
		const protocolBytes = results[8]!;
		library.writeUint64(outAddress, protocolAddress);
		library.writeUint8(outLengthAddress, protocolBytes);
		target.onNegotiated(Number(protocolAddress - protocolsAddress), protocolBytes);
		return ALPN_OK;
	}

	/** Returns the cipher suite of a connection, and the TLS version that the suite implies. */
	cipherOf(ssl: bigint): CipherFacts | undefined {
		const { functions } = this;
		const cipher = functions.SSL_get_current_cipher(ssl) as bigint;
		if (cipher === 0n) return undefined;
		if (cipher === this.#lastCipher) return this.#lastCipherFacts;
		let facts = this.#cipherFacts.get(cipher);
		if (facts === undefined) {
			facts = {
				standardName: this.library.readText(functions.SSL_CIPHER_standard_name(cipher) as bigint),
				version: VERSION_NAMES[functions.SSL_version(ssl) as number] ?? null,
			};
			this.#cipherFacts.set(cipher, facts);
		}
		this.#lastCipher = cipher;
		this.#lastCipherFacts = facts;
		return facts;
	}

	/** Returns the address of memory into which connections are read. Usually, all of them are read into the same memory. */
	addressOfReadMemory(memory: Uint8Array): bigint {
		if (memory !== this.#lastReadMemory) {
			this.#lastReadMemoryAddress = this.library.addressOf(memory);
			this.#lastReadMemory = memory;
		}
		return this.#lastReadMemoryAddress;
	}

	/** Returns the certificate of a connection's client, in DER. */
	clientCertificateOf(ssl: bigint): Buffer | undefined {
		const { functions, library, results, resultsAddress } = this;
		const certificate = functions.SSL_get0_peer_certificate(ssl) as bigint;
		const length = certificate === 0n ? 0 : (functions.i2d_X509(certificate, 0n) as number);
		if (length <= 0) return undefined;
		const der = Buffer.allocUnsafeSlow(length);
		results.writeBigUInt64LE(library.addressOf(der), 0);
		return functions.i2d_X509(certificate, resultsAddress) === length ? der : undefined;
	}

	/** Reports whether a later connection can resume the session of a connection. In TLS 1.3, this takes a ticket. */
	hasResumableSession(ssl: bigint): boolean {
		const session = this.functions.SSL_get_session(ssl) as bigint;
		return session !== 0n && this.functions.SSL_SESSION_is_resumable(session) === 1;
	}

	/** Returns the session of a connection, in DER. */
	sessionOf(ssl: bigint): Buffer | undefined {
		const { functions, library, results, resultsAddress } = this;
		const session = functions.SSL_get_session(ssl) as bigint;
		if (session === 0n) return undefined;
		const length = functions.i2d_SSL_SESSION(session, 0n) as number;
		if (length <= 0) return undefined;
		const bytes = Buffer.allocUnsafeSlow(length);
		results.writeBigUInt64LE(library.addressOf(bytes), 0);
		return functions.i2d_SSL_SESSION(session, resultsAddress) === length ? bytes : undefined;
	}

	/** Makes a new connection read from and write to the BIO pair. */
	usePairFor(ssl: bigint): void {
		const { functions, opensslPairEnd } = this;
		// `SSL_set_bio` takes over this reference for reading, and adds a second one for writing.
		functions.BIO_up_ref(opensslPairEnd);
		functions.SSL_set_bio(ssl, opensslPairEnd, opensslPairEnd);
	}

	/**
	 * Writes at most {@link MAX_INPUT_BYTES} of a connection's input to the BIO pair, for OpenSSL to read. Afterwards, either
	 * {@link inputRead} or {@link takeUnreadInput} must be called. Otherwise, for example because the handshake has failed, the next
	 * call discards what OpenSSL has not read, so that no connection reads the input of another one. Returns false if OpenSSL fails.
	 */
	writeInput(address: bigint, length: number): boolean {
		const { functions } = this;
		if (this.#hasUnreadInput) functions.BIO_ctrl(this.#ourPairEnd, BIO_CTRL_RESET, 0n, 0n);
		this.#hasUnreadInput = true;
		return functions.BIO_write(this.#ourPairEnd, address, length) === length;
	}

	/** Records that OpenSSL has read all input, because it has asked for more. */
	inputRead(): void {
		this.#hasUnreadInput = false;
	}

	/**
	 * Removes the input that OpenSSL has not read from the BIO pair. Returns a memory BIO that holds it, 0 if there is none, or −1
	 * if OpenSSL has no memory.
	 */
	takeUnreadInput(): bigint {
		const { functions, results, resultsAddress, opensslPairEnd } = this;
		if ((functions.BIO_ctrl(opensslPairEnd, BIO_CTRL_PENDING, 0n, 0n) as bigint) === 0n) {
			this.#hasUnreadInput = false;
			return 0n;
		}
		const memoryBio = functions.BIO_new(this.#memoryBioMethod) as bigint;
		if (memoryBio === 0n) return -1n;
		for (;;) {
			const count = functions.BIO_nread(opensslPairEnd, resultsAddress, PAIR_BYTES) as number;
			if (count <= 0) break;
			if (functions.BIO_write(memoryBio, results.readBigUInt64LE(0), count) === count) continue;
			functions.BIO_free(memoryBio);
			return -1n;
		}
		this.#hasUnreadInput = false;
		return memoryBio;
	}

	/**
	 * Removes all records from the BIO pair. Returns their size in bytes, or 0 if the pair is empty. The records are at
	 * {@link recordsAddress} until the next write to the pair. They are contiguous, because writes to an empty pair start at the
	 * beginning of its memory.
	 */
	takeRecords(): number {
		const count = this.functions.BIO_nread(this.#ourPairEnd, this.resultsAddress, PAIR_BYTES) as number;
		return count > 0 ? count : 0;
	}

	/** The address of the records that {@link takeRecords} removed. */
	get recordsAddress(): bigint {
		return this.results.readBigUInt64LE(0);
	}

	/** Empties OpenSSL's error queue and returns the first error in the form in which Node would throw it. */
	takeError(): Error & { code?: string } {
		const reasons: string[] = [];
		for (let i = 0; i < 8; i++) {
			const errorNumber = this.functions.ERR_get_error() as bigint;
			if (errorNumber === 0n) break;
			const reasonAddress = this.functions.ERR_reason_error_string(errorNumber) as bigint;
			reasons.push(reasonAddress === 0n ? `error ${errorNumber.toString(16)}` : this.library.readText(reasonAddress));
		}
		this.functions.ERR_clear_error();
		const { stackTraceLimit } = Error;
		Error.stackTraceLimit = 0;
		const error = new Error(reasons.length === 0 ? 'TLS has failed.' : reasons.join('; '));
		Error.stackTraceLimit = stackTraceLimit;
		const code = `ERR_SSL_${(reasons[0] ?? 'unknown').toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}`;
		return Object.assign(error, { code });
	}

	/**
	 * Arranges for a connection's buffers to be freed once it has been idle for a while. Returns false if too many connections keep
	 * their buffers.
	 */
	keepBuffers(owner: BufferOwner): boolean {
		if (this.#bufferOwners.size >= MAX_BUFFER_OWNERS) return false;
		this.#bufferOwners.add(owner);
		this.#sweepTimer ??= setInterval(() => this.#freeIdleBuffers(), BUFFER_KEEP_MS).unref();
		return true;
	}

	/** Must be called when a connection that may keep its buffers is closed. */
	forgetBuffers(owner: BufferOwner): void {
		this.#bufferOwners.delete(owner);
	}

	#freeIdleBuffers(): void {
		for (const owner of this.#bufferOwners) {
			if (owner.usedSinceCheck) {
				owner.usedSinceCheck = false;
				continue;
			}
			this.#bufferOwners.delete(owner);
			owner.freeBuffers();
		}
		if (this.#bufferOwners.size > 0) return;
		clearInterval(this.#sweepTimer);
		this.#sweepTimer = undefined;
	}
}

/** Looks up all functions. Returns undefined if something is missing, which tests can simulate. */
export function findOpensslThread(simulated?: LibrarySimulation): OpensslThread | undefined {
	if (directIoProblem()) return undefined;
	const { library } = findOpenssl(SIGNATURES, ['SSL_accept'], simulated);
	if (library === undefined) return undefined;
	try {
		return new OpensslThread(library);
	} catch {
		return undefined;
	}
}

/** Reports whether the threads of this process can use OpenSSL directly. */
export function isOpensslAvailable(): boolean {
	return directIoProblem() === undefined && hasOpensslFunctions(Object.keys(SIGNATURES));
}

let currentThread: OpensslThread | undefined | null = null;

/**
 * Returns what the TLS connections of this thread share; undefined if OpenSSL cannot be used directly. The first call decides.
 */
export function opensslThread(): OpensslThread | undefined {
	if (directIoProblem()) return undefined;
	if (currentThread === null) currentThread = findOpensslThread();
	return currentThread;
}
