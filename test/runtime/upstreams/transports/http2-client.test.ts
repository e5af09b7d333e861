/** The HTTP/2 client against upstreams scripted frame by frame, valid and invalid. */
import { once } from 'node:events';
import { connect, createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { proxiedSite } from '../../../compiler/modules/directives/reverse-proxy/proxied-site.ts';
import { pauseFor, rawExchange } from '../../../harness.ts';
import { eventually, withServer } from '../../running-server.ts';

const test = suite('HTTP/2 to upstreams');

const cleanups: (() => unknown)[] = [];
test.after.each(async () => {
	for (const close of cleanups.splice(0).reverse()) await close();
});

/** Returns the bytes of a frame (RFC 9113 §4.1). */
function frame(type: number, flags: number, stream: number, payload: Uint8Array | string = ''): Buffer {
	const bytes = Buffer.from(payload as string);
	const head = Buffer.alloc(9);
	head.writeUIntBE(bytes.length, 0, 3);
	head[3] = type;
	head[4] = flags;
	head.writeUInt32BE(stream, 5);
	return Buffer.concat([head, bytes]);
}

const numbers = (...values: number[]): Buffer => {
	const bytes = Buffer.alloc(values.length * 4);
	for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, at * 4);
	return bytes;
};
const SETTINGS = frame(4, 0, 0);
/** The field `:status: 200`, as its index in the static table. */
const OK = Buffer.from([0x88]);
const literal = (name: string, value: string): Buffer =>
	Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);

interface Received {
	readonly type: number;
	readonly flags: number;
	readonly stream: number;
	readonly payload: Buffer;
}

type Script = (frame: Received, socket: Socket, connection: number) => void;

