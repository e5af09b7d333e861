/**
 * The functions of Node's own OpenSSL and of the C library that QUIC needs, called through `node:ffi`. Every symbol is looked up
 * when a thread first needs QUIC. If one is missing, HTTP/3 is unavailable in this process, and nothing else changes.
 */
import {
	type ForeignLibrary,
	type ForeignSupport,
	findOpenssl,
	foreignSignature,
	type LibrarySimulation,
	withoutDirectIo,
} from '../foreign-library.ts';

const P = 'pointer';
const I = 'int32';
const U32 = 'uint32';
const U64 = 'uint64';
const V = 'void';

/** Functions that are called for each connection, stream or datagram. They never call back into JavaScript. */
const HOT = {
	SSL_ctrl: foreignSignature('int64', P, I, 'int64', P),
	SSL_set_bio: foreignSignature(V, P, P, P),
	SSL_set_blocking_mode: foreignSignature(I, P, I),
	SSL_set_value_uint: foreignSignature(I, P, U32, U32, U64),
	SSL_get_value_uint: foreignSignature(I, P, U32, U32, P),
	SSL_get_event_timeout: foreignSignature(I, P, P, P),
	SSL_is_init_finished: foreignSignature(I, P),
	SSL_session_reused: foreignSignature(I, P),
	SSL_get_current_cipher: foreignSignature(P, P),
	SSL_set_incoming_stream_policy: foreignSignature(I, P, I, U64),
	SSL_set_default_stream_mode: foreignSignature(I, P, U32),
	SSL_get_accept_stream_queue_len: foreignSignature(U64, P),
	SSL_accept_stream: foreignSignature(P, P, U64),
	SSL_new_stream: foreignSignature(P, P, U64),
	SSL_get_stream_id: foreignSignature(U64, P),
	SSL_get_stream_read_state: foreignSignature(I, P),
	SSL_get_stream_read_error_code: foreignSignature(I, P, P),
	SSL_read_ex: foreignSignature(I, P, P, U64, P),
	SSL_write_ex2: foreignSignature(I, P, P, U64, U64, P),
	SSL_stream_conclude: foreignSignature(I, P, U64),
	SSL_stream_reset: foreignSignature(I, P, P, U64),
	SSL_get_error: foreignSignature(I, P, I),
	SSL_poll: foreignSignature(I, P, U64, U64, P, U64, P),
	SSL_free: foreignSignature(V, P),
	ERR_clear_error: foreignSignature(V),
	BIO_ctrl: foreignSignature('int64', P, I, 'int64', P),
	BIO_up_ref: foreignSignature(I, P),
	BIO_sendmmsg: foreignSignature(I, P, P, U64, U64, U64, P),
	BIO_recvmmsg: foreignSignature(I, P, P, U64, U64, U64, P),
	recvmmsg: foreignSignature(I, I, P, U32, I, P),
	sendmmsg: foreignSignature(I, I, P, U32, I),
} as const;

const SIGNATURES = {
	...HOT,
	OSSL_QUIC_server_method: foreignSignature(P),
	SSL_CTX_new: foreignSignature(P, P),
	SSL_CTX_free: foreignSignature(V, P),
	SSL_CTX_ctrl: foreignSignature('int64', P, I, 'int64', P),
	SSL_CTX_set_alpn_select_cb: foreignSignature(V, P, P, P),
	SSL_CTX_set_client_hello_cb: foreignSignature(V, P, P, P),
	SSL_CTX_callback_ctrl: foreignSignature('int64', P, I, P),
	SSL_CTX_set_options: foreignSignature(U64, P, U64),
	SSL_CTX_set_timeout: foreignSignature('int64', P, 'int64'),
	SSL_CTX_set_ciphersuites: foreignSignature(I, P, P),
	SSL_CTX_set_session_id_context: foreignSignature(I, P, P, U32),
	SSL_CTX_set_cert_verify_callback: foreignSignature(V, P, P, P),
	SSL_CTX_set_keylog_callback: foreignSignature(V, P, P),
	SSL_set_verify: foreignSignature(V, P, I, P),
	SSL_set_session_id_context: foreignSignature(I, P, P, U32),
	SSL_set0_CA_list: foreignSignature(V, P, P),
	SSL_dup_CA_list: foreignSignature(P, P),
	SSL_get1_peer_certificate: foreignSignature(P, P),
	SSL_get_verify_result: foreignSignature('int64', P),
	X509_STORE_CTX_set0_trusted_stack: foreignSignature(V, P, P),
	X509_get_subject_name: foreignSignature(P, P),
	i2d_X509: foreignSignature(I, P, P),
	SSL_client_hello_get0_ext: foreignSignature(I, P, U32, P, P),
	SSL_client_hello_get0_ciphers: foreignSignature(U64, P, P),
	SSL_use_cert_and_key: foreignSignature(I, P, P, P, P, I),
	SSL_new_listener: foreignSignature(P, P, U64),
	SSL_listen: foreignSignature(I, P),
	SSL_handle_events: foreignSignature(I, P),
	SSL_inject_net_dgram: foreignSignature(I, P, P, U64, P, P),
	SSL_accept_connection: foreignSignature(P, P, U64),
	SSL_CIPHER_standard_name: foreignSignature(P, P),
	SSL_get_conn_close_info: foreignSignature(I, P, P, U64),
	SSL_shutdown_ex: foreignSignature(I, P, U64, P, U64),
	BIO_new_bio_dgram_pair: foreignSignature(I, P, U64, P, U64),
	BIO_new_mem_buf: foreignSignature(P, P, I),
	BIO_free: foreignSignature(I, P),
	PEM_read_bio_X509: foreignSignature(P, P, P, P, P),
	PEM_read_bio_PrivateKey: foreignSignature(P, P, P, P, P),
	X509_free: foreignSignature(V, P),
	EVP_PKEY_free: foreignSignature(V, P),
	OPENSSL_sk_new_null: foreignSignature(P),
	OPENSSL_sk_push: foreignSignature(I, P, P),
	OPENSSL_sk_free: foreignSignature(V, P),
	CRYPTO_malloc: foreignSignature(P, U64, P, I),
	socket: foreignSignature(I, I, I, I),
	bind: foreignSignature(I, I, P, U32),
	close: foreignSignature(I, I),
	getsockname: foreignSignature(I, I, P, P),
	setsockopt: foreignSignature(I, I, I, I, P, U32),
	socketpair: foreignSignature(I, I, I, I, P),
	recv: foreignSignature('int64', I, P, U64, I),
	send: foreignSignature('int64', I, P, U64, I),
} as const;

/** The functions of the library, and the memory needed to call them. */
export type QuicLibrary = ForeignLibrary<keyof typeof SIGNATURES>;

/** The functions of one thread, or the reason why they are not available. */
export type QuicSupport = ForeignSupport<keyof typeof SIGNATURES>;

let support: QuicSupport | undefined;

/** Looks up the functions. The result of a thread's first call is kept. */
export function quicSupport(): QuicSupport {
	const without = withoutDirectIo();
	if (without) return without;
	support ??= findQuicLibrary();
	return support;
}

/** Looks up every function. Returns them, or the reason why QUIC is not available. */
export function findQuicLibrary(simulated: LibrarySimulation = {}): QuicSupport {
	return findOpenssl(SIGNATURES, ['SSL_handle_events', 'SSL_inject_net_dgram'], simulated, HOT);
}
