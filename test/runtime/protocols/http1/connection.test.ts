/** Connections over time: keep-alive, pipelining, bodies that are waited for, deadlines, and every way to end. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../../compiler/exchange/body.ts';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import type { ProtocolLimits } from '../../../../runtime/protocols/protocol.ts';
import { until } from '../../../harness.ts';
import { bodyOf, openWire, send, serve, statusOf, type WireClient, type WireServer, withoutDate } from './wire.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const LAST_REQUEST = 'GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

const wait = (milliseconds: number): Promise<void> => new Promise(resolve => setTimeout(resolve, milliseconds));
const answers = (text: string): number => text.split('HTTP/1.1 200 OK').length - 1;

const connections = suite('HTTP/1.1: connections');

/** Runs a test with its own server. When the test ends, every exchange must be finished and every connection closed. */
function test(
	name: string,
	handler: Handler,
	limits: Partial<ProtocolLimits>,
	run: (server: WireServer) => Promise<void>,
): void {
	connections(name, async () => {
		const server = await serve(handler, limits);
		try {
			await run(server);
		} finally {
			await server.stop();
		}
		const over = (): boolean => server.finished.length === server.exchanges.length && server.protocol.connections === 0;
		await until('the end of all exchanges and connections', over);
		assert.is(new Set(server.finished).size, server.finished.length, 'once');
		assert.is(server.closed(), server.opened());
		assert.is(server.protocol.connections, 0);
	});
}

const path: Handler = x => {
	x.response.body = x.request.path;
};
/** Answers the first request more slowly than the others, so that responses in the wrong order would be noticed. */
const slowFirstHandler: Handler = async x => {
	await wait(x.request.path === '/0' ? 30 : 1);
	x.response.body = x.request.path;
};

test('sequential requests share one connection', path, {}, async server => {
	const wire = await openWire(server.port);
	for (let i = 1; i <= 3; i++) {
		wire.send(`GET /${i} HTTP/1.1\r\nHost: a\r\n\r\n`);
		await wire.until(text => text.endsWith(`\r\n\r\n/${i}`));
	}
	assert.not.match(wire.text, 'Connection:');
	assert.is(server.opened(), 1);
	wire.socket.end();
	await wire.whole();
});

for (const handler of [path, slowFirstHandler]) {
	test(
		`pipelined requests are answered in order (${handler === path ? 'at once' : 'later'})`,
		handler,
		{},
		async server => {
			const requests = Array.from({ length: 50 }, (_, i) => `GET /${i} HTTP/1.1\r\nHost: a\r\n\r\n`).join('');
			const text = await send(server.port, requests + LAST_REQUEST);
			const paths = text
				.split('HTTP/1.1 200 OK')
				.slice(1)
				.map(answer => answer.split('\r\n\r\n')[1]);
			assert.equal(paths, [...Array.from({ length: 50 }, (_, i) => `/${i}`), '/last']);
		},
	);
}

test('pipelined small responses go out together', path, {}, async server => {
	const wire = await openWire(server.port);
	let reads = 0;
	wire.socket.on('data', () => reads++);
	wire.send(GET.repeat(20));
	await wire.until(text => answers(text) === 20);
	assert.is(reads, 1);
	wire.socket.destroy();
});

test(
	'a client that pipelines endlessly without reading is served only up to a limit',
	x => {
		x.response.body = 'x'.repeat(4000);
	},
	{},
	async server => {
		const wire = await openWire(server.port);
		wire.socket.pause();
		const block = GET.repeat(400);
		for (let i = 0; i < 200 && !wire.socket.writableNeedDrain; i++) {
			wire.send(block);
			await wait(1);
		}
		await wait(50);
		const served = server.exchanges.length;
		await wait(50);
		assert.is(server.exchanges.length, served, 'no more requests are served');
		wire.socket.resume();
		await wait(100);
		assert.ok(server.exchanges.length > served, 'serving continues when the client reads');
		wire.socket.destroy();
	},
);

const VERSIONS: readonly (readonly [request: string, connection: string | undefined])[] = [
	['GET / HTTP/1.1\r\nHost: a\r\n\r\n', undefined],
	['GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n', undefined],
	['GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n', 'close'],
	['GET / HTTP/1.1\r\nHost: a\r\nConnection: foo\r\nConnection: close\r\n\r\n', 'close'],
	['GET / HTTP/1.0\r\n\r\n', 'close'],
	['GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n', 'keep-alive'],
	['GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n', 'close'],
];
test('keep-alive depends on the HTTP version and Connection', path, {}, async server => {
	for (const [request, connection] of VERSIONS) {
		const text = await send(server.port, request + LAST_REQUEST);
		assert.is(/^Connection: (.*)\r$/m.exec(text.split('\r\n\r\n')[0]!.concat('\r\n'))?.[1], connection, request);
		assert.is(answers(text), connection === 'close' ? 1 : 2, request);
	}
});