/** Starts a server that sends its SETTINGS, and then calls the script with each frame that it receives. Returns its port. */
async function startScriptedServer(script: Script): Promise<number> {
	const sockets = new Set<Socket>();
	let connections = 0;
	const server = createServer(socket => {
		sockets.add(socket);
		const connection = ++connections;
		socket.on('error', () => {});
		socket.write(SETTINGS);
		let held = Buffer.alloc(0);
		let preface = 24;
		socket.on('data', piece => {
			held = Buffer.concat([held, piece as Buffer]);
			if (held.length < preface) return;
			held = held.subarray(preface);
			preface = 0;
			while (held.length >= 9 && held.length >= 9 + held.readUIntBE(0, 3)) {
				const end = 9 + held.readUIntBE(0, 3);
				const received = {
					type: held[3]!,
					flags: held[4]!,
					stream: held.readUInt32BE(5),
					payload: held.subarray(9, end),
				};
				held = held.subarray(end);
				script(received, socket, connection);
			}
		});
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	cleanups.push(() => {
		for (const socket of sockets) socket.destroy();
		return new Promise(resolve => server.close(resolve));
	});
	return (server.address() as AddressInfo).port;
}

/** Starts a scripted server as an upstream, and a site that proxies to it. Returns the URL of the site. */
async function startUpstream(script: Script, transport = ''): Promise<string> {
	const site = await proxiedSite(`reverse_proxy h2c://127.0.0.1:${await startScriptedServer(script)}${transport}`);
	cleanups.push(() => site.close());
	return `http://127.0.0.1:${site.port}`;
}

async function get(url: string, init: RequestInit = {}): Promise<string> {
	try {
		const response = await fetch(url, init);
		return `${response.status} ${await response.text()}`;
	} catch {
		return 'broken';
	}
}

test('the client handles padding, priorities, split header blocks, unknown frames, trailers and PINGs', async () => {
	const answered: Received[] = [];
	const url = await startUpstream((received, socket) => {
		if (received.type === 6) answered.push(received);
		if (received.type !== 1) return;
		const { stream } = received;
		socket.write(frame(6, 0, 0, '12345678'));
		socket.write(frame(200, 0, stream, 'nobody knows this'));
		const fields = literal('x-a', 'b');
		const priority = numbers(0, 0).subarray(0, 5);
		socket.write(frame(1, 0x28, stream, Buffer.concat([Buffer.from([3]), priority, OK, Buffer.alloc(3)])));
		socket.write(frame(9, 0, stream, fields.subarray(0, 4)));
		socket.write(frame(9, 4, stream, fields.subarray(4)));
		socket.write(frame(0, 8, stream, Buffer.concat([Buffer.from([5]), Buffer.from('hello '), Buffer.alloc(5)])));
		socket.write(frame(0, 0, stream, ''));
		for (const byte of frame(0, 0, stream, 'world')) socket.write(Buffer.from([byte]));
		socket.write(frame(1, 5, stream, literal('x-sum', '1')));
	});
	const response = await fetch(url);
	assert.equal([response.status, response.headers.get('x-a'), await response.text()], [200, 'b', 'hello world']);
	await eventually('the PING is answered', () => answered.length > 0);
	assert.equal([answered[0]!.flags, String(answered[0]!.payload)], [1, '12345678']);
});

test('only spaces and tabs are trimmed around a value, as in HTTP/1.1', async () => {
	let head: Buffer = Buffer.alloc(0);
	const url = await startUpstream((received, socket) => {
		if (received.type !== 1) return;
		head = received.payload;
		socket.write(frame(1, 5, received.stream, OK));
	});
	const port = Number(new URL(url).port);
	const request = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-A: \t\xa0b\xa0 \r\n\r\n', 'latin1');
	assert.match(await rawExchange(port, request), /^HTTP\/1\.1 200 /);
	assert.ok(head.includes(Buffer.from('\x03x-a\x03\xa0b\xa0', 'latin1')));
});

test('an upstream that floods control frames and reads no replies is disconnected', async () => {
	let left: () => void = () => {};
	const leaving = new Promise<void>(resolve => {
		left = resolve;
	});
	const pings = Buffer.concat(Array.from({ length: 4000 }, () => frame(6, 0, 0, '12345678')));
	const url = await startUpstream((received, socket) => {
		if (received.type !== 1) return;
		socket.pause();
		socket.on('close', left);
		const ask = (): void => {
			if (!socket.destroyed) socket.write(pings, () => setImmediate(ask));
		};
		ask();
	});
	assert.is(await get(url), '502 ');
	await leaving;
});

const MISTAKES: { readonly [name: string]: (stream: number) => readonly Buffer[] } = {
	'an invalid status': stream => [frame(1, 5, stream, literal(':status', 'abc'))],
	'no status': stream => [frame(1, 5, stream, literal('x', 'y'))],
	'two statuses': stream => [frame(1, 5, stream, Buffer.concat([OK, OK]))],
	'status 101': stream => [frame(1, 5, stream, literal(':status', '101'))],
	...Object.fromEntries(
		[':method', ':scheme', ':authority', ':path', ':protocol', ':unknown'].flatMap(name => [
			[`${name} after its status`, stream => [frame(1, 5, stream, Buffer.concat([OK, literal(name, 'GET')]))]],
			[`${name} before its status`, stream => [frame(1, 5, stream, Buffer.concat([literal(name, 'GET'), OK]))]],
			[
				`${name} in an interim head`,
				stream => [
					frame(1, 4, stream, Buffer.concat([literal(':status', '103'), literal(name, 'GET')])),
					frame(1, 5, stream, OK),
				],
			],
		]),
	),
	// The second bytes are the fields `:method: GET` and `:path: /`, as their indexes in the static table.
	':method of the static table': stream => [frame(1, 5, stream, Buffer.from([0x88, 0x82]))],
	':path of the static table': stream => [frame(1, 5, stream, Buffer.from([0x88, 0x84]))],
	'the status after a field': stream => [frame(1, 5, stream, Buffer.concat([literal('x-a', 'b'), OK]))],
	'a field in upper case': stream => [frame(1, 5, stream, Buffer.concat([OK, literal('X-A', 'b')]))],
	'a connection-specific field': stream => [frame(1, 5, stream, Buffer.concat([OK, literal('connection', 'close')]))],
	'a value with a line end': stream => [frame(1, 5, stream, Buffer.concat([OK, literal('a', 'b\r\nc: d')]))],
	'two lengths': stream => [
		frame(1, 4, stream, Buffer.concat([OK, literal('content-length', '1'), literal('content-length', '2')])),
	],
	'an invalid header block': stream => [frame(1, 5, stream, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]))],
	'content before the head': stream => [frame(0, 0, stream, 'x')],
	'DATA on an unknown stream': () => [frame(0, 0, 77, 'x')],
	'HEADERS on an even stream': () => [frame(1, 5, 2, OK)],
	'a push': stream => [frame(5, 4, stream, Buffer.concat([numbers(2), OK]))],
	'excessive padding': stream => [frame(1, 0x0d, stream, Buffer.from([200, 0x88]))],
	'an interrupted block': stream => [frame(1, 0, stream, OK), frame(6, 0, 0, '12345678')],
	'CONTINUATION without HEADERS': stream => [frame(9, 4, stream, OK)],
	'an oversized frame': stream => [frame(0, 0, stream, Buffer.alloc(20_000))],
	'SETTINGS of the wrong size': () => [frame(4, 0, 0, '12345')],
	'an overflowing window': () => [frame(8, 0, 0, numbers(0x7fffffff))],
	'a window increment of 0': () => [frame(8, 0, 0, numbers(0))],
	'a reset': stream => [frame(3, 0, stream, numbers(2))],
	'GOAWAY with an error': () => [frame(7, 0, 0, numbers(0, 11))],
	'no HTTP/2 at all': () => [Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')],
};

for (const [name, frames] of Object.entries(MISTAKES)) {
	test(`a response with ${name} is an error, and nothing of it is forwarded`, async () => {
		const url = await startUpstream(({ type, stream }, socket) => {
			if (type === 1) for (const one of frames(stream)) socket.write(one);
		});
		assert.match(await get(url, { method: 'POST' }), /^502 /);
	});
}

test('a malformed response is reset with a stream error', async () => {
	const codes: number[] = [];
	const malformed: ((stream: number) => Buffer)[] = [
		stream => frame(1, 4, stream, Buffer.concat([OK, literal(':path', '/')])),
		stream => frame(1, 4, stream, literal('x', 'y')),
		stream => frame(0, 0, stream, 'content before the head'),
		stream => Buffer.concat([frame(1, 4, stream, OK), frame(1, 5, stream, literal(':method', 'GET'))]),
	];
	let connections = 0;
	const url = await startUpstream(({ type, stream, payload }, socket, connection) => {
		connections = connection;
		if (type === 3) codes.push(payload.readUInt32BE(0));
		if (type === 1) socket.write(malformed[(stream - 1) / 2]!(stream));
	});
	for (const _ of malformed) assert.match(await get(url), /^(502 |broken$)/);
	// These streams are reset with PROTOCOL_ERROR (RFC 9113 §8.1.1). Other streams of the connection are not affected.
	await eventually('every stream was reset', () => codes.length === malformed.length);
	assert.equal(codes, [1, 1, 1, 1]);
	assert.is(connections, 1);
});

test('a response without a body may end with an empty frame', async () => {
	const resets: number[] = [];
	let statuses = ['200', '204', '304'];
	const url = await startUpstream(({ type, stream, payload }, socket) => {
		if (type === 3) resets.push(payload.readUInt32BE(0));
		if (type !== 1) return;
		const [status] = statuses;
		statuses = statuses.slice(1);
		socket.write(frame(1, 4, stream, literal(':status', status ?? '200')));
		socket.write(frame(0, 0, stream));
		socket.write(frame(0, 1, stream));
	});
	for (const [method, status] of [
		['HEAD', 200],
		['GET', 204],
		['GET', 304],
		['GET', 200],
	] as const) {
		assert.is(await get(url, { method }), `${status} `);
	}
	assert.equal(resets, []);
});

test('a response without a body whose stream stays open ends after a second, and the stream is canceled', async () => {
	const resets: number[] = [];
	const statuses = ['200', '204', '304', '200'];
	const port = await startScriptedServer(({ type, stream, payload }, socket) => {
		if (type === 3) resets.push(payload.readUInt32BE(0));
		if (type === 1) socket.write(frame(1, 4, stream, literal(':status', statuses.shift()!)));
	});
	const site = await proxiedSite(`reverse_proxy h2c://127.0.0.1:${port}`);
	cleanups.push(() => site.close());
	const url = `http://127.0.0.1:${site.port}`;
	for (const [method, status] of [
		['HEAD', 200],
		['DELETE', 204],
		['GET', 304],
		['HEAD', 200],
	] as const) {
		assert.is(await get(url, { method }), `${status} `);
	}
	assert.is(site.pools[0]!.inFlight, 4);
	await eventually('all streams are canceled', () => resets.length === 4);
	assert.equal(resets, [8, 8, 8, 8]);
	assert.is(site.pools[0]!.inFlight, 0);
});

test('a body of the wrong length or a truncated one does not look complete', async () => {
	const head = Buffer.concat([OK, literal('content-length', '5')]);
	const endings: readonly (readonly [head: Buffer, ending: (stream: number) => Buffer])[] = [
		[head, stream => frame(0, 1, stream, 'lo'.slice(0, 1))],
		[head, stream => frame(0, 1, stream, 'too long')],
		[head, stream => frame(3, 0, stream, numbers(0))],
		[head, stream => frame(1, 4, stream, OK)],
		// Pseudo-headers are not allowed in trailers (RFC 9113 §8.1). For responses with a Content-Length, see the next test.
		[OK, stream => Buffer.concat([frame(0, 0, stream, 'lo'), frame(1, 5, stream, OK)])],
		[OK, stream => Buffer.concat([frame(0, 0, stream, 'lo'), frame(1, 5, stream, literal(':method', 'GET'))])],
		[OK, stream => Buffer.concat([frame(0, 0, stream, 'lo'), frame(1, 5, stream, literal('connection', 'close'))])],
	];
	for (const [fields, ending] of endings) {
		const url = await startUpstream(({ type, stream }, socket) => {
			if (type !== 1) return;
			socket.write(frame(1, 4, stream, fields));
			socket.write(frame(0, 0, stream, 'hel'));
			setTimeout(() => socket.write(ending(stream)), 20);
		});
		assert.is(await get(url), 'broken');
	}
});

test('a complete body is delivered when its stream ends in a later frame, with or without trailers', async () => {
	const ends = [
		(stream: number) => frame(0, 1, stream),
		(stream: number) => frame(1, 5, stream, literal('x-sum', '1')),
		(stream: number) => Buffer.concat([frame(0, 0, stream), frame(0, 9, stream, Buffer.from([2, 0, 0]))]),
		// RST_STREAM with the code NO_ERROR.
		(stream: number) => frame(3, 0, stream, numbers(0)),
	];
	const content = Buffer.alloc(300_000, 'content ');
	for (const end of ends) {
		let sentBytes = 0;
		let windowBytes = 4096;
		const url = await startUpstream(({ type, stream, payload }, socket) => {
			if (type === 1) {
				const fields = Buffer.concat([OK, literal('content-length', String(content.length))]);
				socket.write(frame(1, 4, stream, fields));
			} else if (type === 8 && stream > 0) windowBytes += payload.readUInt32BE(0);
			else return;
			while (sentBytes < content.length && windowBytes > 0) {
				const piece = content.subarray(sentBytes, sentBytes + Math.min(windowBytes, 10_000));
				sentBytes += piece.length;
				windowBytes -= piece.length;
				socket.write(frame(0, 0, stream, piece));
				if (sentBytes === content.length) setImmediate(() => socket.write(end(stream)));
			}
		});
		assert.is(await get(url), `200 ${content}`);
	}
});

test('a response ends whose content fills the receive window exactly', async () => {
	// Node, like other servers with nghttp2, does not send the empty frame that ends the stream while the window is exhausted.
	const server = createHttp2Server();
	server.on('stream', (stream: ServerHttp2Stream, { ':path': path }) => {
		const content = Buffer.alloc(Number(path!.slice(1)), 'a');
		stream.respond({ ':status': 200, 'content-length': content.length });
		stream.write(content, () => stream.end());
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	cleanups.push(() => new Promise(resolve => server.close(resolve)));
	const options = '{\nadmin off\nservers {\nprotocols h1 h2c\n}\n}\n';
	const address = `h2c://127.0.0.1:${(server.address() as AddressInfo).port}`;
	const text = `${options}http://:0 {\nbind 127.0.0.1\nreverse_proxy ${address}\n}\n`;
	const input = { format: 'configfile' as const, text, name: 'Configfile' };
	await withServer(undefined, { input, threads: 1 }, async ({ port }) => {
		// With a client that accepts little, the window of the request to the upstream is small.
		const session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 1000 } });
		try {
			for (const size of [4095, 4096, 4097, 65_536]) {
				const stream = session.request({ ':path': `/${size}` });
				stream.setTimeout(20_000, () => stream.close(8));
				let receivedBytes = 0;
				stream.on('data', (bytes: Buffer) => {
					receivedBytes += bytes.length;
				});
				await once(stream, 'end');
				assert.is(receivedBytes, size);
				assert.is(stream.rstCode, 0, `${size} bytes`);
			}
		} finally {
			session.destroy();
		}
	});
});

