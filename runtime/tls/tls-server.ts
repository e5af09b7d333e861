/**
 * TLS in front of a listener's protocols: reads the ClientHello, chooses policy and certificate by it, shakes hands, and
 * hands the socket to the protocol that ALPN chose.
 */
import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import type { TlsInfo } from '../../compiler/exchange/exchange.ts';
import type { ClientAuth, ListenerTls } from '../../compiler/tls/site-tls.ts';
import { DirectSocket } from '../protocols/direct-socket.ts';
import { plainAddress } from '../protocols/http1/socket-info.ts';
import type { Http2Server } from '../protocols/http2/http2-server.ts';
import type { ConnectionPeer, ProtocolServer } from '../protocols/protocol.ts';
import { TlsHandle } from '../protocols/tls-handle.ts';
import type { CertificateQuestion } from './certificate-feed.ts';
import { type ClientHello, LONGEST_HELLO, readClientHello } from './client-hello.ts';
import { type ClientRefusal, clientRefusal } from './client-verification.ts';
import { type Greeter, Greeting } from './greeting.ts';
import { HandshakeChoice } from './handshake-choice.ts';
import { handshakeFailure } from './handshake-failure.ts';
import type { HandshakeRate } from './handshake-rate.ts';
import { HANDSHAKE_LIMIT } from './handshake-settings.ts';
import { answerPlainHttp, looksLikeHttp } from './plain-http.ts';
import type { Shaker } from './shaker.ts';
import { Shakers } from './shakers.ts';
import type { TableCertificate } from './table-certificate.ts';
import type { ThreadTls } from './thread-tls.ts';
import { rememberTls, tlsInfo } from './tls-info.ts';

/** Handshakes under way at one time on one thread and listener; what comes beyond is closed. */
const MOST_HANDSHAKES = 8192;
/** Milliseconds that a connection waits for a certificate that is being obtained. */
const CERTIFICATE_LIMIT = 60_000;
/** Milliseconds between two looks at handshakes that take too long. */
const WATCH_INTERVAL = 500;
/** Bytes that one read of a ClientHello can give. */
const PEEKED = 16 * 1024;
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
	readonly http2: Http2Server | undefined;
	/** Asks for a certificate that this thread has not. */
	readonly obtain: (question: CertificateQuestion) => Promise<boolean>;
	/** A handshake has ended, well or not, for counters. */
	shaken(version: string, resumed: boolean): void;
	failed(reason: string): void;
	/** A connection that has not reached its protocol has ended while draining. */
	ended(): void;
}

/** Under it a stream has its greeting, so that what listens to it is the same for all. */
const GREETING = Symbol('greeting');

/** A stream that has begun. */
interface GreetedSocket extends Socket {
	[GREETING]?: Greeting;
}

/** The TLS of one listener on one thread. */
export class TlsServer implements ProtocolServer, Greeter {
	readonly #around: TlsSurroundings;
	#choice: HandshakeChoice;
	#text = '';
	#spoken = '';
	#waiting = 0;
	#rate: HandshakeRate | undefined;
	#limit = HANDSHAKE_LIMIT;
	#draining = false;
	#peekMemory: Buffer | undefined;
	readonly #greetings = new Map<Socket | DirectSocket, Greeting>();
	#watch: NodeJS.Timeout | undefined;
	/** Key of the trust that the client of a connection was verified under. */
	readonly #verifiedBy = new WeakMap<TlsInfo, string>();

	constructor(around: TlsSurroundings) {
		this.#around = around;
		this.#choice = this.#choose({ policies: [{}], names: {}, other: 0, strict_sni_host: false });
		around.tls.listen(this);
	}

