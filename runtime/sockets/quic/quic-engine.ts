/**
 * One QUIC connection. Each has an OpenSSL listener of its own, because a listener shared by several connections examines all of
 * them for each datagram: each idle connection adds 8 to 10 µs of CPU time to a request that takes 28 µs by itself. The drawback is
 * memory: the buffers of its listener are 48 of the 100 KB that an idle connection takes. Datagrams pass through the thread's pair
 * of memory BIOs, which is empty except during the calls here. Everything here runs on one thread. Every OpenSSL object is freed
 * exactly once, by `destroy`.
 */

import { readSocketAddress } from '../socket-address.ts';
import type { Deadline } from './deadline-heap.ts';
import type {
	QuicClose,
	QuicConnection,
	QuicConnectionOwner,
	QuicHandshakeFacts,
	QuicStream,
} from './quic-connection.ts';
import * as BOUND from './quic-limits.ts';
import { EngineStream } from './quic-stream.ts';
import type { CallbackTarget, QuicThread } from './quic-thread.ts';
import type { QuicClientAuth, QuicTls } from './quic-tls.ts';
import type { RouteTarget } from './router.ts';
import type { DatagramPath } from './udp-socket.ts';

const LISTENER_VALIDATE = 0n;
const LISTENER_NO_VALIDATE = 2n;
const ACCEPT_NO_BLOCK = 1n;
const STREAM_UNI = 1n;
const STREAM_NO_BLOCK = 2n;
const POLICY_ACCEPT = 1;
const CLASS_GENERIC = 0;
const CLASS_FEATURE_REQUEST = 1;
const VALUE_IDLE_TIMEOUT = 5;
const VALUE_EVENT_HANDLING = 6;
const EVENT_HANDLING_EXPLICIT = 2n;
const SHUTDOWN_RAPID = 1n;
/** Flags of SSL_shutdown_ex. NO_FLUSH: do not wait until the unsent data of streams has been sent. */
const SHUTDOWN_NO_FLUSH = 2n;
const SHUTDOWN_NO_BLOCK = 4n;
const CLOSED_LOCALLY = 1;
const CLOSED_BY_TRANSPORT = 2;
/** Offsets of results in the thread's memory for results. */
const AT = { time: 48n, infinite: 64n, close: 72n } as const;
/** Offset of the error codes that stand for TLS alerts: an error code is this number plus the alert (RFC 9001 §4.8). */
const CRYPTO_ERROR = 0x100;
const INTERNAL_ERROR = 80;
const HANDSHAKE_FAILURE = 40;
const NO_APPLICATION_PROTOCOL = 120;
/**
 * Result with which the ClientHello callback pauses the handshake. OpenSSL calls it again when it handles events the next time.
 */
const LATER = -1;
const CTRL_MODE = 33;
/** Modes for SSL_CTRL_MODE: SSL_MODE_ENABLE_PARTIAL_WRITE and SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER. */
const PARTIAL_MOVING_WRITES = 3n;

/** The endpoint to which an engine belongs. */
export interface EngineOwner {
	readonly tls: QuicTls;
	readonly port: number;
	/** Makes room in the thread's memory for datagrams to send. Returns the number of datagrams that fit, at least one. */
	room(): number;
	/** Sends `count` datagrams of an engine. They are in the thread's memory, after the datagrams that already wait there. */
	send(engine: QuicEngine, count: number): void;
	/** Called after each run of an engine, so that its datagrams are sent. */
	flush(): void;
	/** Called when the handshake is complete. The protocol sets `engine.owner`, or closes the engine. */
	established(engine: QuicEngine): void;
	/** Sets the engine's next deadline, by `performance.now()`; Infinity for none. */
	deadline(engine: QuicEngine, due: number): void;
	/** Called when the engine has been freed. */
	ended(engine: QuicEngine): void;
	/** Called when the handshake no longer waits for a certificate. */
	resumed(engine: QuicEngine): void;
	/** Called when the engine or its protocol has thrown an error. The engine is destroyed afterwards. */
	failed(error: unknown): void;
}

