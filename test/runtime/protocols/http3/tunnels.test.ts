/** Streams that become byte streams: extended CONNECT (RFC 9220) and plain CONNECT (RFC 9114 §4.4). */

import * as assert from 'uvu/assert';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { H3_ERROR } from '../../../../runtime/protocols/http3/http3-codes.ts';
import { until } from '../../../harness.ts';
import {
	data,
	type FrameServer,
	frame,
	framesOf,
	headers,
	openControlStream,
	REQUEST,
	response,
	serve,
} from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { type ClientStream, connect, type QuicClient } from './quic-client.ts';

const test = http3Suite('HTTP/3 tunnels');
const servers: FrameServer[] = [];
const clients: QuicClient[] = [];

const WEBSOCKET = [
	[':method', 'CONNECT'],
	[':protocol', 'websocket'],
	...REQUEST.slice(1),
	['sec-websocket-version', '13'],
] as const;
const PLAIN = [
	[':method', 'CONNECT'],
	[':authority', 'example.com:443'],
] as const;

async function start(handler: Handler): Promise<[FrameServer, QuicClient]> {
	const server = await serve(handler);
	servers.push(server);
	const client = await connect(server.port);
	clients.push(client);
	openControlStream(client);
	return [server, client];
}

test.after.each(() => {
	for (const client of clients.splice(0)) client.close();
	for (const server of servers.splice(0)) server.stop();
});

/** Returns the content of all DATA frames that a stream has received so far. */
function receivedContent(stream: ClientStream): string {
	return Buffer.concat(framesOf(stream.bytes).flatMap(({ type, payload }) => (type === 0 ? [payload] : []))).toString();
}

/** Waits for the head of the response and returns its fields. */
async function head(client: QuicClient, stream: ClientStream): Promise<{ readonly [name: string]: string }> {
	await client.until('the head', () => framesOf(stream.bytes).length > 0);
	return framesOf(stream.bytes)[0]!.fields!;
}

/** A handler that echoes in upper case what it receives, and ends when the client ends. */
const echoHandler: Handler = x => {
	x.response.headers.add('Upgrade', 'websocket');
	x.response.headers.add('Connection', 'Upgrade');
	x.response.headers.add('Sec-WebSocket-Accept', 'abc');
	x.upgrade(client => {
		client.on('data', (piece: Buffer) => client.write(piece.toString().toUpperCase()));
		client.on('end', () => client.end());
		client.resume();
	});
};

test('an extended CONNECT is an upgrade for handlers and a tunnel for the client', async () => {
	const [server, client] = await start(echoHandler);
	const stream = client.open().write(Buffer.concat([headers(WEBSOCKET), data('early ')]));
	const fields = await head(client, stream);
	assert.is(fields[':status'], '200');
	assert.equal(Object.keys(fields).sort(), [':status', 'date', 'server']);
	const { request } = server.exchanges[0]!;
	assert.is(request.method, 'GET');
	assert.is(request.body, null);
	assert.is(request.headers.get('upgrade'), 'websocket');
	assert.is(request.headers.get('connection'), 'Upgrade');
	assert.is(Buffer.from(request.headers.get('sec-websocket-key')!, 'base64').length, 16);
	stream.write(Buffer.concat([data('later'), frame(0x21, Buffer.from('ignored'))]));
	await client.until('the echo', () => receivedContent(stream) === 'EARLY LATER');
	stream.write(data(' last'), true);
	assert.is((await response(client, stream)).body, 'EARLY LATER LAST');
	await until('the end of the exchange', () => server.finished.length === 1);
});

