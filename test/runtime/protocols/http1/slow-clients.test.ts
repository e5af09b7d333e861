/** Clients that occupy a connection with little traffic: minimum rates and total times for requests and responses. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import type { ProtocolLimits } from '../../../../runtime/protocols/protocol.ts';
import { bodyOf, openWire, serve, statusOf, type WireClient, type WireServer } from './wire.ts';

const slow = suite('HTTP/1.1: slow clients');
const wait = (milliseconds: number) => new Promise(resolve => setTimeout(resolve, milliseconds));

async function withServer(
	handler: Handler,
	limits: Partial<ProtocolLimits>,
	test: (server: WireServer) => Promise<void>,
): Promise<void> {
	const server = await serve(handler, limits);
	try {
		await test(server);
	} finally {
		await server.stop();
	}
}

/** Sends a byte every 20 ms until a response arrives or 20 seconds have passed. Returns the elapsed time in milliseconds. */
async function sendSlowly(wire: WireClient): Promise<number> {
	const startedAt = performance.now();
	while (wire.text === '' && !wire.ended && performance.now() - startedAt < 20_000) {
		wire.send('a');
		await wait(20);
	}
	return performance.now() - startedAt;
}

const reading: Handler = async x => {
	x.response.body = await bodyOf(x);
};
const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n';

slow('a request body below the minimum average rate gives 408, even if it never stops', async () => {
	await withServer(reading, { bodyIdleTimeout: 300, bodyRate: 1000 }, async server => {
		const wire = await openWire(server.port);
		wire.send(POST);
		const took = await sendSlowly(wire);
		assert.is(statusOf(await wire.whole()), 408);
		assert.ok(took > 250 && took < 4500, `${took} ms`);
		assert.ok(server.refused.includes('body_timeout'));
	});
});

slow('a request body must be complete within its total time', async () => {
	await withServer(reading, { bodyIdleTimeout: 5000, bodyTimeout: 300 }, async server => {
		const wire = await openWire(server.port);
		wire.send(POST);
		const took = await sendSlowly(wire);
		assert.is(statusOf(await wire.whole()), 408);
		assert.ok(took > 250 && took < 4500, `${took} ms`);
	});
});

slow('time spent waiting for the handler to read a body is not held against the client', async () => {
	const late: Handler = async x => {
		await wait(400);
		x.response.body = await bodyOf(x);
	};
	await withServer(late, { bodyIdleTimeout: 100, bodyRate: 10_000, bodyTimeout: 5000 }, async server => {
		const wire = await openWire(server.port);
		wire.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc');
		assert.is(statusOf(await wire.whole()), 200);
	});
});

slow('a handler can set other limits for its exchange', async () => {
	const hasty: Handler = async x => {
		x.setLimits({ readTimeout: 200, readRate: 100_000 });
		x.response.body = await bodyOf(x);
	};
	await withServer(hasty, {}, async server => {
		const wire = await openWire(server.port);
		wire.send(POST);
		const took = await sendSlowly(wire);
		assert.is(statusOf(await wire.whole(15_000)), 408);
		assert.ok(took < 15_000, `${took} ms`);
	});
});

slow('a response read below the minimum average rate is cut off, even if reading never stops', async () => {
	const large: Handler = x => {
		x.response.body = Buffer.alloc(50_000_000);
	};
	await withServer(large, { writeIdleTimeout: 300, writeRate: 100_000_000 }, async server => {
		const wire = await openWire(server.port);
		// Reads about 1 MB every 40 ms. On any machine, this is at most about 25 MB/s, a quarter of the required 100 MB/s.
		wire.socket.removeAllListeners('data');
		wire.socket.pause();
		wire.socket.on('readable', () => {});
		wire.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
		const startedAt = performance.now();
		while (server.closed() === 0 && performance.now() - startedAt < 20_000) {
			await wait(40);
			for (let taken = 0; taken < 1_000_000; ) {
				const bytes: Buffer | null = wire.socket.read();
				if (bytes === null) break;
				taken += bytes.length;
			}
		}
		assert.is(server.closed(), 1);
		assert.ok(server.refused.includes('write_timeout'));
		wire.socket.destroy();
	});
});

slow('a response must be sent within its total time', async () => {
	const never: Handler = () => new Promise(() => {});
	await withServer(never, { writeTimeout: 200 }, async server => {
		const wire = await openWire(server.port);
		const startedAt = performance.now();
		wire.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
		assert.is(await wire.whole(15_000), '');
		const elapsedMs = performance.now() - startedAt;
		assert.ok(elapsedMs >= 190 && elapsedMs < 15_000, `${elapsedMs} ms`);
	});
});

slow('a slowly arriving unread body does not keep its connection open beyond the total time', async () => {
	const own: Handler = x => {
		x.response.body = 'ok';
	};
	await withServer(own, { bodyIdleTimeout: 200 }, async server => {
		const wire = await openWire(server.port);
		wire.send(POST);
		await wire.until(text => text.endsWith('ok'));
		const startedAt = performance.now();
		while (!wire.ended && performance.now() - startedAt < 20_000) {
			wire.send('a');
			await wait(20);
		}
		const elapsedMs = performance.now() - startedAt;
		assert.ok(elapsedMs < 15_000, `${elapsedMs} ms`);
		wire.socket.destroy();
	});
});

slow.run();
