/**
 * TLS in front of a listener's protocols: reads the ClientHello, chooses policy and certificate by it, shakes hands, and
 * hands the socket to the protocol that ALPN chose.
 */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ListenerTls } from '../../compiler/tls/site-tls.ts';
import { plainAddress } from '../protocols/http1/socket-info.ts';
import type { ConnectionPeer, ProtocolServer } from '../protocols/protocol.ts';
import type { CertificateQuestion } from './certificate-feed.ts';
import { type ClientHello, LONGEST_HELLO, readClientHello } from './client-hello.ts';
import { clientRefusal } from './client-verification.ts';
import { HandshakeChoice } from './handshake-choice.ts';
import type { HandshakeRate } from './handshake-rate.ts';
import { HANDSHAKE_LIMIT } from './handshake-settings.ts';
import { answerPlainHttp, looksLikeHttp } from './plain-http.ts';
import type { Shaker } from './shaker.ts';
import { Shakers } from './shakers.ts';
import type { TableCertificate } from './table-certificate.ts';
import type { ThreadTls } from './thread-tls.ts';
import { rememberTls } from './tls-info.ts';

/** Handshakes under way at one time on one thread and listener; what comes beyond is closed. */
const MOST_HANDSHAKES = 8192;
/** Milliseconds that a connection waits for a certificate that is being obtained. */
const CERTIFICATE_LIMIT = 60_000;
/** Milliseconds between two looks at handshakes that take too long. */
const WATCH_INTERVAL = 500;
/** Connections that wait so at one time. */
const MOST_WAITING = 256;

/** The alerts that are sent in the clear, before there is a handshake to send them in (RFC 8446 §6). */
const ALERTS = { unrecognized_name: 112, decode_error: 50, internal_error: 80, no_application_protocol: 120 } as const;

/** What the TLS of a listener finds around it. */
export interface TlsSurroundings {
	readonly tls: ThreadTls;
	readonly port: number;
	/** Protocols that the listener speaks now: `h1`, `h2`. */
	readonly protocols: () => readonly string[];
	readonly http1: ProtocolServer;
	readonly http2: ProtocolServer | undefined;
	/** Asks for a certificate that this thread has not. */
	readonly obtain: (question: CertificateQuestion) => Promise<boolean>;
	/** A handshake has ended, well or not, for counters. */
	shaken(version: string, resumed: boolean): void;
	failed(reason: string): void;
	/** A connection that has not reached its protocol has ended while draining. */
	ended(): void;
}

/** Under it a socket has its greeting, so that what listens to it is the same for all sockets. */
const GREETING = Symbol('greeting');

/** A socket that has begun. */
interface GreetedSocket extends Socket {
	[GREETING]?: Greeting;
}

/** A connection from its first byte to the end of its handshake. */
interface Greeting {
	readonly server: TlsServer;
	readonly peer: ConnectionPeer | undefined;
	/** As they were when it began: a load in between changes nothing for it. */
	readonly choice: HandshakeChoice;
	/** What has come of an unfinished ClientHello. */
	read: Buffer | undefined;
	serverName: string;
	policy: number;
	/** The session ticket that the client offers. */
	ticket: Buffer | undefined;
	/** `performance.now()` at which it has to be over. */
	deadline: number;
}

/** The TLS of one listener on one thread. */
export class TlsServer implements ProtocolServer {
	readonly #around: TlsSurroundings;
	#choice: HandshakeChoice;
	#text = '';
	#spoken = '';
	#waiting = 0;
	#rate: HandshakeRate | undefined;
	#limit = HANDSHAKE_LIMIT;
	#draining = false;
	readonly #greetings = new Map<Socket, Greeting>();
	#watch: NodeJS.Timeout | undefined;

	constructor(around: TlsSurroundings) {
		this.#around = around;
		this.#choice = this.#choose({ policies: [{}], names: {}, other: 0, strict_sni_host: false });
		around.tls.listen(this);
	}

