/** Responses on the wire: framing, fields, streams, upgrades. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../../compiler/exchange/body.ts';
import type { Exchange } from '../../../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../../../compiler/exchange/header-list.ts';
import { openWire, send, serve, type WireServer, withoutDate } from './wire.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

/** Returns a body of the given pieces. If `later`, each piece is delayed. A piece that is an Error is thrown. */
function streamOf(
	pieces: readonly (string | Error)[],
	later: boolean,
	length?: number,
): BodySource & { cancelled: boolean } {
	let at = 0;
	return {
		length,
		cancelled: false,
		pull() {
			const piece = pieces[at++];
			if (piece instanceof Error) {
				if (!later) throw piece;
				return Promise.reject(piece);
			}
			const bytes = piece === undefined ? null : Buffer.from(piece);
			return later ? new Promise(resolve => setImmediate(resolve, bytes)) : bytes;
		},
		cancel() {
			this.cancelled = true;
		},
	};
}

interface Context {
	server: WireServer;
	/** The handler of the requests that follow. A test may replace it. */
	answer: (x: Exchange) => void | Promise<void>;
}

const responses = suite<Context>('HTTP/1.1: responses');
responses.before(async context => {
	context.server = await serve(x => context.answer(x));
});
responses.after(context => context.server.stop());

const BODIES: readonly (readonly [name: string, body: () => Exchange['response']['body'], text: string])[] = [
	['no body', () => null, 'Content-Length: 0\r\nConnection: close\r\n\r\n'],
	['text', () => 'hello', 'Content-Length: 5\r\nConnection: close\r\n\r\nhello'],
	['text with non-ASCII characters', () => 'é', 'Content-Length: 2\r\nConnection: close\r\n\r\n\xc3\xa9'],
	['text with non-latin1 characters', () => '→', 'Content-Length: 3\r\nConnection: close\r\n\r\n\xe2\x86\x92'],
	['bytes', () => new Uint8Array([104, 255, 0]), 'Content-Length: 3\r\nConnection: close\r\n\r\nh\xff\0'],
	['no bytes', () => new Uint8Array(0), 'Content-Length: 0\r\nConnection: close\r\n\r\n'],
	[
		'a stream with a known length',
		() => streamOf(['ab', 'c'], false, 3),
		'Content-Length: 3\r\nConnection: close\r\n\r\nabc',
	],
	[
		'a delayed stream with a known length',
		() => streamOf(['ab', 'c'], true, 3),
		'Content-Length: 3\r\nConnection: close\r\n\r\nabc',
	],
	[
		'a stream',
		() => streamOf(['ab', '', 'c'], false),
		'Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n',
	],
	[
		'a delayed stream',
		() => streamOf(['ab', '', 'c'], true),
		'Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n',
	],
];

for (const [name, body, text] of BODIES) {
	for (const later of [false, true]) {
		responses(`${name}${later ? ', after a delay' : ''}`, async context => {
			context.answer = x => {
				x.response.body = body();
				if (later) return new Promise(resolve => setTimeout(resolve, 5));
			};
			assert.is(withoutDate(await send(context.server.port, GET)), `HTTP/1.1 200 OK\r\nServer: svc\r\n${text}`);
			const x = context.server.finished.at(-1)!;
			const count = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1').length;
			if (!text.startsWith('Transfer')) assert.is(x.response.bytesSent, count);
			else assert.is(x.response.bytesSent, 3);
		});
	}
}

