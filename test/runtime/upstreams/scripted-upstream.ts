/** An upstream that sends exactly the bytes that a test specifies, and fake exchanges for requests to it. */
import { createServer, type Server, type Socket } from 'node:net';
import type { Body, BodySource } from '../../../compiler/exchange/body.ts';
import { isStream } from '../../../compiler/exchange/body.ts';
import { Exchange, Request } from '../../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';

export interface ScriptedUpstream {
	readonly address: string;
	readonly port: number;
	/** Number of connections accepted so far. */
	readonly accepted: number;
	close(): Promise<void>;
}

/** Starts an upstream on a free port. The script receives each connection and its number, which starts at 1. */
export async function scriptedUpstream(script: (socket: Socket, number: number) => void): Promise<ScriptedUpstream> {
	const sockets = new Set<Socket>();
	let accepted = 0;
	const server: Server = createServer({ allowHalfOpen: true, noDelay: true }, socket => {
		sockets.add(socket);
		socket.on('error', () => {});
		socket.on('close', () => sockets.delete(socket));
		script(socket, ++accepted);
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	const { port } = server.address() as { port: number };
	return {
		address: `127.0.0.1:${port}`,
		port,
		get accepted() {
			return accepted;
		},
		close: () =>
			new Promise(resolve => {
				for (const socket of sockets) socket.destroy();
				server.close(() => resolve());
			}),
	};
}

/** Calls `answer` for each complete request head on a connection, with the head and the number of the request. */
export function onRequestHead(socket: Socket, answer: (head: string, number: number) => void): void {
	let text = '';
	let number = 0;
	socket.on('data', bytes => {
		text += bytes.toString('latin1');
		for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
			const head = text.slice(0, end + 4);
			text = text.slice(end + 4);
			answer(head, ++number);
		}
	});
}

/** Returns an exchange without a connection. Calling its `gone()` simulates that the client disconnects. */
export function fakeClientExchange(
	method = 'GET',
	headers: readonly (readonly [string, string])[] = [],
	body: Body = null,
): Exchange {
	const received = { method, path: '/', query: undefined, authority: 'example.com' };
	const request = new Request(received, 'http', 'example.com', new HeaderList(headers.flat()), body);
	const connection = { remoteAddress: '192.0.2.1', remotePort: 1, localAddress: '', localPort: 0, tls: undefined };
	const transport = { sendInterim: () => {}, watch: () => {} };
	return new Exchange('HTTP/1.1', connection, received, request, transport, 0);
}

/** Reads a body to the end. */
export async function readBody(body: Body): Promise<string> {
	if (body === null) return '';
	if (typeof body === 'string') return body;
	if (!isStream(body)) return Buffer.from(body).toString('latin1');
	const pieces: Uint8Array[] = [];
	for (let piece = await body.pull(); piece !== null; piece = await body.pull()) pieces.push(Uint8Array.from(piece));
	return Buffer.concat(pieces).toString('latin1');
}

/** Returns a streamed body of the given pieces, each of which may be a promise. */
export function streamedBody(
	pieces: readonly (string | Promise<string>)[],
	length?: number,
): BodySource & { cancelled: boolean } {
	let next = 0;
	return {
		length,
		cancelled: false,
		pull() {
			const piece = pieces[next++];
			if (piece === undefined) return null;
			return typeof piece === 'string' ? Buffer.from(piece) : piece.then(text => Buffer.from(text));
		},
		cancel() {
			this.cancelled = true;
		},
	};
}