test(
	'a handler can close the connection with Connection: close',
	x => {
		x.response.headers.add('connection', 'Close');
	},
	{},
	async server => {
		assert.is(
			withoutDate(await send(server.port, GET)),
			'HTTP/1.1 200 OK\r\nServer: svc\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
		);
	},
);

test(
	'a connection serves at most the configured number of requests',
	path,
	{ maxRequestsPerConnection: 3 },
	async server => {
		const text = await send(server.port, GET.repeat(5));
		assert.is(answers(text), 3);
		assert.is(text.split('Connection: close').length, 2);
	},
);

test(
	'100 Continue is sent once, when the body is first read',
	async x => {
		await wait(10);
		x.response.body = await bodyOf(x);
	},
	{},
	async server => {
		const wire = await openWire(server.port);
		wire.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n');
		await wire.until(text => text === 'HTTP/1.1 100 Continue\r\n\r\n');
		wire.send('abc');
		await wire.until(text => text.endsWith('\r\n\r\nabc'));
		assert.is(wire.text.split('100 Continue').length, 2);
		wire.send(LAST_REQUEST);
		await wire.whole();
		assert.is(answers(wire.text), 2, 'the connection stays usable');
	},
);

test(
	'100 Continue is not sent to HTTP/1.0, nor to a client that did not wait',
	async x => {
		x.response.body = await bodyOf(x);
	},
	{},
	async server => {
		const old = await send(server.port, 'POST / HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n', 'abc');
		assert.is(statusOf(old), 200);
		const eager =
			'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nabc';
		assert.is(statusOf(await send(server.port, eager)), 200);
	},
);

test(
	'a connection is closed after a refusal without 100 Continue, because its next bytes are ambiguous',
	path,
	{},
	async server => {
		const wire = await openWire(server.port);
		wire.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n');
		// Sends the body only after the response, because a body that arrives together with the head is not ambiguous.
		await wire.until(text => text.includes('\r\n\r\n'));
		wire.send(`abc${LAST_REQUEST}`);
		const text = await wire.whole();
		assert.is(answers(text), 1);
		assert.match(text, 'Connection: close');
	},
);

test('an unread body is discarded up to the limit', path, { maxDrain: 1000 }, async server => {
	const post = (length: number, pieces: string[]): Promise<string> =>
		send(server.port, `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`, ...pieces, LAST_REQUEST);
	assert.is(answers(await post(900, ['a'.repeat(400), 'a'.repeat(500)])), 2);
	const over = await post(1100, ['a'.repeat(1100)]);
	assert.is(answers(over), 1);
	assert.match(over, 'Connection: close');
	const chunked = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
	const chunk = `100\r\n${'a'.repeat(256)}\r\n`;
	assert.is(answers(await send(server.port, chunked, chunk.repeat(3), `0\r\n\r\n${LAST_REQUEST}`)), 2);
	assert.is(answers(await send(server.port, chunked, chunk.repeat(5), `0\r\n\r\n${LAST_REQUEST}`)), 1);
	assert.is(
		answers(await send(server.port, chunked, 'x\r\n', LAST_REQUEST)),
		1,
		'a malformed remainder closes the connection',
	);
});

