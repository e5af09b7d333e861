/**
 * Handshakers perform TLS handshakes with one policy and one certificate. Each has an OpenSSL context. A connection uses an
 * OpensslHandle, a TlsHandle or, over a stream, a TLSSocket. Where OpenSSL is not used directly, client certificates, the secrets
 * log, and OCSP stapling over a stream need a `tls.Server` that never listens, because Node implements them only for servers.
 */
import type { Socket } from 'node:net';
import {
	createSecureContext,
	createServer,
	type SecureContext,
	type Server,
	TLSSocket,
	type TlsOptions,
} from 'node:tls';
import { clientVerifier } from '../sockets/client-verifier.ts';
import type { HandshakeOptions } from '../sockets/direct-handshake.ts';
import type { DirectSocket } from '../sockets/direct-socket.ts';
import { type HandshakeDuties, OpensslContext } from '../sockets/openssl-context.ts';
import { renewTickets } from '../sockets/renewed-tickets.ts';
import { directTlsThread } from '../sockets/start-tls.ts';
import { closeContext, copyPeerAddress, releaseControl, sharedContextOf } from '../sockets/tls-internals.ts';

/** Callbacks for the end of a handshake. For each connection, at most one of them is called, and only once. */
export interface HandshakerCallbacks {
	onSecured(socket: TLSSocket | DirectSocket): void;
	onError(error: Error & { readonly code?: string }, socket: TLSSocket | DirectSocket): void;
}

/** Performs handshakes with one policy and one certificate. */
export interface Handshaker {
	/** Starts the handshake on a stream. The caller must have put the bytes that it has read back into the stream. */
	handshake(socket: Socket): void;
	/** Settings for a handshake on a DirectSocket, which has no Node stream. */
	readonly directOptions: HandshakeOptions;
	readonly callbacks: HandshakerCallbacks;
	/** Frees native memory, which the garbage collector would free only much later. Handshakes in progress are not affected. */
	close(): void;
}

/** The options of every TLSSocket, with the ALPN protocols already in wire format. */
interface SocketOptions {
	readonly isServer: true;
	readonly secureContext: ReturnType<typeof createSecureContext>;
	readonly requestCert: false;
	readonly rejectUnauthorized: false;
	readonly ALPNProtocols: Uint8Array;
}

/** Context options and ALPN protocols. If `newestKey` is set, it encrypts new tickets and `ticketKeys` only decrypts. */
export type HandshakerOptions = TlsOptions & {
	readonly ALPNProtocols: readonly string[];
	readonly newestKey?: Buffer | undefined;
};

/** The error for a connection that was closed during the handshake for no known reason. */
export class HandshakeAborted extends Error {
	readonly code = 'ECONNRESET';
}

/** A handshaker without client authentication. A connection costs only a socket and four event listeners. */
export class PlainHandshaker implements Handshaker {
	readonly directOptions: HandshakeOptions;
	readonly callbacks: HandshakerCallbacks;
	readonly #directOptions: DirectHandshakeOptions;
	#cachedSocketOptions: SocketOptions | undefined;

	constructor(options: HandshakerOptions, callbacks: HandshakerCallbacks) {
		this.#directOptions = new DirectHandshakeOptions(options, {});
		this.directOptions = this.#directOptions;
		this.callbacks = callbacks;
	}

	close(): void {
		this.#directOptions.close();
	}

	get #socketOptions(): SocketOptions {
		this.#cachedSocketOptions ??= {
			isServer: true,
			secureContext: this.directOptions.context!,
			requestCert: false,
			rejectUnauthorized: false,
			ALPNProtocols: this.directOptions.protocols,
		};
		return this.#cachedSocketOptions;
	}

	handshake(connection: Socket): void {
		const socket: HandshakingSocket = new TLSSocket(connection, this.#socketOptions);
		copyPeerAddress(socket, connection);
		socket[CALLBACKS] = this.callbacks;
		socket.on('secure', onSecure);
		socket.on('error', onFailure);
		socket.on('close', onFailure);
		// A client that closes its side during the handshake cannot complete it, even on a half-open connection.
		socket.on('end', onFailure);
	}
}

/** The property of a socket that holds its callbacks until one of them has been called. */
const CALLBACKS = Symbol('callbacks');

type HandshakingSocket = TLSSocket & { [CALLBACKS]?: HandshakerCallbacks | undefined };

function onSecure(this: HandshakingSocket): void {
	const callbacks = this[CALLBACKS];
	if (callbacks === undefined) return;
	this[CALLBACKS] = undefined;
	releaseControl(this);
	callbacks.onSecured(this);
}

function onFailure(this: HandshakingSocket, error?: Error | boolean): void {
	const callbacks = this[CALLBACKS];
	if (callbacks === undefined) return;
	this[CALLBACKS] = undefined;
	callbacks.onError(error instanceof Error ? error : new HandshakeAborted('closed'), this);
}

