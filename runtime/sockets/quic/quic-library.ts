/**
 * The functions of Node's own OpenSSL and of the C library that QUIC needs, called through `node:ffi`. Every symbol is looked up
 * when a thread first needs QUIC. If one is missing, HTTP/3 is unavailable in this process, and nothing else changes.
 */
import {
	type ForeignLibrary,
	type ForeignSupport,
	findOpenssl,
	type LibrarySimulation,
	signature,
	withoutDirectIo,
} from '../foreign-library.ts';

const P = 'pointer';
const I = 'int32';
const U32 = 'uint32';
const U64 = 'uint64';
const V = 'void';

const SIGNATURES = {
	OSSL_QUIC_server_method: signature(P),
	SSL_CTX_new: signature(P, P),
	SSL_CTX_free: signature(V, P),
	SSL_CTX_ctrl: signature('int64', P, I, 'int64', P),
	SSL_CTX_set_alpn_select_cb: signature(V, P, P, P),
	SSL_CTX_set_client_hello_cb: signature(V, P, P, P),
	SSL_CTX_callback_ctrl: signature('int64', P, I, P),
	SSL_CTX_set_options: signature(U64, P, U64),
	SSL_CTX_set_timeout: signature('int64', P, 'int64'),
	SSL_CTX_set_ciphersuites: signature(I, P, P),
	SSL_CTX_set_session_id_context: signature(I, P, P, U32),
	SSL_CTX_set_cert_verify_callback: signature(V, P, P, P),
	SSL_CTX_set_keylog_callback: signature(V, P, P),
	SSL_set_verify: signature(V, P, I, P),
	SSL_set_session_id_context: signature(I, P, P, U32),
	SSL_set0_CA_list: signature(V, P, P),
	SSL_dup_CA_list: signature(P, P),
	SSL_get1_peer_certificate: signature(P, P),
	SSL_get_verify_result: signature('int64', P),
	X509_STORE_CTX_set0_trusted_stack: signature(V, P, P),
	X509_get_subject_name: signature(P, P),
	i2d_X509: signature(I, P, P),
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
	socketpair: signature(I, I, I, I, P),
	recv: signature('int64', I, P, U64, I),
	send: signature('int64', I, P, U64, I),
	recvmmsg: signature(I, I, P, U32, I, P),
	sendmmsg: signature(I, I, P, U32, I),
} as const;

/** The functions, and what is needed to call them. */
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
	return findOpenssl(SIGNATURES, ['SSL_handle_events'], simulated);
}
