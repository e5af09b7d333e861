/** HTTP/2 requests and responses, exchanged with Node's client. */
import { once } from 'node:events';
import {
	type ClientHttp2Session,
	connect,
	type IncomingHttpHeaders,
	type OutgoingHttpHeaders,
	sensitiveHeaders,
} from 'node:http2';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type BodySource, isStream } from '../../../../compiler/exchange/body.ts';
import type { Exchange } from '../../../../compiler/exchange/exchange.ts';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { HeaderList } from '../../../../compiler/exchange/header-list.ts';
import type { ProtocolLimits } from '../../../../runtime/protocols/protocol.ts';
import { until } from '../../../harness.ts';
import { bodyOf } from '../http1/wire.ts';
import { type FrameServer, serve } from './frames.ts';

const test = suite('HTTP/2 messages');

/** The result of a request. */
interface Answer {
	readonly headers: IncomingHttpHeaders & { ':status'?: number | undefined };
	readonly body: Buffer;
	readonly trailers: IncomingHttpHeaders | undefined;
	readonly informed: number[];
	/** The error code with which the stream was reset; 0 if it was not reset, or was reset with NO_ERROR. */
	readonly code: number;
}

async function sendRequest(
	client: ClientHttp2Session,
	request: OutgoingHttpHeaders,
	body?: Buffer | string,
): Promise<Answer> {
	const stream = client.request({ ':path': '/', ...request }, { endStream: body === undefined });
	const received: Buffer[] = [];
	const informed: number[] = [];
	let headers: Answer['headers'] = {};
	let trailers: IncomingHttpHeaders | undefined;
	stream.on('response', fields => {
		headers = fields;
	});
	stream.on('headers', fields => informed.push(Number(fields[':status'])));
	stream.on('trailers', fields => {
		trailers = fields;
	});
	stream.on('data', (piece: Buffer) => received.push(piece));
	stream.on('error', () => {});
	if (body !== undefined) stream.end(body);
	// `once` would reject if the stream failed, so it is not used.
	await new Promise(resolve => stream.on('close', resolve));
	return { headers, body: Buffer.concat(received), trailers, informed, code: stream.rstCode ?? 0 };
}

async function withNode(
	handler: Handler,
	run: (client: ClientHttp2Session, server: FrameServer) => Promise<void>,
	limits: Partial<ProtocolLimits> = {},
	asStreams = false,
): Promise<void> {
	const server = await serve(handler, limits, asStreams);
	const client = connect(`http://127.0.0.1:${server.port}`);
	client.on('error', () => {});
	try {
		await run(client, server);
	} finally {
		client.destroy();
		await server.stop();
	}
}

/** Returns a body whose pieces arrive shortly after they are pulled. */
function delayedBody(texts: readonly string[], more: Partial<BodySource> = {}): BodySource {
	let at = 0;
	return {
		length: undefined,
		async pull() {
			await new Promise(resolve => setTimeout(resolve, 2));
			return at < texts.length ? Buffer.from(texts[at++]!) : null;
		},
		cancel() {},
		...more,
	};
}

const answer =
	(body: string): Handler =>
	x => {
		x.response.status = 200;
		x.response.body = body;
	};

test('an exchange has the values of the request', async () => {
	let seen: Exchange | undefined;
	await withNode(
		x => {
			seen = x;
			x.response.headers.add('X-Mixed-Case', 'kept');
			x.response.body = 'hello';
		},
		async (client, server) => {
			const { headers, body } = await sendRequest(client, {
				':path': '/a%20b?c=d',
				':authority': 'Example.COM:81',
				cookie: ['a=1', 'b=2'],
				'x-one': 'value',
			});
			assert.is(headers[':status'], 200);
			assert.is(headers['x-mixed-case'], 'kept');
			assert.is(headers.server, 'svc');
			assert.is(headers['content-length'], '5');
			assert.ok(headers.date);
			assert.is(body.toString(), 'hello');
			assert.is(seen!.protocol, 'HTTP/2.0');
			assert.equal(seen!.received, { method: 'GET', path: '/a%20b', query: 'c=d', authority: 'Example.COM:81' });
			assert.is(seen!.request.host, 'example.com');
			assert.is(seen!.request.scheme, 'http');
			assert.is(seen!.request.headers.get('x-one'), 'value');
			assert.is(seen!.request.headers.get('cookie'), 'a=1; b=2');
			assert.is(seen!.request.body, null);
			assert.is(seen!.response.bytesSent, 5);
			assert.is(server.finished.length, 1);
		},
	);
});