test('a reset from either side ends a tunnel', async () => {
	let ended: Promise<Error | null> = Promise.resolve(null);
	const [server, client] = await start(x => {
		x.upgrade(tunnel => {
			ended = new Promise(resolve => {
				tunnel.on('error', resolve);
				tunnel.on('close', () => resolve(null));
			});
			tunnel.on('data', (piece: Buffer) => {
				tunnel.destroy(piece.toString() === 'fail' ? new Error('broken') : undefined);
			});
			tunnel.resume();
		});
		if (x.received.method === 'CONNECT' && x.request.method === 'CONNECT') x.response.status = 200;
	});
	const first = client.open().write(headers(WEBSOCKET));
	await head(client, first);
	first.reset(H3_ERROR.cancel);
	assert.instance(await ended, Error);
	await until('the end of the exchange', () => server.finished.length === 1);
	// In an extended CONNECT, a broken byte stream is reported as a canceled request; in a plain CONNECT, with its own code.
	for (const [fields, word, code] of [
		[WEBSOCKET, 'end', H3_ERROR.cancel],
		[WEBSOCKET, 'fail', H3_ERROR.cancel],
		[PLAIN, 'fail', H3_ERROR.connect],
	] as const) {
		const stream = client.open().write(headers(fields));
		assert.is((await head(client, stream))[':status'], '200');
		stream.write(data(word));
		await client.until('the reset', () => stream.resetCode !== undefined);
		assert.is(stream.resetCode, code, word);
	}
	await until('the end of the exchanges', () => server.finished.length === 4);
});

test('HEADERS on an open tunnel end the connection', async () => {
	for (const fields of [WEBSOCKET, PLAIN]) {
		const [, client] = await start(x => {
			x.upgrade(tunnel => tunnel.resume());
			if (fields === PLAIN) x.response.status = 200;
		});
		const stream = client.open().write(headers(fields));
		assert.is((await head(client, stream))[':status'], '200');
		stream.write(headers([['x', 'y']]));
		assert.equal(await client.end(), { code: H3_ERROR.frameUnexpected, transport: false, byServer: true });
	}
});

test('a tunnel has backpressure in both directions', async () => {
	const size = 40_000_000;
	let written = 0;
	let received = 0;
	let read = (): void => {};
	const [server, client] = await start(x => {
		x.upgrade(tunnel => {
			const piece = Buffer.alloc(40_000, 'x');
			const more = (): void => {
				if (written === size) {
					tunnel.end();
					return;
				}
				written += piece.length;
				tunnel.write(piece, more);
			};
			more();
			read = () => {
				tunnel.on('data', (bytes: Buffer) => {
					received += bytes.length;
				});
				tunnel.resume();
			};
		});
	});
	const stream = client.open();
	stream.paused = true;
	stream.write(headers(WEBSOCKET));
	await until('the tunnel', () => written > 0);
	const upload = Buffer.concat([Buffer.of(0), Buffer.from('804c4b40', 'hex'), Buffer.alloc(5_000_000, 'y')]);
	stream.write(upload, true);
	const [x] = server.exchanges;
	let before = '';
	// If packets are exchanged two hundred times without progress, both directions have stopped.
	for (let quiet = 0; quiet < 200; ) {
		await new Promise(resolve => setImmediate(resolve));
		client.look();
		const now = `${written} ${x!.bytesReceived}`;
		quiet = now === before ? quiet + 1 : 0;
		before = now;
	}
	assert.ok(written < 4_000_000, `${written} bytes were written`);
	assert.ok(x!.bytesReceived < 1_000_000, `${x!.bytesReceived} bytes were taken`);
	read();
	await until('the upload', () => received === 5_000_000);
	stream.paused = false;
	assert.is((await response(client, stream)).body.length, size);
	await until('the end of the exchange', () => server.finished.length === 1);
});

test('a refused tunnel is an ordinary response', async () => {
	const [server, client] = await start(x => {
		x.response.status = 403;
		x.response.body = 'no';
	});
	for (const fields of [WEBSOCKET, PLAIN]) {
		const answer = await response(client, client.open().write(headers(fields)));
		assert.is(answer.status, '403');
		assert.is(answer.body, 'no');
	}
	await until('the end of the exchanges', () => server.finished.length === 2);
});

test('the end of a connection ends its tunnels', async () => {
	let isClosed = false;
	const [server, client] = await start(x => {
		x.upgrade(tunnel => {
			tunnel.on('close', () => {
				isClosed = true;
			});
			tunnel.resume();
		});
	});
	await head(client, client.open().write(headers(WEBSOCKET)));
	client.close();
	await until('the end of the tunnel', () => isClosed && server.finished.length === 1);
});

test.run();