/**
 * A handshaker that staples an OCSP response, verifies client certificates or writes a secrets log. It creates its `tls.Server`,
 * for handshakes on streams, and its contexts, for handshakes without streams, when they are first needed.
 */
export class ServerHandshaker implements Handshaker {
	readonly callbacks: HandshakerCallbacks;
	readonly #options: HandshakerOptions;
	readonly #duties: HandshakeDuties;
	#directOptions: DirectHandshakeOptions | undefined;
	#server: Server | undefined;

	constructor(options: HandshakerOptions, duties: HandshakeDuties, callbacks: HandshakerCallbacks) {
		this.#options = options;
		this.#duties = duties;
		this.callbacks = callbacks;
	}

	get directOptions(): HandshakeOptions {
		this.#directOptions ??= new DirectHandshakeOptions(this.#options, this.#duties);
		return this.#directOptions;
	}

	handshake(socket: Socket): void {
		this.#server ??= this.#createServer();
		this.#server.emit('connection', socket);
	}

	close(): void {
		this.#directOptions?.close();
		const context = this.#server && sharedContextOf(this.#server);
		if (context) closeContext(context);
		this.#directOptions = undefined;
		this.#server = undefined;
	}

	#createServer(): Server {
		const { newestKey, ...options } = this.#options;
		const { ocspResponse, clientTerms, onSecret } = this.#duties;
		const server = createServer({ ...options, ALPNProtocols: [...options.ALPNProtocols] });
		const context = sharedContextOf(server);
		if (clientTerms && context) clientVerifier()?.enableFor(context, clientTerms.criteria);
		if (newestKey && options.ticketKeys && context) renewTickets(context, options.ticketKeys, newestKey);
		server.on('secureConnection', socket => this.callbacks.onSecured(socket));
		server.on('tlsClientError', (error, socket) => this.callbacks.onError(error, socket));
		if (onSecret) server.on('keylog', line => onSecret(line.toString('latin1').trimEnd()));
		if (ocspResponse) {
			server.on('OCSPRequest', (_certificate, _issuer, answer: (error: null, response: Buffer) => void) =>
				answer(null, Buffer.from(ocspResponse)),
			);
		}
		return server;
	}
}

/**
 * The settings of handshakes without Node streams. Handshakes by Node and by OpenSSL directly use separate contexts, because the
 * callbacks of each context work only with its own kind of connection. Each context is created when it is first needed.
 */
class DirectHandshakeOptions implements HandshakeOptions {
	readonly protocols: Uint8Array;
	readonly ocspResponse: Uint8Array | undefined;
	readonly #options: HandshakerOptions;
	readonly #duties: HandshakeDuties;
	/** False if the handshakes need something that Node's handles cannot do: client certificates or a secrets log. */
	readonly #supportsNode: boolean;
	#context: SecureContext | undefined;
	#openssl: OpensslContext | undefined;

	/** Throws if OpenSSL rejects the options. */
	constructor(options: HandshakerOptions, duties: HandshakeDuties) {
		this.#options = options;
		this.#duties = duties;
		this.#supportsNode = duties.clientTerms === undefined && duties.onSecret === undefined;
		this.protocols = encodeProtocols(options.ALPNProtocols);
		this.ocspResponse = duties.ocspResponse;
		if (this.openssl === undefined && this.#supportsNode) this.#context = this.#createContext();
	}

	get context(): SecureContext | undefined {
		if (this.#supportsNode) this.#context ??= this.#createContext();
		return this.#context;
	}

	get openssl(): OpensslContext | undefined {
		if (this.#openssl !== undefined) return this.#openssl;
		const thread = directTlsThread();
		if (thread === undefined || (this.#duties.clientTerms && clientVerifier() === undefined)) return undefined;
		this.#openssl = new OpensslContext(thread, this.#createContext(), this.protocols, this.#duties);
		return this.#openssl;
	}

	close(): void {
		if (this.#context) closeContext(this.#context);
		if (this.#openssl === undefined) return;
		this.#openssl.close();
		closeContext(this.#openssl.context);
	}

	#createContext(): SecureContext {
		const { ALPNProtocols: _, newestKey, ...settings } = this.#options;
		const context = createSecureContext(settings);
		if (newestKey && settings.ticketKeys) renewTickets(context, settings.ticketKeys as Buffer, newestKey);
		return context;
	}
}

/** Encodes ALPN protocol names, each preceded by its length (RFC 7301 §3.1). */
function encodeProtocols(protocols: readonly string[]): Uint8Array {
	return Buffer.concat(protocols.map(name => Buffer.concat([Buffer.of(name.length), Buffer.from(name, 'latin1')])));
}
