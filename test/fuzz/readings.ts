/**
 * Feeds the same bytes to two servers, ours and Node's, in memory without sockets. Returns how each server interprets the bytes.
 */
import { createServer, METHODS } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { ChunkedDecoder } from '../../runtime/protocols/http1/chunked-decoder.ts';
import { CHUNKED_BODY, RequestHeadParser } from '../../runtime/protocols/http1/head-parser.ts';
import { createHttp1Server } from '../../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../../runtime/protocols/http1/limits.ts';
import { bodyOf } from '../runtime/protocols/http1/wire.ts';

/** A completely read message: method, target and body. */
export type Message = string;

/** A server's interpretation of one connection. */
export interface ServerReading {
	/** Completely read messages, in order. */
	readonly messages: readonly Message[];
	/** Statuses of the final responses. */
	readonly statuses: readonly number[];
}

/** Makes a server read bytes that arrive in the given pieces, and resolves to its interpretation. */
export type ServerReader = (pieces: readonly string[]) => Promise<ServerReading>;

/** The server's end of a connection in memory. The server reads what a test pushes. */
class MemorySocket extends Duplex {
	readonly remoteAddress = '192.0.2.1';
	readonly remotePort = 1;
	readonly bytesRead = 0;
	written = '';

	constructor() {
		super({ allowHalfOpen: true });
	}

	override _read(): void {}

	override _write(chunk: Buffer | string, _encoding: BufferEncoding, done: () => void): void {
		this.written += chunk.toString('latin1');
		done();
	}

	setNoDelay(): this {
		return this;
	}

	setKeepAlive(): this {
		return this;
	}

	setTimeout(): this {
		return this;
	}

	destroySoon(): void {
		this.end(() => this.destroy());
	}
}

/**
 * Pushes the pieces, one per turn of the event loop, and then the end. Resolves to the statuses of the responses when the server
 * has ended its side.
 */
async function pushPieces(socket: MemorySocket, pieces: readonly string[]): Promise<readonly number[]> {
	const whenEnded = new Promise<void>(resolve => {
		socket.once('finish', resolve);
		socket.once('close', resolve);
	});
	for (const [index, piece] of pieces.entries()) {
		if (index > 0) await new Promise(resolve => setImmediate(resolve));
		if (!socket.destroyed) socket.push(Buffer.from(piece, 'latin1'));
	}
	if (!socket.destroyed) socket.push(null);
	await whenEnded;
	// The server may still be reading input after it has ended its side, so the socket is destroyed one turn later.
	await new Promise(resolve => setImmediate(resolve));
	socket.destroy();
	return [...socket.written.matchAll(/HTTP\/1\.1 ([2-5][0-9][0-9]) /g)].map(match => Number(match[1]));
}

/** Returns a reader backed by our engine. */
export function ourServerReader(): ServerReader {
	let messages: (Message | undefined)[] = [];
	const server = createHttp1Server({
		async handle(x: Exchange) {
			const into = messages;
			// Reserves the message's place before reading the body, so that messages are in the order of their heads.
			const index = into.push(undefined) - 1;
			try {
				const body = await bodyOf(x);
				const query = x.received.query === undefined ? '' : `?${x.received.query}`;
				into[index] = `${x.received.method} ${x.received.path}${query} ${JSON.stringify(body)}`;
				x.response.body = 'ok';
			} catch (error) {
				x.response.status = (error as { status?: number }).status ?? 500;
			}
		},
		onExchangeFinished() {},
		countRefusal() {},
		onConnectionOpened() {},
		onConnectionClosed() {},
		limits: DEFAULT_LIMITS,
		draining: false,
	});
	return async pieces => {
		const own: (Message | undefined)[] = [];
		messages = own;
		const socket = new MemorySocket();
		server.accept(socket as unknown as Socket, 'http');
		const statuses = await pushPieces(socket, pieces);
		return { messages: completeMessages(own), statuses };
	};
}

/** Returns a reader backed by Node's own server with its strict parser. */
export function nodeServerReader(): ServerReader {
	let messages: (Message | undefined)[] = [];
	const server = createServer({ insecureHTTPParser: false, requireHostHeader: false }, (request, response) => {
		const into = messages;
		const index = into.push(undefined) - 1;
		let body = '';
		request.setEncoding('latin1');
		request.on('data', piece => {
			body += piece;
		});
		request.on('error', () => {});
		request.on('end', () => {
			into[index] = `${request.method} ${originForm(request.url ?? '')} ${JSON.stringify(body)}`;
			response.end('ok');
		});
	});
	(server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
	server.on('connect', (_request, socket) => socket.destroy());
	server.on('upgrade', (_request, socket) => socket.destroy());
	server.on('checkExpectation', (_request, response) => response.writeHead(417).end());
	server.removeAllListeners('upgrade');
	return async pieces => {
		const own: (Message | undefined)[] = [];
		messages = own;
		const socket = new MemorySocket();
		server.emit('connection', socket);
		// Node does not close a connection whose client has ended its side.
		const timer = setTimeout(() => socket.destroy(), 50);
		const statuses = await pushPieces(socket, pieces);
		clearTimeout(timer);
		return { messages: completeMessages(own), statuses };
	};
}

/** Returns the messages before the first incomplete one. */
function completeMessages(messages: readonly (Message | undefined)[]): Message[] {
	const end = messages.indexOf(undefined);
	return (end === -1 ? messages : messages.slice(0, end)) as Message[];
}

/** Returns the path and query of a target in absolute form, as our server does. */
function originForm(url: string): string {
	const authority = /^https?:\/\/[^/?]*/i.exec(url);
	if (!authority) return url;
	const rest = url.slice(authority[0].length);
	return rest.startsWith('/') ? rest : `/${rest}`;
}

/**
 * Reports whether Node knows the method of a message and treats it as a request. For our server, any token is a method (RFC 9110
 * §9.1).
 */
export function isKnownToNode(message: Message): boolean {
	const method = message.split(' ', 1)[0]!;
	return method !== 'CONNECT' && METHODS.includes(method);
}

/** Returns the index after the first `count` messages of `text`. These messages must be valid. */
export function endOfMessages(text: string, count: number): number {
	const parser = new RequestHeadParser(DEFAULT_LIMITS.maxHeaderCount);
	let at = 0;
	for (let i = 0; i < count; i++) {
		if (parser.parse(text, at, text.length) !== 0)
			throw new Error(`message ${i} of ${JSON.stringify(text)} has no end`);
		at = parser.end;
		if (parser.bodyLength === CHUNKED_BODY) {
			const decoder = new ChunkedDecoder('request', DEFAULT_LIMITS.maxHeadSize, DEFAULT_LIMITS.maxHeaderCount);
			at += decoder.write(Buffer.from(text.slice(at), 'latin1'), 0, { push: () => {} });
		} else at += parser.bodyLength;
	}
	return at;
}
