/** Clients of several protocols that keep sending requests during handovers and count failures. */
import { once } from 'node:events';
import { Agent, type RequestOptions, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { request as requestTls, Agent as TlsAgent } from 'node:https';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { withTimeLimit } from '../../runtime/threads/within.ts';

/** The ports of a server under load: one for plain HTTP, one for TLS with the name `localhost`. */
export interface LoadTarget {
	readonly plain: number;
	readonly tls: number;
}

/** What the clients have done. */
export interface LoadReport {
	/** Number of successful requests, by the kind of client. */
	readonly done: { readonly [kind: string]: number };
	readonly failures: readonly string[];
	/** Number of TLS connections that resumed a session. */
	readonly resumed: number;
}

/** Starts clients that send requests until `stop` is called. `stop` resolves to their report, within `limit` milliseconds. */
export function startLoad(
	{ plain, tls }: LoadTarget,
	clients = 8,
): { stop(limit?: number): Promise<LoadReport>; done(kind: string): number } {
	const done: { [kind: string]: number } = {};
	const failures: string[] = [];
	let resumed = 0;
	let isStopped = false;
	const keepAlive = new Agent({ keepAlive: true, maxSockets: clients });
	const tlsKeepAlive = new TlsAgent({ keepAlive: true, maxSockets: clients, rejectUnauthorized: false });
	const loop = async (kind: string, once: () => Promise<void>): Promise<void> => {
		while (!isStopped) {
			try {
				await once();
				done[kind] = (done[kind] ?? 0) + 1;
			} catch (error) {
				failures.push(`${kind}: ${(error as Error).message}`);
			}
			await new Promise(resolve => setTimeout(resolve, 2));
		}
	};
	const get = (port: number, agent: Agent | false) => () =>
		fetchOnce(request, { port, host: '127.0.0.1', agent, path: '/' });
	const getTls = () =>
		fetchOnce(requestTls as typeof request, {
			...{ port: tls, host: '127.0.0.1', agent: tlsKeepAlive, path: '/' },
			...{ servername: 'localhost', rejectUnauthorized: false },
		});
	let session: Buffer | undefined;
	const resuming = async (): Promise<void> => {
		const socket = connectTls({
			...{ port: tls, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false },
			...(session && { session }),
		});
		socket.once('secureConnect', () => {
			if (socket.isSessionReused()) resumed++;
		});
		socket.on('session', given => {
			session = given;
		});
		socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
		let text = '';
		socket.setEncoding('latin1').on('data', chunk => {
			text += chunk;
		});
		await once(socket, 'close');
		if (!text.startsWith('HTTP/1.1 200')) throw new Error(`answered ${JSON.stringify(text.slice(0, 40))}`);
	};
	const http2 = async (): Promise<void> => {
		const session2 = connectHttp2(`https://127.0.0.1:${tls}`, { servername: 'localhost', rejectUnauthorized: false });
		const broken = once(session2, 'error').then(([error]) => {
			throw error;
		});
		broken.catch(() => {});
		try {
			for (let i = 0; i < 20 && !isStopped && !session2.destroyed && !session2.closed; i++) {
				const stream = session2.request({ ':path': '/', ':authority': 'localhost' });
				stream.resume();
				const [headers] = await Promise.race([once(stream, 'response'), broken]);
				if (headers[':status'] !== 200) throw new Error(`status ${headers[':status']}`);
				if (!stream.closed) await once(stream, 'close');
			}
		} catch (error) {
			// The stream was opened while the GOAWAY was in flight. It was not processed, and clients retry on a new connection
			// (RFC 9113 §8.7).
			if (!(error as Error).message.includes('NGHTTP2_REFUSED_STREAM')) throw error;
		} finally {
			session2.close();
		}
	};
	const loops = [
		...Array.from({ length: clients }, () => loop('keep-alive', get(plain, keepAlive))),
		...Array.from({ length: clients }, () => loop('connection per request', get(plain, false))),
		...Array.from({ length: Math.ceil(clients / 2) }, () => loop('TLS keep-alive', getTls)),
		loop('TLS resumption', resuming),
		loop('HTTP/2', http2),
	];
	return {
		done: kind => done[kind] ?? 0,
		async stop(limit) {
			isStopped = true;
			await withTimeLimit(
				Promise.all(loops).then(() => {}),
				limit,
			);
			keepAlive.destroy();
			tlsKeepAlive.destroy();
			return { done, failures, resumed };
		},
	};
}

function fetchOnce(
	ask: typeof request,
	options: RequestOptions & { servername?: string; rejectUnauthorized?: boolean },
): Promise<void> {
	return new Promise((resolve, reject) => {
		const clientRequest = ask(options, response => {
			response.resume();
			response.once('error', reject);
			response.once('end', () =>
				response.statusCode === 200 ? resolve() : reject(new Error(`status ${response.statusCode}`)),
			);
		});
		clientRequest.once('error', reject);
		clientRequest.end();
	});
}

/** Starts a server that accepts upgrades and echoes everything it then receives. */
export async function echoServer(backlog = 511): Promise<Server> {
	const server = createServer(socket => {
		socket.on('error', () => {});
		socket.once('data', () => {
			socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
			socket.pipe(socket);
		});
	});
	server.listen(0, '127.0.0.1', backlog);
	await once(server, 'listening');
	return server;
}

/** A client of {@link echoServer} on an upgraded connection. */
export class EchoClient {
	readonly #socket: Socket;
	#text = '';

	private constructor(socket: Socket) {
		this.#socket = socket;
		socket.setEncoding('latin1').on('data', (chunk: string) => {
			this.#text += chunk;
		});
		socket.on('error', () => {});
	}

	/** Connects and upgrades. */
	static async open(port: number, path: string): Promise<EchoClient> {
		const socket = connect(port, '127.0.0.1');
		const client = new EchoClient(socket);
		socket.write(
			`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
		);
		await client.#until(() => client.#text.includes('\r\n\r\n'));
		if (!client.#text.startsWith('HTTP/1.1 101')) throw new Error(client.#text);
		return client;
	}

	/** Sends a line and waits for its echo. */
	async echo(line: string): Promise<void> {
		this.#socket.write(`${line}\n`);
		await this.#until(() => this.#text.includes(`${line}\n`));
	}

	get open(): boolean {
		return !this.#socket.destroyed && !this.#socket.readableEnded;
	}

	close(): void {
		this.#socket.destroy();
	}

	async #until(condition: () => boolean): Promise<void> {
		while (!condition()) {
			if (!this.open) throw new Error('the connection has ended');
			await Promise.race([once(this.#socket, 'data'), once(this.#socket, 'close')]);
		}
	}
}
