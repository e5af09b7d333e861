/**
 * Connections without `net.Socket`: responses are complete even if a connection closes early, clients may disconnect, and
 * addresses are known even after that.
 */
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Handler } from '../../../compiler/exchange/handler.ts';
import { DirectSocket } from '../../../runtime/sockets/direct-socket.ts';
import { setIoMode } from '../../../runtime/sockets/io-mode.ts';
import { isDirectHandle } from '../../../runtime/sockets/stream-handle.ts';
import { pauseFor, until, waitForNothing } from '../../harness.ts';
import { openWire, serve, type WireServer } from '../protocols/http1/wire.ts';

// Direct sockets exist only in the I/O mode `direct`.
setIoMode('direct');

const CLOSE = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

/** Runs a server for the duration of `run`. */
async function withServer(handler: Handler, run: (server: WireServer) => Promise<void>): Promise<void> {
	const server = await serve(handler);
	try {
		await run(server);
	} finally {
		await server.stop();
	}
}

const direct = suite('connections without net.Socket');

direct('handles of an unexpected shape are not used directly', () => {
	assert.not(isDirectHandle({}));
	assert.not(isDirectHandle({ readStart() {}, readStop() {}, close() {}, writeQueueSize: 0 }));
});

direct(
	"after a client's last request, the connection is closed without delay once the whole response is sent",
	async () => {
		for (const size of [5, 100_000, 8_000_000]) {
			const handler: Handler = x => {
				x.response.body = size === 5 ? 'hello' : Buffer.alloc(size, 'x');
			};
			await withServer(handler, async server => {
				const wire = await openWire(server.port);
				wire.socket.pause();
				wire.send(CLOSE);
				// The client has not closed its side. If nothing is left to send, the server does not wait for the client.
				if (size === 5) await until('the connection is closed', () => server.protocol.connections === 0);
				await pauseFor(20);
				wire.socket.resume();
				const text = await wire.whole();
				assert.is(text.length - text.indexOf('\r\n\r\n') - 4, size);
				assert.not(wire.reset);
			});
		}
	},
);

direct(
	'bytes after the last request are read before closing, so that a reset does not destroy the response',
	async () => {
		const handler: Handler = x => {
			x.response.body = 'hello';
		};
		await withServer(handler, async server => {
			const wire = await openWire(server.port);
			wire.send(`${CLOSE}${'x'.repeat(1000)}`);
			await wire.until(text => text.endsWith('hello'));
			wire.send('more');
			await waitForNothing(20);
			assert.is(server.protocol.connections, 1, 'the server keeps reading');
			assert.not(wire.reset);
			await wire.whole();
		});
	},
);

direct("a handler learns that its client disconnected, and can still read the client's address", async () => {
	let addresses: string[] | undefined;
	const handler: Handler = async x => {
		await new Promise<void>(resolve => x.onGone(resolve));
		await pauseFor(10);
		addresses = [x.connection.remoteAddress, x.connection.localAddress];
	};
	await withServer(handler, async server => {
		const wire = await openWire(server.port);
		wire.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
		await until('the request is handled', () => server.exchanges.length > 0);
		wire.socket.resetAndDestroy();
		await once(wire.socket, 'close');
		await until('the handler has been notified', () => addresses !== undefined);
		// Access rules use the remote address, so a client with an unknown address must not be treated like one on a Unix socket.
		assert.is(addresses?.[0], '127.0.0.1');
	});
});

direct(
	"a request followed at once by a reset is not handled, because access rules could not know the client's address",
	async () => {
		await withServer(
			x => {
				x.response.body = x.connection.remoteAddress;
			},
			async server => {
				for (let i = 0; i < 20; i++) {
					const wire = await openWire(server.port);
					wire.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi');
					wire.socket.resetAndDestroy();
				}
				await until('all connections are closed', () => server.closed() >= 20);
				// If the first bytes were read before the reset arrived, the address is known.
				assert.not(server.exchanges.some(x => x.connection.remoteAddress === '0.0.0.0'));
				const wire = await openWire(server.port);
				wire.send(CLOSE);
				assert.match(await wire.whole(), /127\.0\.0\.1$/);
			},
		);
	},
);

direct(
	'a client that half-closes with its request still counts as connected while the handler awaits resolved promises',
	async () => {
		const seen: boolean[] = [];
		const handler: Handler = async x => {
			for (let i = 0; i < 5; i++) await null;
			seen.push(x.isGone);
			x.response.body = 'hello';
		};
		await withServer(handler, async server => {
			// The first connections arrive before the thread has found out that its poller works.
			for (let i = 0; i < 5; i++) {
				const wire = await openWire(server.port);
				wire.socket.end(CLOSE);
				await wire.whole();
			}
		});
		assert.equal(seen, [false, false, false, false, false]);
	},
);

direct('a direct socket not yet read can be turned into a `net.Socket`, and is destroyed itself', () => {
	const calls: string[] = [];
	const handle = {
		onread: () => undefined,
		reading: false,
		writeQueueSize: 0,
		useUserBuffer: () => void calls.push('memory'),
		readStart: () => calls.push('start') && 0,
		readStop: () => calls.push('stop') && 0,
		writeLatin1String: () => 0,
		writeBuffer: () => 0,
		writev: () => 0,
		shutdown: () => 0,
		close: (closed?: () => void) => closed?.(),
		getAsyncId: () => 0,
		ref() {},
		unref() {},
	};
	const one = new DirectSocket(handle as never);
	const socket = one.toSocket();
	assert.ok(one.destroyed);
	one.destroy();
	assert.is(calls.includes('memory'), false);
	socket.on('error', () => {});
	socket.destroy();
});

direct.run();
