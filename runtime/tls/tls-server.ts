/**
 * The TLS layer of a listener: peeks at the ClientHello, selects a policy and a certificate, performs the handshake, and
 * passes the socket to the protocol chosen by ALPN.
 */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ListenerTls } from '../../compiler/codegen/plan/site-tls.ts';
import type { ClientAuth } from '../../compiler/document/tls-settings.ts';
import type { TlsInfo } from '../../compiler/exchange/exchange.ts';
import type { CertificateRequestedByClient } from '../certificates/certificate-feed.ts';
import { unmapAddress } from '../protocols/http1/socket-info.ts';
import type { Http2Server } from '../protocols/http2/http2-server.ts';
import {
	type ClosableConnection,
	type ConnectionPeer,
	NO_WAIT,
	type ProtocolServer,
	type RequestWaits,
	UNUSED_GRACE_MS,
} from '../protocols/protocol.ts';
import { attachTlsInfo, describeHandshake } from '../protocols/tls-info.ts';
import { DenseSet } from '../sockets/dense-set.ts';
import type { ClientProof } from '../sockets/direct-handshake.ts';
import { DirectSocket } from '../sockets/direct-socket.ts';
import { canStartTls, clientProof, directTlsThread, handshakeFacts, startTls } from '../sockets/start-tls.ts';
import { toDirectSocket } from '../sockets/taken-stream.ts';
import { underlyingConnection } from '../sockets/tls-internals.ts';
import type { RequestChecks } from './before-sites.ts';
import { type ClientHello, ClientHelloCollector, MAX_HELLO_BYTES, readClientHello } from './client-hello.ts';
import { type ClientRefusal, clientRefusalReason } from './client-verification.ts';
import { ConnectionTerms } from './connection-terms.ts';
import { classifyHandshakeFailure } from './handshake-failure.ts';
import type { HandshakeRate } from './handshake-rate.ts';
import { HandshakeSelector } from './handshake-selector.ts';
import { DEFAULT_HANDSHAKE_TIMEOUT_MS } from './handshake-settings.ts';
import type { Handshaker } from './handshaker.ts';
import { HandshakerCache } from './handshaker-cache.ts';
import { type HandshakeOwner, PendingHandshake } from './pending-handshake.ts';
import { answerPlainHttp, looksLikeHttp } from './plain-http.ts';
import { RetiredHandshakers } from './retired-handshakers.ts';
import type { TableCertificate } from './table-certificate.ts';
import type { ThreadTls } from './thread-tls.ts';

/** Maximum concurrent handshakes per thread and listener. Connections beyond it are closed. */
const MAX_HANDSHAKES = 8192;
/** Milliseconds that a connection waits for an on-demand certificate. */
const CERTIFICATE_TIMEOUT_MS = 60_000;
/** Milliseconds between checks for handshakes past their deadline. */
const DEADLINE_CHECK_MS = 500;
/** Size in bytes of the buffer for reading ClientHellos. */
const PEEK_BYTES = 16 * 1024;
/** Maximum connections waiting for on-demand certificates. */
const MAX_WAITING_CONNECTIONS = 256;

/** Alerts sent in the clear, before the handshake begins (RFC 8446 §6). */
const ALERT_NUMBERS = {
	unrecognized_name: 112,
	decode_error: 50,
	internal_error: 80,
	no_application_protocol: 120,
} as const;

export interface TlsServerDeps {
	readonly tls: ThreadTls;
	readonly port: number;
	/** The listener's current protocols: `h1`, `h2`. */
	readonly protocols: () => readonly string[];
	readonly http1: ProtocolServer;
	readonly http2: Http2Server | undefined;
	/** Asks the main thread for a certificate that this thread does not have. Resolves to true once it has been published. */
	readonly obtain: (question: CertificateRequestedByClient) => Promise<boolean>;
	countHandshake(version: string, resumed: boolean): void;
	countFailure(reason: string): void;
	/** Called when a connection ends before reaching its protocol, while the listener is draining. */
	onConnectionEnded(): void;
}