/** Frames that break a stream or its connection after the complete content has been sent, instead of ending the stream. */
const ENDS_AFTER_CONTENT: readonly ((stream: number) => Buffer)[] = [
	stream => frame(1, 5, stream, literal(':method', 'GET')),
	stream => frame(1, 4, stream, literal('x-sum', '1')),
	stream => frame(3, 0, stream, numbers(2)),
	stream => frame(0, 0, stream, 'more'),
	() => frame(7, 0, 0, numbers(0, 2)),
	() => frame(0, 0, 77, 'an error of the connection'),
];

/**
 * Starts an upstream whose responses have complete content. The first `brokenCount` streams end improperly, as `end` says. The end
 * is sent when the client has answered a PING, and so has processed the content.
 */
async function startImproperUpstream(end: (stream: number) => Buffer, brokenCount: number): Promise<Upstream> {
	let requests = 0;
	let stream = 0;
	const port = await startScriptedServer((received, socket) => {
		if (received.type === 6 && received.flags === 1)
			socket.write(requests <= brokenCount ? end(stream) : frame(0, 1, stream));
		if (received.type !== 1) return;
		requests++;
		stream = received.stream;
		const fields = [OK, literal('content-length', '5'), literal('cache-control', 'max-age=60')];
		socket.write(frame(1, 4, stream, Buffer.concat(fields)));
		socket.write(frame(0, 0, stream, 'hello'));
		socket.write(frame(6, 0, 0, '12345678'));
	});
	return { port, requestCount: () => requests };
}

