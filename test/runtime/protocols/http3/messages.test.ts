/**
 * HTTP/3 messages: bodies with backpressure in both directions, trailers, interim responses, cancellation, and the end of
 * connections.
 */

import * as assert from 'uvu/assert';
import type { BodySource } from '../../../../compiler/exchange/body.ts';
import { isStream } from '../../../../compiler/exchange/body.ts';
import type { Exchange } from '../../../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../../../compiler/exchange/header-list.ts';
import { H3_ERROR } from '../../../../runtime/protocols/http3/http3-codes.ts';
import { until } from '../../../harness.ts';
import {
	certificate,
	data,
	type FrameServer,
	framesOf,
	headers,
	openControlStream,
	POST,
	REQUEST,
	response,
	serve,
	varint,
} from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { connect, freeSession, QuicClient } from './quic-client.ts';

const test = http3Suite('HTTP/3 messages');
const servers: FrameServer[] = [];
const clients: QuicClient[] = [];

async function start(handler: (x: Exchange) => void | Promise<void>, terms = {}): Promise<[FrameServer, QuicClient]> {
	const server = await serve(handler, terms);
	servers.push(server);
	return [server, await open(server)];
}

async function open(server: FrameServer): Promise<QuicClient> {
	const client = await connect(server.port);
	clients.push(client);
	openControlStream(client);
	return client;
}

test.after.each(() => {
	for (const client of clients.splice(0)) client.close();
	for (const server of servers.splice(0)) server.stop();
});

/** Returns a body of `pieces` pieces. It counts how many of them have been pulled. */
function countedBody(
	pieces: number,
	size: number,
	trailers?: HeaderList,
): BodySource & { pulled: number; cancelled: boolean } {
	return {
		pulled: 0,
		cancelled: false,
		...(trailers ? { trailers } : {}),
		pull() {
			if (this.pulled >= pieces) return null;
			this.pulled++;
			return Buffer.alloc(size, 97);
		},
		cancel() {
			this.cancelled = true;
		},
	} as BodySource & { pulled: number; cancelled: boolean };
}

test("handlers see the connection's addresses and TLS facts", async () => {
	const [server, client] = await start(x => {
		x.response.body = x.protocol;
	});
	assert.is((await response(client, client.open().write(headers(), true))).body, 'HTTP/3.0');
	const [x] = server.exchanges;
	const { tls, remoteAddress, localAddress, localPort } = x!.connection;
	assert.is(tls?.version, 'tls1.3');
	assert.is(tls?.protocol, 'h3');
	assert.is(tls?.serverName, 'localhost');
	assert.match(tls?.cipherSuite ?? '', /^TLS_/);
	assert.is(remoteAddress, '127.0.0.1');
	assert.is(localAddress, '127.0.0.1');
	assert.is(localPort, server.port);
});

test('response heads have status, fields, Date and Content-Length', async () => {
	const [, client] = await start(x => {
		x.response.status = 418;
		x.response.headers.add('X-Some', 'thing');
		x.response.headers.add('Connection', 'close');
		x.response.body = 'short';
	});
	const { status, fields } = await response(client, client.open().write(headers(), true));
	assert.is(status, '418');
	assert.is(fields['x-some'], 'thing');
	assert.is(fields.connection, undefined);
	assert.is(fields['content-length'], '5');
	assert.is(fields.server, 'svc');
	assert.ok(fields.date);
});

test('HEAD, 204 and 304 have no body', async () => {
	const [, client] = await start(x => {
		x.response.status = Number(x.request.path.slice(1)) || 200;
		x.response.body = x.response.status === 200 ? 'body' : null;
	});
	const head = REQUEST.map(([name, value]) => [name, name === ':method' ? 'HEAD' : value] as const);
	const answer = await response(client, client.open().write(headers(head), true));
	assert.is(answer.fields['content-length'], '4');
	assert.is(answer.body, '');
	for (const status of ['204', '304']) {
		const asked = REQUEST.map(([name, value]) => [name, name === ':path' ? `/${status}` : value] as const);
		const { status: got, body } = await response(client, client.open().write(headers(asked), true));
		assert.is(got, status);
		assert.is(body, '');
	}
});

