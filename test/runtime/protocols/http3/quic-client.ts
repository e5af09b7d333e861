/** A QUIC client based on OpenSSL's, which writes bytes on streams exactly as given, valid or not. */
import { foreignFunctions, loadForeignFunctions } from '../../../../runtime/sockets/foreign-functions.ts';
import { writeSocketAddress } from '../../../../runtime/sockets/socket-address.ts';

const P = 'pointer';
const I = 'int32';
const U64 = 'uint64';
const define = (result: string, ...takes: string[]) => ({ return: result, arguments: takes });

const ffi = foreignFunctions()!;
const f = loadForeignFunctions(ffi, {
	OSSL_QUIC_client_method: define(P),
	SSL_CTX_new: define(P, P),
	SSL_CTX_free: define('void', P),
	SSL_new: define(P, P),
	SSL_free: define('void', P),
	SSL_ctrl: define('int64', P, I, 'int64', P),
	SSL_set_alpn_protos: define(I, P, P, 'uint32'),
	SSL_set1_initial_peer_addr: define(I, P, P),
	ossl_quic_set_override_now_cb: define(I, P, P, P),
	SSL_set_bio: define('void', P, P, P),
	SSL_set_blocking_mode: define(I, P, I),
	SSL_set_default_stream_mode: define(I, P, 'uint32'),
	SSL_set_incoming_stream_policy: define(I, P, I, U64),
	SSL_use_cert_and_key: define(I, P, P, P, P, I),
	PEM_read_bio_X509: define(P, P, P, P, P),
	PEM_read_bio_PrivateKey: define(P, P, P, P, P),
	BIO_new_mem_buf: define(P, P, I),
	BIO_free: define(I, P),
	X509_free: define('void', P),
	EVP_PKEY_free: define('void', P),
	X509_get_subject_name: define(P, P),
	X509_NAME_oneline: define(P, P, P, I),
	SSL_get1_peer_certificate: define(P, P),
	SSL_get0_peer_CA_list: define(P, P),
	OPENSSL_sk_num: define(I, P),
	OPENSSL_sk_value: define(P, P, I),
	SSL_is_init_finished: define(I, P),
	SSL_new_stream: define(P, P, U64),
	SSL_accept_stream: define(P, P, U64),
	SSL_get_accept_stream_queue_len: define(U64, P),
	SSL_get_stream_id: define(U64, P),
	SSL_get_stream_read_state: define(I, P),
	SSL_get_stream_write_state: define(I, P),
	SSL_get_stream_read_error_code: define(I, P, P),
	SSL_get_conn_close_info: define(I, P, P, U64),
	SSL_read_ex: define(I, P, P, U64, P),
	SSL_write_ex2: define(I, P, P, U64, U64, P),
	SSL_stream_conclude: define(I, P, U64),
	SSL_stream_reset: define(I, P, P, U64),
	SSL_shutdown_ex: define(I, P, U64, P, U64),
	SSL_get1_session: define(P, P),
	SSL_set_session: define(I, P, P),
	SSL_session_reused: define(I, P),
	SSL_SESSION_free: define('void', P),
	SSL_get_error: define(I, P, I),
	ERR_clear_error: define('void'),
	BIO_new_dgram: define(P, I, I),
	BIO_ADDR_new: define(P),
	BIO_ADDR_free: define('void', P),
	BIO_ADDR_rawmake: define(I, P, I, P, U64, 'uint16'),
	socket: define(I, I, I, I),
	connect: define(I, I, P, 'uint32'),
	close: define(I, I),
});

/** Functions of OpenSSL that may call back. They are therefore called through `node:ffi` in the documented way. */
const { lib, functions: callbackFunctions } = ffi.dlopen(null, {
	SSL_connect: { return: 'int32', arguments: ['pointer'] },
	SSL_handle_events: { return: 'int32', arguments: ['pointer'] },
	SSL_CTX_set_keylog_callback: { return: 'void', arguments: ['pointer', 'pointer'] },
});

