/**
 * The functions of Node's own OpenSSL and of the C library that QUIC needs, called through `node:ffi`. Every symbol is looked up
 * when a thread first needs QUIC. If one is missing, HTTP/3 is unavailable in this process, and nothing else changes.
 */
import {
	directIoProblem,
	type ForeignLibrary,
	type ForeignSupport,
	findOpenssl,
	foreignSignature,
	type LibrarySimulation,
} from '../foreign-library.ts';

const POINTER = 'pointer';
const INT32 = 'int32';
const UINT32 = 'uint32';
const UINT64 = 'uint64';
const VOID = 'void';

/**
 * Functions that are called for each connection, stream or datagram. They never call back into JavaScript. Where only the low 32
 * bits of a 64-bit result are needed, the result is declared with 32 bits, so that no BigInt is allocated for it: connections have
 * far fewer than 2^32 streams.
 */
const HOT_SIGNATURES = {
	SSL_ctrl: foreignSignature('int64', POINTER, INT32, 'int64', POINTER),
	SSL_set_bio: foreignSignature(VOID, POINTER, POINTER, POINTER),
	SSL_set_blocking_mode: foreignSignature(INT32, POINTER, INT32),
	SSL_set_value_uint: foreignSignature(INT32, POINTER, UINT32, UINT32, UINT64),
	SSL_get_value_uint: foreignSignature(INT32, POINTER, UINT32, UINT32, POINTER),
	SSL_get_event_timeout: foreignSignature(INT32, POINTER, POINTER, POINTER),
	SSL_is_init_finished: foreignSignature(INT32, POINTER),
	SSL_session_reused: foreignSignature(INT32, POINTER),
	SSL_get_current_cipher: foreignSignature(POINTER, POINTER),
	SSL_set_incoming_stream_policy: foreignSignature(INT32, POINTER, INT32, UINT64),
	SSL_set_default_stream_mode: foreignSignature(INT32, POINTER, UINT32),
	SSL_get_accept_stream_queue_len: foreignSignature(UINT32, POINTER),
	SSL_accept_stream: foreignSignature(POINTER, POINTER, UINT64),
	SSL_new_stream: foreignSignature(POINTER, POINTER, UINT64),
	SSL_get_stream_id: foreignSignature(UINT32, POINTER),
	SSL_get_stream_read_state: foreignSignature(INT32, POINTER),
	SSL_get_stream_read_error_code: foreignSignature(INT32, POINTER, POINTER),
	SSL_read_ex: foreignSignature(INT32, POINTER, POINTER, UINT64, POINTER),
	SSL_write_ex2: foreignSignature(INT32, POINTER, POINTER, UINT64, UINT64, POINTER),
	SSL_stream_conclude: foreignSignature(INT32, POINTER, UINT64),
	SSL_stream_reset: foreignSignature(INT32, POINTER, POINTER, UINT64),
	SSL_get_error: foreignSignature(INT32, POINTER, INT32),
	SSL_poll: foreignSignature(INT32, POINTER, UINT64, UINT64, POINTER, UINT64, POINTER),
	// Only queues the datagram: the connection handles it when it runs.
	SSL_inject_net_dgram: foreignSignature(INT32, POINTER, POINTER, UINT64, POINTER, POINTER),
	SSL_free: foreignSignature(VOID, POINTER),
	ERR_clear_error: foreignSignature(VOID),
	BIO_ctrl: foreignSignature('int64', POINTER, INT32, 'int64', POINTER),
	BIO_up_ref: foreignSignature(INT32, POINTER),
	BIO_sendmmsg: foreignSignature(INT32, POINTER, POINTER, UINT64, UINT64, UINT64, POINTER),
	BIO_recvmmsg: foreignSignature(INT32, POINTER, POINTER, UINT64, UINT64, UINT64, POINTER),
	recvmmsg: foreignSignature(INT32, INT32, POINTER, UINT32, INT32, POINTER),
	sendmmsg: foreignSignature(INT32, INT32, POINTER, UINT32, INT32),
} as const;

