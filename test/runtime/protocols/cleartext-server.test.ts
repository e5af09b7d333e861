/** Cleartext HTTP/2 on the listeners of a running server, alongside HTTP/1.1. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import {
	type ClientHttp2Session,
	connect,
	createServer as createHttp2Server,
	type OutgoingHttpHeaders,
	type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocketServer } from 'ws';
import type { RuntimeOptions } from '../../../runtime/main/runtime.ts';
import { rawExchange } from '../../harness.ts';
import { eventually, type TestServer, withServer } from '../running-server.ts';
import { openWire } from './http1/wire.ts';

const test = suite('HTTP/2 without TLS');

/** Returns the options for a server with one listener on a free port. `protocols` and `lines` go into its configuration. */
const serverOptions = (
	protocols: string,
	lines = 'respond "{http.request.proto} {http.request.host}"',
	bind = 'bind 127.0.0.1',
): RuntimeOptions => ({
	input: {
		format: 'configfile',
		name: '<test>',
		text: `{
			metrics
			servers {
				${protocols === '' ? '' : `protocols ${protocols}`}
			}
		}
		http://:0 {
			${bind}
			log
			${lines}
		}`,
	},
});

interface Answer {
	readonly status: number;
	readonly body: string;
	readonly trailers: { readonly [name: string]: unknown };
}

async function ask(client: ClientHttp2Session, fields: OutgoingHttpHeaders = {}, body = ''): Promise<Answer> {
	const stream = client.request({ ':path': '/', ...fields }, { endStream: body === '' });
	if (body !== '') stream.end(body);
	let status = 0;
	let text = '';
	let trailers = {};
	stream.on('response', head => {
		status = head[':status'] ?? 0;
	});
	stream.on('trailers', received => {
		trailers = received;
	});
	stream.setEncoding('utf8').on('data', piece => {
		text += piece;
	});
	stream.on('error', () => {});
	await new Promise(resolve => stream.on('close', resolve));
	return { status, body: text, trailers };
}

async function withSession(
	server: { port: number },
	run: (client: ClientHttp2Session) => Promise<void>,
): Promise<void> {
	const client = connect(`http://127.0.0.1:${server.port}`);
	client.on('error', () => {});
	try {
		await run(client);
	} finally {
		client.destroy();
	}
}

const get = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';

async function listening(server: Server): Promise<number> {
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	return (server.address() as AddressInfo).port;
}