/** A clock that is never set. OpenSSL would use the system's time, and close connections when it is set back. */
const steadyClockAt: bigint = lib.getSymbol('uv_hrtime');
const memory = Buffer.allocUnsafeSlow(65_536 + 128);
const memoryAt: bigint = ffi.getRawPointer(memory);
const resultsAt: bigint = memoryAt + 65_536n;
const result = (): Buffer => memory.subarray(65_536);
const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM_NONBLOCK = 2 | 0o4000 | 0o2000000;
/** Milliseconds between two polls. The client polls because OpenSSL does not notify it of events. */
const POLL_INTERVAL_MS = 2;
const STATE_RESET_BY_CLIENT = 4;
const STATE_RESET_BY_SERVER = 5;
const FINISHED = 3;

/** A stream as seen by the client. */
export class ClientStream {
	readonly id: number;
	/** Bytes received so far. */
	get bytes(): Buffer {
		if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)];
		return this.#pieces[0] ?? Buffer.alloc(0);
	}
	/** True if the server has ended its side. */
	ended = false;
	/** The code with which the server has reset the stream; undefined if it has not. */
	resetCode: number | undefined = undefined;
	/** The longest time in milliseconds in which no bytes were received, counted from the opening of the stream. */
	longestWait = 0;
	#progress = performance.now();
	/** Set to true to stop reading. */
	paused = false;
	/** Set to true to keep only the first bytes received, and only count the others. */
	discards = false;
	/** Number of bytes received so far. */
	received = 0;
	readonly #client: QuicClient;
	readonly #ssl: bigint;
	#pieces: Buffer[] = [];
	#unwritten: { bytes: Buffer; fin: boolean } | undefined = undefined;

	constructor(client: QuicClient, ssl: bigint) {
		this.#client = client;
		this.#ssl = ssl;
		this.id = Number(f.SSL_get_stream_id(ssl));
	}

	/** Writes bytes. Bytes for which there is no room are written later. */
	write(bytes: Uint8Array, fin = false): this {
		const before = this.#unwritten;
		this.#unwritten = { bytes: Buffer.concat([before?.bytes ?? Buffer.alloc(0), bytes]), fin };
		this.#give();
		this.#client.handleEvents();
		return this;
	}

	/**
	 * True if the client's sending side was reset, either by the client or because the server has asked it to stop. In the second
	 * case, OpenSSL resets it by itself.
	 */
	get stopped(): boolean {
		const state = f.SSL_get_stream_write_state(this.#ssl) as number;
		return state === STATE_RESET_BY_SERVER || state === STATE_RESET_BY_CLIENT;
	}

	/** Resets the sending side with an error code. */
	reset(code: number): void {
		result().writeBigUInt64LE(BigInt(code), 0);
		f.SSL_stream_reset(this.#ssl, resultsAt, 8n);
		f.ERR_clear_error();
		this.#client.handleEvents();
	}

	/** Frees the stream, which asks the server to stop sending. */
	stop(): void {
		this.#client.streams.delete(this.#ssl);
		f.SSL_free(this.#ssl);
		this.#client.handleEvents();
	}

	/** Reads and writes as much as possible. */
	move(): void {
		this.#give();
		if (this.paused || this.ended || this.resetCode !== undefined) return;
		for (;;) {
			const got = f.SSL_read_ex(this.#ssl, memoryAt, 65_536n, resultsAt) as number;
			if (got !== 1) break;
			const now = performance.now();
			this.longestWait = Math.max(this.longestWait, now - this.#progress);
			this.#progress = now;
			const length = result().readUInt32LE(0);
			this.received += length;
			if (!this.discards || this.#pieces.length === 0) this.#pieces.push(Buffer.from(memory.subarray(0, length)));
		}
		f.ERR_clear_error();
		const state = f.SSL_get_stream_read_state(this.#ssl) as number;
		if (state === FINISHED) this.ended = true;
		if (state !== STATE_RESET_BY_SERVER) return;
		const known = (f.SSL_get_stream_read_error_code(this.#ssl, resultsAt) as number) === 1;
		this.resetCode = known ? Number(result().readBigUInt64LE(0)) : -1;
	}

	#give(): void {
		while (this.#unwritten !== undefined) {
			const { bytes, fin } = this.#unwritten;
			const part = bytes.subarray(0, 60_000);
			if (part.length === 0) {
				if (fin) f.SSL_stream_conclude(this.#ssl, 0n);
				this.#unwritten = undefined;
				return;
			}
			part.copy(memory, 0);
			const flags = fin && part.length === bytes.length ? 1n : 0n;
			const done = f.SSL_write_ex2(this.#ssl, memoryAt, BigInt(part.length), flags, resultsAt) as number;
			f.ERR_clear_error();
			const taken = done === 1 ? result().readUInt32LE(0) : 0;
			if (taken === bytes.length) this.#unwritten = undefined;
			else this.#unwritten = { bytes: bytes.subarray(taken), fin };
			if (taken < part.length) return;
		}
	}
}

/** How the server closed a connection. */
export interface CloseReason {
	readonly code: number;
	readonly transport: boolean;
	readonly byServer: boolean;
}

/** Options of a connection. */
export interface QuicClientOptions {
	readonly serverName?: string;
	readonly alpn?: string;
	/** The TLS session of an earlier client, to resume. */
	readonly session?: bigint;
	/** Groups for the key exchange. If all are elliptic curves, the ClientHello fits in one datagram. */
	readonly groups?: string;
	/** The client's certificate and its key, in PEM. */
	readonly pair?: { readonly certificate: string; readonly key: string } | undefined;
	/** True to ask for an OCSP response. */
	readonly ocsp?: boolean;
	/** Called with each line of the key log. */
	readonly keyLog?: (line: string) => void;
	/** The address of the server, 127.0.0.1 by default. */
	readonly host?: string;
	/**
	 * False if the owner calls `look` whenever something may have happened. In that case, writing and stopping do not call it.
	 * The default is true.
	 */
	readonly polls?: boolean;
}

/** The client's side of a QUIC connection. */
export class QuicClient {
	readonly streams: Map<bigint, ClientStream> = new Map();
	closed: CloseReason | undefined = undefined;
	connected = false;
	readonly #ssl: bigint;
	readonly #context: bigint;
	readonly #fd: number;
	readonly #timer: NodeJS.Timeout | undefined;
	readonly #waiting: Set<() => void> = new Set();
	#gone = false;

	constructor(port: number, options: QuicClientOptions = {}) {
		const { serverName = 'localhost', alpn = 'h3', session, groups, pair, ocsp = false, host = '127.0.0.1' } = options;
		this.#context = f.SSL_CTX_new(f.OSSL_QUIC_client_method() as bigint) as bigint;
		if (options.keyLog !== undefined) {
			const { keyLog } = options;
			const callback = lib.registerCallback({ return: 'void', arguments: ['pointer', 'pointer'] }, (_ssl, line) =>
				keyLog(ffi.toString(line as bigint) ?? ''),
			);
			callbackFunctions.SSL_CTX_set_keylog_callback(this.#context, callback);
		}
		this.#ssl = f.SSL_new(this.#context) as bigint;
		f.ossl_quic_set_override_now_cb(this.#ssl, steadyClockAt, 0n);
		const name = cString(serverName);
		f.SSL_ctrl(this.#ssl, 55, 0n, ffi.getRawPointer(name));
		if (groups !== undefined) f.SSL_ctrl(this.#ssl, 92, 0n, ffi.getRawPointer(cString(groups)));
		if (pair !== undefined) this.#usePair(pair);
		// SSL_CTRL_SET_TLSEXT_STATUS_REQ_TYPE with TLSEXT_STATUSTYPE_ocsp.
		if (ocsp) f.SSL_ctrl(this.#ssl, 65, 1n, 0n);
		const protocols = Buffer.concat([Buffer.of(alpn.length), Buffer.from(alpn)]);
		const kept = Buffer.allocUnsafeSlow(protocols.length);
		protocols.copy(kept);
		f.SSL_set_alpn_protos(this.#ssl, ffi.getRawPointer(kept), kept.length);
		// SSL_MODE_ENABLE_PARTIAL_WRITE, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER.
		f.SSL_ctrl(this.#ssl, 33, 3n, 0n);
		const family = host.includes(':') ? AF_INET6 : AF_INET;
		this.#fd = f.socket(family, SOCK_DGRAM_NONBLOCK, 0) as number;
		const address = writeSocketAddress(host, port)!;
		const addressAt = Buffer.allocUnsafeSlow(address.length);
		address.copy(addressAt);
		f.connect(this.#fd, ffi.getRawPointer(addressAt), address.length);
		const bio = f.BIO_new_dgram(this.#fd, 0) as bigint;
		f.SSL_set_bio(this.#ssl, bio, bio);
		const peer = f.BIO_ADDR_new() as bigint;
		// The port must be in network byte order.
		const [at, length] = family === AF_INET ? [4, 4n] : [8, 16n];
		const raw = ffi.getRawPointer(addressAt.subarray(at));
		f.BIO_ADDR_rawmake(peer, family, raw, length, ((port & 0xff) << 8) | (port >> 8));
		f.SSL_set1_initial_peer_addr(this.#ssl, peer);
		f.BIO_ADDR_free(peer);
		f.SSL_set_blocking_mode(this.#ssl, 0);
		f.SSL_set_default_stream_mode(this.#ssl, 0);
		f.SSL_set_incoming_stream_policy(this.#ssl, 1, 0n);
		if (session !== undefined) f.SSL_set_session(this.#ssl, session);
		f.ERR_clear_error();
		if (options.polls !== false) this.#timer = setInterval(() => this.look(), POLL_INTERVAL_MS);
		this.look();
	}

	/** Handles pending events after data was passed to OpenSSL, unless the owner calls `look` itself. */
	handleEvents(): void {
		if (this.#timer !== undefined) this.look();
	}

	/** Handles pending events, and resumes everything that waits for their results. */
	look(): void {
		if (this.#gone) return;
		if (!this.connected) {
			this.connected = (callbackFunctions.SSL_connect(this.#ssl) as number) === 1;
			f.ERR_clear_error();
		}
		callbackFunctions.SSL_handle_events(this.#ssl);
		if (this.connected) {
			while ((f.SSL_get_accept_stream_queue_len(this.#ssl) as bigint) > 0n) {
				const ssl = f.SSL_accept_stream(this.#ssl, 1n) as bigint;
				if (ssl === 0n) break;
				this.streams.set(ssl, new ClientStream(this, ssl));
			}
			for (const stream of this.streams.values()) stream.move();
			callbackFunctions.SSL_handle_events(this.#ssl);
		}
		if (this.closed === undefined && (f.SSL_get_conn_close_info(this.#ssl, resultsAt, 40n) as number) === 1) {
			const flags = result().readUInt32LE(32);
			const code = Number(result().readBigUInt64LE(0));
			this.closed = { code, transport: (flags & 2) !== 0, byServer: (flags & 1) === 0 };
		}
		f.ERR_clear_error();
		for (const wake of [...this.#waiting]) wake();
	}

	/** Resolves once a condition holds. Rejects after a long time limit, or if the connection ends first. */
	until(what: string, condition: () => boolean): Promise<void> {
		return new Promise((resolve, reject) => {
			const end = (error?: Error): void => {
				this.#waiting.delete(wake);
				clearTimeout(late);
				if (error) reject(error);
				else resolve();
			};
			const wake = (): void => {
				if (condition()) end();
				else if (this.closed !== undefined) end(new Error(`${what}: closed with ${JSON.stringify(this.closed)}`));
			};
			const late = setTimeout(
				() => end(new Error(`waited too long for: ${what}`)),
				Number(process.env.QUIC_WAIT ?? 120_000),
			);
			this.#waiting.add(wake);
			wake();
		});
	}

	/** Waits for the end of the connection and returns how it was closed. */
	async end(): Promise<CloseReason> {
		await this.until('the end of the connection', () => this.closed !== undefined);
		return this.closed!;
	}

	/** Opens a bidirectional or unidirectional stream. */
	open(uni = false): ClientStream {
		const ssl = f.SSL_new_stream(this.#ssl, uni ? 3n : 2n) as bigint;
		f.ERR_clear_error();
		if (ssl === 0n) throw new Error('the server allows no more streams');
		const stream = new ClientStream(this, ssl);
		this.streams.set(ssl, stream);
		return stream;
	}

	/** Returns the stream with the given id, or undefined if it has not been opened yet. */
	stream(id: number): ClientStream | undefined {
		for (const stream of this.streams.values()) if (stream.id === id) return stream;
		return undefined;
	}

	/** The subject of the server's certificate. */
	get serverSubject(): string {
		const certificate = f.SSL_get1_peer_certificate(this.#ssl) as bigint;
		const subject = nameText(f.X509_get_subject_name(certificate) as bigint);
		f.X509_free(certificate);
		return subject;
	}

	/** The names of the authorities in the server's request for a certificate. */
	get requestedAuthorities(): string[] {
		const names = f.SSL_get0_peer_CA_list(this.#ssl) as bigint;
		const count = names === 0n ? 0 : (f.OPENSSL_sk_num(names) as number);
		return Array.from({ length: Math.max(count, 0) }, (_, i) => nameText(f.OPENSSL_sk_value(names, i) as bigint));
	}

	/** The OCSP response that the server stapled, in DER. */
	get stapled(): Buffer | undefined {
		// SSL_CTRL_GET_TLSEXT_STATUS_REQ_OCSP_RESP.
		const length = Number(f.SSL_ctrl(this.#ssl, 70, 0n, resultsAt));
		return length > 0 ? Buffer.from(ffi.toBuffer(result().readBigUInt64LE(0), length, true)) : undefined;
	}

	get resumed(): boolean {
		return (f.SSL_session_reused(this.#ssl) as number) === 1;
	}

	/** Returns the TLS session, which another client can resume. It must be freed with `freeSession`. */
	session(): bigint {
		return f.SSL_get1_session(this.#ssl) as bigint;
	}

	#usePair({ certificate, key }: { readonly certificate: string; readonly key: string }): void {
		const read = (text: string, parse: typeof f.PEM_read_bio_X509): bigint => {
			const bytes = Buffer.allocUnsafeSlow(text.length);
			bytes.write(text);
			const bio = f.BIO_new_mem_buf(ffi.getRawPointer(bytes), bytes.length) as bigint;
			const parsed = parse(bio, 0n, 0n, 0n) as bigint;
			f.BIO_free(bio);
			return parsed;
		};
		const one = read(certificate, f.PEM_read_bio_X509);
		const own = read(key, f.PEM_read_bio_PrivateKey);
		f.SSL_use_cert_and_key(this.#ssl, one, own, 0n, 1);
		f.X509_free(one);
		f.EVP_PKEY_free(own);
	}

	/** Closes the connection with a code and frees it. */
	close(code = 0x100): void {
		if (this.#gone) return;
		if (this.connected && this.closed === undefined) {
			result().writeBigUInt64LE(BigInt(code), 0);
			result().writeBigUInt64LE(0n, 8);
			f.SSL_shutdown_ex(this.#ssl, 7n, resultsAt, 16n);
			callbackFunctions.SSL_handle_events(this.#ssl);
		}
		this.destroy();
	}

	/** Frees the connection without notifying the server. */
	destroy(): void {
		if (this.#gone) return;
		this.#gone = true;
		clearInterval(this.#timer);
		for (const ssl of this.streams.keys()) f.SSL_free(ssl);
		this.streams.clear();
		f.SSL_free(this.#ssl);
		f.SSL_CTX_free(this.#context);
		f.close(this.#fd);
		f.ERR_clear_error();
	}
}

/** Connects and resolves once the handshake is complete. */
export async function connect(port: number, terms: QuicClientOptions = {}): Promise<QuicClient> {
	const client = new QuicClient(port, terms);
	try {
		await client.until('the handshake', () => client.connected);
	} catch (error) {
		// The timer of a client that is not destroyed would keep the process alive.
		client.destroy();
		throw error;
	}
	return client;
}

export function freeSession(session: bigint): void {
	f.SSL_SESSION_free(session);
}

function cString(text: string): Buffer {
	const bytes = Buffer.allocUnsafeSlow(text.length + 1);
	bytes.write(`${text}\0`);
	return bytes;
}

function nameText(name: bigint): string {
	f.X509_NAME_oneline(name, memoryAt, 1024);
	return memory.toString('latin1', 0, memory.indexOf(0));
}