responses('large bodies and streams arrive byte for byte', async context => {
	const bytes = Buffer.alloc(3_000_001);
	for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31 + (i >> 8)) & 255;
	const expected = bytes.toString('latin1');
	const part = (size: number, later: boolean): BodySource => {
		let at = 0;
		// All pieces use the same buffer, because a piece belongs to the consumer only until the next pull.
		const sharedBuffer = Buffer.alloc(size);
		return {
			length: undefined,
			pull() {
				if (at >= bytes.length) return null;
				const count = bytes.copy(sharedBuffer, 0, at, at + size);
				at += count;
				const piece = sharedBuffer.subarray(0, count);
				return later && at % 3 === 0 ? Promise.resolve(piece) : piece;
			},
			cancel() {},
		};
	};
	for (const body of [
		() => bytes,
		() => expected,
		() => part(100_000, false),
		() => part(10_000, true),
		() => part(1000, true),
	]) {
		context.answer = x => {
			x.response.body = body();
		};
		const text = await send(context.server.port, GET.replace('1.1', '1.0'));
		const received = text.slice(text.indexOf('\r\n\r\n') + 4);
		const wanted = typeof body() === 'string' ? Buffer.from(expected, 'utf8').toString('latin1') : expected;
		assert.ok(received === wanted, `${received.length} of ${wanted.length} bytes`);
	}
});

const BODILESS: readonly (readonly [name: string, request: string, answer: (x: Exchange) => void, head: string])[] = [
	[
		'HEAD of text',
		'HEAD',
		x => void Object.assign(x.response, { body: 'hello' }),
		'200 OK\r\nServer: svc\r\nContent-Length: 5',
	],
	[
		'HEAD for a stream',
		'HEAD',
		x => void Object.assign(x.response, { body: streamOf(['a'], false) }),
		'200 OK\r\nServer: svc',
	],
	[
		'HEAD for a known length',
		'HEAD',
		x => x.response.headers.add('Content-Length', '7'),
		'200 OK\r\nServer: svc\r\nContent-Length: 7',
	],
	['HEAD of nothing', 'HEAD', () => {}, '200 OK\r\nServer: svc'],
	[
		'204 with a body',
		'GET',
		x => void Object.assign(x.response, { status: 204, body: 'hello' }),
		'204 No Content\r\nServer: svc',
	],
	[
		'304 with a body',
		'GET',
		x => void Object.assign(x.response, { status: 304, body: 'hello' }),
		'304 Not Modified\r\nServer: svc',
	],
	[
		'304 with a length',
		'GET',
		x => {
			x.response.status = 304;
			x.response.headers.add('Content-Length', '7');
		},
		'304 Not Modified\r\nServer: svc\r\nContent-Length: 7',
	],
];

for (const [name, method, answer, head] of BODILESS) {
	responses(`no body: ${name}`, async context => {
		context.answer = answer;
		const text = withoutDate(await send(context.server.port, GET.replace('GET', method)));
		assert.is(text, `HTTP/1.1 ${head}\r\nConnection: close\r\n\r\n`);
		assert.is(context.server.finished.at(-1)!.response.bytesSent, 0);
	});
}

responses('a stream that is not sent is canceled', async context => {
	const body = streamOf(['a'], false);
	context.answer = x => {
		x.response.body = body;
	};
	await send(context.server.port, GET.replace('GET', 'HEAD'));
	assert.ok(body.cancelled);
});

const STATUSES: readonly (readonly [status: number, line: string])[] = [
	[0, '200 OK'],
	[299, '299 '],
	[999, '999 '],
	[404, '404 Not Found'],
	[100, '500 Internal Server Error'],
	[101, '500 Internal Server Error'],
	[1000, '500 Internal Server Error'],
	[-1, '500 Internal Server Error'],
	[200.5, '500 Internal Server Error'],
	[Number.NaN, '500 Internal Server Error'],
];
for (const [status, line] of STATUSES) {
	responses(`status ${status} is sent as ${line}`, async context => {
		context.answer = x => {
			x.response.status = status;
		};
		assert.ok((await send(context.server.port, GET)).startsWith(`HTTP/1.1 ${line}\r\n`));
	});
}