/**
 * How a client proves its address: by completing the handshake, by answering a Retry packet that OpenSSL sends, or with the token
 * of a Retry packet that we sent before.
 */
export type AddressProof = 'handshake' | 'retry' | 'token';

/** A TLS alert (RFC 8446 §6) that ended a handshake. */
export interface HandshakeAlert {
	readonly alert: number;
	readonly byPeer: boolean;
}

/** State of the graceful end of a connection. */
interface Ending {
	readonly code: number;
	/** Time at which to stop waiting for acknowledgments, by `performance.now()`. */
	readonly until: number;
	/** Time at which the last datagram from the peer arrived, by `performance.now()`. */
	heardAt: number;
}

/** A QUIC connection, or an attempt to establish one. */
export class QuicEngine implements QuicConnection, RouteTarget, Deadline, CallbackTarget {
	readonly ids: Set<string> = new Set();
	readonly path: DatagramPath;
	/** Bytes of the peer's address and port, as Latin-1. */
	readonly peerKey: string;
	/** Key of the client against whose limits the connection counts. */
	readonly client: string;
	readonly startedAt: number;
	owner: QuicConnectionOwner | undefined = undefined;
	due = Infinity;
	place = -1;
	/** True if datagrams have been received since the last call of `run`. */
	dirty = false;
	established = false;
	/** True once the client has sent a connection ID that we chose, which proves that it receives what is sent to its address. */
	addressProven = false;
	/** True if the client's first packet had the token of a Retry packet that we sent. */
	readonly answersRetry: boolean;
	/** The connection ID of the client's first packet to this engine. */
	readonly firstId: string;
	/** True once the connection is closing: the datagrams sent from then on tell the peer so. */
	closing = false;
	/** The last datagram sent since `closing` was set. */
	lastSent: Uint8Array | undefined = undefined;
	/** Copies of the first datagrams of an unfinished handshake, for sending them again. */
	#flight: Uint8Array[] = [];
	/**
	 * Time at which the datagrams of `#flight` were last sent, by `performance.now()`. `#repeats` is how often they were sent again.
	 */
	#flightAt = 0;
	#repeats = 0;
	#repeating = false;
	/** Number of written bytes, on all streams, that the peer has not acknowledged. */
	buffered = 0;
	stapled: Uint8Array | undefined = undefined;
	/** The TLS alert that ended the handshake; undefined if the owner chose the alert itself. */
	failure: HandshakeAlert | undefined = undefined;
	readonly remoteAddress: string;
	readonly remotePort: number;
	readonly thread: QuicThread;
	readonly #owner: EngineOwner;
	#listener: bigint;
	#connection = 0n;
	/** Offsets and lengths of the datagrams received since the last run, in the thread's memory. */
	readonly #received: number[] = [];
	readonly streams: Map<bigint, EngineStream> = new Map();
	/** Streams that were written completely and released, but have many unacknowledged bytes. */
	readonly #lingering = new Map<bigint, EngineStream>();
	#facts: QuicHandshakeFacts = { cipherSuite: '', serverName: '', resumed: false };
	#serverName = '';
	#clientAuth: QuicClientAuth | undefined = undefined;
	#keyLog: ((line: string) => void) | undefined = undefined;
	#running = false;
	#gone = false;
	#waiting = false;
	/** The alert with which the handshake is to fail. */
	#refusal: number | undefined = undefined;
	#begun = false;
	/** True while OpenSSL is running, possibly in a callback. Nothing may be freed then. */
	#handling = false;
	/** Ends the connection after OpenSSL has returned. Set if the end was requested while OpenSSL was running. */
	#endAfter: (() => void) | undefined = undefined;
	#ending: Ending | undefined = undefined;
	#heardPeer = false;
	/** Number of bytes that may still be sent to an unproven address. */
	#credit = 0;

