/** Connects over TCP and Unix sockets, including what precedes the protocol's first byte: tunnels, PROXY headers, TLS. */
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { UpstreamError } from '../../../compiler/exchange/leases.ts';
import { takeStartedConnection, watchCloseNotify } from '../../sockets/close-notify.ts';
import type { ClientTarget, DialAttempt, Dialer, DialOptions, DialOwner } from '../../sockets/dialer.ts';
import { dialDirectly } from '../../sockets/direct-dialing.ts';
import { canTakeTlsConnections, takeTlsConnection } from '../../sockets/taken-tls.ts';
import {
	MAX_TIMER_MS,
	socketErrorText,
	UpstreamSocket,
	type UpstreamSocketOwner,
} from '../../sockets/upstream-socket.ts';
import type { TlsClient } from './tls-client.ts';

/** Sets up a tunnel. `done` is called once, but not after the socket has closed. */
export type SetUpTunnel = (socket: Socket, done: (error: Error | undefined) => void) => void;

/** What precedes the protocol's first byte, in this order. */
export interface ConnectionPrelude {
	/** TLS to an `https` proxy, inside which the tunnel is set up. */
	readonly outerTls?: TlsClient | undefined;
	/** Sets up a tunnel through the proxy to the real target. */
	readonly tunnel?: SetUpTunnel | undefined;
	/** The header of the PROXY protocol, which is sent before the TLS handshake with the target. */
	readonly header?: Uint8Array | undefined;
	readonly tls?: TlsClient | undefined;
}

export class SocketDialer implements Dialer {
	readonly #target: ClientTarget;
	readonly #options: DialOptions;
	readonly #prelude: ConnectionPrelude;
	readonly #mayDialDirectly: boolean;

	/** @param mayDialDirectly True to use sockets without a Node stream for connections that need neither a tunnel nor TLS. */
	constructor(target: ClientTarget, options: DialOptions, prelude: ConnectionPrelude, mayDialDirectly = false) {
		this.#target = target;
		this.#options = options;
		this.#prelude = prelude;
		const { tunnel, tls, outerTls } = prelude;
		this.#mayDialDirectly = mayDialDirectly && !tunnel && !tls && !outerTls;
	}