test('fields with `_` or `.` in their names are dropped, except those the listener expects', async () => {
	const handler = (x: Exchange) => {
		x.response.body = [...x.request.headers].map(([name]) => name).join(' ');
	};
	const request = { x_tenant: 'a', x_other: 'b', 'build.id': 'c', 'x-tenant': 'evil', 'x-else': 'd' };
	await withNode(handler, async client => {
		assert.is((await sendRequest(client, request)).body.toString(), 'x-tenant x-else');
	});
	const expectedHeaders = { underscore: ['X_Tenant'], dot: ['Build.*'] };
	await withNode(
		handler,
		async client => {
			assert.is((await sendRequest(client, request)).body.toString(), 'x_tenant build.id x-else');
		},
		{ expectedHeaders },
	);
});

test('connection-specific fields are removed from responses, and fields that cannot be sent are counted', async () => {
	await withNode(
		x => {
			const { headers } = x.response;
			for (const name of ['Connection', 'Keep-Alive', 'Proxy-Connection', 'Transfer-Encoding', 'Upgrade'])
				headers.add(name, 'x');
			headers.add('X-Blanks', '  inner  ');
			headers.add('X-Text', 'grüße €');
			headers.add('X-Broken', 'a\nb');
			headers.add('Set-Cookie', 'secret=1');
			x.response.body = '';
		},
		async (client, server) => {
			const { headers } = await sendRequest(client, {});
			const names = Object.keys(headers).sort();
			assert.equal(names, [':status', 'content-length', 'date', 'server', 'set-cookie', 'x-blanks', 'x-text']);
			assert.is(headers['x-blanks'], 'inner');
			assert.is(Buffer.from(String(headers['x-text']), 'latin1').toString(), 'grüße €');
			assert.equal((headers as unknown as { [sensitiveHeaders]: string[] })[sensitiveHeaders], ['set-cookie']);
			assert.equal(server.refused, ['invalid_response_field']);
		},
	);
});

test('large heads are split in both directions', async () => {
	await withNode(
		x => {
			for (let i = 0; i < 40; i++) x.response.headers.add(`x-${i}`, x.request.headers.get(`x-${i}`)!.repeat(2));
			x.response.body = 'ok';
		},
		async client => {
			const fields: OutgoingHttpHeaders = {};
			for (let i = 0; i < 40; i++) fields[`x-${i}`] = String.fromCharCode(33 + i).repeat(300 + i);
			const { headers } = await sendRequest(client, fields);
			for (let i = 0; i < 40; i++) assert.is(headers[`x-${i}`], String(fields[`x-${i}`]).repeat(2));
		},
	);
});

test('a head beyond the limit is answered 431, and the next request is served', async () => {
	await withNode(answer('ok'), async (client, server) => {
		// Real requests are this large if they have many cookies or a long token.
		assert.is((await sendRequest(client, { 'x-large': 'a'.repeat(17_000) })).headers[':status'], 200);
		assert.is((await sendRequest(client, { 'x-large': 'a'.repeat(32_000) })).headers[':status'], 200);
		const large = { 'x-large': 'a'.repeat(33_000) };
		assert.is((await sendRequest(client, large)).headers[':status'], 431);
		const many = Object.fromEntries(Array.from({ length: 120 }, (_, i) => [`x-${i}`, '']));
		assert.is((await sendRequest(client, many)).headers[':status'], 431);
		assert.is((await sendRequest(client, {})).headers[':status'], 200);
		assert.equal(server.refused, ['head_too_large', 'too_many_fields']);
	});
});

test('all bytes allowed in a value survive encoding', async () => {
	let text = '';
	for (let code = 33; code < 256; code++) if (code !== 127) text += String.fromCharCode(code);
	await withNode(
		x => {
			x.response.headers.add('x-echo', x.request.headers.get('x-all')!);
			x.response.body = null;
		},
		async client => {
			const { headers } = await sendRequest(client, { 'x-all': text });
			assert.is(headers['x-echo'], text);
		},
	);
});

