/** The TLS settings of one QUIC socket: an `SSL_CTX` with h3 as its only protocol, and certificates chosen by the ClientHello. */
import { hkdfSync } from 'node:crypto';
import { type ClientCertificateCriteria, checksCertificates, clientVerifier } from '../client-verifier.ts';
import { CTRL_STATUS_CALLBACK } from '../ocsp-staple.ts';
import { offersHttp3, type QuicThread } from './quic-thread.ts';

/** The properties of a ClientHello on which the choice of a certificate depends. */
export interface QuicHello {
	/** The server name in lowercase, without a trailing dot; '' if the client sent none. */
	readonly serverName: string;
	/** The cipher suites as hexadecimal IDs of four digits each, in the client's order of preference. */
	readonly cipherSuites: readonly string[];
	readonly signatureSchemes: readonly string[];
	readonly remoteAddress: string;
	readonly localAddress: string;
}

/** What a handshake demands of the client's certificate. */
export interface QuicClientAuth {
	/** Authorities in PEM. They verify the certificate, and the server names them when it requests a certificate. */
	readonly authorities: readonly string[];
	/** Whether a client without a certificate is rejected. */
	readonly required: boolean;
	/** Session ID context of at most 32 bytes. A session can be resumed only in the context in which it was established. */
	readonly context: string;
	readonly criteria: ClientCertificateCriteria;
}

/** A certificate with its key in PEM. A new version of a certificate has a new `serial`. */
export interface QuicCertificate {
	readonly serial: number;
	readonly chain: string;
	readonly key: string;
	/** DER of an OCSP response to staple. */
	readonly ocsp?: Uint8Array | undefined;
	/** Key exchange groups by their OpenSSL names; undefined for the context's default. */
	readonly groups?: string | undefined;
	/** What the handshake demands of the client's certificate; undefined if no certificate is requested. */
	readonly clientAuth?: QuicClientAuth | undefined;
	/** Receives the handshake's secrets, as lines of an NSS key log. */
	readonly keyLog?: ((line: string) => void) | undefined;
}

/** The authorities that verify client certificates, in parsed form. */
interface Authorities {
	readonly certificates: readonly bigint[];
	/** `certificates` as an OpenSSL stack. */
	readonly stack: bigint;
	/** The subject names of `certificates`, as an OpenSSL stack. */
	readonly names: bigint;
}

/** The result of {@link ChooseCertificate}: a certificate, a TLS alert to send (RFC 8446 §6), or `wait` if not known yet. */
export type QuicCertificateChoice = QuicCertificate | { readonly alert: number } | 'wait';

/** Chooses the certificate of a handshake. After the result `wait`, `resume` is called to continue the handshake. */
export type ChooseCertificate = (readHello: QuicHello, resume: () => void) => QuicCertificateChoice;