async function metric(server: TestServer, name: string): Promise<number> {
	const text = await server.runtime.metrics();
	return Number(new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

test('with h1 and h2c, the first bytes of a connection select the protocol', async () => {
	await withServer(undefined, serverOptions('h1 h2c'), async server => {
		assert.match(await rawExchange(server.port, get), /HTTP\/1\.1 localhost$/);
		await withSession(server, async client => {
			for (let i = 0; i < 3; i++)
				assert.match((await ask(client, { ':authority': 'localhost' })).body, /^HTTP\/2\.0 localhost$/);
			assert.is(await metric(server, 'svc_http2_connections'), 1);
		});
		const access = () => server.log.entries.filter(entry => entry.logger === 'http.log.access');
		await eventually('all requests are logged', () => access().length === 4);
		assert.equal(
			access()
				.map(({ request }) => (request as { proto: string }).proto)
				.sort(),
			['HTTP/1.1', 'HTTP/2.0', 'HTTP/2.0', 'HTTP/2.0'],
		);
		await eventually(
			'the connection is counted as closed',
			async () => (await metric(server, 'svc_http2_connections')) === 0,
		);
		assert.is(await metric(server, 'svc_connections'), 0);
		assert.is(await metric(server, 'svc_http2_streams_total'), 3);
		assert.is(await metric(server, 'svc_connections_accepted_total'), 2);
		// The preface may arrive byte by byte.
		const wire = await openWire(server.port);
		for (const byte of 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n') {
			wire.send(byte);
			await new Promise(resolve => setTimeout(resolve, 1));
		}
		wire.send('\0\0\0\x04\0\0\0\0\0');
		// Waits for the server's SETTINGS and for its acknowledgment of the client's SETTINGS.
		await wire.until(text => text.includes('\0\0\0\x04\x01\0\0\0\0'));
		wire.socket.destroy();
		// HTTP/2 can no longer be started by an HTTP/1.1 upgrade (RFC 9113 §3.1).
		const upgrade = get.replace(
			'Connection: close',
			'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk',
		);
		assert.match(await rawExchange(server.port, upgrade), /^HTTP\/1\.1 200 /);
	});
});

test('a load changes the protocols of a listener, and open connections continue', async () => {
	const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
	await withServer(undefined, serverOptions(''), async server => {
		const load = async (...words: Parameters<typeof serverOptions>): Promise<void> => {
			assert.is((await server.runtime.load(serverOptions(...words).input!)).result, 'applied');
		};
		assert.match(await rawExchange(server.port, get), /HTTP\/1\.1 localhost$/);
		assert.match(await rawExchange(server.port, preface), /^HTTP\/1\.1 505 /);
		await load('h2c');
		assert.not.match(await rawExchange(server.port, get), /HTTP\/1\.1/);
		await withSession(server, async client => {
			assert.is((await ask(client)).status, 200);
			await load('h1 h2', '@two protocol http/2\nrespond @two "two"\nrespond "other"');
			assert.is((await ask(client)).body, 'two');
			assert.is((await server.get()).body, 'other');
			assert.match(await rawExchange(server.port, preface), /^HTTP\/1\.1 505 /);
		});
		// Protocols in the `bind` of a site take precedence over those of the listener.
		await load('h1', undefined, 'bind 127.0.0.1 {\nprotocols h2c\n}');
		assert.not.match(await rawExchange(server.port, get), /HTTP\/1\.1/);
		await withSession(server, async client => assert.is((await ask(client)).status, 200));
	});
});

test('a stop completes requests in progress and closes connections gracefully', async () => {
	const arrivals: ServerResponse[] = [];
	const slow = createServer((_request, response) => void arrivals.push(response));
	const port = await listening(slow);
	let stopped: Promise<unknown> = Promise.resolve();
	await withServer(undefined, serverOptions('h1 h2c', `reverse_proxy 127.0.0.1:${port}`), async server => {
		await withSession(server, async client => {
			const codes: number[] = [];
			client.on('goaway', code => codes.push(code));
			const pending = ask(client);
			await eventually('the request is at the upstream', () => arrivals.length === 1);
			stopped = server.runtime.stop();
			arrivals[0]!.end('late');
			assert.is((await pending).body, 'late');
			if (!client.closed) await once(client, 'close');
			assert.equal([...new Set(codes)], [0]);
		});
	});
	await stopped;
	slow.close();
});

test('a WebSocket over HTTP/2 reaches an HTTP/1.1 upstream', async () => {
	const upstream = createServer();
	const sockets = new WebSocketServer({ server: upstream });
	sockets.on('connection', socket => socket.on('message', data => socket.send(`echo ${data}`)));
	const port = await listening(upstream);
	await withServer(undefined, serverOptions('h1 h2c', `reverse_proxy 127.0.0.1:${port}`), async server => {
		await withSession(server, async client => {
			await once(client, 'remoteSettings');
			assert.ok(client.remoteSettings.enableConnectProtocol);
			const stream = client.request({
				':method': 'CONNECT',
				':protocol': 'websocket',
				':path': '/chat',
				'sec-websocket-version': '13',
			});
			const [head] = await once(stream, 'response');
			assert.is(head[':status'], 200);
			// A masked text frame: FIN, opcode text, a mask of zeros.
			stream.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
			const [frame] = (await once(stream, 'data')) as [Buffer];
			assert.is(frame.subarray(2).toString(), 'echo hi');
			stream.close();
			await once(stream, 'close');
		});
		await eventually("the upstream's WebSocket is closed", () => sockets.clients.size === 0);
	});
	sockets.close();
	upstream.close();
});

test('gRPC-style calls pass with trailers and bidirectional streaming', async () => {
	const upstream = createHttp2Server();
	upstream.on('stream', (stream: ServerHttp2Stream, headers) => {
		assert.is(headers.te, 'trailers');
		stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
		stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
		stream.on('data', piece => stream.write(`got ${piece} `));
		stream.on('end', () => stream.end());
	});
	const port = await listening(upstream as unknown as Server);
	await withServer(undefined, serverOptions('h1 h2c', `reverse_proxy h2c://127.0.0.1:${port}`), async server => {
		await withSession(server, async client => {
			const stream = client.request({
				':method': 'POST',
				':path': '/p.S/M',
				te: 'trailers',
				'content-type': 'application/grpc',
			});
			stream.write('one');
			const [first] = (await once(stream, 'data')) as [Buffer];
			assert.is(first.toString(), 'got one ');
			stream.write('two');
			const [second] = (await once(stream, 'data')) as [Buffer];
			assert.is(second.toString(), 'got two ');
			stream.end();
			stream.resume();
			const [trailers] = await once(stream, 'trailers');
			assert.is(trailers['grpc-status'], '0');
		});
	});
	upstream.close();
});

test.run();