interface Upstream {
	readonly port: number;
	requestCount(): number;
}

test('a response whose stream does not end properly does not look complete, although its content is', async () => {
	for (const end of ENDS_AFTER_CONTENT) {
		const { port } = await startImproperUpstream(end, Infinity);
		const site = await proxiedSite(`reverse_proxy h2c://127.0.0.1:${port}`);
		cleanups.push(() => site.close());
		assert.is(await get(`http://127.0.0.1:${site.port}`), 'broken', String(end));
	}
});

test('a response whose stream does not end properly is not stored by the cache, although its content is complete', async () => {
	for (const end of ENDS_AFTER_CONTENT) {
		const { port, requestCount } = await startImproperUpstream(end, 1);
		const text = `{\nadmin off\n}\nhttp://:0 {\nbind 127.0.0.1\ncache\nreverse_proxy h2c://127.0.0.1:${port}\n}\n`;
		const input = { format: 'configfile' as const, text, name: 'Configfile' };
		await withServer(undefined, { input, threads: 1 }, async ({ port: sitePort }) => {
			const url = `http://127.0.0.1:${sitePort}`;
			const answers = [await get(url), await get(url), await get(url)];
			assert.equal([...answers, requestCount()], ['broken', '200 hello', '200 hello', 2], String(end));
		});
	}
});