	/** Takes the listener's part of a plan, as JSON. Handshakes under way end as they began. */
	configure(text: string): void {
		const spoken = this.#around.protocols().join();
		if (text === this.#text && spoken === this.#spoken) return;
		this.#text = text;
		this.#spoken = spoken;
		this.#choice = this.#choose(JSON.parse(text) as ListenerTls);
	}

	/** Bounds the handshakes that begin from now on: how many a second, and the milliseconds that each may take, 0 for any. */
	bound(rate: HandshakeRate | undefined, limit: number = HANDSHAKE_LIMIT): void {
		this.#rate = rate;
		this.#limit = limit === 0 ? Number.POSITIVE_INFINITY : limit;
	}

	/** Whether a request's host must be the name of the handshake. */
	get strict(): boolean {
		return this.#choice.settings.strict_sni_host;
	}

	/** As for {@link ThreadTls}. */
	gone(certificate: TableCertificate): void {
		this.#choice.shakers.forget(certificate);
	}

	changed(): void {
		this.#choice.shakers.clear();
	}

	accept(socket: GreetedSocket, _scheme: 'http' | 'https', peer?: ConnectionPeer): void {
		if (socket.destroyed) return;
		socket.on('error', ignore);
		if (this.#draining || this.#greetings.size >= MOST_HANDSHAKES) {
			this.#around.failed('too_many_handshakes');
			socket.destroy();
			return;
		}
		if (this.#rate?.admits(peer?.remoteAddress ?? plainAddress(socket.remoteAddress), Date.now()) === false) {
			this.#around.failed('rate_limited');
			socket.destroy();
			return;
		}
		const greeting: Greeting = {
			server: this,
			peer,
			choice: this.#choice,
			read: undefined,
			serverName: '',
			policy: 0,
			ticket: undefined,
			deadline: performance.now() + this.#limit,
		};
		this.#greetings.set(socket, greeting);
		this.#watch ??= setInterval(() => this.#endLate(), WATCH_INTERVAL).unref();
		socket[GREETING] = greeting;
		socket.on('close', forget);
		socket.on('data', takeHello);
		socket.on('end', leave);
	}

	/** Bytes of a ClientHello. */
	hello(socket: Socket, greeting: Greeting, bytes: Buffer): void {
		const read = greeting.read === undefined ? bytes : Buffer.concat([greeting.read, bytes]);
		const hello = readClientHello(read);
		if (hello === 'incomplete' && read.length < LONGEST_HELLO) {
			greeting.read = read;
			return;
		}
		greeting.read = undefined;
		socket.off('data', takeHello);
		if (typeof hello === 'string') {
			this.#noHello(socket, read, hello);
			return;
		}
		socket.pause();
		socket.unshift(read);
		this.#greet(socket, greeting, hello);
	}

	/** The client has closed its side: without its first message whole there is nothing to wait for. */
	left(socket: Socket): void {
		if (this.#greetings.get(socket)?.serverName === '' && !socket.isPaused()) socket.destroy();
	}

	/** The connection is gone, or has reached its protocol. */
	forget(socket: Socket): void {
		if (!this.#greetings.delete(socket)) return;
		if (this.#draining) this.#around.ended();
	}

	drain(): void {
		this.#draining = true;
		this.#around.http1.drain();
		this.#around.http2?.drain();
	}

	get connections(): number {
		return this.#greetings.size + this.#around.http1.connections + (this.#around.http2?.connections ?? 0);
	}

	close(): void {
		this.#around.tls.unlisten(this);
		for (const socket of this.#greetings.keys()) socket.destroy();
		this.#around.http1.close();
		this.#around.http2?.close();
	}

	/** One timer for all handshakes; none when there is none. */
	#endLate(): void {
		const now = performance.now();
		for (const [socket, { deadline }] of this.#greetings) {
			if (now < deadline) continue;
			this.#around.failed('timeout');
			socket.destroy();
		}
		if (this.#greetings.size > 0) return;
		clearInterval(this.#watch);
		this.#watch = undefined;
	}

	#choose(settings: ListenerTls): HandshakeChoice {
		const shakers = new Shakers(this.#around.tls, settings.policies, this.#around.protocols(), {
			secured: socket => this.#secured(socket),
			failed: (error, socket) => {
				this.#around.failed(reasonOf(error));
				socket.destroy();
			},
		});
		return new HandshakeChoice(settings, shakers);
	}

	#noHello(socket: Socket, read: Buffer, state: string): void {
		if (state === 'not-tls' && looksLikeHttp(read)) {
			this.#around.failed('plain_http');
			this.forget(socket);
			answerPlainHttp(socket, read, this.#choice.settings.http_redirect === true, this.#around.port);
			return;
		}
		this.#around.failed(state === 'not-tls' ? 'not_tls' : 'bad_client_hello');
		if (state === 'not-tls') socket.destroy();
		else alert(socket, 'decode_error');
	}

	#greet(socket: Socket, greeting: Greeting, hello: ClientHello): void {
		const { choice } = greeting;
		greeting.serverName = hello.serverName;
		greeting.ticket = hello.ticket;
		// Asking for the address costs a system call, and most clients send a name.
		const name = hello.serverName || choice.settings.default_sni || plainAddress(socket.localAddress);
		if (hello.alpn.includes('acme-tls/1')) {
			const challenged = hello.serverName || plainAddress(socket.localAddress);
			const certificate = this.#around.tls.challengeCertificate(challenged);
			if (certificate) {
				choice.shakers.challenge(challenged, certificate).shake(socket);
				return;
			}
			if (this.#around.tls.sharesChallenges) {
				void this.#askOthers(socket, greeting, hello, challenged);
				return;
			}
		}
		this.#chooseFor(socket, greeting, hello, name);
	}

	/** Another process that shares the store may be the one that orders. */
	async #askOthers(socket: Socket, greeting: Greeting, hello: ClientHello, name: string): Promise<void> {
		const found = await this.#around.tls.sharedAnswer({ type: 'tls-alpn-01', name, token: '' });
		if (socket.destroyed) return;
		if (found !== undefined && 'certificate' in found) {
			greeting.choice.shakers.challenge(name, found.certificate).shake(socket);
			return;
		}
		this.#chooseFor(socket, greeting, hello, name);
	}

	#chooseFor(socket: Socket, greeting: Greeting, hello: ClientHello, name: string): void {
		const { choice } = greeting;
		greeting.policy = choice.policyOf(name);
		const certificate = choice.certificate(greeting.policy, name, hello, this.#around.tls.certificates);
		if (certificate) {
			this.#shake(socket, greeting, certificate);
			return;
		}
		void this.#obtain(socket, greeting, hello, name);
	}

	async #obtain(socket: Socket, greeting: Greeting, hello: ClientHello, name: string): Promise<void> {
		const { obtain, tls } = this.#around;
		let certificate: TableCertificate | undefined;
		if (tls.onDemand && this.#waiting < MOST_WAITING) {
			greeting.deadline = performance.now() + CERTIFICATE_LIMIT;
			this.#waiting++;
			const remoteIp = greeting.peer?.remoteAddress ?? plainAddress(socket.remoteAddress);
			const { cipherSuites, signatureSchemes } = hello;
			const localIp = plainAddress(socket.localAddress);
			const published = await obtain({ name, cipherSuites, signatureSchemes, localIp, remoteIp });
			this.#waiting--;
			if (socket.destroyed) return;
			greeting.deadline = performance.now() + this.#limit;
			if (published) certificate = tls.certificates.find(name, hello);
		}
		const { fallback_sni: fallback } = greeting.choice.settings;
		certificate ??= fallback === undefined ? undefined : tls.certificates.find(fallback, hello);
		if (certificate) {
			this.#shake(socket, greeting, certificate);
			return;
		}
		this.#around.failed('no_certificate');
		alert(socket, 'unrecognized_name');
	}

	#shake(socket: Socket, greeting: Greeting, certificate: TableCertificate): void {
		let shaker: Shaker | undefined;
		try {
			shaker = greeting.choice.shakers.get(greeting.policy, certificate, greeting.ticket);
			// It is a part of what was read, which it would keep in memory.
			greeting.ticket = undefined;
		} catch {
			// A certificate or key that OpenSSL does not take; the main thread has checked what it could.
			shaker = undefined;
		}
		if (shaker) {
			shaker.shake(socket);
			return;
		}
		this.#around.failed('no_certificate');
		alert(socket, 'internal_error');
	}