test('trailers pass in requests and responses', async () => {
	let seen: HeaderList | undefined;
	const [, client] = await start(async x => {
		const { body } = x.request;
		if (isStream(body)) {
			while ((await body.pull()) !== null);
			seen = body.trailers;
		}
		const trailers = new HeaderList();
		trailers.add('X-Sum', '42');
		x.response.body = countedBody(2, 10, trailers);
	});
	const sent = Buffer.concat([headers(POST), data('abc'), headers([['x-checked', 'yes']])]);
	const { heads, body } = await response(client, client.open().write(sent, true));
	assert.is(seen?.get('x-checked'), 'yes');
	assert.is(body.length, 20);
	assert.equal(heads.at(-1), { 'x-sum': '42' });
});

test('an interim response precedes the final one', async () => {
	let go = (): void => {};
	const [, client] = await start(async x => {
		const hints = new HeaderList();
		hints.add('Link', '</a.css>; rel=preload');
		x.sendInterim(103, hints);
		await new Promise<void>(resolve => {
			go = resolve;
		});
		x.response.body = 'done';
	});
	const stream = client.open().write(headers(), true);
	await client.until('the interim response', () => framesOf(stream.bytes).length === 1);
	assert.is(framesOf(stream.bytes)[0]!.fields![':status'], '103');
	assert.is(framesOf(stream.bytes)[0]!.fields!.link, '</a.css>; rel=preload');
	go();
	assert.is((await response(client, stream)).body, 'done');
});

test('100 (Continue) is sent when the handler reads the body', async () => {
	const [, client] = await start(async x => {
		const { body } = x.request;
		if (isStream(body)) while ((await body.pull()) !== null);
		x.response.body = 'done';
	});
	const stream = client.open().write(headers([...POST, ['expect', '100-continue']]));
	await client.until('the interim response', () => framesOf(stream.bytes).length === 1);
	assert.is(framesOf(stream.bytes)[0]!.fields![':status'], '100');
	stream.write(data('body'), true);
	assert.is((await response(client, stream)).body, 'done');
});

test('a client that does not read stops the source, and later gets the whole response', async () => {
	const body = countedBody(400, 65_536);
	const [, client] = await start(x => {
		x.response.body = body;
	});
	const stream = client.open();
	stream.paused = true;
	stream.write(headers(), true);
	const other = client.open();
	await until('the source to be pulled', () => body.pulled > 0);
	let before = -1;
	// Each iteration lets client and server exchange packets. If nothing is pulled in two hundred iterations, the source has
	// stopped.
	for (let quiet = 0; quiet < 200; ) {
		await new Promise(resolve => setImmediate(resolve));
		client.look();
		quiet = body.pulled === before ? quiet + 1 : 0;
		before = body.pulled;
	}
	assert.ok(body.pulled * 65_536 < 4_000_000, `${body.pulled} pieces were pulled`);
	stream.paused = false;
	const got = await response(client, stream);
	assert.is(got.body.length, 400 * 65_536);
	other.reset(H3_ERROR.cancel);
});

test('an unread request body is stopped by flow control, and arrives complete once it is read', async () => {
	let read = (): void => {};
	let length = 0;
	const [, client] = await start(async x => {
		await new Promise<void>(resolve => {
			read = resolve;
		});
		const { body } = x.request;
		if (isStream(body)) {
			for (let piece = await body.pull(); piece !== null; piece = await body.pull()) length += piece.length;
		}
		x.response.body = String(length);
	});
	const size = 8_000_000;
	const head = Buffer.concat([headers(POST), varint(0, size)]);
	const stream = client.open().write(Buffer.concat([head, Buffer.alloc(size, 98)]), true);
	await until('the request', () => servers[0]!.exchanges.length === 1);
	const x = servers[0]!.exchanges[0]!;
	let before = -1;
	for (let quiet = 0; quiet < 200; ) {
		await new Promise(resolve => setImmediate(resolve));
		client.look();
		quiet = x.bytesReceived === before ? quiet + 1 : 0;
		before = x.bytesReceived;
	}
	assert.ok(x.bytesReceived < 1_000_000, `${x.bytesReceived} bytes were taken`);
	read();
	assert.is((await response(client, stream)).body, String(size));
});