const TLS13_SUITES = 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256';
const DEFAULT_GROUPS = 'X25519MLKEM768:X25519:P-256:P-384:P-521';
/** The IDs of the cipher suites in `TLS13_SUITES` (RFC 8446 §B.4). */
const TLS13_SUITE_IDS: ReadonlySet<string> = new Set(['1301', '1302', '1303']);
/** IDs of key exchange groups by their OpenSSL names (RFC 8446 §4.2.7). */
const GROUP_ID_BY_NAME: { readonly [name: string]: string } = {
	X25519MLKEM768: '11ec',
	X25519: '001d',
	'P-256': '0017',
	'P-384': '0018',
	'P-521': '0019',
};
/** SSL_OP_CIPHER_SERVER_PREFERENCE: our order of cipher suites decides, as over TCP. */
const SERVER_PREFERENCE = 1n << 22n;
/** Seconds during which a session can be resumed, as over TCP. */
const SESSION_LIFETIME_SECONDS = 43_200n;
const SESSION_CONTEXT = 'svc h3';
const CTRL_SET_SESSION_CACHE_MODE = 44;
const CTRL_SET_TICKET_KEYS = 59;
const CTRL_SET_GROUPS_LIST = 92;
const CTRL_GET_PEER_TMP_KEY = 109;
const EVP_PKEY_X25519 = 1034;
/** Size of a ticket key in bytes: a key name, a MAC key and an AES key. */
const TICKET_KEY_BYTES = 80;
/** Size, in bytes, of the key name, with which every ticket begins. */
const TICKET_KEY_NAME_BYTES = 16;
const EXTENSION_SERVER_NAME = 0;
const EXTENSION_SUPPORTED_GROUPS = 10;
const EXTENSION_SIGNATURE_ALGORITHMS = 13;
const EXTENSION_PROTOCOLS = 16;
const EXTENSION_PRE_SHARED_KEY = 41;
/** Maximum number of certificates kept in parsed form. The oldest is removed first. */
const MAX_PARSED_CERTIFICATES = 2000;
const MAX_HELLO_PART_BYTES = 16_384;
/** Maximum number of sets of authorities kept in parsed form. The oldest is removed first. */
const MAX_AUTHORITY_SETS = 64;
/** Flags for `SSL_set_verify`. */
const VERIFY_PEER = 1;
const VERIFY_FAIL_IF_NO_PEER_CERT = 2;
const VERIFY_OK = 0n;

interface ParsedCertificate {
	readonly certificate: bigint;
	readonly key: bigint;
	/** The intermediate certificates of the chain, as an OpenSSL stack. */
	readonly stack: bigint;
	readonly chain: readonly bigint[];
}

/** The TLS settings of one socket. */
export class QuicTls {
	readonly context: bigint;
	readonly chooseCertificate: ChooseCertificate;
	readonly #thread: QuicThread;
	/** Parsed certificates by their serial number in {@link QuicCertificate}. */
	readonly #certificatesBySerial = new Map<number, ParsedCertificate>();
	/** Parsed authorities by {@link QuicClientAuth.context}. */
	readonly #authoritiesByContext = new Map<string, Authorities>();
	#logsKeys = false;
	/** True once OpenSSL checks whether the client certificate of a session has expired. */
	#rejectsExpiredSessions = false;
	#ticketKeys: readonly Buffer[] = [];
	/** Index of the ticket key that the context currently uses. */
	#activeTicketKey = 0;

	/** Throws if OpenSSL refuses a setting. */
	constructor(thread: QuicThread, chooseCertificate: ChooseCertificate) {
		this.#thread = thread;
		this.chooseCertificate = chooseCertificate;
		const { library } = thread;
		const { functions } = library;
		const context = functions.SSL_CTX_new(functions.OSSL_QUIC_server_method() as bigint) as bigint;
		if (context === 0n) throw new Error('OpenSSL makes no context for QUIC.');
		this.context = context;
		functions.SSL_CTX_set_ciphersuites(context, library.addressOf(toCString(TLS13_SUITES)));
		functions.SSL_CTX_ctrl(context, CTRL_SET_GROUPS_LIST, 0n, library.addressOf(toCString(DEFAULT_GROUPS)));
		functions.SSL_CTX_set_options(context, SERVER_PREFERENCE);
		functions.SSL_CTX_set_timeout(context, SESSION_LIFETIME_SECONDS);
		// Sessions are kept in tickets only, not in OpenSSL's cache.
		functions.SSL_CTX_ctrl(context, CTRL_SET_SESSION_CACHE_MODE, 0n, 0n);
		functions.SSL_CTX_set_session_id_context(
			context,
			library.addressOf(toCString(SESSION_CONTEXT)),
			SESSION_CONTEXT.length,
		);
		functions.SSL_CTX_set_alpn_select_cb(context, thread.alpnCallback, 0n);
		functions.SSL_CTX_set_client_hello_cb(context, thread.clientHelloCallback, 0n);
		functions.SSL_CTX_callback_ctrl(context, CTRL_STATUS_CALLBACK, thread.statusCallback);
		// OpenSSL calls this only in handshakes that request a client certificate.
		functions.SSL_CTX_set_cert_verify_callback(context, thread.verifyCallback, 0n);
		functions.ERR_clear_error();
	}

