/** Clients that read little or nothing: bodies are pulled only as far as the client's windows allow. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../../compiler/exchange/body.ts';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { HeaderList } from '../../../../compiler/exchange/header-list.ts';
import { CLIENT_PREFACE, FRAME_FLAG, FRAME_TYPE } from '../../../../runtime/protocols/http2/frame-codes.ts';
import {
	INITIAL_CONNECTION_WINDOW,
	MAX_BUFFERED_BYTES,
	MAX_CONCURRENT_STREAMS,
} from '../../../../runtime/protocols/http2/limits.ts';
import type { RequestHead } from '../../../../runtime/protocols/http2/request-fields.ts';
import { RequestGate } from '../../../../runtime/protocols/http2/request-gate.ts';
import type { Http2Stream } from '../../../../runtime/protocols/http2/stream.ts';
import { TextSource } from '../../../../runtime/protocols/text-source.ts';
import { until } from '../../../harness.ts';
import {
	encodeUint32s,
	type FrameClient,
	type FrameServer,
	frame,
	openFrameClient,
	POST,
	REQUEST,
	request,
	serve,
	settings,
} from './frames.ts';

const test = suite('HTTP/2: unread responses');

/** A body of the given length that records how much of it is pulled. If `known` is false, the body does not declare its length. */
class WatchedBody implements BodySource {
	readonly length: number | undefined;
	trailers: HeaderList | undefined = undefined;
	readonly asked: number[] = [];
	idled = 0;
	onPause: () => void = () => {};
	#left: number;

	constructor(length: number, known = true) {
		this.length = known ? length : undefined;
		this.#left = length;
	}