	#secured(socket: TLSSocket): void {
		// What was handed over: the declarations do not know it.
		const raw = (socket as { _parent?: Socket })._parent;
		const greeting = raw && this.#greetings.get(raw);
		if (!raw || !greeting) {
			socket.destroy();
			return;
		}
		const around = this.#around;
		const auth = greeting.choice.policy(greeting.policy).client_auth;
		const certificate = auth ? socket.getPeerX509Certificate() : undefined;
		const info = rememberTls(socket, greeting.serverName, certificate);
		if (auth) {
			const refusal = clientRefusal(socket, auth, around.tls, certificate);
			if (refusal) {
				around.failed(refusal);
				socket.on('error', ignore);
				socket.destroy();
				return;
			}
		}
		around.shaken(info.version, info.resumed);
		const { http1, http2 } = around;
		const protocol = info.protocol === 'h2' ? http2 : http1;
		// A listener of HTTP/2 alone has nothing to say to a client that did not ask for it.
		if (!protocol || (info.protocol !== 'h2' && !around.protocols().includes('h1'))) {
			around.failed('no_application_protocol');
			socket.on('error', ignore);
			socket.destroy();
			return;
		}
		protocol.accept(socket, 'https', greeting.peer);
		this.forget(raw);
	}
}

/** A fatal alert, and the end. */
function alert(socket: Socket, description: keyof typeof ALERTS): void {
	socket.resume();
	socket.end(Buffer.from([21, 3, 3, 0, 2, 2, ALERTS[description]]));
	setTimeout(() => socket.destroy(), 500).unref();
}

/** OpenSSL's reasons to a few of ours. */
function reasonOf({ code, message }: Error & { readonly code?: string }): string {
	if (code === 'ECONNRESET' || code === 'EPIPE') return 'closed';
	if (code === 'ERR_TLS_HANDSHAKE_TIMEOUT') return 'timeout';
	const text = `${code ?? ''} ${message}`.toUpperCase();
	if (text.includes('NO_APPLICATION_PROTOCOL')) return 'no_application_protocol';
	if (text.includes('VERSION') || text.includes('UNSUPPORTED_PROTOCOL')) return 'version';
	if (text.includes('NO_SHARED_CIPHER') || text.includes('NO SHARED') || text.includes('NO_SUITABLE'))
		return 'no_shared_cipher';
	if (text.includes('PEER_DID_NOT_RETURN')) return 'client_certificate_missing';
	if (text.includes('ALERT')) return 'alert';
	return 'protocol';
}

function takeHello(this: GreetedSocket, bytes: Buffer): void {
	const greeting = this[GREETING]!;
	greeting.server.hello(this, greeting, bytes);
}

function leave(this: GreetedSocket): void {
	this[GREETING]!.server.left(this);
}

function forget(this: GreetedSocket): void {
	this[GREETING]!.server.forget(this);
}

function ignore(): void {}
