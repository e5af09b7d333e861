/**
 * The requirements of RFC 9114 for the frames and streams that a server sends, and for its behavior over the life of a
 * connection.
 */

import * as assert from 'uvu/assert';
import type { BodySource } from '../../../../compiler/exchange/body.ts';
import type { Exchange } from '../../../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../../../compiler/exchange/header-list.ts';
import { FORBIDDEN_SETTINGS, H3_ERROR, SETTING_ID } from '../../../../runtime/protocols/http3/http3-codes.ts';
import { MAX_CONNECTION_STREAMS, MAX_LATE_STREAMS } from '../../../../runtime/protocols/http3/limits.ts';
import { VarintReader } from '../../../../runtime/protocols/http3/varint.ts';
import { until } from '../../../harness.ts';
import {
	data,
	type FrameServer,
	frame,
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
import { type ClientStream, connect, type QuicClient } from './quic-client.ts';

const test = http3Suite('duties of an HTTP/3 server');
const servers: FrameServer[] = [];
const clients: QuicClient[] = [];
const CONTROL = 3;
const GOAWAY = 7;

async function start(handler: (x: Exchange) => void | Promise<void>): Promise<[FrameServer, QuicClient]> {
	const server = await serve(handler);
	servers.push(server);
	const client = await connect(server.port);
	clients.push(client);
	return [server, client];
}

const hello = (x: Exchange): void => {
	x.response.body = 'hello';
};

/** Asserts that the connection still serves requests. */
async function assertServed(client: QuicClient): Promise<void> {
	assert.is((await response(client, client.open().write(headers(), true))).body, 'hello');
}

async function assertEndsWith(client: QuicClient, code: number): Promise<void> {
	assert.equal(await client.end(), { code, transport: false, byServer: true });
}

/** Returns the integers in these bytes. */
function decodeIntegers(bytes: Buffer): number[] {
	const reader = new VarintReader();
	return [...bytes].flatMap(byte => (reader.push(byte) ? [reader.value] : []));
}

/** Returns the stream IDs in the GOAWAY frames received so far. */
function goAwayIds(client: QuicClient): number[] {
	const frames = framesOf(client.stream(CONTROL)?.bytes ?? Buffer.alloc(0), 1);
	return frames.filter(({ type }) => type === GOAWAY).flatMap(({ payload }) => decodeIntegers(payload));
}

test.after.each(() => {
	for (const client of clients.splice(0)) client.close();
	for (const server of servers.splice(0)) server.stop();
});

test('6.2.1, 7.2.4: SETTINGS come first on the only control stream, without reserved or repeated settings', async () => {
	const [, client] = await start(hello);
	openControlStream(client);
	await assertServed(client);
	const opened = [...client.streams.values()].filter(({ id }) => (id & 3) === 3);
	assert.equal(
		opened.map(({ id }) => id),
		[CONTROL],
	);
	const { bytes, ended, resetCode } = opened[0]!;
	assert.is(bytes[0], 0);
	const frames = framesOf(bytes, 1);
	assert.equal(
		frames.map(({ type }) => type),
		[4],
	);
	const numbers = decodeIntegers(frames[0]!.payload);
	const identifiers = numbers.filter((_, at) => at % 2 === 0);
	assert.is(new Set(identifiers).size, identifiers.length);
	assert.not.ok(identifiers.some(id => FORBIDDEN_SETTINGS.has(id)));
	assert.is(numbers[identifiers.indexOf(SETTING_ID.enableConnectProtocol) * 2 + 1], 1);
	// A QPACK setting that is not sent is 0 (RFC 9204 §5).
	assert.not.ok(identifiers.includes(SETTING_ID.qpackMaxTableCapacity));
	assert.not.ok(ended || resetCode !== undefined);
});

test('3.2, 7.2.4.2: requests are served before the SETTINGS of the client arrive', async () => {
	const [, client] = await start(hello);
	await assertServed(client);
	openControlStream(client);
	await assertServed(client);
});

test('6.1, 6.2: a client may open a hundred requests and three unidirectional streams of 1,024 bytes at once', async () => {
	const [server, client] = await start(hello);
	client.open(true).write(Buffer.concat([varint(0), frame(4, varint(0x21, 1)), frame(0x21, Buffer.alloc(1016))]));
	for (const type of [2, 3]) client.open(true).write(varint(type));
	const streams = Array.from({ length: 100 }, () => client.open().write(headers(POST)));
	await until('the requests', () => server.exchanges.length === 100);
	for (const stream of streams) assert.is((await response(client, stream.write(data('x'), true))).body, 'hello');
});

test('6.2: a unidirectional stream may be reset before its type arrives', async () => {
	const [, client] = await start(hello);
	openControlStream(client);
	client.open(true).reset(H3_ERROR.none);
	client.open(true).write(Buffer.of(0x40)).reset(H3_ERROR.none);
	await assertServed(client);
});

for (const [name, type] of [
	['control', 0],
	['encoder', 2],
	['decoder', 3],
] as const) {
	test(`6.2.1, QPACK 4.2: a reset of the ${name} stream ends the connection`, async () => {
		const [, client] = await start(hello);
		const critical = client.open(true).write(type === 0 ? Buffer.concat([varint(0), frame(4)]) : varint(type));
		// The response shows that the server has received the stream that was opened before the request.
		await assertServed(client);
		critical.reset(H3_ERROR.cancel);
		await assertEndsWith(client, H3_ERROR.closedCriticalStream);
	});
}

test('6.2.1: a client that stops reading our control stream ends the connection', async () => {
	const [, client] = await start(hello);
	openControlStream(client);
	await assertServed(client);
	client.stream(CONTROL)!.stop();
	// Only when the server sends on its control stream again does it learn that the client has stopped reading it.
	servers[0]!.protocol.drain();
	await assertEndsWith(client, H3_ERROR.closedCriticalStream);
});

test('4.1: a complete response to an incomplete request is followed by a request to stop, not by a reset', async () => {
	const [server, client] = await start(x => {
		x.response.status = 403;
		x.response.body = 'no';
	});
	openControlStream(client);
	const stream = client
		.open()
		.write(Buffer.concat([headers([...POST, ['content-length', '900000000']]), data('some')]));
	const answer = await response(client, stream);
	assert.is(answer.status, '403');
	assert.is(answer.body, 'no');
	await client.until('the request to stop', () => stream.stopped);
	assert.is(stream.resetCode, undefined);
	await until('the end of the exchange', () => server.finished.length === 1);
});

test('4.1, 4.2: responses have lowercase names and no field of the connection, in heads and trailers', async () => {
	const forbidden = ['Connection', 'Keep-Alive', 'Proxy-Connection', 'Transfer-Encoding', 'Upgrade'];
	const list = (): HeaderList => new HeaderList([...forbidden.flatMap(name => [name, 'x']), 'X-Some', 'Value']);
	const [, client] = await start(x => {
		x.sendInterim(103, list());
		for (const name of forbidden) x.response.headers.add(name, 'x');
		x.response.headers.add('X-Some', 'Value');
		let remaining = 2;
		const trailers = list();
		x.response.body = {
			length: undefined,
			trailers,
			pull: () => (remaining-- > 0 ? Buffer.from('piece') : null),
			cancel() {},
		} as BodySource;
	});
	openControlStream(client);
	const stream = client.open().write(headers(), true);
	const { heads } = await response(client, stream);
	assert.equal(
		heads.map(head => head[':status']),
		['103', '200', undefined],
	);
	for (const head of heads) {
		assert.is(head['x-some'], 'Value');
		for (const name of Object.keys(head)) {
			assert.is(name, name.toLowerCase());
			assert.not.ok(
				forbidden.some(other => other.toLowerCase() === name),
				name,
			);
		}
	}
	const order = framesOf(stream.bytes).map(({ type }) => (type === 1 ? 'H' : type === 0 ? 'D' : type));
	assert.match(order.join(''), /^HHD+H$/);
});

test('4.2.1: handlers see one Cookie, whose crumbs were joined', async () => {
	const [server, client] = await start(hello);
	const fields = [...REQUEST, ['cookie', 'a=1'], ['accept', '*/*'], ['cookie', 'b=2'], ['cookie', 'c=3']] as const;
	await response(client, client.open().write(headers(fields), true));
	assert.equal(server.exchanges[0]!.request.headers.getAll('cookie'), ['a=1; b=2; c=3']);
});

test('4.1.2: handlers never see a malformed request', async () => {
	const [server, client] = await start(hello);
	for (const fields of [
		[...REQUEST, ['connection', 'close']],
		[...REQUEST, ['X', '1']],
	] as const) {
		const stream = client.open().write(headers(fields as typeof REQUEST), true);
		await client.until('the reset', () => stream.resetCode !== undefined);
		assert.is(stream.resetCode, H3_ERROR.message);
	}
	assert.is(server.exchanges.length, 0);
});

test('4.5: 101 is never sent', async () => {
	const [, client] = await start(x => {
		x.sendInterim(101, new HeaderList());
		x.response.status = 101;
	});
	const { heads } = await response(client, client.open().write(headers(), true));
	assert.equal(
		heads.map(head => head[':status']),
		['500'],
	);
});

test('8: unknown error codes in resets are as good as known ones', async () => {
	const [server, client] = await start(x => (x.request.method === 'POST' ? new Promise(() => {}) : hello(x)));
	openControlStream(client);
	const stream = client.open().write(headers(POST));
	await until('the request', () => server.exchanges.length === 1);
	stream.reset(0x3fff_ffff);
	await until('the cancellation', () => server.counts.resetsByClient === 1);
	await assertServed(client);
});

test('5.2: a client that has opened many streams must use another connection', async () => {
	const group = 64;
	let release = (): void => {};
	const held = new Promise<void>(resolve => {
		release = resolve;
	});
	const [server, client] = await start(x => (x.request.path === '/held' ? held : hello(x)));
	let answeredCount = 0;
	let rejected = 0;
	const openUntil = async (condition: () => boolean): Promise<void> => {
		while (!condition()) {
			const streams = Array.from({ length: group }, () => client.open().write(headers(), true));
			const isOver = (): boolean => streams.every(({ ended, resetCode }) => ended || resetCode !== undefined);
			await client.until('the responses', () => isOver() || client.closed !== undefined);
			if (client.closed !== undefined) return;
			for (const stream of streams) {
				if (stream.resetCode === H3_ERROR.rejected) rejected++;
				else answeredCount++;
				stream.stop();
			}
		}
	};
	client.open().write(headers([...REQUEST.slice(0, 3), [':path', '/held']]), true);
	await openUntil(() => goAwayIds(client).length > 0);
	assert.ok(Math.abs(answeredCount - MAX_CONNECTION_STREAMS) <= 2 * group, `${answeredCount} answered`);
	// This client opens streams in spite of the GOAWAY.
	await openUntil(() => client.closed !== undefined);
	release();
	assert.is(goAwayIds(client).length, 2);
	assert.ok(rejected > 0);
	assert.ok(answeredCount <= MAX_CONNECTION_STREAMS + MAX_LATE_STREAMS + group, `${answeredCount} answered`);
	assert.ok(answeredCount + rejected <= MAX_CONNECTION_STREAMS + 2 * MAX_LATE_STREAMS + group, `${rejected} rejected`);
	await assertEndsWith(client, H3_ERROR.excessiveLoad);
	assert.equal(server.cut, ['made_you_reset']);
});

test('5.2: after the last GOAWAY, earlier streams are served and later ones rejected', async () => {
	const [server, client] = await start(hello);
	openControlStream(client);
	const early: ClientStream = client.open().write(headers().subarray(0, 5));
	const begun = client.open().write(headers(POST));
	await until('the request', () => server.exchanges.length === 1);
	server.protocol.drain();
	await client.until('the last GOAWAY', () => goAwayIds(client).length === 2);
	const [first, last] = goAwayIds(client) as [number, number];
	assert.is(first % 4, 0);
	assert.is(last, begun.id + 4);
	assert.ok(last <= first);
	const late = client.open().write(headers(), true);
	await client.until('the rejection', () => late.resetCode !== undefined);
	assert.is(late.resetCode, H3_ERROR.rejected);
	assert.is(server.exchanges.length, 1);
	// The ID of this stream is lower than the ID in the GOAWAY.
	assert.is((await response(client, early.write(headers().subarray(5), true))).body, 'hello');
	assert.is((await response(client, begun.write(data('x'), true))).body, 'hello');
	await assertEndsWith(client, H3_ERROR.none);
});

test.run();
