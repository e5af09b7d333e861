/** An HTTP/1.1 server with a scripted handler, and a client that writes raw bytes. */
import { once } from 'node:events';
import { connect, createServer, Socket } from 'node:net';
import type { Exchange } from '../../../../compiler/exchange/exchange.ts';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { PendingAnswer } from '../../../../compiler/exchange/pending-answer.ts';
import { createHttp1Server } from '../../../../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../../../../runtime/protocols/http1/limits.ts';
import type { ProtocolHost, ProtocolLimits, ProtocolServer } from '../../../../runtime/protocols/protocol.ts';
import { WAIT_LIMIT_MS } from '../../../harness.ts';

/** A running server, and what it has recorded. */
export interface WireServer {
	readonly port: number;
	readonly protocol: ProtocolServer;
	readonly exchanges: Exchange[];
	readonly finished: Exchange[];
	readonly refused: string[];
	readonly opened: () => number;
	readonly closed: () => number;
	draining: boolean;
	/** The current limits. A test may change them, as loading a configuration does. */
	limits: ProtocolLimits;
	stop(): Promise<void>;
}

/** A socket class that the engine does not know, and therefore reads as a stream. */
class UnknownSocket extends Socket {}

/**
 * Serves on a free port of 127.0.0.1. If a handler throws, the response has the status of the error, as in the runtime. With
 * `asStreams`, sockets have a class that the engine can read only as streams.
 */
export async function serve(
	handler: Handler,
	limits: Partial<ProtocolLimits> = {},
	asStreams = false,
): Promise<WireServer> {
	const exchanges: Exchange[] = [];
	const finished: Exchange[] = [];
	const refused: string[] = [];
	let opened = 0;
	let closedCount = 0;
	const fail = (x: Exchange, error: unknown): void => {
		x.response.body = null;
		x.response.status = (error as { status?: number }).status ?? 500;
	};
	const host: ProtocolHost & { draining: boolean; limits: ProtocolLimits } = {
		handle(x) {
			exchanges.push(x);
			try {
				const pending = handler(x);
				if (!(pending instanceof PendingAnswer)) return pending?.then(undefined, error => fail(x, error));
				pending.setOutcomeHandler({ onAnswered() {}, onFailed: fail });
				return pending;
			} catch (error) {
				fail(x, error);
			}
		},
		onExchangeFinished: x => void finished.push(x),
		countRefusal: reason => void refused.push(reason),
		onConnectionOpened: () => void opened++,
		onConnectionClosed: () => void closedCount++,
		limits: { ...DEFAULT_LIMITS, ...limits },
		draining: false,
	};
	const protocol = createHttp1Server(host);
	const server = createServer({ allowHalfOpen: true }, socket => {
		if (asStreams) Object.setPrototypeOf(socket, UnknownSocket.prototype);
		protocol.accept(socket, 'http');
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	return {
		port: (server.address() as { port: number }).port,
		protocol,
		exchanges,
		finished,
		refused,
		opened: () => opened,
		closed: () => closedCount,
		get draining() {
			return host.draining;
		},
		set draining(value: boolean) {
			host.draining = value;
		},
		get limits() {
			return host.limits;
		},
		set limits(value: ProtocolLimits) {
			host.limits = value;
		},
		async stop() {
			protocol.close();
			await new Promise(resolve => server.close(resolve));
		},
	};
}

/** The client's side of a connection. */
export class WireClient {
	readonly socket: Socket;
	/** Everything received, as latin1. */
	text = '';
	/** True if the server has closed its side. */
	ended = false;
	reset = false;
	#changed: () => void = () => {};

	constructor(socket: Socket) {
		this.socket = socket;
		socket.setNoDelay(true);
		socket.on('data', bytes => {
			this.text += bytes.toString('latin1');
			this.#changed();
		});
		socket.on('error', () => {
			this.reset = true;
		});
		for (const event of ['end', 'close']) {
			socket.on(event, () => {
				this.ended = true;
				this.#changed();
			});
		}
	}

	send(text: string): void {
		this.socket.write(text, 'latin1');
	}

	/** Waits until `test` returns true for the received text. Rejects after a long time limit, or if the connection ends before. */
	async until(test: (text: string) => boolean, milliseconds = WAIT_LIMIT_MS): Promise<string> {
		const end = performance.now() + milliseconds;
		while (!test(this.text)) {
			const left = end - performance.now();
			if (this.ended || left <= 0)
				throw new Error(`got ${JSON.stringify(this.text)}${this.ended ? ' and the end' : ''}`);
			await new Promise<void>(resolve => {
				const timer = setTimeout(resolve, left);
				this.#changed = () => {
					clearTimeout(timer);
					resolve();
				};
			});
		}
		return this.text;
	}

	/** Waits until the server has closed its side, and returns everything received. */
	async whole(milliseconds = WAIT_LIMIT_MS): Promise<string> {
		await this.until(() => this.ended, milliseconds).catch(error => {
			if (!this.ended) throw error;
		});
		this.socket.end();
		return this.text;
	}
}

/** Connects a client to a port of 127.0.0.1. */
export async function openWire(port: number): Promise<WireClient> {
	const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
	await once(socket, 'connect');
	return new WireClient(socket);
}

/**
 * Sends text on a new connection, one write per piece. Returns everything that is received until the server closes the
 * connection.
 */
export async function send(port: number, ...pieces: string[]): Promise<string> {
	const wire = await openWire(port);
	for (const piece of pieces) {
		wire.send(piece);
		if (pieces.length > 1) await new Promise(resolve => setTimeout(resolve, 5));
	}
	const text = await wire.whole();
	wire.socket.destroy();
	return text;
}

/** Returns the status of the first response in a text, or 0 if the text contains no response. */
export function statusOf(text: string): number {
	return Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(text)?.[1] ?? 0);
}

/** Returns a response without its `Date`, for comparisons. */
export function withoutDate(text: string): string {
	return text.replace(/Date: [^\r]+\r\n/g, '');
}

/** Reads the whole request body as latin1. */
export async function bodyOf(x: Exchange): Promise<string> {
	const body = x.request.body;
	if (body === null) return '';
	if (typeof body === 'string' || body instanceof Uint8Array)
		throw new Error('expected the request body to be a stream');
	let text = '';
	for (;;) {
		const piece = await body.pull();
		if (piece === null) return text;
		text += Buffer.from(piece).toString('latin1');
	}
}