	/**
	 * Sets the ticket keys, which all threads derive from the same secrets. The first key encrypts, and every key decrypts. If there
	 * are none, OpenSSL generates its own keys.
	 */
	useTicketKeys(secrets: readonly Buffer[]): void {
		for (const key of this.#ticketKeys) key.fill(0);
		this.#ticketKeys = secrets.map(secret => {
			const key = Buffer.allocUnsafeSlow(TICKET_KEY_BYTES);
			key.set(new Uint8Array(hkdfSync('sha256', secret, '', 'svc session tickets of QUIC', TICKET_KEY_BYTES)));
			return key;
		});
		this.#setTicketKey(0);
	}

	/**
	 * Lets OpenSSL decrypt the ticket in a ClientHello even if a key other than the first one encrypted it. A context of OpenSSL has
	 * only one key, so it is replaced until {@link restoreTicketKey}. Must be called from OpenSSL's callback.
	 */
	selectTicketKey(ssl: bigint): void {
		if (this.#ticketKeys.length < 2) return;
		// The extension begins with the lengths of the list and of the first ticket, which have two bytes each (RFC 8446 §4.2.11).
		const ticket = this.#readExtension(ssl, EXTENSION_PRE_SHARED_KEY).subarray(4);
		if (ticket.length < TICKET_KEY_NAME_BYTES) return;
		const index = this.#ticketKeys.findIndex(
			key => ticket.compare(key, 0, TICKET_KEY_NAME_BYTES, 0, TICKET_KEY_NAME_BYTES) === 0,
		);
		if (index > 0) this.#setTicketKey(index);
	}

	/** Lets the first key encrypt the tickets that OpenSSL issues after a ClientHello. */
	restoreTicketKey(): void {
		if (this.#activeTicketKey !== 0) this.#setTicketKey(0);
	}

	#setTicketKey(index: number): void {
		const key = this.#ticketKeys[index];
		if (key === undefined) return;
		this.#activeTicketKey = index;
		const { library } = this.#thread;
		const keyAddress = library.addressOf(key);
		library.functions.SSL_CTX_ctrl(this.context, CTRL_SET_TICKET_KEYS, BigInt(TICKET_KEY_BYTES), keyAddress);
		library.functions.ERR_clear_error();
	}

	/** Reads a ClientHello. Must be called from OpenSSL's callback. */
	readHello(
		ssl: bigint,
	): Pick<QuicHello, 'serverName' | 'cipherSuites' | 'signatureSchemes'> & { offersHttp3: boolean } {
		const protocols = this.#readExtension(ssl, EXTENSION_PROTOCOLS);
		return {
			// The extension begins with the length of the list, in two bytes, which are skipped.
			offersHttp3: offersHttp3(protocols.subarray(2)),
			serverName: parseServerName(this.#readExtension(ssl, EXTENSION_SERVER_NAME)),
			cipherSuites: this.#readCipherSuites(ssl),
			signatureSchemes: twoByteIds(this.#readExtension(ssl, EXTENSION_SIGNATURE_ALGORITHMS), 2),
		};
	}

	/** Reports whether the client supports one of our cipher suites and one of the key exchange groups in `groups`. */
	canNegotiate(
		ssl: bigint,
		{ groups = DEFAULT_GROUPS }: QuicCertificate,
		{ cipherSuites }: Pick<QuicHello, 'cipherSuites'>,
	): boolean {
		if (!cipherSuites.some(suite => TLS13_SUITE_IDS.has(suite))) return false;
		const offeredGroups = twoByteIds(this.#readExtension(ssl, EXTENSION_SUPPORTED_GROUPS), 2);
		return groups.split(':').some(name => offeredGroups.includes(GROUP_ID_BY_NAME[name] ?? ''));
	}

	/** Sets a handshake's certificate and what it demands of the client. Returns false if OpenSSL rejects one of these settings. */
	applyChoice(ssl: bigint, choice: QuicCertificate): boolean {
		const { library } = this.#thread;
		const { functions } = library;
		const parsedCertificate = this.#certificatesBySerial.get(choice.serial) ?? this.#parseCertificate(choice);
		if (parsedCertificate === undefined) return false;
		if (choice.groups !== undefined) {
			functions.SSL_ctrl(ssl, CTRL_SET_GROUPS_LIST, 0n, library.addressOf(toCString(choice.groups)));
		}
		if (choice.clientAuth !== undefined && !this.#requestCertificate(ssl, choice.clientAuth)) return false;
		if (choice.keyLog !== undefined && !this.#logsKeys) {
			this.#logsKeys = true;
			functions.SSL_CTX_set_keylog_callback(this.context, this.#thread.keyLogCallback);
		}
		const { certificate, key, stack } = parsedCertificate;
		const isAccepted = (functions.SSL_use_cert_and_key(ssl, certificate, key, stack, 1) as number) === 1;
		functions.ERR_clear_error();
		return isAccepted;
	}

	/** Verifies a client's certificate inside OpenSSL's callback. Returns false if the certificate is rejected. */
	verifyClient(storeContext: bigint, auth: QuicClientAuth): boolean {
		const verifier = clientVerifier();
		const authorities = this.#authoritiesOf(auth);
		if (verifier === undefined || authorities === undefined) return false;
		// The authorities are set for this verification only, because all sites share the context and its certificate store.
		this.#thread.library.functions.X509_STORE_CTX_set0_trusted_stack(storeContext, authorities.stack);
		return verifier.accepts(storeContext, auth.criteria);
	}

	/**
	 * Returns a client's certificate in DER, or undefined if it has sent none. A resumed session has the certificate of its first
	 * handshake.
	 */
	clientCertificate(ssl: bigint): Buffer | undefined {
		const { library, results, resultsPointer } = this.#thread;
		const { functions } = library;
		const certificate = functions.SSL_get1_peer_certificate(ssl) as bigint;
		if (certificate === 0n) return undefined;
		const length = functions.i2d_X509(certificate, 0n) as number;
		let der: Buffer | undefined;
		if (length > 0) {
			der = Buffer.allocUnsafeSlow(length);
			results.writeBigUInt64LE(library.addressOf(der), 0);
			functions.i2d_X509(certificate, resultsPointer);
		}
		functions.X509_free(certificate);
		return der;
	}

	/**
	 * Frees the content of the client's key share, which OpenSSL would keep as long as the connection although only the handshake
	 * needs it: an ML-KEM key takes 6 KB.
	 */
	releaseKeyShare(ssl: bigint): void {
		const { library, results, resultsPointer } = this.#thread;
		const { functions } = library;
		results.writeBigUInt64LE(0n, 0);
		functions.SSL_ctrl(ssl, CTRL_GET_PEER_TMP_KEY, 0n, resultsPointer);
		const key = results.readBigUInt64LE(0);
		if (key !== 0n) {
			// Changing the type of a key frees its content. The key itself remains, because the connection refers to it.
			functions.EVP_PKEY_set_type(key, EVP_PKEY_X25519);
			functions.EVP_PKEY_free(key);
		}
		functions.ERR_clear_error();
	}

	/** Reports whether the client's certificate was accepted, now or in the handshake of the session that was resumed. */
	isVerified(ssl: bigint): boolean {
		return (this.#thread.library.functions.SSL_get_verify_result(ssl) as bigint) === VERIFY_OK;
	}

	/** Releases a certificate that is no longer served. */
	forgetCertificate(serial: number): void {
		const parsedCertificate = this.#certificatesBySerial.get(serial);
		if (parsedCertificate === undefined) return;
		this.#certificatesBySerial.delete(serial);
		this.#freeCertificate(parsedCertificate);
	}

	/** Frees the context, and all parsed certificates and authorities. Connections hold their own references. */
	close(): void {
		for (const parsedCertificate of this.#certificatesBySerial.values()) this.#freeCertificate(parsedCertificate);
		this.#certificatesBySerial.clear();
		for (const authorities of this.#authoritiesByContext.values()) this.#freeAuthorities(authorities);
		this.#authoritiesByContext.clear();
		this.#thread.library.functions.SSL_CTX_free(this.context);
	}

	#requestCertificate(ssl: bigint, auth: QuicClientAuth): boolean {
		const { library } = this.#thread;
		const { functions } = library;
		const authorities = this.#authoritiesOf(auth);
		const verifier = clientVerifier();
		if (authorities === undefined || verifier === undefined) return false;
		if (!this.#rejectsExpiredSessions && checksCertificates(auth.criteria)) {
			this.#rejectsExpiredSessions = true;
			verifier.rejectExpiredSessions(this.context);
		}
		const contextBytes = Buffer.allocUnsafeSlow(Buffer.byteLength(auth.context));
		contextBytes.write(auth.context);
		// OpenSSL decrypts the client's ticket only after this call, and rejects the ticket if its session belongs to another
		// context.
		if (
			(functions.SSL_set_session_id_context(ssl, library.addressOf(contextBytes), contextBytes.length) as number) !== 1
		)
			return false;
		const namesCopy = functions.SSL_dup_CA_list(authorities.names) as bigint;
		if (namesCopy === 0n) return false;
		functions.SSL_set0_CA_list(ssl, namesCopy);
		functions.SSL_set_verify(ssl, VERIFY_PEER | (auth.required ? VERIFY_FAIL_IF_NO_PEER_CERT : 0), 0n);
		return true;
	}

	/** Returns the parsed authorities; undefined if a certificate cannot be parsed. */
	#authoritiesOf({ context, authorities: pems }: QuicClientAuth): Authorities | undefined {
		const cachedAuthorities = this.#authoritiesByContext.get(context);
		if (cachedAuthorities !== undefined) return cachedAuthorities;
		const { functions } = this.#thread.library;
		const certificates = pems.flatMap(pem =>
			this.#readPemObjects(pem, bio => functions.PEM_read_bio_X509(bio, 0n, 0n, 0n) as bigint, 1),
		);
		const stack = functions.OPENSSL_sk_new_null() as bigint;
		const names = functions.OPENSSL_sk_new_null() as bigint;
		for (const pointer of certificates) {
			functions.OPENSSL_sk_push(stack, pointer);
			// The stack refers to the name inside the certificate. Each connection gets a copy of the stack.
			functions.OPENSSL_sk_push(names, functions.X509_get_subject_name(pointer));
		}
		const parsedAuthorities = { certificates, stack, names };
		if (certificates.length < pems.length) {
			this.#freeAuthorities(parsedAuthorities);
			return undefined;
		}
		if (this.#authoritiesByContext.size >= MAX_AUTHORITY_SETS) {
			const [[oldestContext, oldestAuthorities]] = this.#authoritiesByContext as unknown as [[string, Authorities]];
			this.#authoritiesByContext.delete(oldestContext);
			this.#freeAuthorities(oldestAuthorities);
		}
		this.#authoritiesByContext.set(context, parsedAuthorities);
		return parsedAuthorities;
	}

	#freeAuthorities({ certificates, stack, names }: Authorities): void {
		const { functions } = this.#thread.library;
		functions.OPENSSL_sk_free(names);
		functions.OPENSSL_sk_free(stack);
		for (const pointer of certificates) functions.X509_free(pointer);
	}

	#readExtension(ssl: bigint, type: number): Buffer {
		const { library, resultsPointer, results } = this.#thread;
		if ((library.functions.SSL_client_hello_get0_ext(ssl, type, resultsPointer, resultsPointer + 8n) as number) !== 1) {
			return Buffer.alloc(0);
		}
		const length = Number(results.readBigUInt64LE(8));
		return length > MAX_HELLO_PART_BYTES ? Buffer.alloc(0) : library.copyBytes(results.readBigUInt64LE(0), length);
	}

	#readCipherSuites(ssl: bigint): string[] {
		const { library, resultsPointer, results } = this.#thread;
		const length = Number(library.functions.SSL_client_hello_get0_ciphers(ssl, resultsPointer));
		if (length === 0 || length > MAX_HELLO_PART_BYTES) return [];
		return twoByteIds(library.copyBytes(results.readBigUInt64LE(0), length), 0);
	}

	#parseCertificate({ serial, chain, key }: QuicCertificate): ParsedCertificate | undefined {
		const { functions } = this.#thread.library;
		const certificates = this.#readPemObjects(chain, bio => functions.PEM_read_bio_X509(bio, 0n, 0n, 0n) as bigint);
		// Without a passphrase, OpenSSL would prompt for one on the terminal, so an empty one is passed.
		const passphrase = this.#thread.library.addressOf(EMPTY_STRING);
		const keys = this.#readPemObjects(
			key,
			bio => functions.PEM_read_bio_PrivateKey(bio, 0n, 0n, passphrase) as bigint,
			1,
		);
		const [certificate, ...intermediates] = certificates;
		const [privateKey] = keys;
		if (certificate === undefined || privateKey === undefined) {
			for (const pointer of certificates) functions.X509_free(pointer);
			for (const pointer of keys) functions.EVP_PKEY_free(pointer);
			return undefined;
		}
		const stack = functions.OPENSSL_sk_new_null() as bigint;
		for (const pointer of intermediates) functions.OPENSSL_sk_push(stack, pointer);
		const parsedCertificate: ParsedCertificate = { certificate, key: privateKey, stack, chain: intermediates };
		if (this.#certificatesBySerial.size >= MAX_PARSED_CERTIFICATES)
			this.forgetCertificate(this.#certificatesBySerial.keys().next().value!);
		this.#certificatesBySerial.set(serial, parsedCertificate);
		return parsedCertificate;
	}

	#readPemObjects(pem: string, read: (bio: bigint) => bigint, maxCount = 32): bigint[] {
		const { library } = this.#thread;
		const { functions } = library;
		const pemBytes = Buffer.allocUnsafeSlow(Buffer.byteLength(pem));
		pemBytes.write(pem);
		const bio = functions.BIO_new_mem_buf(library.addressOf(pemBytes), pemBytes.length) as bigint;
		const pointers: bigint[] = [];
		while (pointers.length < maxCount) {
			const pointer = read(bio);
			if (pointer === 0n) break;
			pointers.push(pointer);
		}
		functions.ERR_clear_error();
		functions.BIO_free(bio);
		pemBytes.fill(0);
		return pointers;
	}

	#freeCertificate({ certificate, key, stack, chain }: ParsedCertificate): void {
		const { functions } = this.#thread.library;
		functions.X509_free(certificate);
		for (const pointer of chain) functions.X509_free(pointer);
		functions.OPENSSL_sk_free(stack);
		functions.EVP_PKEY_free(key);
	}
}

const EMPTY_STRING = Buffer.allocUnsafeSlow(1).fill(0);

function toCString(text: string): Buffer {
	const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text) + 1);
	bytes.write(`${text}\0`);
	return bytes;
}

/** Returns the two-byte IDs in a list, as hexadecimal. The list begins after `skippedBytes` bytes, which hold its length. */
function twoByteIds(bytes: Buffer, skippedBytes: number): string[] {
	const ids: string[] = [];
	for (let at = skippedBytes; at + 2 <= bytes.length; at += 2) ids.push(bytes.toString('hex', at, at + 2));
	return ids;
}

/** Returns the host name in a `server_name` extension (RFC 6066 §3); '' if it has none. */
export function parseServerName(extension: Buffer): string {
	// The header: length of the list (2 bytes), type of the name (1), length of the name (2).
	if (extension.length < 5 || extension[2] !== 0) return '';
	const length = extension.readUInt16BE(3);
	if (length > 255 || 5 + length > extension.length) return '';
	return extension
		.toString('latin1', 5, 5 + length)
		.toLowerCase()
		.replace(/\.$/, '');
}
