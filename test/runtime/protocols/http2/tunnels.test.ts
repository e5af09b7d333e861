/** Streams that become byte streams: extended CONNECT (RFC 8441) and plain CONNECT. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { FRAME_FLAG, FRAME_TYPE, H2_ERROR } from '../../../../runtime/protocols/http2/frame-codes.ts';
import { until } from '../../../harness.ts';
import { encodeUint32s, frame, REQUEST, request, settings, withClient } from './frames.ts';

const test = suite('HTTP/2 tunnels');

const CONNECT = [
	[':method', 'CONNECT'],
	[':protocol', 'websocket'],
	...REQUEST.slice(1),
	['sec-websocket-version', '13'],
] as const;
const open = request(1, CONNECT, FRAME_FLAG.endHeaders);
const data = (text: string, flags = 0) => frame(FRAME_TYPE.data, flags, 1, Buffer.from(text));

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
	await withClient(echoHandler, async (client, server) => {
		client.send(open, data('early '));
		assert.is(await client.status(1), '200');
		const [x] = server.exchanges;
		assert.is(x!.request.method, 'GET');
		assert.is(x!.request.body, null);
		assert.is(x!.request.headers.get('upgrade'), 'websocket');
		assert.is(x!.request.headers.get('connection'), 'Upgrade');
		assert.is(x!.request.headers.get('sec-websocket-version'), '13');
		assert.is(Buffer.from(x!.request.headers.get('sec-websocket-key')!, 'base64').length, 16);
		const { fields } = await client.until(({ type }) => type === FRAME_TYPE.headers);
		assert.equal(Object.keys(fields!).sort(), [':status', 'date', 'server']);
		client.send(data('later'));
		await client.until(({ type, payload }) => type === FRAME_TYPE.data && payload.toString().endsWith('LATER'));
		client.send(data('', FRAME_FLAG.endStream));
		assert.is(await client.body(1), 'EARLY LATER');
		await client.alive();
		assert.is(server.finished.length, 1);
	});
});

test('a reset from either side ends a tunnel', async () => {
	let ended: Promise<Error | null> = Promise.resolve(null);
	const handler: Handler = x => {
		x.upgrade(client => {
			ended = new Promise(resolve => {
				client.on('error', resolve);
				client.on('close', () => resolve(null));
			});
			client.on('data', (piece: Buffer) => {
				if (piece.toString() === 'end') client.destroy();
			});
			client.resume();
		});
	};
	await withClient(handler, async (client, server) => {
		client.send(open);
		await client.status(1);
		client.send(frame(FRAME_TYPE.resetStream, 0, 1, encodeUint32s(H2_ERROR.cancel)));
		assert.instance(await ended, Error);
		assert.is(server.finished.length, 1);
		client.send(request(3, CONNECT, FRAME_FLAG.endHeaders));
		await client.status(3);
		client.send(frame(FRAME_TYPE.data, 0, 3, Buffer.from('end')));
		assert.is(await client.reset(3), H2_ERROR.cancel);
		await client.alive();
		assert.is(server.finished.length, 2);
	});
});

test('a tunnel respects the windows of both sides', async () => {
	const size = 400_000;
	let written = 0;
	const handler: Handler = x => {
		x.upgrade(client => {
			const piece = Buffer.alloc(20_000, 'x');
			const more = (): void => {
				if (written === size) client.end();
				else {
					written += piece.length;
					client.write(piece, more);
				}
			};
			more();
			// The handler reads nothing from the tunnel until everything that it has written was passed on.
			client.on('finish', () => {
				let read = 0;
				client.on('data', (bytes: Buffer) => {
					read += bytes.length;
				});
				client.on('end', () => x.response.headers.add('x-read', String(read)));
				client.resume();
			});
		});
	};
	await withClient(handler, async (client, server) => {
		client.send(settings(4, 30_000), open);
		await client.status(1);
		for (let i = 0; i < 4; i++) client.send(data('y'.repeat(16_000)));
		await client.alive();
		assert.ok(written <= 40_000, String(written));
		client.send(
			frame(FRAME_TYPE.windowUpdate, 0, 0, encodeUint32s(size)),
			frame(FRAME_TYPE.windowUpdate, 0, 1, encodeUint32s(size)),
		);
		assert.is((await client.body(1)).length, size);
		client.send(data('', FRAME_FLAG.endStream));
		await client.alive();
		await until('the end of the exchange', () => server.finished.length > 0);
		assert.is(server.exchanges[0]!.response.headers.get('x-read'), '64000');
		assert.equal(server.cut, []);
	});
});

test('a plain CONNECT accepted by a handler is a tunnel', async () => {
	const handler: Handler = x => {
		x.upgrade(client => {
			client.end('through');
			client.resume();
		});
		x.response.status = 200;
	};
	await withClient(handler, async client => {
		const fields = [
			[':method', 'CONNECT'],
			[':authority', 'example.com:443'],
		] as const;
		client.send(request(1, fields, FRAME_FLAG.endHeaders));
		assert.is(await client.status(1), '200');
		assert.is(await client.body(1), 'through');
	});
});

test('a refused upgrade is an ordinary response', async () => {
	const handler: Handler = x => {
		x.response.status = 403;
		x.response.body = 'no';
	};
	await withClient(handler, async client => {
		client.send(open);
		assert.is(await client.status(1), '403');
		assert.is(await client.body(1), 'no');
		assert.is(await client.reset(1), H2_ERROR.none);
	});
});

test.run();
