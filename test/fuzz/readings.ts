/** What two servers, ours and Node's, read from the same bytes: in memory, without a socket. */
import { createServer, METHODS } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { ChunkedDecoder } from '../../runtime/protocols/http1/chunked-decoder.ts';
import { CHUNKED, RequestHeadParser } from '../../runtime/protocols/http1/head-parser.ts';
import { createHttp1Server } from '../../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../../runtime/protocols/http1/limits.ts';
import { bodyOf } from '../runtime/protocols/http1/wire.ts';

/** A message that was read whole: method, target and body. */
export type Message = string;

/** What a server made of one connection. */
export interface Reading {
	/** Messages read whole, in order. */
	readonly messages: readonly Message[];
	/** Statuses of the final answers. */
	readonly statuses: readonly number[];
}

/** A server that reads bytes given in pieces. */
export type Reader = (pieces: readonly string[]) => Promise<Reading>;

/** The end of a connection that a server holds: what a test pushes is what it reads. */
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

/** Pushes pieces, a turn of the loop apart, then the end; resolves when the server has ended its side. */
async function run(socket: MemorySocket, pieces: readonly string[]): Promise<readonly number[]> {
	const ended = new Promise<void>(resolve => {
		socket.once('finish', resolve);
		socket.once('close', resolve);
	});
	for (const [index, piece] of pieces.entries()) {
		if (index > 0) await new Promise(resolve => setImmediate(resolve));
		if (!socket.destroyed) socket.push(Buffer.from(piece, 'latin1'));
	}
	if (!socket.destroyed) socket.push(null);
	await ended;
	// What is behind the answer may still be read.
	await new Promise(resolve => setImmediate(resolve));
	socket.destroy();
	return [...socket.written.matchAll(/HTTP\/1\.1 ([2-5][0-9][0-9]) /g)].map(match => Number(match[1]));
}

/** Our engine. */
export function ourReader(): Reader {
	let messages: (Message | undefined)[] = [];
	const server = createHttp1Server({
		async handle(x: Exchange) {
			const into = messages;
			// In place before the body is read, so that the order is that of the heads.
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
		finished() {},
		refused() {},
		opened() {},
		closed() {},
		limits: DEFAULT_LIMITS,
		draining: false,
	});
	return async pieces => {
		const own: (Message | undefined)[] = [];
		messages = own;
		const socket = new MemorySocket();
		server.accept(socket as unknown as Socket, 'http');
		const statuses = await run(socket, pieces);
		return { messages: wholeOnes(own), statuses };
	};
}

/** Node's own server, its parser strict. */
export function nodeReader(): Reader {
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
		// It does not close a connection whose client has ended its side.
		const timer = setTimeout(() => socket.destroy(), 50);
		const statuses = await run(socket, pieces);
		clearTimeout(timer);
		return { messages: wholeOnes(own), statuses };
	};
}

/** Messages up to the first one that did not come whole. */
function wholeOnes(messages: readonly (Message | undefined)[]): Message[] {
	const end = messages.indexOf(undefined);
	return (end === -1 ? messages : messages.slice(0, end)) as Message[];
}

/** Path and query of a target in absolute form, as we have them. */
function originForm(url: string): string {
	const authority = /^https?:\/\/[^/?]*/i.exec(url);
	if (!authority) return url;
	const rest = url.slice(authority[0].length);
	return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Whether Node has the method in its list and reads it as a request; any token is a method to us (RFC 9110 §9.1). */
export function isKnownToNode(message: Message): boolean {
	const method = message.split(' ', 1)[0]!;
	return method !== 'CONNECT' && METHODS.includes(method);
}

/** Index behind the first `count` messages of bytes that we have accepted. */
export function endOf(text: string, count: number): number {
	const parser = new RequestHeadParser(DEFAULT_LIMITS.maxHeaderCount);
	let at = 0;
	for (let i = 0; i < count; i++) {
		if (parser.parse(text, at, text.length) !== 0)
			throw new Error(`message ${i} of ${JSON.stringify(text)} has no end`);
		at = parser.end;
		if (parser.bodyLength === CHUNKED) {
			const decoder = new ChunkedDecoder('request', DEFAULT_LIMITS.maxHeadSize, DEFAULT_LIMITS.maxHeaderCount);
			at += decoder.write(Buffer.from(text.slice(at), 'latin1'), 0, { push: () => {} });
		} else at += parser.bodyLength;
	}
	return at;
}