/** Holds a stream's PendingHandshake, so that all streams can share the same event listeners. */
const PENDING = Symbol('pending handshake');

/** A stream before its handshake. */
interface PendingSocket extends Socket {
	[PENDING]?: PendingHandshake;
}

/** The HTTP/3 side of a listener, which has its own socket and handshakes. */
export interface Http3Side {
	/** Number of connections, including unfinished handshakes. */
	readonly connections: number;
	closable(): Iterable<ClosableConnection>;
	retire(matches: (tls: TlsInfo | undefined) => boolean): void;
	drain(requestWaits?: RequestWaits): void;
	close(): void;
}

/** Creates the TLS server of a listener. */
export function createTlsServer(deps: TlsServerDeps): TlsServer {
	return new TlsServer(deps);
}

/** Performs TLS for one listener on one thread. */
export class TlsServer implements ProtocolServer, HandshakeOwner {
	readonly performsTls = true;
	/** The HTTP/3 side; undefined if the listener neither offers HTTP/3 nor still has HTTP/3 connections. */
	http3Side: Http3Side | undefined = undefined;
	readonly #deps: TlsServerDeps;
	#selector: HandshakeSelector;
	#settingsJson = '';
	#protocolList = '';
	#waitingConnectionCount = 0;
	#handshakeRate: HandshakeRate | undefined;
	#handshakeLimitMs = DEFAULT_HANDSHAKE_TIMEOUT_MS;
	#isDraining = false;
	/**
	 * True if new connections are refused. During a gentle drain, new connections are not refused, because a connection that was
	 * accepted before the drain gets here only after its PROXY header has been read.
	 */
	#isRefusing = false;
	#peekMemory: Buffer | undefined;
	readonly #pendingHandshakes = new DenseSet<PendingHandshake>();
	#deadlineTimer: NodeJS.Timeout | undefined;
	/** The handshakers of earlier settings, which handshakes in progress may still use. */
	readonly #retiredHandshakers = new RetiredHandshakers();
	/** What each connection's client had to present in its handshake, including the connections of {@link http3Side}. */
	readonly connectionTerms: ConnectionTerms;

	constructor(deps: TlsServerDeps) {
		this.#deps = deps;
		this.connectionTerms = new ConnectionTerms(deps.tls);
		// Called for its side effect: OpenSSL's functions are looked up before the first connection needs them.
		directTlsThread();
		this.#selector = this.#createSelector({ policies: [{}], names: {}, other: 0, strict_sni_host: false });
		deps.tls.addListener(this);
	}