test('a body that nobody reads does not hold up other uploads', async () => {
	const [server, client] = await start(async x => {
		const { body } = x.request;
		if (x.request.path === '/unread') await new Promise<void>(() => {});
		let length = 0;
		if (isStream(body)) {
			for (let piece = await body.pull(); piece !== null; piece = await body.pull()) length += piece.length;
		}
		x.response.body = String(length);
	});
	const upload = (path: string) => {
		const fields = POST.map(([name, value]) => [name, name === ':path' ? path : value] as const);
		const bytes = Buffer.concat([headers(fields), varint(0, 3_000_000), Buffer.alloc(3_000_000, 98)]);
		return client.open().write(bytes, true);
	};
	upload('/unread');
	await until('the request', () => server.exchanges.length === 1);
	for (let i = 0; i < 3; i++) assert.is((await response(client, upload('/'))).body, '3000000');
});

test('a client that cancels its request ends the exchange', async () => {
	const body = countedBody(100_000, 65_536);
	const [server, client] = await start(x => {
		x.response.body = body;
	});
	const stream = client.open();
	stream.paused = true;
	stream.write(headers(POST));
	await until('the source', () => body.pulled > 0);
	stream.reset(H3_ERROR.cancel);
	await until('the end of the exchange', () => server.finished.length === 1);
	assert.ok(body.cancelled);
	assert.is(server.counts.resetsByClient, 1);
	// The connection stays usable.
	body.pulled = 100_000;
	assert.is((await response(client, client.open().write(headers(), true))).status, '200');
});

test('reading a request body fails if the stream is reset', async () => {
	let failure: unknown;
	const [server, client] = await start(async x => {
		const { body } = x.request;
		try {
			if (isStream(body)) while ((await body.pull()) !== null);
		} catch (error) {
			failure = error;
		}
	});
	const stream = client.open().write(Buffer.concat([headers(POST), data('some')]));
	await until('the request', () => server.exchanges.length === 1);
	stream.reset(H3_ERROR.cancel);
	await until('the failure', () => failure !== undefined);
	assert.is((failure as { status: number }).status, 400);
});

test('a source that fails resets the stream', async () => {
	const [, client] = await start(x => {
		x.response.body = {
			length: undefined,
			pull: () => Promise.reject(new Error('broken')),
			cancel() {},
		} as BodySource;
	});
	const stream = client.open().write(headers(), true);
	await client.until('the reset', () => stream.resetCode !== undefined);
	assert.is(stream.resetCode, H3_ERROR.internal);
});

test('one connection serves a thousand requests, a hundred at a time', async () => {
	const [server, client] = await start(x => {
		x.response.body = x.request.path;
	});
	let remaining = 1000;
	const worker = async (): Promise<void> => {
		while (remaining-- > 0) {
			const path = `/${remaining}`;
			const asked = REQUEST.map(([name, value]) => [name, name === ':path' ? path : value] as const);
			const stream = client.open();
			const got = await response(client, stream.write(headers(asked), true));
			assert.is(got.body, path);
			stream.stop();
		}
	};
	await Promise.all(Array.from({ length: 50 }, worker));
	assert.is(server.counts.streams, 1000);
	assert.is(server.finished.length, 1000);
});

test('draining sends GOAWAY, completes requests in progress, and then closes the connection', async () => {
	let go = (): void => {};
	const [server, client] = await start(async x => {
		await new Promise<void>(resolve => {
			go = resolve;
		});
		x.response.body = 'last';
	});
	const stream = client.open().write(headers(), true);
	await until('the request', () => server.exchanges.length === 1);
	server.protocol.drain();
	// The ID is 2^53 − 4, so any request already on its way is still served (RFC 9114 §5.2).
	const goAway = Buffer.from('0708c01ffffffffffffc', 'hex');
	await client.until('the first GOAWAY', () => Buffer.from(client.stream(3)!.bytes).includes(goAway));
	assert.is(client.closed, undefined);
	go();
	assert.is((await response(client, stream)).body, 'last');
	const end = await client.end();
	assert.equal(end, { code: H3_ERROR.none, transport: false, byServer: true });
	assert.is(server.protocol.connections, 0);
});

test('an idle connection is closed after the timeout', async () => {
	const [, client] = await start(() => {}, { limits: { idleTimeout: 200 } });
	assert.is((await client.end()).code, H3_ERROR.none);
});