responses('a field that contains a line end is never sent, and is counted', async context => {
	const bad: readonly (readonly [string, string])[] = [
		['X', 'a\r\nSet-Cookie: b'],
		['X', 'a\nb'],
		['X', 'a\rb'],
		['X', 'a\0b'],
		['X: y\r\nZ', 'a'],
		['X Y', 'a'],
		['', 'a'],
		['Ĥ', 'a'],
	];
	const counted = context.server.refused.length;
	context.answer = x => {
		for (const [name, value] of bad) x.response.headers.add(name, value);
		x.response.headers.add('X-Ok', 'ü');
		// If they were truncated to one byte each, these characters would be CR LF.
		x.response.headers.add('X-Wide', '\u010d\u010aX: y');
		x.response.headers.add('X-Text', '→');
	};
	const text = withoutDate(await send(context.server.port, GET));
	assert.is(
		text,
		'HTTP/1.1 200 OK\r\nServer: svc\r\nX-Ok: \xfc\r\nX-Wide: \xc4\x8d\xc4\x8aX: y\r\nX-Text: \xe2\x86\x92\r\n' +
			'Content-Length: 0\r\nConnection: close\r\n\r\n',
	);
	assert.equal(
		context.server.refused.slice(counted),
		bad.map(() => 'invalid_response_field'),
	);
});

responses('framing fields set by handlers are ignored', async context => {
	context.answer = x => {
		const { headers } = x.response;
		headers.add('Content-Length', '99');
		headers.add('transfer-encoding', 'chunked');
		headers.add('Keep-Alive', 'timeout=5');
		headers.add('Connection', 'X-Foo');
		headers.add('Date', 'today');
		headers.set('Server', 'other');
		x.response.body = 'hello';
	};
	assert.is(
		await send(context.server.port, GET),
		'HTTP/1.1 200 OK\r\nServer: other\r\nDate: today\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello',
	);
});

