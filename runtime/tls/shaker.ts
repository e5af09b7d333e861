/**
 * What shakes hands under one policy with one certificate: a context of OpenSSL and, for each connection, a TLSSocket over
 * it. Where clients are asked for certificates, responses are stapled or secrets are logged, a `tls.Server` that never
 * listens itself does it, because Node verifies and staples in it alone.
 */
import type { Socket } from 'node:net';
import { createSecureContext, createServer, type Server, TLSSocket, type TlsOptions } from 'node:tls';

/** Where handshakes end. Either is called at most once for a connection. */
export interface HandshakeOutcome {
	secured(socket: TLSSocket): void;
	failed(error: Error & { readonly code?: string }, socket: TLSSocket): void;
}

/** Shakes hands with the client of a socket; what it has sent so far has been put back. */
export interface Shaker {
	shake(socket: Socket): void;
}

/** What every connection is made with: our protocols already in the form of the wire. */
interface SocketOptions {
	readonly isServer: true;
	readonly secureContext: ReturnType<typeof createSecureContext>;
	readonly requestCert: false;
	readonly rejectUnauthorized: false;
	readonly ALPNProtocols: Uint8Array;
}

/** The end of a handshake that nobody has named a reason for. */
class HandshakeCut extends Error {
	readonly code = 'ECONNRESET';
}

/** A shaker for clients that are asked for nothing: a socket and three listeners are all that a connection costs. */
export class PlainShaker implements Shaker {
	readonly #options: SocketOptions;
	readonly #outcome: HandshakeOutcome;

	constructor(options: TlsOptions & { readonly ALPNProtocols: readonly string[] }, outcome: HandshakeOutcome) {
		const { ALPNProtocols: protocols, ...context } = options;
		this.#options = {
			isServer: true,
			secureContext: createSecureContext(context),
			requestCert: false,
			rejectUnauthorized: false,
			ALPNProtocols: wireForm(protocols),
		};
		this.#outcome = outcome;
	}

	shake(raw: Socket): void {
		const socket: ShakingSocket = new TLSSocket(raw, this.#options);
		// It has been asked for where the connection came from; without it the system would be asked again.
		socket._peername = (raw as ShakingSocket)._peername;
		socket[OUTCOME] = this.#outcome;
		socket.on('secure', secured);
		socket.on('error', failed);
		socket.on('close', failed);
		// A client that leaves before the end of its handshake has nothing to wait for, half open or not.
		socket.on('end', failed);
	}
}

/** Under it a socket has its outcome until that is known. */
const OUTCOME = Symbol('outcome');

/** A socket that shakes hands, with what the declarations do not know. */
type ShakingSocket = Socket & {
	[OUTCOME]?: HandshakeOutcome | undefined;
	/** What Node remembers of the other side. */
	_peername?: object | undefined;
	/** What `tls.Server` calls too: from then on errors are the owner's. */
	_releaseControl?: () => void;
};

function secured(this: ShakingSocket): void {
	const outcome = this[OUTCOME];
	if (outcome === undefined) return;
	this[OUTCOME] = undefined;
	this._releaseControl?.();
	outcome.secured(this as TLSSocket);
}

function failed(this: ShakingSocket, error?: Error | boolean): void {
	const outcome = this[OUTCOME];
	if (outcome === undefined) return;
	this[OUTCOME] = undefined;
	outcome.failed(error instanceof Error ? error : new HandshakeCut('closed'), this as TLSSocket);
}

/** A shaker by a `tls.Server`. */
export class ServerShaker implements Shaker {
	readonly server: Server;

	constructor(options: TlsOptions, outcome: HandshakeOutcome) {
		this.server = createServer(options);
		this.server.on('secureConnection', socket => outcome.secured(socket));
		this.server.on('tlsClientError', (error, socket) => outcome.failed(error, socket));
	}

	shake(socket: Socket): void {
		this.server.emit('connection', socket);
	}
}

/** Each name after its length (RFC 7301 §3.1). */
function wireForm(protocols: readonly string[]): Uint8Array {
	return Buffer.concat(protocols.map(name => Buffer.concat([Buffer.of(name.length), Buffer.from(name, 'latin1')])));
}