	pull(most = 0): Uint8Array | null {
		this.asked.push(most);
		if (this.#left === 0) return null;
		const size = Math.min(this.#left, most);
		this.#left -= size;
		return Buffer.alloc(size, 'x');
	}

	onIdle(): void {
		this.idled++;
		this.onPause();
	}

	cancel(): void {}
}

/** Opens a connection with the given initial flow-control window of each stream, in bytes. */
async function openWith(port: number, window: number): Promise<FrameClient> {
	const client = await openFrameClient(port, false);
	client.send(Buffer.from(CLIENT_PREFACE), settings(4, window));
	return client;
}

async function withWindow(
	window: number,
	handler: Handler,
	run: (client: FrameClient, server: FrameServer) => Promise<void>,
): Promise<void> {
	const server = await serve(handler);
	const client = await openWith(server.port, window);
	try {
		await run(client, server);
	} finally {
		client.socket.destroy();
		await server.stop();
	}
}

const widen = (stream: number, bytes: number) => frame(FRAME_TYPE.windowUpdate, 0, stream, encodeUint32s(bytes));
const bytesOf = (client: FrameClient, stream: number) =>
	client.frames
		.filter(({ type, stream: id }) => type === FRAME_TYPE.data && id === stream)
		.reduce((sum, { payload }) => sum + payload.length, 0);

for (const known of [true, false]) {
	test(`nothing is pulled before the stream has a window, and then only what fits (known length: ${known})`, async () => {
		const body = new WatchedBody(100_000, known);
		await withWindow(
			0,
			x => {
				x.response.body = body;
			},
			async client => {
				client.send(request(1));
				assert.is(await client.status(1), '200');
				await client.alive();
				assert.equal(body.asked, []);
				assert.is(body.idled, 1);
				client.send(widen(1, 5000));
				await client.until(() => bytesOf(client, 1) === 5000);
				await client.alive();
				assert.is(body.asked[0], 5000);
				// If the length is unknown, another small pull is needed to find out whether the body has ended.
				assert.equal(body.asked.slice(1), known ? [] : [5000]);
				client.send(widen(1, 40_000));
				await client.until(() => bytesOf(client, 1) === 45_000);
				await client.alive();
				assert.ok(
					body.asked.every(most => most <= 45_000),
					String(body.asked),
				);
			},
		);
	});
}

test('nothing is pulled while the connection window is exhausted, however large the stream windows are', async () => {
	const bodies: WatchedBody[] = [];
	await withWindow(
		1_000_000,
		x => {
			const body = new WatchedBody(100_000);
			bodies.push(body);
			x.response.body = body;
		},
		async client => {
			for (const stream of [1, 3, 5]) client.send(request(stream));
			await client.until(() => [1, 3, 5].reduce((sum, stream) => sum + bytesOf(client, stream), 0) === 65_535);
			await client.alive();
			const pulled = bodies.flatMap(({ asked }) => asked).reduce((sum, most) => sum + most, 0);
			assert.ok(pulled <= 3 * 65_535, String(pulled));
			client.send(request(7));
			assert.is(await client.status(7), '200');
			await client.alive();
			assert.equal(bodies[3]!.asked, []);
			client.send(widen(0, 1_000_000));
			for (const stream of [1, 3, 5, 7]) assert.is((await client.body(stream)).length, 100_000);
		},
	);
});

test('a body that exactly fills the window ends its stream, with trailers', async () => {
	const trailing = new WatchedBody(1000, false);
	const plain = new WatchedBody(1000, false);
	await withWindow(
		1000,
		x => {
			x.response.body = x.request.path === '/trailers' ? trailing : plain;
			if (x.request.path === '/trailers') trailing.trailers = new HeaderList(['grpc-status', '0']);
		},
		async client => {
			client.send(request(1));
			assert.is((await client.body(1)).length, 1000);
			client.send(
				request(3, [
					[':method', 'GET'],
					[':scheme', 'http'],
					[':path', '/trailers'],
					[':authority', 'a'],
				]),
			);
			assert.is((await client.body(3)).length, 1000);
		},
	);
});

test('if a client stops reading, memory is released after a while, and the response can continue where it stopped', async () => {
	const body = new WatchedBody(100_000);
	await withWindow(
		30_000,
		x => {
			x.response.body = body;
		},
		async client => {
			client.send(request(1));
			await client.until(() => bytesOf(client, 1) === 30_000);
			await new Promise<void>(resolve => {
				body.onIdle = resolve;
				if (body.idled > 0) resolve();
			});
			client.send(widen(1, 100_000), widen(0, 100_000));
			assert.is((await client.body(1)).length, 100_000);
		},
	);
});

test('streams share the limit of pulled bytes', async () => {
	const bodies: WatchedBody[] = [];
	await withWindow(
		0x7fffffff,
		x => {
			const body = new WatchedBody(50_000_000);
			bodies.push(body);
			x.response.body = body;
		},
		async client => {
			client.send(widen(0, 0x7fff0000 - 65_535));
			const streams = Array.from({ length: 100 }, (_, i) => 1 + 2 * i);
			client.socket.pause();
			client.send(...streams.map(stream => request(stream)));
			client.socket.resume();
			await client.until(() => bodies.length === 100 && bodies.every(({ asked }) => asked.length > 0));
			const first = bodies.at(-1)!.asked[0]!;
			assert.ok(first <= MAX_BUFFERED_BYTES / 50, String(first));
		},
	);
});

for (const text of ['a'.repeat(3_000_000), '\u{1f600}\u00e9'.repeat(400_000)]) {
	test(`requests wait while much is unread, and start one by one (text of ${text.length} characters)`, async () => {
		const server = await serve(x => {
			x.response.body = text;
		});
		const client = await openWith(server.port, 0);
		const streams = Array.from({ length: 10 }, (_, i) => 1 + 2 * i);
		try {
			client.send(...streams.map(stream => request(stream)));
			await client.alive();
			const begun = server.exchanges.length;
			const most = Math.ceil(MAX_BUFFERED_BYTES / Buffer.byteLength(text));
			assert.is(begun, most, 'as many requests as fit within the limit');
			// If a client asks for another response, its request first waits for about a second, but not forever.
			await client.until(() => server.exchanges.length > most);
			client.send(...streams.map(stream => widen(stream, 0x7fffff00)), widen(0, 0x7fff0000 - 65_535));
			for (const stream of streams) {
				const body = await client.body(stream);
				assert.ok(Buffer.from(body, 'latin1').equals(Buffer.from(text)), `stream ${stream}`);
			}
			assert.is(server.finished.length, streams.length);
		} finally {
			client.socket.destroy();
			await server.stop();
		}
	});
}

test('a waiting request still receives its body, and can be reset', async () => {
	const bodies: string[] = [];
	const server = await serve(async x => {
		const { body } = x.request;
		if (body === null) {
			x.response.body = 'a'.repeat(5_000_000);
			return;
		}
		let got = '';
		for (let piece = await (body as BodySource).pull(); piece !== null; piece = await (body as BodySource).pull()) {
			got += Buffer.from(piece).toString();
		}
		bodies.push(got);
		x.response.body = 'got it';
	});
	const client = await openWith(server.port, 0);
	try {
		client.send(request(1));
		await client.status(1);
		const post = [
			[':method', 'POST'],
			[':scheme', 'http'],
			[':path', '/'],
			[':authority', 'a'],
		] as const;
		client.send(request(3, post, FRAME_FLAG.endHeaders), frame(FRAME_TYPE.data, 0, 3, Buffer.from('first ')));
		client.send(request(5, post, FRAME_FLAG.endHeaders), frame(FRAME_TYPE.resetStream, 0, 5, encodeUint32s(8)));
		client.send(frame(FRAME_TYPE.data, FRAME_FLAG.endStream, 3, Buffer.from('second')));
		await client.alive();
		assert.is(server.exchanges.length, 1);
		client.send(frame(FRAME_TYPE.resetStream, 0, 1, encodeUint32s(8)), widen(3, 1000));
		assert.is(await client.body(3), 'got it');
		assert.equal(bodies, ['first second']);
		assert.is(server.exchanges.length, 2);
		assert.is(server.finished.length, 2);
	} finally {
		client.socket.destroy();
		await server.stop();
	}
});

test('the content of waiting requests that are reset leaves the connection window', async () => {
	const server = await serve(x => {
		x.response.body = 'a'.repeat(5_000_000);
	});
	const client = await openWith(server.port, 0);
	const connectionWindow = (): number =>
		client.frames
			.filter(({ type, stream }) => type === FRAME_TYPE.windowUpdate && stream === 0)
			.reduce((bytes, { payload }) => bytes + payload.readUInt32BE(0), 65_535);
	try {
		client.send(request(1));
		await client.status(1);
		assert.is(connectionWindow(), INITIAL_CONNECTION_WINDOW);
		const content = Buffer.alloc(16_000, 'x');
		for (let stream = 3; stream < 103; stream += 2) {
			client.send(request(stream, POST, FRAME_FLAG.endHeaders));
			client.send(...Array.from({ length: 4 }, () => frame(FRAME_TYPE.data, 0, stream, content)));
			client.send(frame(FRAME_TYPE.resetStream, 0, stream, encodeUint32s(8)));
			await client.alive();
			const sentBytes = ((stream - 1) / 2) * 4 * content.length;
			assert.ok(connectionWindow() - sentBytes >= 4 * content.length, `no window is left after stream ${stream}`);
		}
		assert.is(server.exchanges.length, 1);
	} finally {
		client.socket.destroy();
		await server.stop();
	}
});

/** A request that the server refuses, whatever it holds back. */
const REFUSED = [...REQUEST.filter(([name]) => name !== ':scheme'), [':scheme', 'ftp']] as const;

/**
 * Runs a test with a client that has stopped reading in the middle of a long response, so that its socket is full. The request on
 * `stream` waits for that reason, and later streams can be used.
 */
async function withFullSocket(
	handler: Handler,
	run: (client: FrameClient, server: FrameServer, stream: number) => Promise<void>,
): Promise<void> {
	const server = await serve(x => {
		if (server.exchanges.length > 1) return handler(x);
		x.response.body = new WatchedBody(100_000_000);
	});
	const client = await openWith(server.port, 0x7fffffff);
	try {
		client.send(widen(0, 0x7fff0000 - 65_535), request(1));
		await client.status(1);
		client.socket.pause();
		let stream = 3;
		for (; ; stream += 4) {
			assert.ok(stream < 2000, 'no request waits');
			const refusedCount = server.refused.length;
			client.send(request(stream), request(stream + 2, REFUSED));
			await until('the request is refused', () => server.refused.length > refusedCount);
			if (server.exchanges.length <= server.refused.length) break;
		}
		await run(client, server, stream);
	} finally {
		client.socket.destroy();
		await server.stop();
	}
}

test('a client that does not read the heads of many responses yet is not disconnected', async () => {
	const addLongField: Handler = x => void x.response.headers.add('X-Long', '\\'.repeat(5000));
	await withFullSocket(addLongField, async (client, server, lastStream) => {
		const streams = Array.from({ length: 100 }, (_, i) => lastStream + 4 + 2 * i);
		client.send(...streams.map(stream => request(stream)));
		client.send(request(lastStream + 204, REFUSED));
		const refusedCount = server.refused.length;
		await until('the last request is refused', () => server.refused.length > refusedCount);
		client.socket.resume();
		for (const stream of [lastStream, ...streams]) assert.is(await client.status(stream), '200');
		assert.equal(server.cut, []);
	});
});

test('a request that waits because the socket is full starts before a long response ends', async () => {
	const answerShortly: Handler = x => {
		x.response.body = 'short';
	};
	await withFullSocket(answerShortly, async (client, _server, stream) => {
		client.socket.resume();
		assert.is(await client.status(stream), '200');
		assert.not(client.frames.some(({ stream: id, flags }) => id === 1 && (flags & FRAME_FLAG.endStream) !== 0));
	});
});

test('a client that reads nothing is disconnected if it keeps sending requests that are refused', async () => {
	await withFullSocket(
		() => {},
		async (client, server, lastStream) => {
			for (let stream = lastStream + 4; server.cut.length === 0; stream += 2) {
				assert.ok(stream < 5000, 'not cut off');
				const refusedCount = server.refused.length;
				client.send(request(stream, REFUSED));
				await until('the request is refused', () => server.refused.length > refusedCount);
			}
			assert.equal(server.cut, ['made_you_reset']);
		},
	);
});

test('requests that are canceled while they wait leave memory', async () => {
	setFlagsFromString('--expose-gc');
	const collectGarbage = runInNewContext('gc') as () => void;
	const gate = new RequestGate(
		() => assert.unreachable('a request starts'),
		() => true,
	);
	const canceledStream = { isGone: true, expectBody() {} } as unknown as Http2Stream;
	const heads: WeakRef<readonly string[]>[] = [];
	for (let i = 0; i < 1000; i++) {
		const items = [String(i)];
		heads.push(new WeakRef(items));
		gate.startOrDelay(canceledStream, { items } as unknown as RequestHead, 0);
	}
	// Until the next turn, weak references keep their targets alive.
	await new Promise(resolve => setImmediate(resolve));
	collectGarbage();
	const heldCount = heads.filter(head => head.deref() !== undefined).length;
	assert.ok(heldCount <= MAX_CONCURRENT_STREAMS, `${heldCount} requests are still in memory`);
});

test('a text is split between characters at any requested size', () => {
	const text = 'a\u{1f600}b\u00e9\u{10ffff}\u20acc'.repeat(50);
	const bytes = Buffer.from(text);
	for (let most = 1; most < 40; most++) {
		const source = new TextSource(text, bytes.length);
		const pieces: Uint8Array[] = [];
		for (let piece = source.pull(most); piece !== null; piece = source.pull(most)) {
			assert.ok(piece.length <= Math.max(most, 4), `${piece.length} for ${most}`);
			pieces.push(piece);
		}
		assert.ok(Buffer.concat(pieces).equals(bytes), String(most));
	}
});

test.run();