test('a head that is not complete in time resets its stream', async () => {
	const [server, client] = await start(() => {}, { limits: { headTimeout: 200 } });
	const stream = client.open().write(headers().subarray(0, 3));
	await client.until('the reset', () => stream.resetCode !== undefined);
	assert.is(stream.resetCode, H3_ERROR.cancel);
	assert.ok(server.refused.includes('header_timeout'));
});

test('a response that the client does not read is reset after the timeout', async () => {
	const [server, client] = await start(
		x => {
			x.response.body = countedBody(1000, 65_536);
		},
		{ limits: { writeIdleTimeout: 300 } },
	);
	const stream = client.open();
	stream.paused = true;
	stream.write(headers(), true);
	await until('the end of the exchange', () => server.finished.length === 1);
	assert.ok(server.refused.includes('write_timeout'));
});

test('TLS sessions are resumed', async () => {
	const [server, client] = await start(x => {
		x.response.body = 'again';
	});
	assert.is((await response(client, client.open().write(headers(), true))).body, 'again');
	const session = client.session();
	client.close();
	const second = await connect(server.port, { session });
	clients.push(second);
	assert.ok(second.resumed);
	freeSession(session);
	assert.is((await response(second, second.open().write(headers(), true))).body, 'again');
	assert.ok(server.exchanges.at(-1)!.connection.tls?.resumed);
});

test('a session that is resumed after a change of the ticket keys gets a ticket under the new key', async () => {
	let resumeLater: (() => void) | undefined;
	const own = await certificate;
	const server = await serve(
		x => {
			x.response.body = 'again';
		},
		{
			// Every second choice of a certificate takes a while, and OpenSSL then processes the ClientHello a second time.
			choose: (_hello: unknown, resume: () => void) => {
				if (resumeLater !== undefined) {
					resumeLater = undefined;
					return own;
				}
				resumeLater = resume;
				setImmediate(resume);
				return 'wait';
			},
		},
	);
	servers.push(server);
	const { tls } = server.endpoint;
	const [oldKey, newKey, nextKey] = [Buffer.alloc(48, 1), Buffer.alloc(48, 2), Buffer.alloc(48, 3)];
	const visit = async (session?: bigint): Promise<{ resumed: boolean; session: bigint }> => {
		const client = await connect(server.port, session === undefined ? {} : { session });
		clients.push(client);
		assert.is((await response(client, client.open().write(headers(), true))).body, 'again');
		const result = { resumed: client.resumed, session: client.session() };
		client.close();
		return result;
	};
	tls.useTicketKeys([oldKey]);
	const first = await visit();
	assert.not(first.resumed);
	tls.useTicketKeys([newKey, nextKey, oldKey]);
	const second = await visit(first.session);
	assert.ok(second.resumed, 'with the key before');
	tls.useTicketKeys([nextKey, newKey]);
	const third = await visit(second.session);
	assert.ok(third.resumed, 'the new ticket is encrypted with the new key');
	assert.not((await visit(first.session)).resumed, 'the oldest key is gone');
	tls.useTicketKeys([newKey, nextKey]);
	assert.ok((await visit(third.session)).resumed, 'a machine whose clock is behind accepts tickets of the next key');
	for (const { session } of [first, second, third]) freeSession(session);
});

test('a client without h3 is refused', async () => {
	const [server] = await start(() => {});
	const other = new QuicClient(server.port, { alpn: 'h4' });
	clients.push(other);
	await until('the refusal', () => server.handshakes.includes('failed'));
	assert.not.ok(other.connected);
});

test('a handshake waits for a certificate that arrives late', async () => {
	const own = await certificate;
	let resumeLater: (() => void) | undefined;
	const [, client] = await start(
		x => {
			x.response.body = 'late';
		},
		{
			choose: (_hello: unknown, resume: () => void) => {
				if (resumeLater !== undefined) return own;
				resumeLater = resume;
				setImmediate(resume);
				return 'wait';
			},
		},
	);
	assert.is((await response(client, client.open().write(headers(), true))).body, 'late');
});

test('a name without a certificate is refused', async () => {
	const server = await serve(() => {}, { choose: () => ({ alert: 112 }) });
	servers.push(server);
	const client = new QuicClient(server.port);
	clients.push(client);
	await until('the refusal', () => server.handshakes.includes('failed'));
	assert.not.ok(client.connected);
});

test.run();