	/**
	 * Applies the listener's TLS settings from a plan, as JSON. Handshakes in progress keep their settings. Connections whose
	 * clients would now have to present a certificate, or a different one, are retired; see `ConnectionTerms.isOutdated`.
	 */
	configure(settingsJson: string): void {
		const protocols = this.#deps.protocols().join();
		if (settingsJson === this.#settingsJson && protocols === this.#protocolList) return;
		if (speaksHttp2(this.#protocolList) && !speaksHttp2(protocols)) this.#deps.http2?.retire(() => true);
		this.#settingsJson = settingsJson;
		this.#protocolList = protocols;
		const previousSelector = this.#selector;
		this.#selector = this.#createSelector(JSON.parse(settingsJson) as ListenerTls);
		previousSelector.handshakers.clear();
		if (this.#pendingHandshakes.size > 0) this.#retiredHandshakers.add(previousSelector.handshakers);
		if (requestsCertificates(this.#selector))
			this.retire(tls => tls !== undefined && this.connectionTerms.isOutdated(tls, this.#selector));
	}

	/**
	 * Returns the checks that the given settings require of requests. The settings are JSON and need not have been applied yet; if
	 * undefined, the applied settings are used.
	 */
	requestChecksFor(settingsJson: string | undefined): RequestChecks {
		const { connectionTerms } = this;
		if (settingsJson === undefined || settingsJson === this.#settingsJson) {
			const { outdated } = connectionTerms;
			return {
				requiresSameHost: this.#selector.settings.strict_sni_host,
				isOutdated: outdated && (tls => outdated.has(tls)),
			};
		}
		const selector = this.#createSelector(JSON.parse(settingsJson) as ListenerTls);
		return {
			requiresSameHost: selector.settings.strict_sni_host,
			isOutdated: requestsCertificates(selector) ? tls => connectionTerms.isOutdated(tls, selector) : undefined,
		};
	}

	/**
	 * Limits new handshakes.
	 * @param rate Handshakes per second; undefined for no limit.
	 * @param limitMs Milliseconds per handshake; 0 for no limit.
	 */
	limitHandshakes(rate: HandshakeRate | undefined, limitMs: number = DEFAULT_HANDSHAKE_TIMEOUT_MS): void {
		this.#handshakeRate = rate;
		this.#handshakeLimitMs = limitMs === 0 ? Number.POSITIVE_INFINITY : limitMs;
	}

	/** The current handshake settings. */
	get selector(): HandshakeSelector {
		return this.#selector;
	}

	onCertificateGone(certificate: TableCertificate): void {
		this.#selector.handshakers.forget(certificate);
	}

	onSettingsChanged(): void {
		this.#selector.handshakers.clear();
	}

	/** Retires the connections of clients that may no longer be trusted; their current requests complete. */
	onTrustLost(keys: ReadonlySet<string>): void {
		const isAffected = (tls: TlsInfo | undefined): boolean => {
			const key = tls && this.connectionTerms.trustKeyOf(tls);
			return key !== undefined && keys.has(key);
		};
		this.retire(isAffected);
	}

	accept(acceptedSocket: Socket | DirectSocket, _scheme: 'http' | 'https', peer?: ConnectionPeer): void {
		if (acceptedSocket.destroyed) return;
		if (acceptedSocket instanceof DirectSocket) {
			this.#acceptSocket(acceptedSocket, undefined, peer);
			return;
		}
		acceptedSocket.on('error', ignoreError);
		const takenSocket = directTlsThread() && takeFromStream(acceptedSocket);
		this.#acceptSocket(takenSocket?.socket ?? acceptedSocket, takenSocket?.extraBytes, peer);
	}

	/** @param extraBytes Bytes after the PROXY header that have been read with it. */
	#acceptSocket(socket: Socket | DirectSocket, extraBytes: Buffer | undefined, peer: ConnectionPeer | undefined): void {
		const isDirect = socket instanceof DirectSocket;
		if (this.#isRefusing || this.#pendingHandshakes.size >= MAX_HANDSHAKES) {
			this.#deps.countFailure('too_many_handshakes');
			socket.destroy();
			return;
		}
		if (this.#handshakeRate?.admits(peer?.remoteAddress ?? unmapAddress(socket.remoteAddress), Date.now()) === false) {
			this.#deps.countFailure('rate_limited');
			socket.destroy();
			return;
		}
		const pending = new PendingHandshake(
			this,
			socket,
			peer,
			this.#selector,
			performance.now() + this.#handshakeLimitMs,
		);
		this.#pendingHandshakes.add(pending);
		this.#deadlineTimer ??= setInterval(() => this.#closeExpired(), DEADLINE_CHECK_MS).unref();
		if (isDirect) {
			socket.peek(this.peekMemory, pending, directTlsThread() !== undefined);
			if (extraBytes) this.onHelloBytes(pending, extraBytes);
		} else {
			addHandshakeListeners(socket, pending);
			socket.on('data', onHelloData);
		}
	}

	/** The buffer for reading ClientHellos, which is allocated for the first connection. */
	get peekMemory(): Buffer {
		this.#peekMemory ??= Buffer.allocUnsafeSlow(PEEK_BYTES);
		return this.#peekMemory;
	}

	onHelloBytes(pending: PendingHandshake, bytes: Buffer): void {
		const { socket, helloCollector } = pending;
		const hello = helloCollector === undefined ? readClientHello(bytes) : helloCollector.add(bytes);
		const readBytes = helloCollector === undefined ? bytes : helloCollector.bytes;
		if (hello === 'incomplete' && readBytes.length < MAX_HELLO_BYTES) {
			pending.helloCollector ??= new ClientHelloCollector(bytes);
			return;
		}
		pending.helloCollector = undefined;
		pending.pendingBytes = readBytes;
		pending.isPeekDone = true;
		if (!(socket instanceof DirectSocket)) socket.off('data', onHelloData);
		if (typeof hello === 'string') {
			this.#handleNoHello(pending, readBytes, hello);
			return;
		}
		if (!(socket instanceof DirectSocket)) {
			pending.pendingBytes = undefined;
			socket.pause();
			socket.unshift(readBytes);
		}
		this.#dispatch(pending, hello);
	}

	/** Closes a connection whose client has closed its side before its ClientHello was complete. */
	onEnd(pending: PendingHandshake): void {
		const { socket } = pending;
		if (!pending.isPeekDone || socket instanceof DirectSocket) socket.destroy();
	}

	/** Called when the connection is closed or has been passed to its protocol. */
	forgetHandshake(pending: PendingHandshake): void {
		if (!this.#pendingHandshakes.delete(pending)) return;
		if (this.#isDraining) this.#deps.onConnectionEnded();
	}

	drain(requestWaits = NO_WAIT): void {
		this.#isDraining = true;
		this.#isRefusing = requestWaits.nextRequestMs === 0;
		this.#deps.http1.drain(requestWaits);
		this.#deps.http2?.drain();
		this.http3Side?.drain(requestWaits);
	}

	retire(matches: (tls: TlsInfo | undefined) => boolean): void {
		this.#deps.http1.retire(matches);
		this.#deps.http2?.retire(matches);
		this.http3Side?.retire(matches);
	}

	get connections(): number {
		const { http1, http2 } = this.#deps;
		return this.#pendingHandshakes.size + http1.connections + (http2?.connections ?? 0) + this.connectionsWithoutSocket;
	}

	get connectionsWithoutSocket(): number {
		return this.http3Side?.connections ?? 0;
	}

	*closable(): Generator<ClosableConnection> {
		for (const { socket, deadline } of this.#pendingHandshakes) {
			yield { idleSince: deadline - this.#handshakeLimitMs + UNUSED_GRACE_MS, giveWay: () => socket.destroy() };
		}
		yield* this.#deps.http1.closable();
		if (this.#deps.http2) yield* this.#deps.http2.closable();
		if (this.http3Side) yield* this.http3Side.closable();
	}

	close(): void {
		this.#deps.tls.removeListener(this);
		for (const { socket } of this.#pendingHandshakes) socket.destroy();
		this.#deps.http1.close();
		this.#deps.http2?.close();
		this.http3Side?.close();
	}

	/**
	 * Closes connections past their deadline, and frees the handshakers of earlier settings. One timer serves all handshakes and
	 * stops when there are none.
	 */
	#closeExpired(): void {
		const now = performance.now();
		for (const { socket, deadline } of this.#pendingHandshakes) {
			if (now < deadline) continue;
			this.#deps.countFailure('timeout');
			socket.destroy();
		}
		this.#retiredHandshakers.sweep(this.#pendingHandshakes);
		if (this.#pendingHandshakes.size > 0) return;
		clearInterval(this.#deadlineTimer);
		this.#deadlineTimer = undefined;
	}

	#createSelector(settings: ListenerTls): HandshakeSelector {
		const handshakers = new HandshakerCache(this.#deps.tls, settings.policies, this.#deps.protocols(), {
			onSecured: socket => this.#onSecured(socket),
			onError: (error, socket) => this.#onHandshakeFailed(error, socket),
		});
		return new HandshakeSelector(settings, handshakers);
	}

	#handleNoHello(pending: PendingHandshake, readBytes: Buffer, helloProblem: string): void {
		const { socket } = pending;
		if (helloProblem === 'not-tls' && looksLikeHttp(readBytes)) {
			this.#deps.countFailure('plain_http');
			const stream = socket instanceof DirectSocket ? socket.toSocket().on('error', ignoreError) : socket;
			this.forgetHandshake(pending);
			answerPlainHttp(stream, readBytes, this.#selector.settings.http_redirect === true, this.#deps.port);
			return;
		}
		this.#deps.countFailure(helloProblem === 'not-tls' ? 'not_tls' : 'bad_client_hello');
		if (helloProblem === 'not-tls') socket.destroy();
		else sendAlert(socket, 'decode_error');
	}

	#dispatch(pending: PendingHandshake, hello: ClientHello): void {
		const { selector, socket } = pending;
		pending.serverName = hello.serverName;
		pending.sessionTicket = hello.ticket;
		const name = selector.nameFor(hello.serverName, socket);
		if (hello.offersAcmeTls) {
			const challengedName = hello.serverName || unmapAddress(socket.localAddress);
			const certificate = this.#deps.tls.challengeCertificate(challengedName);
			if (certificate) {
				this.#startHandshake(pending, selector.handshakers.challengeHandshaker(challengedName, certificate));
				return;
			}
			if (this.#deps.tls.sharesChallenges) {
				void this.#askOtherProcesses(pending, this.#pauseForLookup(pending, hello), challengedName);
				return;
			}
		}
		this.#chooseCertificate(pending, hello, name);
	}

	/**
	 * Looks for the TLS-ALPN-01 challenge in the store, where another process may have published it, and continues with the result.
	 */
	async #askOtherProcesses(pending: PendingHandshake, hello: ClientHello, name: string): Promise<void> {
		const { socket } = pending;
		const clientAddress = pending.peer?.remoteAddress ?? unmapAddress(socket.remoteAddress);
		const answer = await this.#deps.tls.lookUpSharedAnswer({ type: 'tls-alpn-01', name }, clientAddress);
		if (socket.destroyed) return;
		if (answer !== undefined && 'certificate' in answer) {
			this.#startHandshake(pending, pending.selector.handshakers.challengeHandshaker(name, answer.certificate));
			return;
		}
		this.#chooseCertificate(pending, hello, name);
	}

	#chooseCertificate(pending: PendingHandshake, hello: ClientHello, name: string): void {
		const { selector } = pending;
		pending.policyIndex = selector.policyIndexOf(name);
		const certificate = selector.selectCertificate(pending.policyIndex, name, hello, this.#deps.tls.certificates);
		if (certificate) {
			this.#startWithCertificate(pending, certificate);
			return;
		}
		void this.#obtain(pending, this.#pauseForLookup(pending, hello), name);
	}

	/**
	 * Pauses reading while a lookup is in progress. Copies the bytes read so far out of the shared buffer and returns a
	 * ClientHello that refers to the copy.
	 */
	#pauseForLookup(pending: PendingHandshake, hello: ClientHello): ClientHello {
		pending.socket.pause();
		if (pending.pendingBytes === undefined) return hello;
		pending.pendingBytes = Buffer.from(pending.pendingBytes);
		const helloCopy = readClientHello(pending.pendingBytes) as ClientHello;
		pending.sessionTicket = helloCopy.ticket;
		return helloCopy;
	}

	async #obtain(pending: PendingHandshake, hello: ClientHello, name: string): Promise<void> {
		const { obtain, tls } = this.#deps;
		const { socket } = pending;
		let certificate: TableCertificate | undefined;
		if (tls.obtainsOnDemand && this.#waitingConnectionCount < MAX_WAITING_CONNECTIONS) {
			pending.deadline = performance.now() + CERTIFICATE_TIMEOUT_MS;
			this.#waitingConnectionCount++;
			const remoteIp = pending.peer?.remoteAddress ?? unmapAddress(socket.remoteAddress);
			const { cipherSuites, signatureSchemes } = hello;
			const localIp = unmapAddress(socket.localAddress);
			const isPublished = await obtain({ name, cipherSuites, signatureSchemes, localIp, remoteIp });
			this.#waitingConnectionCount--;
			if (socket.destroyed) return;
			pending.deadline = performance.now() + this.#handshakeLimitMs;
			if (isPublished) certificate = tls.certificates.find(name, hello);
		}
		const { fallback_sni: fallbackName } = pending.selector.settings;
		certificate ??= fallbackName === undefined ? undefined : tls.certificates.find(fallbackName, hello);
		if (certificate) {
			this.#startWithCertificate(pending, certificate);
			return;
		}
		this.#deps.countFailure('no_certificate');
		sendAlert(socket, 'unrecognized_name');
	}

	#startWithCertificate(pending: PendingHandshake, certificate: TableCertificate): void {
		let handshaker: Handshaker | undefined;
		try {
			pending.trustLosses = this.#deps.tls.trustLosses;
			handshaker = pending.selector.handshakers.get(pending.policyIndex, certificate, pending.sessionTicket);
			// The ticket is a part of the buffer of read bytes, and would keep that buffer in memory.
			pending.sessionTicket = undefined;
			if (handshaker) this.#startHandshake(pending, handshaker);
		} catch {
			// OpenSSL rejects the certificate or key, although the main thread's checks have accepted it.
			handshaker = undefined;
		}
		if (handshaker) return;
		this.#deps.countFailure('no_certificate');
		sendAlert(pending.socket, 'internal_error');
	}

	/** Starts the handshake. Throws if OpenSSL rejects the certificate. */
	#startHandshake(pending: PendingHandshake, handshaker: Handshaker): void {
		const { socket } = pending;
		if (!(socket instanceof DirectSocket)) {
			handshaker.handshake(socket);
			return;
		}
		const { directOptions } = handshaker;
		if (!canStartTls(socket, directOptions)) {
			handshaker.handshake(this.#toStream(socket, pending));
			return;
		}
		const readBytes = pending.pendingBytes!;
		pending.pendingBytes = undefined;
		startTls(socket, readBytes, directOptions, handshaker.callbacks);
	}

	/** Converts a connection into a stream, with the bytes read so far put back. */
	#toStream(directSocket: DirectSocket, pending: PendingHandshake): Socket {
		const readBytes = Buffer.from(pending.pendingBytes!);
		pending.pendingBytes = undefined;
		const socket = directSocket.toSocket();
		socket.on('error', ignoreError);
		pending.socket = socket;
		addHandshakeListeners(socket, pending);
		socket.pause();
		socket.unshift(readBytes);
		return socket;
	}

	#onHandshakeFailed(error: Error & { readonly code?: string }, socket: TLSSocket | DirectSocket): void {
		this.#deps.countFailure(classifyHandshakeFailure(error, socket));
		socket.destroy();
	}

	#onSecured(socket: TLSSocket | DirectSocket): void {
		const pending = pendingHandshakeOf(socket);
		if (!pending || !this.#pendingHandshakes.has(pending)) {
			socket.destroy();
			return;
		}
		const deps = this.#deps;
		const auth = pending.selector.policy(pending.policyIndex).client_auth;
		const proof = auth && readClientProof(socket);
		let tlsInfo: TlsInfo;
		if (socket instanceof DirectSocket) {
			tlsInfo = describeHandshake(handshakeFacts(socket), pending.serverName, proof?.certificate);
			socket.tls = tlsInfo;
		} else tlsInfo = attachTlsInfo(socket, pending.serverName, proof?.certificate);
		if (auth) {
			const refusal = proof ? this.#findRefusal(pending, proof, auth) : 'client_certificate_untrusted';
			if (refusal) {
				this.#refuse(socket, refusal);
				return;
			}
		}
		this.connectionTerms.record(tlsInfo, pending.selector.nameFor(pending.serverName, socket), auth);
		// The configuration may have changed since the handshake began.
		if (pending.selector !== this.#selector && this.connectionTerms.isOutdated(tlsInfo, this.#selector)) {
			this.#refuse(socket, 'client_certificate_untrusted');
			return;
		}
		deps.countHandshake(tlsInfo.version, tlsInfo.resumed);
		const { http1, http2 } = deps;
		const protocol = tlsInfo.protocol === 'h2' ? http2 : http1;
		// A listener that speaks only HTTP/2 cannot serve a client that did not negotiate it.
		if (!protocol || (tlsInfo.protocol !== 'h2' && !deps.protocols().includes('h1'))) {
			this.#refuse(socket, 'no_application_protocol');
			return;
		}
		protocol.accept(socket, 'https', pending.peer);
		this.forgetHandshake(pending);
	}

	#findRefusal(pending: PendingHandshake, proof: ClientProof, auth: ClientAuth): ClientRefusal | undefined {
		const { tls } = this.#deps;
		// The CA that verified this certificate may have been removed during the handshake.
		if (proof.certificate && pending.trustLosses !== tls.trustLosses) return 'client_certificate_untrusted';
		return clientRefusalReason(proof, auth, tls, proof.certificate);
	}

	#refuse(socket: TLSSocket | DirectSocket, reason: string): void {
		this.#deps.countFailure(reason);
		if (!(socket instanceof DirectSocket)) socket.on('error', ignoreError);
		socket.destroy();
	}
}

/**
 * Takes a connection out of its stream, after a PROXY header may have been read from it. Returns the connection, and the bytes
 * after the header that the stream has already read.
 */
function takeFromStream(stream: Socket): { socket: DirectSocket; extraBytes: Buffer | undefined } | undefined {
	const extraBytes = stream.read() as Buffer | null;
	const socket = toDirectSocket(stream);
	if (socket === undefined) {
		if (extraBytes) stream.unshift(extraBytes);
		return undefined;
	}
	// The listener counts open connections, and learns of their end by the stream's `close` event, which is therefore still
	// emitted.
	if (stream.listenerCount('close') > 0) socket.onClosed = () => void stream.destroy();
	else stream.destroy();
	return { socket, extraBytes: extraBytes ?? undefined };
}

/** Returns the handshake that a connection has completed. */
function pendingHandshakeOf(socket: TLSSocket | DirectSocket): PendingHandshake | undefined {
	if (!(socket instanceof DirectSocket)) return (underlyingConnection(socket) as PendingSocket | undefined)?.[PENDING];
	return socket.holder instanceof PendingHandshake ? socket.holder : undefined;
}

function readClientProof(socket: TLSSocket | DirectSocket): ClientProof | undefined {
	if (socket instanceof DirectSocket) return clientProof(socket);
	const { authorized, authorizationError } = socket;
	return { certificate: socket.getPeerX509Certificate(), authorized, authorizationError };
}

/** Reports whether any policy requests client certificates. */
function requestsCertificates({ settings }: HandshakeSelector): boolean {
	return settings.policies.some(({ client_auth: auth }) => auth !== undefined);
}

function speaksHttp2(protocols: string): boolean {
	return protocols.split(',').includes('h2');
}

/** Sends a fatal alert and closes the connection. */
function sendAlert(socket: Socket | DirectSocket, alertName: keyof typeof ALERT_NUMBERS): void {
	socket.resume();
	socket.write(Buffer.from([21, 3, 3, 0, 2, 2, ALERT_NUMBERS[alertName]]));
	socket.end();
	setTimeout(() => socket.destroy(), 500).unref();
}

/** Registers the event listeners that a stream needs before its handshake. */
function addHandshakeListeners(socket: PendingSocket, pending: PendingHandshake): void {
	socket[PENDING] = pending;
	socket.on('close', onStreamClosed);
	socket.on('end', onStreamEnd);
}

function onHelloData(this: PendingSocket, bytes: Buffer): void {
	const pending = this[PENDING]!;
	pending.owner.onHelloBytes(pending, bytes);
}

function onStreamEnd(this: PendingSocket): void {
	const pending = this[PENDING]!;
	pending.owner.onEnd(pending);
}

function onStreamClosed(this: PendingSocket): void {
	const pending = this[PENDING]!;
	pending.owner.forgetHandshake(pending);
}

function ignoreError(): void {}