	/** Throws if OpenSSL cannot allocate the connection. */
	constructor(
		thread: QuicThread,
		owner: EngineOwner,
		path: DatagramPath,
		peerKey: string,
		client: string,
		now: number,
		firstId: string,
		admission: AddressProof,
	) {
		this.thread = thread;
		this.#owner = owner;
		this.path = path;
		this.peerKey = peerKey;
		this.client = client;
		this.startedAt = now;
		this.firstId = firstId;
		const { address, port } = readSocketAddress(path.peer, 0);
		this.remoteAddress = address;
		this.remotePort = port;
		const { functions } = thread.library;
		const { context } = owner.tls;
		this.answersRetry = admission === 'token';
		this.#listener =
			admission === 'token'
				? (thread.retryTokens?.listener(context) ?? 0n)
				: (functions.SSL_new_listener(
						context,
						admission === 'retry' ? LISTENER_VALIDATE : LISTENER_NO_VALIDATE,
					) as bigint);
		if (this.#listener === 0n) throw this.#failure();
		thread.pipe.attach(this.#listener);
		functions.SSL_set_blocking_mode(this.#listener, 0);
		functions.SSL_set_value_uint(this.#listener, CLASS_GENERIC, VALUE_EVENT_HANDLING, EVENT_HANDLING_EXPLICIT);
		functions.SSL_set_value_uint(
			this.#listener,
			CLASS_FEATURE_REQUEST,
			VALUE_IDLE_TIMEOUT,
			BigInt(BOUND.IDLE_TIMEOUT_MS),
		);
		if ((functions.SSL_listen(this.#listener) as number) !== 1) {
			this.#free();
			throw this.#failure();
		}
		functions.ERR_clear_error();
	}

	get facts(): QuicHandshakeFacts {
		return this.#facts;
	}

	get localAddress(): string {
		return this.path.localAddress;
	}

	get localPort(): number {
		return this.#owner.port;
	}

	/** True once OpenSSL has sent a datagram, which means that it could decrypt a packet of the client. */
	get begun(): boolean {
		return this.#begun;
	}

	/** True once everything has been freed. */
	get gone(): boolean {
		return this.#gone;
	}

	/** Accepts a datagram. Its bytes are in the thread's memory, and stay valid until `run` is called. */
	receive(offset: number, length: number): void {
		if (this.#gone) return;
		this.#heardPeer = true;
		if (!this.addressProven) this.#credit += BOUND.AMPLIFICATION * length;
		this.#received.push(offset, length);
	}

	/**
	 * Returns how many of the engine's datagrams may be sent. At most three times the bytes received from an unproven address may be
	 * sent to it (RFC 9000 §8.1). OpenSSL may exceed this limit with its last datagram. The datagrams that are not sent count as
	 * lost.
	 */
	permitted(lengths: Uint32Array, from: number, count: number): number {
		if (this.addressProven) return count;
		for (let i = 0; i < count; i++) {
			const length = lengths[from + i]!;
			if (length > this.#credit) return i;
			this.#credit -= length;
		}
		return count;
	}

	/** Handles received datagrams, expired deadlines and written data. Must not be called from callbacks of OpenSSL. */
	run(): void {
		if (this.#gone || this.#running) return;
		if (this.thread.current !== undefined) {
			this.#runLater();
			return;
		}
		this.#running = true;
		this.dirty = false;
		try {
			this.#runOnce();
		} catch (error) {
			this.#owner.failed(error);
			this.destroy();
		} finally {
			this.#running = false;
		}
		this.#owner.flush();
	}

	/**
	 * Runs the engine in the next turn of the event loop, because a callback of another connection, which is using the pair of BIOs,
	 * is in progress.
	 */
	#runLater(): void {
		// In the next turn, the thread's memory will contain other datagrams, so the received ones are dropped and count as lost.
		this.#received.length = 0;
		setImmediate(() => this.run());
	}

	#runOnce(): void {
		const hasReceived = this.#received.length > 0;
		this.#tick();
		if (!this.#gone && this.#connection !== 0n && !this.established) this.#establish();
		if (this.established && !this.#gone && this.#ending === undefined) this.#deliver();
		if (this.#ending !== undefined && !this.#gone) this.#finish(this.#ending);
		if (this.#gone) return;
		this.#output();
		if (this.#gone) return;
		if (hasReceived && !this.established) this.#repeat();
		if (this.#connection !== 0n && this.#checkClosed()) return;
		this.#schedule();
	}

	flush(): void {
		this.run();
	}

	/** Keeps a copy of a datagram that is sent in an unfinished handshake. */
	keep(datagram: Uint8Array): void {
		if (this.#repeating || this.#flight.length === BOUND.MAX_KEPT_DATAGRAMS) return;
		if (this.#flight.length === 0) this.#flightAt = performance.now();
		this.#flight.push(new Uint8Array(datagram));
	}

	/**
	 * Sends the datagrams of an unfinished handshake again, if that has not been done recently. Called when the client has sent a
	 * datagram. OpenSSL itself does so too slowly: without an acknowledgment, it only sends probes without content, whose
	 * acknowledgment would tell it which packets are missing. If the probes are lost, too, it doubles its timeout each time, and
	 * some handshakes would never complete.
	 */
	#repeat(): void {
		const now = performance.now();
		if (this.closing || now - this.#flightAt < BOUND.REPEAT_FLIGHT_MS || this.#repeats === BOUND.MAX_REPEATS) return;
		this.#flightAt = now;
		this.#repeats++;
		this.#repeating = true;
		for (const datagram of this.#flight) {
			this.#owner.room();
			this.thread.datagrams.put(datagram);
			this.#owner.send(this, 1);
		}
		this.#repeating = false;
	}

	clientHello(ssl: bigint): number {
		if (this.#refusal !== undefined) return this.#refusal;
		const { tls } = this.#owner;
		const hello = tls.hello(ssl);
		this.#serverName = hello.serverName;
		const { remoteAddress, localAddress } = this;
		if (!hello.offersHttp3) return this.#fail(NO_APPLICATION_PROTOCOL);
		const choice = tls.choose({ ...hello, remoteAddress, localAddress }, () => this.#resume());
		if (choice === 'wait') {
			this.#waiting = true;
			return LATER;
		}
		if ('alert' in choice) return this.#refuse(choice.alert);
		if (!tls.sharesTerms(ssl, choice, hello)) return this.#fail(HANDSHAKE_FAILURE);
		this.stapled = choice.ocsp;
		this.#clientAuth = choice.clientAuth;
		this.#keyLog = choice.keyLog;
		return tls.use(ssl, choice) ? 1 : INTERNAL_ERROR;
	}

	/** Fails the handshake with an alert that the owner did not choose, so that it is reported to the owner. */
	#fail(alert: number): number {
		this.failure = { alert, byPeer: false };
		return this.#refuse(alert);
	}

	/**
	 * Fails the handshake with an alert. OpenSSL would not send the alert before it has sent any packet, so it first sends an
	 * acknowledgment.
	 */
	#refuse(alert: number): number {
		this.#refusal = alert;
		return LATER;
	}

	verifyClient(store: bigint): boolean {
		return this.#clientAuth !== undefined && this.#owner.tls.verifyClient(store, this.#clientAuth);
	}

	secret(line: string): void {
		this.#keyLog?.(line);
	}

	openUni(): QuicStream | undefined {
		if (!this.established || this.#gone) return undefined;
		const { functions } = this.thread.library;
		const ssl = functions.SSL_new_stream(this.#connection, STREAM_UNI | STREAM_NO_BLOCK) as bigint;
		if (ssl !== 0n) return this.#stream(ssl);
		functions.ERR_clear_error();
		return undefined;
	}

	close(code: number): void {
		if (this.#gone) return;
		this.closing = true;
		// While an OpenSSL callback is in progress, another connection may be using the pair of BIOs.
		if (this.#connection !== 0n && this.thread.current === undefined) {
			this.#shutDown(code, SHUTDOWN_RAPID | SHUTDOWN_NO_FLUSH | SHUTDOWN_NO_BLOCK);
			this.#output();
		}
		this.#end({ byPeer: false, transport: false, code });
		this.#owner.flush();
	}

	end(code: number): void {
		if (this.#gone || this.#ending !== undefined) return;
		const now = performance.now();
		this.#ending = { code, until: now + BOUND.MAX_FLUSH_MS, heardAt: now };
		this.#heardPeer = false;
		this.run();
	}

	/**
	 * Continues the graceful end of the connection. Before OpenSSL can flush the streams, all of their data must have been passed to
	 * it.
	 */
	#finish(ending: Ending): void {
		const now = performance.now();
		if (this.#heardPeer) ending.heardAt = now;
		this.#heardPeer = false;
		// OpenSSL would wait for streams that have not been accepted. They are accepted here, so that the owner can reject them.
		this.#acceptStreams();
		this.#tidy();
		if (this.#gone) return;
		if (now >= ending.until || now - ending.heardAt >= BOUND.MAX_FLUSH_SILENCE_MS) {
			this.close(ending.code);
			return;
		}
		for (const streams of [this.#lingering, this.streams]) {
			for (const stream of streams.values()) if (stream.unsent) return;
		}
		this.#shutDown(ending.code, SHUTDOWN_RAPID | SHUTDOWN_NO_BLOCK);
	}

	#shutDown(code: number, flags: bigint): void {
		const { library, results, resultsAt } = this.thread;
		results.writeBigUInt64LE(BigInt(code), 0);
		results.writeBigUInt64LE(0n, 8);
		library.functions.SSL_shutdown_ex(this.#connection, flags, resultsAt, 16n);
		library.functions.ERR_clear_error();
		if (this.#hasCloseInfo()) this.closing = true;
		this.#take();
	}

	destroy(): void {
		this.#end(this.established ? { byPeer: false, transport: false, code: 0 } : undefined);
	}

	/**
	 * Frees a stream that its owner has released. If it has many unacknowledged bytes, it is kept until fewer are left, so that
	 * these bytes count toward the connection's limit.
	 */
	released(stream: EngineStream): void {
		this.streams.delete(stream.ssl);
		if (stream.finished && !stream.settled && !this.#gone) {
			this.#lingering.set(stream.ssl, stream);
			return;
		}
		stream.free();
	}

	#resume(): void {
		if (!this.#waiting || this.#gone) return;
		this.#waiting = false;
		this.#owner.resumed(this);
	}

	/** Lets OpenSSL process received datagrams, and takes the datagrams it wants to send. */
	#tick(): void {
		const received = this.#received;
		const { pipe } = this.thread;
		let at = 0;
		do {
			if (at < received.length) {
				at = pipe.put(this.#listener, received, at, this.path.peerAt);
				this.#handleEvents();
				pipe.dropUnread();
			} else this.#handleEvents();
			if (this.#gone) return;
			if (!this.established) {
				if (this.#connection === 0n) this.#accept();
				// If the handshake has failed, the datagrams taken below contain the reason. They are kept, and sent again if the client
				// retries.
				if (this.#connection !== 0n && this.#hasCloseInfo()) this.closing = true;
			}
			if (pipe.hasOutput) this.#take();
		} while (at < received.length && !this.#gone);
		received.length = 0;
	}

	#handleEvents(): void {
		const { thread } = this;
		thread.current = this;
		this.#handling = true;
		thread.library.functions.SSL_handle_events(this.#listener);
		this.#handling = false;
		thread.current = undefined;
		thread.library.functions.ERR_clear_error();
		this.#endAfter?.();
	}

	#accept(): void {
		const { functions } = this.thread.library;
		const connection = functions.SSL_accept_connection(this.#listener, ACCEPT_NO_BLOCK) as bigint;
		if (connection === 0n) {
			functions.ERR_clear_error();
			return;
		}
		this.#connection = connection;
		functions.SSL_set_blocking_mode(connection, 0);
		functions.SSL_ctrl(connection, CTRL_MODE, PARTIAL_MOVING_WRITES, 0n);
		functions.SSL_set_default_stream_mode(connection, 0);
		functions.SSL_set_incoming_stream_policy(connection, POLICY_ACCEPT, 0n);
		functions.SSL_set_value_uint(connection, CLASS_GENERIC, VALUE_EVENT_HANDLING, EVENT_HANDLING_EXPLICIT);
		functions.ERR_clear_error();
	}

	#establish(): void {
		const { library } = this.thread;
		const { functions } = library;
		if ((functions.SSL_is_init_finished(this.#connection) as number) !== 1) return;
		this.established = true;
		this.#flight = [];
		const auth = this.#clientAuth;
		const { tls } = this.#owner;
		const cipher = functions.SSL_get_current_cipher(this.#connection) as bigint;
		const name = cipher === 0n ? 0n : (functions.SSL_CIPHER_standard_name(cipher) as bigint);
		this.#facts = {
			cipherSuite: name === 0n ? '' : library.text(name),
			serverName: this.#serverName,
			resumed: (functions.SSL_session_reused(this.#connection) as number) === 1,
			client: auth && {
				auth,
				certificate: tls.clientCertificate(this.#connection),
				verified: tls.isVerified(this.#connection),
			},
		};
		this.#owner.established(this);
	}

	#deliver(): void {
		const { owner } = this;
		if (owner === undefined) return;
		this.#acceptStreams();
		this.#tidy();
		if (this.#gone) return;
		const { polled } = this.thread;
		polled.ask(this.streams.values());
		let index = 0;
		// The results are copied first, because delivering a stream's events may run other connections, which poll as well.
		for (const stream of this.streams.values()) stream.polled = polled.eventsOf(index++);
		// If all streams together are near the limit, the number of acknowledged bytes is read for each of them.
		const isNearLimit = this.buffered > BOUND.MAX_CONNECTION_UNACKED_BYTES / 2;
		for (const stream of this.streams.values()) if (isNearLimit || stream.needsRoom) stream.refresh();
		for (const stream of this.streams.values()) {
			if (this.#gone) return;
			stream.events();
		}
		if (!this.#gone) owner.settled();
	}

	#acceptStreams(): void {
		const { functions } = this.thread.library;
		const count = Number(functions.SSL_get_accept_stream_queue_len(this.#connection));
		for (let i = 0; i < count && !this.#gone; i++) {
			const ssl = functions.SSL_accept_stream(this.#connection, ACCEPT_NO_BLOCK) as bigint;
			if (ssl === 0n) {
				functions.ERR_clear_error();
				break;
			}
			this.owner?.opened(this.#stream(ssl));
		}
	}

	/** Writes the remaining data of released streams, and frees the streams that are settled. */
	#tidy(): void {
		for (const stream of this.#lingering.values()) {
			stream.refresh();
			stream.flushPending();
			if (!stream.settled) continue;
			this.#lingering.delete(stream.ssl);
			stream.free();
		}
	}

	#stream(ssl: bigint): EngineStream {
		const id = Number(this.thread.library.functions.SSL_get_stream_id(ssl));
		const stream = new EngineStream(this, ssl, id);
		this.streams.set(ssl, stream);
		return stream;
	}

	/** Sends datagrams until OpenSSL has no more. OpenSSL stops whenever the pair of BIOs is full, so it is asked repeatedly. */
	#output(): void {
		for (let round = 0; round < BOUND.MAX_OUTPUT_ROUNDS; round++) {
			this.#handleEvents();
			if (this.#gone || this.#take() < BOUND.MORE_OUTPUT_DATAGRAMS) return;
		}
	}

	/** Takes all datagrams that OpenSSL has sent. Returns their number. */
	#take(): number {
		const { pipe } = this.thread;
		let takenCount = 0;
		for (;;) {
			const room = this.#owner.room();
			const count = pipe.take(room);
			takenCount += count;
			if (count === 0) return takenCount;
			this.#begun = true;
			this.#owner.send(this, count);
			if (count < room) return takenCount;
		}
	}

	/** Asks OpenSSL how the connection was closed, and stores the answer in the thread's memory. Returns false if it is not closed. */
	#hasCloseInfo(): boolean {
		const { library, polled, resultsAt } = this.thread;
		// Reading the close information of an open connection would be an error, and handling that error is slower than polling first.
		if (!polled.ends(this.#connection)) return false;
		if ((library.functions.SSL_get_conn_close_info(this.#connection, resultsAt + AT.close, 40n) as number) === 1)
			return true;
		library.functions.ERR_clear_error();
		return false;
	}

	#checkClosed(): boolean {
		if (!this.#hasCloseInfo()) return false;
		const { results } = this.thread;
		const code = Number(results.readBigUInt64LE(72));
		const flags = results.readUInt32LE(72 + 32);
		const byPeer = (flags & CLOSED_LOCALLY) === 0;
		if (!this.established && this.#refusal === undefined && code >= CRYPTO_ERROR && code <= CRYPTO_ERROR + 255) {
			this.failure = { alert: code - CRYPTO_ERROR, byPeer };
		}
		this.#end({
			byPeer,
			transport: (flags & CLOSED_BY_TRANSPORT) !== 0,
			code,
		});
		return true;
	}

	#schedule(): void {
		const { library, results, resultsAt } = this.thread;
		library.functions.SSL_get_event_timeout(this.#listener, resultsAt + AT.time, resultsAt + AT.infinite);
		let due = Infinity;
		if (results.readInt32LE(64) === 0) {
			// The low 32 bits are sufficient: no time is longer than the handshake's or the connection's limit.
			due = performance.now() + results.readUInt32LE(48) * 1000 + results.readUInt32LE(56) / 1000;
		}
		const ending = this.#ending;
		if (ending !== undefined) due = Math.min(due, ending.until, ending.heardAt + BOUND.MAX_FLUSH_SILENCE_MS);
		this.#owner.deadline(this, due);
	}

	#end(close: QuicClose | undefined): void {
		if (this.#gone) return;
		if (this.#handling) {
			this.#endAfter ??= () => this.#end(close);
			return;
		}
		this.#gone = true;
		this.#endAfter = undefined;
		const { owner, established } = this;
		this.#free();
		this.#owner.ended(this);
		if (!established || owner === undefined) return;
		try {
			owner.closed(close ?? { byPeer: false, transport: true, code: 0 });
		} catch (error) {
			this.#owner.failed(error);
		}
	}

	#free(): void {
		const { functions } = this.thread.library;
		for (const stream of this.streams.values()) stream.free();
		for (const stream of this.#lingering.values()) stream.free();
		this.streams.clear();
		this.#lingering.clear();
		if (this.#connection !== 0n) functions.SSL_free(this.#connection);
		this.#connection = 0n;
		if (this.#listener !== 0n) functions.SSL_free(this.#listener);
		this.#listener = 0n;
		this.#received.length = 0;
		if (this.thread.current === undefined) this.thread.pipe.dropUntaken();
		functions.ERR_clear_error();
	}

	#failure(): Error {
		this.thread.library.functions.ERR_clear_error();
		return new Error('OpenSSL makes no QUIC listener.');
	}
}