test('complete content is delivered after a second if the stream stays open, and the stream is canceled', async () => {
	const resets: number[] = [];
	const port = await startScriptedServer(({ type, stream, payload }, socket) => {
		if (type === 3) resets.push(payload.readUInt32BE(0));
		if (type !== 1) return;
		socket.write(frame(1, 4, stream, Buffer.concat([OK, literal('content-length', '2')])));
		socket.write(frame(0, 0, stream, 'ok'));
	});
	const site = await proxiedSite(`reverse_proxy h2c://127.0.0.1:${port}`);
	cleanups.push(() => site.close());
	// The connection of the client serves its next request.
	const answers = await rawExchange(
		site.port,
		'GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
	);
	assert.is(answers.match(/\r\n\r\nok/g)?.length, 2);
	await eventually('both streams are canceled', () => resets.length === 2);
	assert.equal([...resets, site.pools[0]!.inFlight], [8, 8, 0]);
});

test('announced trailers are awaited longer than a second after complete content', async () => {
	const resets: number[] = [];
	const port = await startScriptedServer(({ type, stream, payload }, socket) => {
		if (type === 3) resets.push(payload.readUInt32BE(0));
		if (type !== 1) return;
		const head = Buffer.concat([OK, literal('content-length', '2'), literal('trailer', 'x-t')]);
		socket.write(frame(1, 4, stream, head));
		socket.write(frame(0, 0, stream, 'ok'));
		void pauseFor(1200).then(() => socket.write(frame(1, 5, stream, literal('x-t', 'yes'))));
	});
	const site = await proxiedSite(`reverse_proxy h2c://127.0.0.1:${port}`);
	cleanups.push(() => site.close());
	assert.is(await get(`http://127.0.0.1:${site.port}`), '200 ok');
	await eventually('the exchange has ended', () => site.pools[0]!.inFlight === 0);
	assert.equal(resets, []);
});