const SIGNATURES = {
	...HOT_SIGNATURES,
	OSSL_QUIC_server_method: foreignSignature(POINTER),
	SSL_CTX_new: foreignSignature(POINTER, POINTER),
	SSL_CTX_free: foreignSignature(VOID, POINTER),
	SSL_CTX_ctrl: foreignSignature('int64', POINTER, INT32, 'int64', POINTER),
	SSL_CTX_set_alpn_select_cb: foreignSignature(VOID, POINTER, POINTER, POINTER),
	SSL_CTX_set_client_hello_cb: foreignSignature(VOID, POINTER, POINTER, POINTER),
	SSL_CTX_callback_ctrl: foreignSignature('int64', POINTER, INT32, POINTER),
	SSL_CTX_set_options: foreignSignature(UINT64, POINTER, UINT64),
	SSL_CTX_set_timeout: foreignSignature('int64', POINTER, 'int64'),
	SSL_CTX_set_ciphersuites: foreignSignature(INT32, POINTER, POINTER),
	SSL_CTX_set_session_id_context: foreignSignature(INT32, POINTER, POINTER, UINT32),
	SSL_CTX_set_cert_verify_callback: foreignSignature(VOID, POINTER, POINTER, POINTER),
	SSL_CTX_set_keylog_callback: foreignSignature(VOID, POINTER, POINTER),
	SSL_set_verify: foreignSignature(VOID, POINTER, INT32, POINTER),
	SSL_set_session_id_context: foreignSignature(INT32, POINTER, POINTER, UINT32),
	SSL_set0_CA_list: foreignSignature(VOID, POINTER, POINTER),
	SSL_dup_CA_list: foreignSignature(POINTER, POINTER),
	SSL_get1_peer_certificate: foreignSignature(POINTER, POINTER),
	SSL_get_verify_result: foreignSignature('int64', POINTER),
	X509_STORE_CTX_set0_trusted_stack: foreignSignature(VOID, POINTER, POINTER),
	X509_get_subject_name: foreignSignature(POINTER, POINTER),
	i2d_X509: foreignSignature(INT32, POINTER, POINTER),
	SSL_client_hello_get0_ext: foreignSignature(INT32, POINTER, UINT32, POINTER, POINTER),
	SSL_client_hello_get0_ciphers: foreignSignature(UINT64, POINTER, POINTER),
	SSL_use_cert_and_key: foreignSignature(INT32, POINTER, POINTER, POINTER, POINTER, INT32),
	SSL_new_listener: foreignSignature(POINTER, POINTER, UINT64),
	SSL_listen: foreignSignature(INT32, POINTER),
	SSL_handle_events: foreignSignature(INT32, POINTER),
	SSL_accept_connection: foreignSignature(POINTER, POINTER, UINT64),
	/** Removes the oldest error from the thread's queue. Stores its file, line, function, details and flags. */
	ERR_get_error_all: foreignSignature(UINT64, POINTER, POINTER, POINTER, POINTER, POINTER),
	ERR_reason_error_string: foreignSignature(POINTER, UINT64),
	SSL_CIPHER_standard_name: foreignSignature(POINTER, POINTER),
	SSL_get_conn_close_info: foreignSignature(INT32, POINTER, POINTER, UINT64),
	SSL_shutdown_ex: foreignSignature(INT32, POINTER, UINT64, POINTER, UINT64),
	BIO_new_bio_dgram_pair: foreignSignature(INT32, POINTER, UINT64, POINTER, UINT64),
	BIO_new_mem_buf: foreignSignature(POINTER, POINTER, INT32),
	BIO_free: foreignSignature(INT32, POINTER),
	PEM_read_bio_X509: foreignSignature(POINTER, POINTER, POINTER, POINTER, POINTER),
	PEM_read_bio_PrivateKey: foreignSignature(POINTER, POINTER, POINTER, POINTER, POINTER),
	X509_free: foreignSignature(VOID, POINTER),
	EVP_PKEY_free: foreignSignature(VOID, POINTER),
	EVP_PKEY_set_type: foreignSignature(INT32, POINTER, INT32),
	OPENSSL_sk_new_null: foreignSignature(POINTER),
	OPENSSL_sk_push: foreignSignature(INT32, POINTER, POINTER),
	OPENSSL_sk_free: foreignSignature(VOID, POINTER),
	CRYPTO_malloc: foreignSignature(POINTER, UINT64, POINTER, INT32),
	socket: foreignSignature(INT32, INT32, INT32, INT32),
	bind: foreignSignature(INT32, INT32, POINTER, UINT32),
	close: foreignSignature(INT32, INT32),
	getsockname: foreignSignature(INT32, INT32, POINTER, POINTER),
	setsockopt: foreignSignature(INT32, INT32, INT32, INT32, POINTER, UINT32),
	socketpair: foreignSignature(INT32, INT32, INT32, INT32, POINTER),
	recv: foreignSignature('int64', INT32, POINTER, UINT64, INT32),
	send: foreignSignature('int64', INT32, POINTER, UINT64, INT32),
} as const;

/** The functions of the library, and the memory needed to call them. */
export type QuicLibrary = ForeignLibrary<keyof typeof SIGNATURES>;

/** The functions of one thread, or the reason why they are not available. */
export type QuicSupport = ForeignSupport<keyof typeof SIGNATURES>;

let threadSupport: QuicSupport | undefined;

/** Looks up the functions. The result of a thread's first call is kept. */
export function quicSupport(): QuicSupport {
	const unavailable = directIoProblem();
	if (unavailable) return unavailable;
	threadSupport ??= findQuicLibrary();
	return threadSupport;
}

/** Looks up every function. Returns them, or the reason why QUIC is not available. */
export function findQuicLibrary(simulated: LibrarySimulation = {}): QuicSupport {
	return findOpenssl(SIGNATURES, ['SSL_handle_events'], simulated, HOT_SIGNATURES);
}
