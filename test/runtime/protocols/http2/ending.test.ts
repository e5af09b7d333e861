/** How HTTP/2 connections end: by draining, when idle, after the maximum number of requests, or abruptly. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { FRAME_FLAG, FRAME_TYPE, H2_ERROR } from '../../../../runtime/protocols/http2/frame-codes.ts';
import { GOAWAY_WAIT_MS } from '../../../../runtime/protocols/http2/limits.ts';
import { until } from '../../../harness.ts';
import { bodyOf } from '../http1/wire.ts';
import { encodeUint32s, type FrameClient, frame, POST, REQUEST, request, settings, withClient } from './frames.ts';

const test = suite('HTTP/2: the end of connections');

const promptHandler: Handler = x => {
	x.response.body = 'hello';
};

const goAways = (client: FrameClient) =>
	client.frames
		.filter(({ type }) => type === FRAME_TYPE.goAway)
		.map(({ payload }) => [payload.readUInt32BE(0), payload.readUInt32BE(4)]);

async function ended(client: FrameClient): Promise<void> {
	await until('the end of the connection', () => client.ended);
}

/** Answers the server's PING. The answer tells the server that the client has read its GOAWAY. */
async function acknowledgePing(client: FrameClient): Promise<void> {
	const { payload } = await client.until(({ type, flags }) => type === FRAME_TYPE.ping && flags === 0);
	client.send(frame(FRAME_TYPE.ping, FRAME_FLAG.ack, 0, payload));
}

test('draining sends GOAWAY, completes requests in progress, and then ends the connection', async () => {
	let answer = (): void => {};
	const slow: Handler = x => {
		if (x.request.path !== '/slow') return promptHandler(x);
		return new Promise(resolve => {
			answer = () => {
				x.response.body = 'late';
				resolve();
			};
		});
	};
	await withClient(slow, async (client, server) => {
		client.send(request(1, [...REQUEST.slice(0, 2), [':path', '/slow'], REQUEST[3]!]));
		await client.alive();
		server.protocol.drain();
		// The stream was opened before the client could know about the GOAWAY.
		client.send(request(3));
		assert.is(await client.status(3), '200');
		await acknowledgePing(client);
		await client.until(({ type, payload }) => type === FRAME_TYPE.goAway && payload.readUInt32BE(0) === 3);
		// The client opened this stream after it had read the GOAWAY. The stream is not served, but this is not an error, either.
		client.send(request(5), frame(FRAME_TYPE.data, 0, 5));
		await client.alive();
		answer();
		assert.is(await client.body(1), 'late');
		await ended(client);
		assert.equal(goAways(client), [
			[0x7fffffff, H2_ERROR.none],
			[3, H2_ERROR.none],
		]);
		assert.is(server.exchanges.length, 2);
		assert.equal(server.cut, []);
	});
});

test('a client that keeps opening streams after GOAWAY is cut off', async () => {
	const never: Handler = () => new Promise(() => {});
	await withClient(never, async (client, server) => {
		client.send(request(1));
		await client.alive();
		server.protocol.drain();
		await acknowledgePing(client);
		await client.until(({ type, payload }) => type === FRAME_TYPE.goAway && payload.readUInt32BE(0) === 1);
		for (let id = 3; id < 3000 && !client.ended; id += 2) client.send(request(id));
		await ended(client);
		assert.equal(server.cut, ['made_you_reset']);
		assert.is(server.exchanges.length, 1);
	});
});

test('an idle connection drains at once if its client answers the PING, and soon if it does not', async () => {
	await withClient(promptHandler, async (client, server) => {
		client.send(request(1));
		await client.body(1);
		const startedAt = performance.now();
		server.protocol.drain();
		await acknowledgePing(client);
		await ended(client);
		assert.ok(performance.now() - startedAt < GOAWAY_WAIT_MS);
	});
	await withClient(
		promptHandler,
		async (client, server) => {
			client.send(request(1));
			await client.body(1);
			server.protocol.drain();
			await ended(client);
			assert.equal(goAways(client).at(-1), [1, H2_ERROR.none]);
		},
		{ idleTimeout: 2000 },
	);
});

test('an idle connection ends after the idle timeout, even if the client sends PINGs', async () => {
	await withClient(
		promptHandler,
		async client => {
			client.send(request(1));
			await client.body(1);
			const timer = setInterval(() => client.send(frame(FRAME_TYPE.ping, 0, 0, Buffer.alloc(8))), 20);
			try {
				assert.equal(await client.goAway(), { code: H2_ERROR.none, last: 1 });
				await ended(client);
			} finally {
				clearInterval(timer);
			}
		},
		{ idleTimeout: 150 },
	);
});

test('a connection that has served the maximum number of requests ends gracefully', async () => {
	await withClient(
		promptHandler,
		async (client, server) => {
			for (const stream of [1, 3, 5]) client.send(request(stream));
			await acknowledgePing(client);
			await ended(client);
			for (const stream of [1, 3, 5]) assert.is(await client.body(stream), 'hello');
			assert.equal(goAways(client), [
				[0x7fffffff, H2_ERROR.none],
				[5, H2_ERROR.none],
			]);
			assert.equal(server.cut, []);
		},
		{ maxRequestsPerConnection: 3 },
	);
});

test('a client that sends GOAWAY still gets its open streams completed', async () => {
	await withClient(
		async x => {
			x.response.body = await bodyOf(x);
		},
		async client => {
			client.send(request(1, POST, FRAME_FLAG.endHeaders), frame(FRAME_TYPE.goAway, 0, 0, encodeUint32s(0, 0)));
			await client.alive();
			client.send(frame(FRAME_TYPE.data, FRAME_FLAG.endStream, 1, Buffer.from('still')));
			assert.is(await client.body(1), 'still');
			await ended(client);
		},
	);
});

test('reading an upload fails if its stream is reset or its connection ends', async () => {
	const failures: number[] = [];
	const handler: Handler = async x => {
		await bodyOf(x).catch((error: { status: number }) => failures.push(error.status));
	};
	await withClient(handler, async (client, server) => {
		client.send(request(1, POST, FRAME_FLAG.endHeaders), frame(FRAME_TYPE.data, 0, 1, Buffer.from('a')));
		client.send(frame(FRAME_TYPE.resetStream, 0, 1, encodeUint32s(H2_ERROR.cancel)));
		client.send(request(3, POST, FRAME_FLAG.endHeaders), frame(FRAME_TYPE.data, 0, 3, Buffer.from('a')));
		await client.alive();
		client.socket.end();
		await ended(client);
		await until('the end of both exchanges', () => server.finished.length >= 2);
		assert.equal(failures, [400, 400]);
		assert.is(server.finished.length, 2);
	});
});

test('frames after a GOAWAY with an error are not served', async () => {
	await withClient(promptHandler, async (client, server) => {
		client.send(settings(2, 7), request(1));
		assert.is((await client.goAway()).code, H2_ERROR.protocol);
		await ended(client);
		assert.is(server.exchanges.length, 0);
		assert.equal(server.cut, ['protocol_error']);
	});
});

test.run();