test('the read timeout applies while the end of a stream is missing', async () => {
	const url = await startUpstream(({ type, stream }, socket) => {
		if (type !== 1) return;
		socket.write(frame(1, 4, stream, Buffer.concat([OK, literal('content-length', '2')])));
		socket.write(frame(0, 0, stream, 'ok'));
	}, ' {\ntransport http {\nread_timeout 80ms\n}\n}');
	assert.is(await get(url), 'broken');
});

test('the write timeout applies to a request body in memory, too', async () => {
	let sentBytes = 0;
	const url = await startUpstream(({ type, payload }) => {
		if (type === 0) sentBytes += payload.length;
	}, ' {\nrequest_buffers 1MiB\ntransport http {\nwrite_timeout 80ms\n}\n}');
	const answer = await get(url, { method: 'POST', body: Buffer.alloc(100_000), signal: AbortSignal.timeout(10_000) });
	assert.match(answer, /^504 /);
	assert.is(sentBytes, 65_535);
});

test('a refused stream, and one beyond a GOAWAY, are retried on a new connection', async () => {
	for (const refusal of [(stream: number) => frame(3, 0, stream, numbers(7)), () => frame(7, 0, 0, numbers(0, 0))]) {
		let requests = 0;
		const url = await startUpstream(({ type, stream }, socket, connection) => {
			if (type !== 1) return;
			requests++;
			if (connection === 1) socket.write(refusal(stream));
			else socket.write(frame(1, 5, stream, OK));
		});
		assert.is(await get(url), '200 ');
		assert.is(requests, 2);
	}
});

