/**
 * What shakes hands under one policy with one certificate: a context of OpenSSL and, for each connection, a TlsHandle or, over
 * a stream, a TLSSocket. Where clients are asked for certificates or secrets are logged, or responses are stapled over a
 * stream, a `tls.Server` that never listens itself does it, because Node verifies and staples in it alone.
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
import type { DirectSocket } from '../protocols/direct-socket.ts';
import type { HandshakeTerms } from '../protocols/tls-handle.ts';
import { type ClientTerms, clientVerifier } from '../sockets/client-verifier.ts';
import { renewTickets } from './renewed-tickets.ts';

/** Where handshakes end. Either is called at most once for a connection. */
export interface HandshakeOutcome {
	secured(socket: TLSSocket | DirectSocket): void;
	failed(error: Error & { readonly code?: string }, socket: TLSSocket | DirectSocket): void;
}

/** Shakes hands. */
export interface Shaker {
	/** With the client of a socket; what it has sent so far has been put back. */
	shake(socket: Socket): void;
	/** How that is done without a stream; undefined where it cannot be. */
	readonly terms: HandshakeTerms | undefined;
	readonly outcome: HandshakeOutcome;
	/** Lets go of what it holds outside the heap, where a collection would be late to find it. Handshakes under way end as they would. */
	close(): void;
}

/** What every connection is made with: our protocols already in the form of the wire. */
interface SocketOptions {
	readonly isServer: true;
	readonly secureContext: ReturnType<typeof createSecureContext>;
	readonly requestCert: false;
	readonly rejectUnauthorized: false;
	readonly ALPNProtocols: Uint8Array;
}

/** Our protocols, and the options of a context; `newestKey` seals tickets, where `ticketKeys` only open them. */
export type ShakerOptions = TlsOptions & {
	readonly ALPNProtocols: readonly string[];
	readonly newestKey?: Buffer | undefined;
};

/** The end of a handshake that nobody has named a reason for. */
export class HandshakeCut extends Error {
	readonly code = 'ECONNRESET';
}

/** A shaker for clients that are asked for nothing: a socket and three listeners are all that a connection costs. */
export class PlainShaker implements Shaker {
	readonly terms: HandshakeTerms;
	readonly outcome: HandshakeOutcome;
	readonly #options: SocketOptions;

	constructor(options: ShakerOptions, outcome: HandshakeOutcome) {
		this.terms = termsOf(options, undefined);
		this.#options = {
			isServer: true,
			secureContext: this.terms.context,
			requestCert: false,
			rejectUnauthorized: false,
			ALPNProtocols: this.terms.protocols,
		};
		this.outcome = outcome;
	}

	close(): void {
		closeContext(this.terms.context);
	}

	shake(raw: Socket): void {
		const socket: ShakingSocket = new TLSSocket(raw, this.#options);
		// It has been asked for where the connection came from; without it the system would be asked again.
		socket._peername = (raw as ShakingSocket)._peername;
		socket[OUTCOME] = this.outcome;
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
	readonly terms = undefined;
	readonly outcome: HandshakeOutcome;
	readonly server: Server;

	/** `judging`: what clients are asked for, and by what the certificates that they show are judged. */
	constructor({ newestKey, ...options }: ShakerOptions, outcome: HandshakeOutcome, judging?: ClientTerms) {
		this.outcome = outcome;
		this.server = createServer({ ...options, ALPNProtocols: [...options.ALPNProtocols] });
		const context = this.#context;
		if (judging && context) clientVerifier()?.judge(context, judging);
		if (newestKey && options.ticketKeys && context) renewTickets(context, options.ticketKeys, newestKey);
		this.server.on('secureConnection', socket => outcome.secured(socket));
		this.server.on('tlsClientError', (error, socket) => outcome.failed(error, socket));
	}

	shake(socket: Socket): void {
		this.server.emit('connection', socket);
	}

	close(): void {
		if (this.#context) closeContext(this.#context);
	}

	/** The context that the server has made, which the declarations do not know. */
	get #context(): SecureContext | undefined {
		return (this.server as Server & { readonly _sharedCreds?: SecureContext })._sharedCreds;
	}
}

/** A shaker that staples an OCSP response. Whichever way it is needed is made when it first is. */
export class StaplingShaker implements Shaker {
	readonly outcome: HandshakeOutcome;
	readonly #options: ShakerOptions;
	readonly #response: Buffer;
	#terms: HandshakeTerms | undefined;
	#streams: ServerShaker | undefined;

	constructor(options: ShakerOptions, response: Buffer, outcome: HandshakeOutcome) {
		this.#options = options;
		this.#response = response;
		this.outcome = outcome;
	}

	get terms(): HandshakeTerms {
		this.#terms ??= termsOf(this.#options, this.#response);
		return this.#terms;
	}

	shake(socket: Socket): void {
		this.#streams ??= this.#server();
		this.#streams.shake(socket);
	}

	close(): void {
		if (this.#terms) closeContext(this.#terms.context);
		this.#streams?.close();
		this.#terms = undefined;
		this.#streams = undefined;
	}

	#server(): ServerShaker {
		const shaker = new ServerShaker(
			{ ...this.#options, ALPNProtocols: [...this.#options.ALPNProtocols] },
			this.outcome,
		);
		shaker.server.on('OCSPRequest', (_certificate, _issuer, answer: (error: null, response: Buffer) => void) =>
			answer(null, this.#response),
		);
		return shaker;
	}
}

/** Connections have their own hold on what OpenSSL needs. */
function closeContext(context: SecureContext): void {
	const { context: inner } = context as SecureContext & { readonly context?: { close?: () => void } };
	inner?.close?.();
}

function termsOf(options: ShakerOptions, stapled: Uint8Array | undefined): HandshakeTerms {
	const { ALPNProtocols: protocols, newestKey, ...settings } = options;
	const context = createSecureContext(settings);
	if (newestKey && options.ticketKeys) renewTickets(context, options.ticketKeys, newestKey);
	return { context, protocols: wireForm(protocols), stapled };
}

/** Each name after its length (RFC 7301 §3.1). */
function wireForm(protocols: readonly string[]): Uint8Array {
	return Buffer.concat(protocols.map(name => Buffer.concat([Buffer.of(name.length), Buffer.from(name, 'latin1')])));
}
