/** An HTTP/2 server with a scripted handler, and a client that writes frames exactly as given, valid or not. */
import { once } from 'node:events';
import { connect, createServer, Socket } from 'node:net';
import type { Exchange } from '../../../../compiler/exchange/exchange.ts';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { DEFAULT_LIMITS } from '../../../../runtime/protocols/http1/limits.ts';
import { CLIENT_PREFACE, FRAME_FLAG, FRAME_TYPE } from '../../../../runtime/protocols/http2/frame-codes.ts';
import { HpackDecoder, StringMemory } from '../../../../runtime/protocols/http2/hpack-decoder.ts';
import { createHttp2Server } from '../../../../runtime/protocols/http2/http2-server.ts';
import type { ProtocolHost, ProtocolLimits, ProtocolServer } from '../../../../runtime/protocols/protocol.ts';
import { WAIT_LIMIT_MS } from '../../../harness.ts';

/** A running server, and what it has recorded. */
export interface FrameServer {
	readonly port: number;
	readonly protocol: ProtocolServer;
	readonly exchanges: Exchange[];
	readonly finished: Exchange[];
	readonly refused: string[];
	/** The reasons for which the server has closed connections because of abuse. */
	readonly cut: string[];
	readonly counts: { sessions: number; streams: number; resetsByClient: number; resetsByServer: number };
	stop(): Promise<void>;
}

/** A socket class that the engine does not know. The engine reads such sockets as streams, as it reads TLS. */
class UnknownSocket extends Socket {}

/** Serves on a free port of 127.0.0.1. If a handler throws, the response has the error's status, as in the runtime. */
export async function serve(
	handler: Handler,
	limits: Partial<ProtocolLimits> = {},
	asStreams = false,
): Promise<FrameServer> {
	const exchanges: Exchange[] = [];
	const finished: Exchange[] = [];
	const refused: string[] = [];
	const cut: string[] = [];
	const counts = { sessions: 0, streams: 0, resetsByClient: 0, resetsByServer: 0 };
	const fail = (x: Exchange, error: unknown): void => {
		x.response.body = null;
		x.response.status = (error as { status?: number }).status ?? 500;
	};
	const host: ProtocolHost = {
		handle(x) {
			exchanges.push(x);
			try {
				return handler(x)?.then(undefined, error => fail(x, error));
			} catch (error) {
				fail(x, error);
			}
		},
		onExchangeFinished: x => void finished.push(x),
		countRefusal: reason => void refused.push(reason),
		onConnectionOpened: () => {},
		onConnectionClosed: () => {},
		limits: { ...DEFAULT_LIMITS, ...limits },
		draining: false,
		http2: {
			sessionOpened: () => void counts.sessions++,
			sessionClosed: () => void counts.sessions--,
			streamOpened: () => void counts.streams++,
			streamReset: byClient => void (byClient ? counts.resetsByClient++ : counts.resetsByServer++),
			connectionCut: reason => void cut.push(reason),
		},
	};
	const protocol = createHttp2Server(host);
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
		cut,
		counts,
		async stop() {
			protocol.close();
			await new Promise(resolve => server.close(resolve));
		},
	};
}

export interface ReceivedFrame {
	readonly type: number;
	readonly flags: number;
	readonly stream: number;
	readonly payload: Buffer;
	/** The decoded fields, if this is a HEADERS frame. */
	readonly fields?: { readonly [name: string]: string };
}

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
	const bytes = Buffer.alloc(9 + payload.length);
	bytes.writeUIntBE(payload.length, 0, 3);
	bytes[3] = type;
	bytes[4] = flags;
	bytes.writeUInt32BE(stream, 5);
	bytes.set(payload, 9);
	return bytes;
}

/** Encodes numbers as 32-bit big-endian integers, one after another. */
export function encodeUint32s(...values: number[]): Buffer {
	const bytes = Buffer.alloc(values.length * 4);
	for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, at * 4);
	return bytes;
}

/** Returns the bytes of a SETTINGS frame. The arguments are identifiers and values in turn. */
export function settings(...entries: number[]): Buffer {
	const bytes = Buffer.alloc(entries.length * 3);
	for (let i = 0; i < entries.length; i += 2) {
		bytes.writeUInt16BE(entries[i]!, i * 3);
		bytes.writeUInt32BE(entries[i + 1]!, i * 3 + 2);
	}
	return frame(FRAME_TYPE.settings, 0, 0, bytes);
}

/** Encodes a field block: literals without indexing and without Huffman coding. */
export function encodeFieldBlock(fields: readonly (readonly [name: string, value: string])[]): Buffer {
	const parts: Buffer[] = [];
	for (const [name, value] of fields) {
		parts.push(Buffer.from([0]), text(name), text(value));
	}
	return Buffer.concat(parts);
}

function text(value: string): Buffer {
	const bytes = Buffer.from(value, 'latin1');
	const { length } = bytes;
	if (length < 127) return Buffer.concat([Buffer.from([length]), bytes]);
	const prefix = [127];
	let rest = length - 127;
	for (; rest >= 128; rest >>= 7) prefix.push((rest & 127) | 128);
	return Buffer.concat([Buffer.from([...prefix, rest]), bytes]);
}

/** The fields of a minimal request. */
export const REQUEST: readonly (readonly [name: string, value: string])[] = [
	[':method', 'GET'],
	[':scheme', 'http'],
	[':path', '/'],
	[':authority', 'localhost'],
];

/** The fields of a minimal POST request. */
export const POST: readonly (readonly [name: string, value: string])[] = [[':method', 'POST'], ...REQUEST.slice(1)];