test('small windows are respected in both directions, and many streams share few concurrency slots', async () => {
	const server = createHttp2Server({ settings: { initialWindowSize: 100, maxConcurrentStreams: 3 } });
	let most = 0;
	let now = 0;
	server.on('stream', (stream: ServerHttp2Stream) => {
		most = Math.max(most, ++now);
		stream.on('close', () => now--);
		stream.respond({ ':status': 200 });
		stream.pipe(stream);
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	cleanups.push(() => new Promise(resolve => server.close(resolve)));
	const site = await proxiedSite(`reverse_proxy h2c://127.0.0.1:${(server.address() as AddressInfo).port}`);
	cleanups.push(() => site.close());
	const body = Buffer.alloc(200_000, 'windows ');
	const answers = await Promise.all(
		Array.from({ length: 12 }, () =>
			fetch(`http://127.0.0.1:${site.port}`, { method: 'POST', body }).then(response => response.arrayBuffer()),
		),
	);
	for (const answer of answers) assert.ok(body.equals(Buffer.from(answer)));
	assert.ok(most >= 3);
});

test("a body waits for the upstream's SETTINGS for a limited time, and not at all after 100 (Continue)", async () => {
	const silent = createServer(socket => void socket.on('error', () => {})).listen(0, '127.0.0.1');
	await new Promise(resolve => silent.once('listening', resolve));
	const sockets = new Set<Socket>();
	silent.on('connection', socket => sockets.add(socket));
	cleanups.push(() => {
		for (const socket of sockets) socket.destroy();
		silent.close();
	});
	const site = await proxiedSite(`reverse_proxy h2c://127.0.0.1:${(silent.address() as AddressInfo).port} {
		transport http {
			response_header_timeout 100ms
			write_timeout 100ms
		}
	}`);
	cleanups.push(() => site.close());
	const startedAt = performance.now();
	const body = new Uint8Array(100_000);
	assert.is(await get(`http://127.0.0.1:${site.port}`, { method: 'POST', body }), '504 ');
	assert.ok(performance.now() - startedAt < 5000);

	let heads = 0;
	let content = 0;
	const url = await startUpstream(({ type, stream, payload }, socket) => {
		if (type === 0 && stream === 3) {
			content += payload.length;
			if (content === 10) socket.write(frame(1, 5, 3, OK));
		}
		if (type !== 1) return;
		// The first response never ends. The new limit allows only one stream, but the upstream has already accepted the second
		// request.
		if (++heads === 1) socket.write(frame(1, 4, stream, OK));
		else {
			socket.write(frame(4, 0, 0, Buffer.from([0, 3, 0, 0, 0, 1])));
			socket.write(frame(1, 4, stream, literal(':status', '100')));
		}
	});
	const first = await fetch(url);
	assert.is(first.status, 200);
	const answer = rawExchange(
		Number(new URL(url).port),
		'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n0123456789',
	);
	assert.match(await answer, /^HTTP\/1\.1 (?:100 Continue\r\n\r\nHTTP\/1\.1 )?200 /);
	assert.is(content, 10);
	await first.body?.cancel();
});

test('at the connection limit, further requests wait for a free stream', async () => {
	const server = createHttp2Server({ settings: { maxConcurrentStreams: 3 } });
	let sessions = 0;
	server.on('session', () => sessions++);
	server.on('stream', (stream: ServerHttp2Stream) => {
		setTimeout(() => {
			if (stream.destroyed) return;
			stream.respond({ ':status': 200 });
			stream.end('ok');
		}, 5);
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	cleanups.push(() => new Promise(resolve => server.close(resolve)));
	const { port } = server.address() as AddressInfo;
	const site = await proxiedSite(`reverse_proxy h2c://127.0.0.1:${port} {
		transport http {
			max_conns_per_host 2
		}
	}`);
	cleanups.push(() => site.close());
	const get = () =>
		fetch(`http://127.0.0.1:${site.port}`).then(async response => `${response.status} ${await response.text()}`);
	assert.is(await get(), '200 ok');
	assert.equal(new Set(await Promise.all(Array.from({ length: 30 }, get))), new Set(['200 ok']));
	assert.is(sessions, 2);
});

test('a response that ends before the request stops the upload', async () => {
	let resets = 0;
	const url = await startUpstream(({ type, stream }, socket) => {
		if (type === 3) resets++;
		if (type !== 1) return;
		socket.write(Buffer.concat([frame(1, 4, stream, literal(':status', '413')), frame(0, 1, stream, 'too much')]));
	});
	assert.is(await get(url, { method: 'POST', body: new Uint8Array(5_000_000) }), '413 too much');
	await eventually('the stream is reset', () => resets === 1);
});

test('a slow reader applies backpressure to the upstream', async () => {
	let sent = 0;
	const server = createHttp2Server();
	server.on('stream', (stream: ServerHttp2Stream) => {
		stream.on('error', () => {});
		stream.respond({ ':status': 200 });
		const write = (): void => {
			while (sent < 50_000_000) {
				sent += 65_536;
				if (!stream.write(Buffer.alloc(65_536))) {
					stream.once('drain', write);
					return;
				}
			}
		};
		write();
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	const site = await proxiedSite(`reverse_proxy h2c://127.0.0.1:${(server.address() as AddressInfo).port}`);
	cleanups.push(
		() => new Promise(resolve => server.close(resolve)),
		() => site.close(),
	);
	const { request } = await import('node:http');
	await new Promise<void>((resolve, reject) => {
		const asking = request(`http://127.0.0.1:${site.port}`, response => {
			response.pause();
			setTimeout(() => {
				asking.destroy();
				resolve();
			}, 300);
		});
		asking.on('error', reject).end();
	});
	assert.ok(sent < 20_000_000, `${sent} bytes were accepted for a reader that reads nothing`);
});

test('after random bytes from an upstream, the server answers and keeps working', async () => {
	let seed = 7;
	const chance = (below: number): number => {
		seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
		return seed % below;
	};
	const url = await startUpstream(({ type, stream }, socket) => {
		if (type !== 1) return;
		const good = Buffer.concat([
			frame(1, 4, stream, Buffer.concat([OK, literal('x-a', 'b'), Buffer.from([0x48, 3, 50, 48, 48])])),
			frame(8, 0, 0, numbers(100)),
			frame(0, 8, stream, Buffer.from([2, 104, 105, 0, 0])),
			frame(4, 0, 0, Buffer.from([0, 4, 0, 0, 1, 0])),
			frame(1, 5, stream, literal('x-sum', '1')),
		]);
		for (let i = 0; i < 1 + chance(4); i++) good[chance(good.length)] = chance(256);
		const cut = chance(good.length);
		socket.write(good.subarray(0, cut));
		socket.write(good.subarray(cut));
		if (chance(3) > 0) socket.end();
		else setTimeout(() => socket.destroy(), 5);
	});
	const outcomes = new Set<string>();
	for (let i = 0; i < 100; i += 20) {
		const answers = await Promise.all(Array.from({ length: 20 }, () => get(url)));
		for (const answer of answers) outcomes.add(answer.slice(0, 3));
	}
	assert.ok(outcomes.has('502'), [...outcomes].join(' '));
});

test.run();