for (const asStreams of [false, true]) {
	const how = asStreams ? 'read as a stream' : 'read into shared memory';
	test(`uploads and downloads of megabytes arrive complete, ${how}`, async () => {
		const bytes = Buffer.alloc(3_000_000);
		for (let i = 0; i < bytes.length; i += 4) bytes.writeUInt32LE(i, i);
		await withNode(
			x => {
				x.response.body = x.request.body ?? bytes;
			},
			async client => {
				const all = await Promise.all([
					sendRequest(client, { ':method': 'POST' }, bytes),
					sendRequest(client, {}),
					sendRequest(client, {}),
				]);
				for (const { body } of all) assert.ok(body.equals(bytes));
			},
			{},
			asStreams,
		);
	});
}

test('streams share a connection fairly: a small response overtakes large ones', async () => {
	const large = Buffer.alloc(4_000_000);
	await withNode(
		x => {
			x.response.body = x.request.path === '/large' ? large : 'small';
		},
		async client => {
			const order: string[] = [];
			const big = Array.from({ length: 5 }, () =>
				sendRequest(client, { ':path': '/large' }).then(() => order.push('large')),
			);
			await new Promise(resolve => setTimeout(resolve, 5));
			await sendRequest(client, {}).then(() => order.push('small'));
			await Promise.all(big);
			assert.is(order[0], 'small');
		},
	);
});

test('a hundred concurrent streams each get their own response', async () => {
	await withNode(
		async x => {
			await new Promise(resolve => setTimeout(resolve, 10));
			x.response.body = x.request.path;
		},
		async client => {
			const paths = Array.from({ length: 100 }, (_, i) => `/${i}`);
			const answers = await Promise.all(paths.map(path => sendRequest(client, { ':path': path })));
			assert.equal(
				answers.map(({ body }) => body.toString()),
				paths,
			);
		},
	);
});

test('trailers pass in both directions', async () => {
	await withNode(
		async x => {
			const text = await bodyOf(x);
			x.response.headers.add('x-got', String((x.request.body as BodySource).trailers?.get('x-sum')));
			x.response.body = delayedBody([text, '!'], { trailers: new HeaderList(['Grpc-Status', '0']) });
			x.response.trailers = new HeaderList(['x-own', 'yes', 'content-length', '9']);
		},
		async client => {
			const stream = client.request({ ':path': '/', ':method': 'POST' }, { waitForTrailers: true });
			stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': 'abc' }));
			stream.end('hello');
			const [headers] = await once(stream, 'response');
			let body = '';
			stream.on('data', piece => {
				body += piece;
			});
			const [trailers] = await once(stream, 'trailers');
			assert.is(headers['x-got'], 'abc');
			assert.is(trailers['grpc-status'], '0');
			assert.is(trailers['x-own'], 'yes');
			assert.is(trailers['content-length'], undefined);
			if (!stream.closed) await once(stream, 'close');
			assert.is(body, 'hello!');
		},
	);
});

test('trailers can follow the head without content', async () => {
	await withNode(
		x => {
			x.response.body = null;
			x.response.trailers = new HeaderList(['grpc-status', '5']);
		},
		async client => {
			const { headers, trailers } = await sendRequest(client, {});
			assert.is(headers[':status'], 200);
			assert.is(trailers!['grpc-status'], '5');
		},
	);
});

test('interim responses precede the final one', async () => {
	await withNode(
		async x => {
			x.sendInterim(103, new HeaderList(['link', '</style.css>; rel=preload']));
			await bodyOf(x);
			x.response.body = 'ok';
		},
		async client => {
			const { informed, headers } = await sendRequest(client, { ':method': 'POST', expect: '100-continue' }, 'body');
			assert.equal(informed, [103, 100]);
			assert.is(headers[':status'], 200);
			assert.is((await sendRequest(client, { ':method': 'POST', expect: 'magic' }, 'x')).headers[':status'], 417);
		},
	);
});

test('HEAD, 204 and 304 have no content', async () => {
	await withNode(
		x => {
			x.response.status = x.request.path === '/204' ? 204 : x.request.path === '/304' ? 304 : 200;
			if (x.response.status === 304) x.response.headers.add('Content-Length', '77');
			x.response.body = 'content';
		},
		async client => {
			const head = await sendRequest(client, { ':method': 'HEAD' });
			assert.is(head.headers['content-length'], '7');
			assert.is(head.body.length, 0);
			const empty = await sendRequest(client, { ':path': '/204' });
			assert.is(empty.headers['content-length'], undefined);
			assert.is(empty.body.length, 0);
			const same = await sendRequest(client, { ':path': '/304' });
			assert.is(same.headers['content-length'], '77');
			assert.is(same.body.length, 0);
		},
	);
});