	dial(owner: DialOwner): DialAttempt {
		const { tls, outerTls } = this.#prelude;
		const problem = tls?.findProblem() ?? outerTls?.findProblem();
		if (problem) return failedDialing(problem, owner);
		const directAttempt = this.#mayDialDirectly
			? dialDirectly(this.#target, this.#options, this.#prelude.header, owner)
			: undefined;
		if (directAttempt) return directAttempt;
		return new SocketDialing(this.#target, this.#options, this.#prelude, owner);
	}
}

/**
 * Reports an error that occurred before connecting. Does so asynchronously, so that the owner receives the {@link DialAttempt}
 * first.
 */
function failedDialing(cause: Error, owner: DialOwner): DialAttempt {
	let isAbandoned = false;
	queueMicrotask(() => {
		if (!isAbandoned) owner.onDialFailed(new UpstreamError('connect', socketErrorText(cause), cause));
	});
	return {
		abandon() {
			isAbandoned = true;
		},
	};
}

class SocketDialing implements DialAttempt, UpstreamSocketOwner {
	readonly #owner: DialOwner;
	readonly #prelude: ConnectionPrelude;
	readonly #upstreamSocket: UpstreamSocket;
	#socket: Socket;
	#timer: NodeJS.Timeout | undefined = undefined;
	#isFinished = false;

	constructor(target: ClientTarget, options: DialOptions, prelude: ConnectionPrelude, owner: DialOwner) {
		this.#owner = owner;
		this.#prelude = prelude;
		const upstreamSocket = new UpstreamSocket(this);
		this.#upstreamSocket = upstreamSocket;
		const { tunnel, header, tls, outerTls } = prelude;
		if (options.connectTimeout > 0) this.#startTimeout(options.connectTimeout, 'connecting timed out');
		if (tls && !tunnel && !header && !outerTls) {
			const tlsOptions = tls.options();
			const isWatched = watchCloseNotify(tlsOptions.secureContext!);
			const connectOptions = {
				...socketSettings(target, options),
				...tlsOptions,
				onread: upstreamSocket.readOptions(options.readBuffer()),
			};
			const socket = connectTls(connectOptions as ConnectionOptions);
			this.#socket = socket;
			upstreamSocket.attach(socket, false);
			socket.on('connect', () => {
				// Node's listener, which was added first, has just begun the handshake.
				upstreamSocket.tlsConnection = (isWatched && takeStartedConnection()) || null;
				this.#startTimeout(tls.handshakeTimeoutMs, 'the TLS handshake timed out');
			});
			this.#awaitHandshake(socket, tls, true);
			return;
		}
		const needsNoWrapper = !tunnel && !tls && !outerTls;
		const settings = socketSettings(target, options);
		const socket = outerTls
			? connectTls({ ...settings, ...outerTls.options() } as ConnectionOptions)
			: connect(needsNoWrapper ? { ...settings, onread: upstreamSocket.readOptions(options.readBuffer()) } : settings);
		this.#socket = socket;
		if (needsNoWrapper) {
			upstreamSocket.attach(socket, false);
			socket.on('connect', () => {
				if (header) socket.write(header);
				this.#finishDialing();
			});
			return;
		}
		let socketError: Error | undefined;
		socket.on('error', error => {
			socketError = error;
		});
		socket.on('close', () => this.onClosed(socketError));
		socket.on(outerTls ? 'secureConnect' : 'connect', () => {
			if (!tunnel) this.#onConnected();
			else {
				tunnel(socket, error => {
					if (error) this.onClosed(error);
					else this.#onConnected();
				});
			}
		});
	}

	abandon(): void {
		if (this.#finish()) this.#socket.destroy();
	}

	/** Rejects data, because nothing may arrive before the first request, except after a TLS handshake. */
	onReceived(bytes: Buffer, count: number): boolean {
		return this.#finishWithStream() && this.#upstreamSocket.holder.onReceived(bytes, count);
	}

	onPeerEnded(): void {
		if (this.#finishWithStream()) this.#upstreamSocket.holder.onPeerEnded();
	}

	onClosed(error: Error | undefined): void {
		this.#fail(new UpstreamError('connect', error ? socketErrorText(error) : 'the connection was closed', error));
	}

	/** Continues once the socket is connected to the real target, directly or through a tunnel. */
	#onConnected(): void {
		if (this.#isFinished) return;
		const { header, tls } = this.#prelude;
		const socket = this.#socket;
		if (header) socket.write(header);
		if (!tls) {
			socket.removeAllListeners('close');
			if (this.#prelude.outerTls) this.#upstreamSocket.tlsConnection = null;
			this.#upstreamSocket.attach(socket, true);
			this.#finishDialing();
			return;
		}
		this.#startTimeout(tls.handshakeTimeoutMs, 'the TLS handshake timed out');
		const tlsOptions = tls.options();
		const isWatched = watchCloseNotify(tlsOptions.secureContext!);
		const tlsSocket = connectTls({ ...tlsOptions, socket, allowHalfOpen: true } as ConnectionOptions);
		this.#upstreamSocket.tlsConnection = (isWatched && takeStartedConnection()) || null;
		socket.removeAllListeners('close');
		this.#socket = tlsSocket;
		this.#upstreamSocket.attach(tlsSocket, true);
		this.#awaitHandshake(tlsSocket, tls, false);
	}

	/** @param isOwnConnection True if the stream is not built on another one, so that the connection may be taken from it. */
	#awaitHandshake(socket: TLSSocket, tls: TlsClient, isOwnConnection: boolean): void {
		const { context } = tls;
		const keepSession = (session: Buffer): void => tls.keepSession(session, context);
		socket.on('secureConnect', () => {
			const upstreamSocket = this.#upstreamSocket;
			upstreamSocket.protocol = socket.alpnProtocol || '';
			const problem = tls.checkHandshake(socket);
			if (problem !== undefined) {
				this.onClosed(new Error(problem));
				return;
			}
			const { tlsConnection } = upstreamSocket;
			// The owner of an HTTP/2 connection keeps Node's stream.
			const keepsStream = upstreamSocket.protocol === 'h2' || tls.allowsRenegotiation || !canTakeTlsConnections();
			if (!isOwnConnection || !tlsConnection || keepsStream) {
				// In TLS 1.2, the session is complete with the handshake, and there is no event for it anymore.
				const session = socket.getProtocol() === 'TLSv1.2' ? socket.getSession() : undefined;
				if (session) keepSession(session);
				socket.on('session', keepSession);
				this.#finishDialing();
				return;
			}
			upstreamSocket.takeTls = () => {
				const taken = takeTlsConnection(socket, tlsConnection, keepSession);
				if (!taken) socket.on('session', keepSession);
				return taken;
			};
			// Node emits the event while OpenSSL is running, and the connection cannot be taken then.
			setImmediate(() => this.#finishDialing());
		});
	}

	/**
	 * Finishes dialing without taking the TLS connection, because data or the end has arrived together with the end of the handshake.
	 * Returns false if the handshake has not ended, or dialing was already finished.
	 */
	#finishWithStream(): boolean {
		const upstreamSocket = this.#upstreamSocket;
		if (upstreamSocket.takeTls === undefined || this.#isFinished) return false;
		upstreamSocket.takeTls = undefined;
		this.#finishDialing();
		return upstreamSocket.holder !== this;
	}

	#finishDialing(): void {
		if (this.#finish()) this.#owner.onDialed(this.#upstreamSocket);
	}

	#startTimeout(milliseconds: number, message: string): void {
		clearTimeout(this.#timer);
		if (milliseconds <= 0 || this.#isFinished) return;
		this.#timer = setTimeout(
			() => this.#fail(new UpstreamError('timeout', message, undefined, true)),
			Math.min(milliseconds, MAX_TIMER_MS),
		);
	}

	/** Marks dialing as finished. Returns false if it was already finished. */
	#finish(): boolean {
		if (this.#isFinished) return false;
		this.#isFinished = true;
		clearTimeout(this.#timer);
		return true;
	}

	#fail(error: UpstreamError): void {
		if (!this.#finish()) return;
		this.#socket.destroy();
		this.#owner.onDialFailed(error);
	}
}

function socketSettings(target: ClientTarget, options: DialOptions): TcpNetConnectOpts {
	if ('path' in target) return { path: target.path, allowHalfOpen: true } as never;
	return {
		host: target.host,
		port: target.port,
		allowHalfOpen: true,
		noDelay: true,
		keepAlive: options.probeInterval > 0,
		keepAliveInitialDelay: options.probeInterval,
		...(options.localAddress === undefined ? {} : { localAddress: options.localAddress }),
		...(options.lookup === undefined ? {} : { lookup: options.lookup }),
		...(options.fallbackDelay < 0
			? { autoSelectFamily: false }
			: { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: Math.max(10, options.fallbackDelay) }),
	};
}