test(
	'a body stays in the socket while nobody pulls',
	async x => {
		if (x.request.path === '/last') return;
		await wait(150);
		x.response.body = String((await bodyOf(x)).length);
	},
	{},
	async server => {
		const wire = await openWire(server.port);
		const size = 8_000_000;
		wire.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`);
		wire.socket.write(Buffer.alloc(size));
		await wait(100);
		assert.ok(server.exchanges[0]!.bytesReceived < 300_000, `${server.exchanges[0]!.bytesReceived} bytes held`);
		await wire.until(text => text.endsWith(`\r\n\r\n${size}`));
		assert.is(server.exchanges[0]!.bytesReceived, size);
		wire.socket.destroy();
	},
);

test(
	'a canceled body is not read indefinitely',
	async x => {
		(x.request.body as BodySource).cancel();
		await wait(100);
	},
	{ maxDrain: 10_000 },
	async server => {
		const wire = await openWire(server.port);
		wire.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7a1200\r\n');
		wire.socket.write(Buffer.alloc(8_000_000));
		await wait(70);
		assert.ok(server.exchanges[0]!.bytesReceived < 300_000, `${server.exchanges[0]!.bytesReceived} bytes read`);
		assert.is(statusOf(await wire.whole()), 200);
		wire.socket.destroy();
	},
);

test(
	'a stream waits while the client does not read',
	x => {
		let at = 0;
		const shared = Buffer.alloc(50_000);
		x.response.body = {
			length: undefined,
			pull() {
				if (at === 200) return null;
				shared.fill(65 + (at++ % 26));
				x.variables.set('pulled', at);
				return shared;
			},
			cancel() {},
		};
	},
	{},
	async server => {
		const wire = await openWire(server.port);
		wire.socket.pause();
		wire.send(GET.replace('1.1', '1.0'));
		await wait(150);
		assert.ok((server.exchanges[0]!.variable('pulled') as number) < 200);
		wire.socket.resume();
		const text = await wire.whole();
		const expected = Array.from({ length: 200 }, (_, i) => String.fromCharCode(65 + (i % 26)).repeat(50_000)).join('');
		assert.ok(text.slice(text.indexOf('\r\n\r\n') + 4) === expected, 'no piece was overwritten before it was sent');
	},
);

test('a slow head gives 408', path, { headTimeout: 80 }, async server => {
	const wire = await openWire(server.port);
	wire.send('GET / HTTP/1.1\r\n');
	const drip = setInterval(() => wire.send('X: a\r\n'), 20);
	const text = await wire.whole();
	clearInterval(drip);
	assert.is(statusOf(text), 408);
	assert.equal(server.refused, ['header_timeout']);
	wire.socket.destroy();
});

test(
	'a connection without a request is closed silently, before the first request and between requests',
	path,
	{ headTimeout: 80, idleTimeout: 80 },
	async server => {
		assert.is(await send(server.port), '');
		const wire = await openWire(server.port);
		wire.send(GET);
		assert.is(answers(await wire.whole()), 1);
		assert.is(statusOf(await send(server.port, GET, '\r\n')), 200);
	},
);

test(
	'a stalled body gives 408',
	async x => {
		x.response.body = await bodyOf(x);
	},
	{ bodyIdleTimeout: 250 },
	async server => {
		const wire = await openWire(server.port);
		wire.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n');
		for (let i = 0; i < 5; i++) {
			wire.send('a');
			await wait(30);
		}
		assert.is(wire.text, '', 'progress extends the deadline');
		const text = await wire.whole();
		assert.is(statusOf(text), 408);
		assert.match(text, 'Connection: close');
	},
);

test(
	'a client that stops reading is disconnected',
	x => {
		x.response.body = Buffer.alloc(20_000_000);
	},
	{ writeIdleTimeout: 80 },
	async server => {
		const wire = await openWire(server.port);
		wire.socket.pause();
		wire.send(GET);
		await until('the end of the connection', () => server.closed() === 1);
		assert.ok(server.finished[0]!.response.bytesSent < 20_000_000);
		wire.socket.destroy();
	},
);

for (const [name, leave] of [
	['resets', (wire: WireClient) => wire.socket.resetAndDestroy()],
	['closes', (wire: WireClient) => wire.socket.destroy()],
] as const) {
	test(
		`handlers are notified of a client that ${name}`,
		async x => {
			await new Promise<void>(resolve => x.onGone(resolve));
			x.response.body = 'late';
		},
		{},
		async server => {
			const wire = await openWire(server.port);
			wire.send(GET);
			await until('the exchange', () => server.exchanges.length > 0);
			assert.not.ok(server.exchanges[0]!.isGone);
			leave(wire as WireClient);
			await until('the end of the exchange', () => server.finished.length > 0);
			assert.ok(server.exchanges[0]!.isGone);
			assert.ok(server.exchanges[0]!.signal.aborted);
		},
	);
}

test(
	'a client that disconnects during its request body makes reading the body fail',
	async x => {
		x.response.body = await bodyOf(x);
	},
	{},
	async server => {
		const wire = await openWire(server.port);
		wire.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc');
		await wait(10);
		wire.socket.end();
		assert.is(statusOf(await wire.whole()), 400);
	},
);

test(
	'a client that disconnects during a streamed response cancels the stream',
	x => {
		x.response.body = {
			length: undefined,
			pull: async () => {
				await wait(2);
				return Buffer.from('tick');
			},
			cancel: () => void x.variables.set('cancelled', true),
		};
	},
	{},
	async server => {
		const wire = await openWire(server.port);
		wire.send(GET);
		await wire.until(text => text.includes('tick'));
		wire.socket.destroy();
		await until('the end of the exchange', () => server.finished.length > 0);
		assert.ok(server.exchanges[0]!.variable('cancelled'));
	},
);

test('a client that closes its side after its requests gets all responses', slowFirstHandler, {}, async server => {
	const wire = await openWire(server.port);
	wire.socket.end('GET /0 HTTP/1.1\r\nHost: a\r\n\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HT');
	assert.is(answers(await wire.whole()), 2);
});

test(
	'draining closes idle connections at once and others after their response',
	async x => {
		await wait(x.request.path === '/slow' ? 50 : 0);
	},
	{},
	async server => {
		const fresh = await openWire(server.port);
		const idle = await openWire(server.port);
		idle.send(GET);
		await idle.until(text => answers(text) === 1);
		const busy = await openWire(server.port);
		busy.send(GET.replace('/', '/slow'));
		await wait(10);
		server.protocol.drain();
		assert.is(await fresh.whole(500), '');
		assert.not.match(await idle.whole(500), 'Connection: close');
		assert.match(await busy.whole(500), 'Connection: close');
		const late = await openWire(server.port);
		late.send(GET + GET);
		const text = await late.whole(500);
		assert.is(answers(text), 1);
		assert.match(text, 'Connection: close');
	},
);

test(
	'draining with a wait closes used connections after it, but not those whose first request is still to come',
	path,
	{},
	async server => {
		const fresh = await openWire(server.port);
		const idle = await openWire(server.port);
		idle.send(GET);
		await idle.until(text => answers(text) === 1);
		server.protocol.drain({ nextRequestMs: 20, firstRequestMs: 60_000 });
		// If the wait applied to both connections, the engine would close both at the same tick of its clock.
		assert.not.match(await idle.whole(), 'Connection: close');
		fresh.send(GET + GET);
		const text = await fresh.whole();
		assert.is(answers(text), 1);
		assert.match(text, 'Connection: close');
	},
);

test(
	'close() ends all connections at once',
	() => wait(50),
	{},
	async server => {
		const wire = await openWire(server.port);
		wire.send(GET);
		await wait(10);
		server.protocol.close();
		assert.is(await wire.whole(500), '');
	},
);

test('the last response reaches a client that is still sending', path, {}, async server => {
	for (let i = 0; i < 5; i++) {
		const wire = await openWire(server.port);
		wire.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n');
		for (let k = 0; k < 20; k++) wire.socket.write(Buffer.alloc(60_000));
		const text = await wire.whole();
		assert.is(statusOf(text), 200);
		assert.not.ok(wire.reset);
		wire.socket.destroy();
	}
});

test(
	'handlers see the addresses of the connection',
	x => {
		const { remoteAddress, remotePort, localAddress, localPort, tls } = x.connection;
		x.response.body = JSON.stringify([remoteAddress, remotePort, localAddress, localPort, tls]);
	},
	{},
	async server => {
		const wire = await openWire(server.port);
		const port = wire.socket.localPort;
		wire.send(LAST_REQUEST);
		const text = await wire.whole();
		assert.is(text.split('\r\n\r\n')[1], `["127.0.0.1",${port},"127.0.0.1",${server.port},null]`);
	},
);
test(
	'a truncated body of a pipelined request fails, even if the client closed before the request started',
	async x => {
		if (x.request.path === '/0') await wait(20);
		x.response.body = await bodyOf(x);
	},
	{},
	async server => {
		const wire = await openWire(server.port);
		wire.socket.end('GET /0 HTTP/1.1\r\nHost: a\r\n\r\nPOST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc');
		assert.match(await wire.whole(500), 'HTTP/1.1 400 ');
	},
);

test(
	'after a failed upgrade the exchange counts as gone, so that the other side can be closed',
	async x => {
		await wait(20);
		x.response.headers.add('Upgrade', 'websocket');
		x.upgrade(() => {
			throw new Error('nobody is there');
		});
		if (x.request.path === '/abort') x.abort();
	},
	{},
	async server => {
		const request = (path: string) =>
			`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
		const halfClosed = await openWire(server.port);
		halfClosed.socket.end(request('/'));
		await halfClosed.whole(500);
		const aborted = await openWire(server.port);
		aborted.send(request('/abort'));
		await aborted.whole(500);
		const old = await openWire(server.port);
		old.send(request('/').replace('HTTP/1.1', 'HTTP/1.0'));
		await old.whole(500);
		assert.equal(
			server.exchanges.map(x => x.isGone),
			[true, true, true],
		);
	},
);

connections.run();