test('a response before the end of the request ends the request without an error', async () => {
	await withNode(
		x => {
			x.response.status = 413;
			x.response.body = 'too much';
		},
		async (client, server) => {
			const { headers, body, code } = await sendRequest(client, { ':method': 'POST' }, Buffer.alloc(500_000));
			assert.is(headers[':status'], 413);
			assert.is(body.toString(), 'too much');
			assert.is(code, 0);
			assert.is((await sendRequest(client, {})).headers[':status'], 413);
			assert.is(server.finished.length, 2);
		},
	);
});

test('a response body that fails, has the wrong length or is aborted resets only its stream', async () => {
	await withNode(
		x => {
			const { response } = x;
			switch (x.request.path) {
				case '/throws':
					response.body = delayedBody(['begun'], {
						pull: async () => {
							throw new Error('upstream has gone');
						},
					});
					return;
				case '/short':
					response.body = delayedBody(['abc'], { length: 5 });
					return;
				case '/long':
					response.body = delayedBody(['abc', 'def'], { length: 5 });
					return;
				case '/abort':
					x.abort();
					return;
				default:
					response.body = 'fine';
			}
		},
		async (client, server) => {
			for (const path of ['/throws', '/short', '/long', '/abort']) {
				assert.is((await sendRequest(client, { ':path': path })).code, 2, path);
			}
			assert.is((await sendRequest(client, {})).body.toString(), 'fine');
			assert.is(server.finished.length, 5);
			assert.is(server.counts.resetsByServer, 4);
		},
	);
});

test('a client that resets its stream ends the exchange at once', async () => {
	let gone = 0;
	let cancelled = 0;
	await withNode(
		async x => {
			x.onGone(() => gone++);
			if (x.request.path === '/waits') {
				await new Promise<void>(resolve => x.onGone(() => resolve()));
				return;
			}
			x.response.body = delayedBody(
				Array.from({ length: 1000 }, () => 'piece'),
				{ cancel: () => void cancelled++ },
			);
		},
		async (client, server) => {
			for (const path of ['/waits', '/streams']) {
				const stream = client.request({ ':path': path, ':method': 'POST' });
				stream.on('error', () => {});
				stream.write('begin');
				await new Promise(resolve => setTimeout(resolve, 30));
				stream.close(8);
				await new Promise(resolve => stream.on('close', resolve));
			}
			await until('the end of both exchanges', () => server.finished.length >= 2);
			assert.is(server.finished.length, 2);
			assert.is(gone, 2);
			assert.is(cancelled, 1);
			assert.is(server.counts.resetsByClient, 2);
		},
	);
});

test('a client that disconnects ends all its exchanges', async () => {
	let gone = 0;
	await withNode(
		x => {
			x.onGone(() => gone++);
			return new Promise(resolve => x.onGone(() => resolve()));
		},
		async (client, server) => {
			for (let i = 0; i < 5; i++) client.request({ ':path': '/' }).on('error', () => {});
			await until('all exchanges', () => server.exchanges.length === 5);
			client.destroy();
			await until('the end of all exchanges', () => server.finished.length === 5);
			assert.is(gone, 5);
			assert.is(server.finished.length, 5);
			assert.is(server.protocol.connections, 0);
			assert.is(server.counts.sessions, 0);
		},
	);
});

test('unread bodies do not block other uploads on the connection', async () => {
	const bytes = Buffer.alloc(600_000, 'u');
	await withNode(
		async x => {
			if (x.request.path === '/unread') {
				await new Promise<void>(resolve => x.onGone(() => resolve()));
				return;
			}
			const { body } = x.request;
			let size = 0;
			if (isStream(body))
				for (let piece = await body.pull(); piece !== null; piece = await body.pull()) size += piece.length;
			x.response.body = String(size);
		},
		async client => {
			const unread = [1, 2, 3].map(() => {
				const stream = client.request({ ':path': '/unread', ':method': 'POST' });
				stream.on('error', () => {});
				stream.write(bytes);
				return stream;
			});
			await new Promise(resolve => setTimeout(resolve, 30));
			const { body } = await sendRequest(client, { ':method': 'POST' }, bytes);
			assert.is(body.toString(), String(bytes.length));
			// Streams that have ended release their memory, so further uploads are not blocked.
			for (const stream of unread) stream.close(8);
			for (let i = 0; i < 8; i++)
				assert.is((await sendRequest(client, { ':method': 'POST' }, bytes)).body.toString(), String(bytes.length));
		},
	);
});

test.run();