responses('responses have the current Date, and Server unless a handler removes it', async context => {
	context.answer = x => {
		x.response.headers.delete('server');
	};
	const text = await send(context.server.port, GET);
	assert.not.match(text, 'Server');
	const date = Date.parse(/Date: ([A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT)\r\n/.exec(text)![1]!);
	assert.ok(Math.abs(date - Date.now()) < 2500);
});

responses('trailers follow the last chunk', async context => {
	context.answer = x => {
		x.response.body = Object.assign(streamOf(['ab'], true), { trailers: new HeaderList(['X-From', 'source']) });
		x.response.trailers = new HeaderList(['X-To', 'client', 'Content-Length', '3', 'X-Bad', 'a\r\nb']);
	};
	assert.match(await send(context.server.port, GET), '2\r\nab\r\n0\r\nX-To: client\r\nX-From: source\r\n\r\n');
});

responses('a stream of unknown length ends with the connection in HTTP/1.0', async context => {
	context.answer = x => {
		x.response.body = streamOf(['ab', 'c'], true);
	};
	assert.is(
		withoutDate(await send(context.server.port, 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')),
		'HTTP/1.1 200 OK\r\nServer: svc\r\nConnection: close\r\n\r\nabc',
	);
});

const BROKEN: readonly (readonly [name: string, body: () => BodySource])[] = [
	['throws immediately', () => streamOf([new Error('x')], false)],
	['throws later', () => streamOf(['ab', new Error('x')], true)],
	['is shorter than its length', () => streamOf(['ab'], true, 3)],
	['is shorter than its length without delay', () => streamOf(['ab'], false, 3)],
	['is longer than its length', () => streamOf(['ab', 'cd'], true, 3)],
];
for (const [name, body] of BROKEN) {
	responses(`a stream that ${name} aborts the connection`, async context => {
		const finished = context.server.finished.length;
		context.answer = x => {
			x.response.body = body();
		};
		const text = await send(context.server.port, `${GET.replace('close', 'keep-alive')}${GET}`);
		assert.not.match(text, '\r\n0\r\n');
		assert.not.match(text, /Content-Length: 3.*\r\n\r\n.{3}/s);
		assert.is(context.server.exchanges.length, context.server.finished.length);
		assert.is(context.server.finished.length, finished + 1, 'the next pipelined request is not served');
	});
}

responses('interim responses precede the response, in HTTP/1.1 only', async context => {
	context.answer = async x => {
		x.sendInterim(103, new HeaderList(['Link', '</a>']));
		await new Promise(resolve => setTimeout(resolve, 5));
		x.sendInterim(103, new HeaderList(['Link', '</b>', 'X', 'a\r\nb']));
		x.sendInterim(101, new HeaderList());
		x.sendInterim(204, new HeaderList());
	};
	const text = withoutDate(await send(context.server.port, GET));
	assert.ok(
		text.startsWith(
			'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\nHTTP/1.1 200',
		),
	);
	assert.ok((await send(context.server.port, 'GET / HTTP/1.0\r\n\r\n')).startsWith('HTTP/1.1 200'));
});

responses('an upgrade gets the byte stream, including bytes that arrived after the head', async context => {
	context.answer = x => {
		x.response.headers.add('Upgrade', 'echo');
		x.upgrade(client => {
			client.on('data', bytes => client.write(bytes));
			client.on('end', () => client.end('bye'));
			client.resume();
		});
	};
	const wire = await openWire(context.server.port);
	wire.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nfirst');
	await wire.until(text => text.endsWith('first'));
	assert.is(
		withoutDate(wire.text),
		'HTTP/1.1 101 Switching Protocols\r\nServer: svc\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nfirst',
	);
	const finished = context.server.finished.length;
	wire.send(' second');
	await wire.until(text => text.endsWith('first second'));
	assert.is(context.server.finished.length, finished, 'the exchange ended before the stream');
	wire.socket.end();
	await wire.until(text => text.endsWith('bye'));
	await wire.whole();
	await new Promise(resolve => setTimeout(resolve, 10));
	assert.is(context.server.finished.length, finished + 1);
});

responses('an upgrade that fails closes only its own connection', async context => {
	context.answer = x =>
		x.upgrade(() => {
			throw new Error('x');
		});
	const text = await send(context.server.port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
	assert.ok(text.startsWith('HTTP/1.1 101 '));
	context.answer = () => {};
	assert.ok((await send(context.server.port, GET)).startsWith('HTTP/1.1 200 '));
});

responses('426 names the protocol to upgrade to, and 205 has no content', async context => {
	context.answer = x => {
		x.response.status = 426;
		x.response.headers.add('Upgrade', 'TLS/1.3');
	};
	assert.match(await send(context.server.port, GET), '\r\nConnection: Upgrade, close\r\n');
	context.answer = x => {
		x.response.status = 205;
		x.response.body = 'hello';
	};
	assert.match(await send(context.server.port, GET), 'Content-Length: 0\r\nConnection: close\r\n\r\n');
});

responses('an upgrade with an unread body, or for HTTP/1.0, is an error', async context => {
	context.answer = x => x.upgrade(client => client.destroy());
	const body = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nab';
	assert.ok((await send(context.server.port, body)).startsWith('HTTP/1.1 500 '));
	assert.ok((await send(context.server.port, 'GET / HTTP/1.0\r\n\r\n')).startsWith('HTTP/1.1 500 '));
});

responses('CONNECT gives 405 unless a handler takes the stream', async context => {
	context.answer = x => {
		x.response.body = 'hello';
	};
	const request = 'CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\nConnection: close\r\n\r\n';
	const text = await send(context.server.port, request);
	assert.ok(text.startsWith('HTTP/1.1 405 '));
	assert.not.match(text, 'hello');
	context.answer = x => {
		x.response.status = 403;
	};
	assert.ok((await send(context.server.port, request)).startsWith('HTTP/1.1 403 '));
	context.answer = x => {
		x.upgrade(client => client.end('tunnel'));
		x.response.status = 200;
	};
	assert.is(withoutDate(await send(context.server.port, request)), 'HTTP/1.1 200 OK\r\nServer: svc\r\n\r\ntunnel');
	assert.is(context.server.exchanges.at(-1)!.received.authority, 'b:443');
});

responses('abort closes the connection without a response', async context => {
	for (const later of [false, true]) {
		context.answer = x => {
			x.abort();
			if (later) return new Promise(resolve => setTimeout(resolve, 5));
		};
		assert.is(await send(context.server.port, GET), '');
	}
});
responses.run();