	/** Takes the listener's part of a plan, as JSON. Handshakes under way end as they began. */
	configure(text: string): void {
		const spoken = this.#around.protocols().join();
		if (text === this.#text && spoken === this.#spoken) return;
		if (speaksHttp2(this.#spoken) && !speaksHttp2(spoken)) this.#around.http2?.retire(() => true);
		this.#text = text;
		this.#spoken = spoken;
		const before = this.#choice;
		this.#choice = this.#choose(JSON.parse(text) as ListenerTls);
		before.shakers.clear();
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

	/** As for {@link ThreadTls}: their connections end after what is under way. */
	distrusted(keys: ReadonlySet<string>): void {
		const verified = (tls: TlsInfo | undefined): boolean => {
			const key = tls && this.#verifiedBy.get(tls);
			return key !== undefined && keys.has(key);
		};
		this.retire(verified);
	}

	accept(socket: Socket | DirectSocket, _scheme: 'http' | 'https', peer?: ConnectionPeer): void {
		if (socket.destroyed) return;
		const direct = socket instanceof DirectSocket;
		if (!direct) socket.on('error', ignore);
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
		const greeting = new Greeting(this, socket, peer, this.#choice, performance.now() + this.#limit);
		this.#greetings.set(socket, greeting);
		this.#watch ??= setInterval(() => this.#endLate(), WATCH_INTERVAL).unref();
		if (direct) socket.peek(this.peekMemory, greeting);
		else {
			follow(socket, greeting);
			socket.on('data', takeHello);
		}
	}

	/** As for {@link Greeter}; made for the first connection. */
	get peekMemory(): Buffer {
		this.#peekMemory ??= Buffer.allocUnsafeSlow(PEEKED);
		return this.#peekMemory;
	}

	/** As for {@link Greeter}. */
	hello(greeting: Greeting, bytes: Buffer): void {
		const { socket } = greeting;
		const read = greeting.read === undefined ? bytes : Buffer.concat([greeting.read, bytes]);
		const hello = readClientHello(read);
		if (hello === 'incomplete' && read.length < LONGEST_HELLO) {
			greeting.read = read === bytes ? Buffer.from(bytes) : read;
			return;
		}
		greeting.read = read;
		greeting.over = true;
		if (!(socket instanceof DirectSocket)) socket.off('data', takeHello);
		if (typeof hello === 'string') {
			this.#noHello(greeting, read, hello);
			return;
		}
		if (!(socket instanceof DirectSocket)) {
			greeting.read = undefined;
			socket.pause();
			socket.unshift(read);
		}
		this.#greet(greeting, hello);
	}

	/** As for {@link Greeter}: without its first message whole there is nothing to wait for. */
	left(greeting: Greeting): void {
		const { socket } = greeting;
		if (!greeting.over || socket instanceof DirectSocket) socket.destroy();
	}

	/** As for {@link Greeter}; or the connection has reached its protocol. */
	forget({ socket }: Greeting): void {
		if (!this.#greetings.delete(socket)) return;
		if (this.#draining) this.#around.ended();
	}

	drain(): void {
		this.#draining = true;
		this.#around.http1.drain();
		this.#around.http2?.drain();
	}

	retire(which: (tls: TlsInfo | undefined) => boolean): void {
		this.#around.http1.retire(which);
		this.#around.http2?.retire(which);
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
			failed: (error, socket) => this.#failed(error, socket),
		});
		return new HandshakeChoice(settings, shakers);
	}

	#noHello(greeting: Greeting, read: Buffer, state: string): void {
		const { socket } = greeting;
		if (state === 'not-tls' && looksLikeHttp(read)) {
			this.#around.failed('plain_http');
			const stream = socket instanceof DirectSocket ? socket.toSocket().on('error', ignore) : socket;
			this.forget(greeting);
			answerPlainHttp(stream, read, this.#choice.settings.http_redirect === true, this.#around.port);
			return;
		}
		this.#around.failed(state === 'not-tls' ? 'not_tls' : 'bad_client_hello');
		if (state === 'not-tls') socket.destroy();
		else alert(socket, 'decode_error');
	}

	#greet(greeting: Greeting, hello: ClientHello): void {
		const { choice, socket } = greeting;
		greeting.serverName = hello.serverName;
		greeting.ticket = hello.ticket;
		// Asking for the address costs a system call, and most clients send a name.
		const name = hello.serverName || choice.settings.default_sni || plainAddress(socket.localAddress);
		if (hello.alpn.includes('acme-tls/1')) {
			const challenged = hello.serverName || plainAddress(socket.localAddress);
			const certificate = this.#around.tls.challengeCertificate(challenged);
			if (certificate) {
				this.#begin(greeting, choice.shakers.challenge(challenged, certificate));
				return;
			}
			if (this.#around.tls.sharesChallenges) {
				void this.#askOthers(greeting, this.#wait(greeting, hello), challenged);
				return;
			}
		}
		this.#chooseFor(greeting, hello, name);
	}

	/** Another process that shares the store may be the one that orders. */
	async #askOthers(greeting: Greeting, hello: ClientHello, name: string): Promise<void> {
		const { socket } = greeting;
		const client = greeting.peer?.remoteAddress ?? plainAddress(socket.remoteAddress);
		const found = await this.#around.tls.sharedAnswer({ type: 'tls-alpn-01', name }, client);
		if (socket.destroyed) return;
		if (found !== undefined && 'certificate' in found) {
			this.#begin(greeting, greeting.choice.shakers.challenge(name, found.certificate));
			return;
		}
		this.#chooseFor(greeting, hello, name);
	}

	#chooseFor(greeting: Greeting, hello: ClientHello, name: string): void {
		const { choice } = greeting;
		greeting.policy = choice.policyOf(name);
		const certificate = choice.certificate(greeting.policy, name, hello, this.#around.tls.certificates);
		if (certificate) {
			this.#shake(greeting, certificate);
			return;
		}
		void this.#obtain(greeting, this.#wait(greeting, hello), name);
	}

	/** The connection is not read for now. What was read is kept, and with it what the hello that is returned says. */
	#wait(greeting: Greeting, hello: ClientHello): ClientHello {
		greeting.socket.pause();
		if (greeting.read === undefined) return hello;
		greeting.read = Buffer.from(greeting.read);
		const kept = readClientHello(greeting.read) as ClientHello;
		greeting.ticket = kept.ticket;
		return kept;
	}

	async #obtain(greeting: Greeting, hello: ClientHello, name: string): Promise<void> {
		const { obtain, tls } = this.#around;
		const { socket } = greeting;
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
			this.#shake(greeting, certificate);
			return;
		}
		this.#around.failed('no_certificate');
		alert(socket, 'unrecognized_name');
	}