/** Returns a HEADERS frame that contains the whole head of a request. */
export function request(
	stream: number,
	fields = REQUEST,
	flags: number = FRAME_FLAG.endStream | FRAME_FLAG.endHeaders,
): Buffer {
	return frame(FRAME_TYPE.headers, flags, stream, encodeFieldBlock(fields));
}

/** The client's side of a connection. */
export class FrameClient {
	readonly socket: Socket;
	readonly frames: ReceivedFrame[] = [];
	ended = false;
	#rest: Buffer = Buffer.alloc(0);
	#changed: () => void = () => {};
	readonly #decoder = new HpackDecoder(new StringMemory(65_536));

	constructor(socket: Socket) {
		this.socket = socket;
		socket.setNoDelay(true);
		socket.on('data', (bytes: Buffer) => {
			this.#read(bytes);
			this.#changed();
		});
		socket.on('error', () => {});
		for (const event of ['end', 'close']) {
			socket.on(event, () => {
				this.ended = true;
				this.#changed();
			});
		}
	}

	send(...frames: Uint8Array[]): void {
		this.socket.write(Buffer.concat(frames));
	}

	/** Waits for a frame for which `test` returns true. Rejects after a long time limit, or when the connection ends. */
	async until(test: (frame: ReceivedFrame) => boolean, milliseconds = WAIT_LIMIT_MS): Promise<ReceivedFrame> {
		const end = performance.now() + milliseconds;
		for (;;) {
			const found = this.frames.find(test);
			if (found) return found;
			const left = end - performance.now();
			if (this.ended || left <= 0) {
				const seen = this.frames
					.slice(-10)
					.map(({ type, flags, stream, payload }) => [type, flags, stream, payload.toString('hex')]);
				throw new Error(`got ${JSON.stringify(seen)}${this.ended ? ' and the end' : ''}`);
			}
			await new Promise<void>(resolve => {
				const timer = setTimeout(resolve, left);
				this.#changed = () => {
					clearTimeout(timer);
					resolve();
				};
			});
		}
	}

	/** Waits for a response's HEADERS and returns the status. */
	async status(stream: number, milliseconds?: number): Promise<string> {
		const head = await this.until(
			found => found.type === FRAME_TYPE.headers && found.stream === stream && found.fields![':status']! >= '200',
			milliseconds,
		);
		return head.fields![':status']!;
	}

	/** Waits for the end of a stream and returns its content. */
	async body(stream: number): Promise<string> {
		await this.until(
			found =>
				found.stream === stream && found.type <= FRAME_TYPE.headers && (found.flags & FRAME_FLAG.endStream) !== 0,
		);
		const data = this.frames.filter(found => found.type === FRAME_TYPE.data && found.stream === stream);
		return Buffer.concat(data.map(found => found.payload)).toString('latin1');
	}

	/** Waits for a stream's reset and returns the code. */
	async reset(stream: number): Promise<number> {
		const found = await this.until(({ type, stream: id }) => type === FRAME_TYPE.resetStream && id === stream);
		return found.payload.readUInt32BE(0);
	}

	/** Waits for a GOAWAY and returns its code and last stream. */
	async goAway(milliseconds?: number): Promise<{ code: number; last: number }> {
		const found = await this.until(({ type }) => type === FRAME_TYPE.goAway, milliseconds);
		return { code: found.payload.readUInt32BE(4), last: found.payload.readUInt32BE(0) };
	}

	/**
	 * Sends a PING and waits for its acknowledgment. This shows that the server has read everything before the PING and has not
	 * ended the connection.
	 */
	async alive(): Promise<void> {
		this.#pings++;
		const payload = encodeUint32s(this.#pings, 0x70696e67);
		this.send(frame(FRAME_TYPE.ping, 0, 0, payload));
		await this.until(
			found => found.type === FRAME_TYPE.ping && found.flags === FRAME_FLAG.ack && found.payload.equals(payload),
		);
	}

	#pings = 0;

	#read(bytes: Buffer): void {
		let rest = Buffer.concat([this.#rest, bytes]);
		while (rest.length >= 9) {
			const length = rest.readUIntBE(0, 3);
			if (rest.length < 9 + length) break;
			const payload = rest.subarray(9, 9 + length);
			const type = rest[3]!;
			const found = { type, flags: rest[4]!, stream: rest.readUInt32BE(5) & 0x7fffffff, payload };
			if (type === FRAME_TYPE.headers) {
				const fields: { [name: string]: string } = {};
				const sink = {
					onField(field: { name: string; value: string }) {
						fields[field.name] = field.value;
					},
				};
				if (!this.#decoder.decode(payload, 0, length, sink))
					throw new Error('the server sent a malformed header block');
				this.frames.push({ ...found, fields });
			} else this.frames.push(found);
			rest = rest.subarray(9 + length);
		}
		this.#rest = rest;
	}
}

/** Opens a connection and, unless told otherwise, sends the preface and empty SETTINGS. */
export async function openFrameClient(port: number, preface = true): Promise<FrameClient> {
	const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
	await once(socket, 'connect');
	const client = new FrameClient(socket);
	if (preface) client.send(Buffer.from(CLIENT_PREFACE), settings());
	return client;
}

/** Runs a test with a server and a client that has sent the preface and SETTINGS. */
export async function withClient(
	handler: Handler,
	test: (client: FrameClient, server: FrameServer) => Promise<void>,
	limits: Partial<ProtocolLimits> = {},
	asStreams = false,
): Promise<void> {
	const server = await serve(handler, limits, asStreams);
	const client = await openFrameClient(server.port);
	try {
		await test(client, server);
	} finally {
		client.socket.destroy();
		await server.stop();
	}
}
