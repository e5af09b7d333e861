/**
 * The functions of Node's own OpenSSL and of the C library that QUIC needs, called through `node:ffi`. Every symbol is looked up
 * when a thread first needs QUIC. If one is missing, HTTP/3 is unavailable in this process, and nothing else changes.
 */
import {
	type ForeignFunction,
	type ForeignSignature,
	foreignFunctions,
	loadForeignFunctions,
} from '../foreign-functions.ts';
import { isDirectIo } from '../io-mode.ts';

const P = 'pointer';
const I = 'int32';
const U32 = 'uint32';
const U64 = 'uint64';
const V = 'void';

function signature(result: string, ...takes: string[]): ForeignSignature {
	return { return: result, arguments: takes };
}

const SIGNATURES = {
	OSSL_QUIC_server_method: signature(P),
	SSL_CTX_new: signature(P, P),
	SSL_CTX_free: signature(V, P),
	SSL_CTX_ctrl: signature('int64', P, I, 'int64', P),
	SSL_CTX_set_alpn_select_cb: signature(V, P, P, P),
	SSL_CTX_set_client_hello_cb: signature(V, P, P, P),
	SSL_CTX_callback_ctrl: signature('int64', P, I, P),
	SSL_CTX_set_ciphersuites: signature(I, P, P),
	SSL_CTX_set_session_id_context: signature(I, P, P, U32),
	SSL_client_hello_get0_ext: signature(I, P, U32, P, P),
	SSL_client_hello_get0_ciphers: signature(U64, P, P),
	SSL_use_cert_and_key: signature(I, P, P, P, P, I),
	SSL_ctrl: signature('int64', P, I, 'int64', P),
	SSL_new_listener: signature(P, P, U64),
	SSL_set_bio: signature(V, P, P, P),
	SSL_set_blocking_mode: signature(I, P, I),
	SSL_listen: signature(I, P),
	SSL_set_value_uint: signature(I, P, U32, U32, U64),
	SSL_get_value_uint: signature(I, P, U32, U32, P),
	SSL_handle_events: signature(I, P),
	SSL_get_event_timeout: signature(I, P, P, P),
	SSL_accept_connection: signature(P, P, U64),
	SSL_is_init_finished: signature(I, P),
	SSL_session_reused: signature(I, P),
	SSL_get_current_cipher: signature(P, P),
	SSL_CIPHER_standard_name: signature(P, P),
	SSL_get_conn_close_info: signature(I, P, P, U64),
	SSL_shutdown_ex: signature(I, P, U64, P, U64),
	SSL_set_incoming_stream_policy: signature(I, P, I, U64),
	SSL_set_default_stream_mode: signature(I, P, U32),
	SSL_get_accept_stream_queue_len: signature(U64, P),
	SSL_accept_stream: signature(P, P, U64),
	SSL_new_stream: signature(P, P, U64),
	SSL_get_stream_id: signature(U64, P),
	SSL_get_stream_read_state: signature(I, P),
	SSL_get_stream_write_state: signature(I, P),
	SSL_get_stream_read_error_code: signature(I, P, P),
	SSL_read_ex: signature(I, P, P, U64, P),
	SSL_write_ex2: signature(I, P, P, U64, U64, P),
	SSL_stream_conclude: signature(I, P, U64),
	SSL_stream_reset: signature(I, P, P, U64),
	SSL_get_error: signature(I, P, I),
	SSL_free: signature(V, P),
	ERR_clear_error: signature(V),
	BIO_new_bio_dgram_pair: signature(I, P, U64, P, U64),
	BIO_ctrl: signature('int64', P, I, 'int64', P),
	BIO_sendmmsg: signature(I, P, P, U64, U64, U64, P),
	BIO_recvmmsg: signature(I, P, P, U64, U64, U64, P),
	BIO_new_mem_buf: signature(P, P, I),
	BIO_free: signature(I, P),
	PEM_read_bio_X509: signature(P, P, P, P, P),
	PEM_read_bio_PrivateKey: signature(P, P, P, P, P),
	X509_free: signature(V, P),
	EVP_PKEY_free: signature(V, P),
	OPENSSL_sk_new_null: signature(P),
	OPENSSL_sk_push: signature(I, P, P),
	OPENSSL_sk_free: signature(V, P),
	CRYPTO_malloc: signature(P, U64, P, I),
	socket: signature(I, I, I, I),
	bind: signature(I, I, P, U32),
	close: signature(I, I),
	getsockname: signature(I, I, P, P),
	setsockopt: signature(I, I, I, I, P, U32),
	recvmmsg: signature(I, I, P, U32, I, P),
	sendmmsg: signature(I, I, P, U32, I),
	__errno_location: signature(P),
} as const;

/** Names of the functions in {@link QuicLibrary.f}. */
export type QuicFunctionName = keyof typeof SIGNATURES;