	#shake(greeting: Greeting, certificate: TableCertificate): void {
		let shaker: Shaker | undefined;
		try {
			greeting.distrustings = this.#around.tls.distrustings;
			shaker = greeting.choice.shakers.get(greeting.policy, certificate, greeting.ticket);
			// It is a part of what was read, which it would keep in memory.
			greeting.ticket = undefined;
			if (shaker) this.#begin(greeting, shaker);
		} catch {
			// A certificate or key that OpenSSL does not take; the main thread has checked what it could.
			shaker = undefined;
		}
		if (shaker) return;
		this.#around.failed('no_certificate');
		alert(greeting.socket, 'internal_error');
	}

	/** Throws when OpenSSL does not take the certificate. */
	#begin(greeting: Greeting, shaker: Shaker): void {
		const { socket } = greeting;
		if (!(socket instanceof DirectSocket)) {
			shaker.shake(socket);
			return;
		}
		const { terms } = shaker;
		if (terms === undefined) {
			shaker.shake(this.#streamOf(socket, greeting));
			return;
		}
		const read = greeting.read!;
		greeting.read = undefined;
		const handle = new TlsHandle(socket, terms, shaker.outcome);
		socket.goOver(handle);
		handle.begin(read);
	}

	/** The connection as a stream, with what was read put back. */
	#streamOf(direct: DirectSocket, greeting: Greeting): Socket {
		const read = Buffer.from(greeting.read!);
		greeting.read = undefined;
		const socket = direct.toSocket();
		socket.on('error', ignore);
		this.#greetings.delete(direct);
		this.#greetings.set(socket, greeting);
		greeting.socket = socket;
		follow(socket, greeting);
		socket.pause();
		socket.unshift(read);
		return socket;
	}

	#failed(error: Error & { readonly code?: string }, socket: TLSSocket | DirectSocket): void {
		this.#around.failed(handshakeFailure(error, socket));
		socket.destroy();
	}

	#secured(socket: TLSSocket | DirectSocket): void {
		// What was handed over: the declarations do not know it.
		const raw = socket instanceof DirectSocket ? socket : (socket as { _parent?: Socket })._parent;
		const greeting = raw && this.#greetings.get(raw);
		if (!greeting) {
			socket.destroy();
			return;
		}
		const around = this.#around;
		let info: TlsInfo;
		if (socket instanceof DirectSocket) {
			info = tlsInfo((socket._handle as TlsHandle).facts, greeting.serverName, undefined);
			socket.tls = info;
		} else {
			const auth = greeting.choice.policy(greeting.policy).client_auth;
			const certificate = auth ? socket.getPeerX509Certificate() : undefined;
			info = rememberTls(socket, greeting.serverName, certificate);
			const refusal = auth && this.#refusal(greeting, socket, auth, certificate);
			if (refusal) {
				this.#refuse(socket, refusal);
				return;
			}
			if (auth) this.#verifiedBy.set(info, canonicalJson(auth));
		}
		around.shaken(info.version, info.resumed);
		const { http1, http2 } = around;
		const protocol = info.protocol === 'h2' ? http2 : http1;
		// A listener of HTTP/2 alone has nothing to say to a client that did not ask for it.
		if (!protocol || (info.protocol !== 'h2' && !around.protocols().includes('h1'))) {
			this.#refuse(socket, 'no_application_protocol');
			return;
		}
		protocol.accept(socket, 'https', greeting.peer);
		this.forget(greeting);
	}

	#refusal(
		greeting: Greeting,
		socket: TLSSocket,
		auth: ClientAuth,
		certificate: X509Certificate | undefined,
	): ClientRefusal | undefined {
		const { tls } = this.#around;
		// Its certificate may have been verified by an authority that has been given up since.
		if (certificate && greeting.distrustings !== tls.distrustings) return 'client_certificate_untrusted';
		return clientRefusal(socket, auth, tls, certificate);
	}

	#refuse(socket: TLSSocket | DirectSocket, reason: string): void {
		this.#around.failed(reason);
		if (!(socket instanceof DirectSocket)) socket.on('error', ignore);
		socket.destroy();
	}
}

function speaksHttp2(protocols: string): boolean {
	return protocols.split(',').includes('h2');
}

/** A fatal alert, and the end. */
function alert(socket: Socket | DirectSocket, description: keyof typeof ALERTS): void {
	socket.resume();
	socket.write(Buffer.from([21, 3, 3, 0, 2, 2, ALERTS[description]]));
	socket.end();
	setTimeout(() => socket.destroy(), 500).unref();
}

/** What a stream tells of its connection while it is greeted. */
function follow(socket: GreetedSocket, greeting: Greeting): void {
	socket[GREETING] = greeting;
	socket.on('close', forget);
	socket.on('end', leave);
}

function takeHello(this: GreetedSocket, bytes: Buffer): void {
	const greeting = this[GREETING]!;
	greeting.greeter.hello(greeting, bytes);
}

function leave(this: GreetedSocket): void {
	const greeting = this[GREETING]!;
	greeting.greeter.left(greeting);
}

function forget(this: GreetedSocket): void {
	const greeting = this[GREETING]!;
	greeting.greeter.forget(greeting);
}

function ignore(): void {}