/** The functions, and what is needed to call them. */
export interface QuicLibrary {
	/** Functions by name. Addresses and 64-bit numbers are BigInts. */
	readonly f: { readonly [name in QuicFunctionName]: ForeignFunction };
	/** Returns the address of memory outside the heap. The memory must stay alive as long as the address is used. */
	addressOf(memory: Uint8Array): bigint;
	/** Registers a function that C calls on this thread. It is kept as long as the thread lives. It must not throw. */
	callback(result: string, takes: readonly string[], run: (...values: never[]) => unknown): bigint;
	/** Copies bytes at an address into a new Buffer. */
	copy(address: bigint, length: number): Buffer;
	/** Reads a string that ends with a zero byte. */
	text(address: bigint): string;
	/** Writes bytes to an address. */
	write(address: bigint, bytes: Uint8Array): void;
	writeUint64(address: bigint, value: bigint): void;
	writeUint8(address: bigint, value: number): void;
	writeInt32(address: bigint, value: number): void;
	/** Returns the error code of the last failed system call. */
	errno(): number;
}

/** The functions of one thread, or the reason why they are not available. */
export type QuicSupport =
	| { readonly library: QuicLibrary; readonly missing?: undefined }
	| { readonly library?: undefined; readonly missing: string };

let support: QuicSupport | undefined;

/** Looks up the functions. The result of a thread's first call is kept. */
export function quicSupport(): QuicSupport {
	if (!isDirectIo()) return { missing: 'it needs `direct` I/O' };
	support ??= findQuicLibrary();
	return support;
}

/** For tests: simulates a process in which a symbol or module is missing, or whose OpenSSL has another version. */
export interface QuicSimulation {
	/** Name of a symbol to be treated as missing. */
	readonly missing?: string;
	readonly openssl?: string;
}

/** Looks up every function. Returns them, or the reason why QUIC is not available. */
export function findQuicLibrary(simulated: QuicSimulation = {}): QuicSupport {
	const version = simulated.openssl ?? process.versions.openssl ?? '';
	const [major = 0, minor = 0] = version.split('.').map(Number);
	if (process.platform !== 'linux' || (process.arch !== 'x64' && process.arch !== 'arm64')) {
		return { missing: 'it needs Linux on x64 or arm64' };
	}
	if (major !== 3 || minor < 5)
		return { missing: `it needs OpenSSL 3.5 or a later 3.x, and Node has ${version || 'none'}` };
	const ffi = foreignFunctions();
	if (ffi === undefined) return { missing: 'this Node has no `node:ffi`' };
	try {
		const signatures: { [name: string]: ForeignSignature } = { ...SIGNATURES };
		if (simulated.missing !== undefined) signatures[`missing_${simulated.missing}`] = signature(V);
		const f = loadForeignFunctions(ffi, signatures) as QuicLibrary['f'];
		return { library: new BoundLibrary(ffi, f) };
	} catch (error) {
		const cause = error instanceof Error ? error.message : String(error);
		return { missing: `a function of OpenSSL or of the C library is missing (${cause})` };
	}
}

class BoundLibrary implements QuicLibrary {
	readonly f: QuicLibrary['f'];
	readonly #ffi: typeof import('node:ffi');
	readonly #library: { registerCallback(signature: ForeignSignature, run: (...values: never[]) => unknown): bigint };
	readonly #errnoAt: bigint;
	/** Kept alive, because C may call them as long as the thread lives. */
	readonly #callbacks: unknown[] = [];

	constructor(ffi: typeof import('node:ffi'), found: QuicLibrary['f']) {
		this.#ffi = ffi;
		const { lib, functions } = ffi.dlopen(null, { SSL_handle_events: { return: I, arguments: [P] } });
		// This function calls back into JavaScript, so it is called in the way that Node documents.
		const f = { ...found, SSL_handle_events: functions.SSL_handle_events as ForeignFunction };
		this.f = f;
		this.#library = lib as never;
		this.#errnoAt = f.__errno_location() as bigint;
	}

	addressOf(memory: Uint8Array): bigint {
		return this.#ffi.getRawPointer(memory);
	}

	callback(result: string, takes: readonly string[], run: (...values: never[]) => unknown): bigint {
		this.#callbacks.push(run);
		return this.#library.registerCallback({ return: result, arguments: takes }, run);
	}

	copy(address: bigint, length: number): Buffer {
		return Buffer.from(this.#ffi.toBuffer(address, length, true));
	}

	text(address: bigint): string {
		return this.#ffi.toString(address) ?? '';
	}

	write(address: bigint, bytes: Uint8Array): void {
		this.#ffi.exportArrayBufferView(bytes, address, bytes.byteLength);
	}

	writeUint64(address: bigint, value: bigint): void {
		this.#ffi.setUint64(address, 0, value);
	}

	writeUint8(address: bigint, value: number): void {
		this.#ffi.setUint8(address, 0, value);
	}

	writeInt32(address: bigint, value: number): void {
		this.#ffi.setInt32(address, 0, value);
	}

	errno(): number {
		return this.#ffi.getInt32(this.#errnoAt);
	}
}
