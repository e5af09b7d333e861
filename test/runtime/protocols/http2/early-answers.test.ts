/** HTTP/2 responses that are sent before the request body is complete, because no handler reads the body. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { FRAME_FLAG, FRAME_TYPE } from '../../../../runtime/protocols/http2/frame-codes.ts';
import { RESET_DELAY_MS } from '../../../../runtime/protocols/http2/limits.ts';
import { type FrameClient, frame, POST, request, withClient } from './frames.ts';

const test = suite('HTTP/2: early responses');

/** Length of the request bodies in bytes. It is larger than what the server would discard to keep a connection usable. */
const UPLOAD_BYTES = 1_000_000;
const UPLOAD_FIELDS = [...POST, ['content-length', String(UPLOAD_BYTES)]] as const;

const answering =
	(status: number): Handler =>
	x => {
		x.response.status = status;
		x.response.body = 'early';
	};

const isHead = ({ type, stream }: { type: number; stream: number }) => type === FRAME_TYPE.headers && stream === 1;

function begin(client: FrameClient, fields: typeof POST = UPLOAD_FIELDS): void {
	client.send(request(1, fields, FRAME_FLAG.endHeaders));
}

/**
 * Sends the bytes of a body from `sent` to `end`, as far as the flow-control windows allow. Returns the number of bytes sent so
 * far.
 */
async function upload(client: FrameClient, sent: number, end: number): Promise<number> {
	let at = sent;
	while (at < end) {
		const granted = (stream: number) =>
			client.frames
				.filter(({ type, stream: id }) => type === FRAME_TYPE.windowUpdate && id === stream)
				.reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 65_535);
		const room = Math.min(granted(0), granted(1)) - at;
		if (room <= 0) {
			const seen = client.frames.length;
			await client.until(() => client.frames.length > seen);
			continue;
		}
		const size = Math.min(room, 16_384, end - at);
		at += size;
		client.send(frame(FRAME_TYPE.data, at === UPLOAD_BYTES ? FRAME_FLAG.endStream : 0, 1, Buffer.alloc(size)));
	}
	return at;
}

test('an error response is sent at once, and the reset only after the client has had time to read it', async () => {
	await withClient(answering(413), async client => {
		begin(client);
		client.send(frame(FRAME_TYPE.data, 0, 1, Buffer.alloc(1000)));
		assert.is(await client.body(1), 'early');
		// The server accepts data that the client sends before it has read the response.
		await upload(client, 1000, 200_000);
		await client.alive();
		assert.not.ok(client.frames.some(({ type }) => type === FRAME_TYPE.resetStream));
		const answered = performance.now();
		await client.until(({ type }) => type === FRAME_TYPE.resetStream);
		assert.is(await client.reset(1), 0);
		assert.ok(performance.now() - answered > 500, 'the reset came before the client could have read the response');
		client.send(request(3, [...POST, ['content-length', '0']]));
		assert.is(await client.status(3), '413');
	});
});

test('a success response is sent when the request is complete, and its windows are raised until then', async () => {
	await withClient(answering(200), async (client, server) => {
		begin(client);
		await upload(client, 0, UPLOAD_BYTES - 1);
		await client.alive();
		assert.not.ok(client.frames.some(isHead));
		await upload(client, UPLOAD_BYTES - 1, UPLOAD_BYTES);
		assert.is(await client.status(1), '200');
		assert.is(await client.body(1), 'early');
		assert.is(server.exchanges[0]!.bytesReceived, UPLOAD_BYTES);
		await client.alive();
		assert.not.ok(client.frames.some(({ type }) => type === FRAME_TYPE.resetStream));
		assert.is(server.finished.length, 1);
	});
});

/** Responds with a body in two delayed pieces. */
const streamingHandler: Handler = x => {
	const pieces = [Buffer.from('ear'), Buffer.from('ly')];
	x.response.status = 200;
	x.response.body = {
		length: undefined,
		pull: () => new Promise(resolve => setImmediate(() => resolve(pieces.shift() ?? null))),
		cancel() {},
	};
};

test('a streamed success response starts at once but ends when the request is complete', async () => {
	await withClient(streamingHandler, async (client, server) => {
		begin(client);
		await client.until(({ type, payload }) => type === FRAME_TYPE.data && payload.toString() === 'ly');
		await upload(client, 0, UPLOAD_BYTES - 1);
		await client.alive();
		assert.not.ok(
			client.frames.some(({ type, flags }) => type === FRAME_TYPE.data && (flags & FRAME_FLAG.endStream) !== 0),
		);
		await upload(client, UPLOAD_BYTES - 1, UPLOAD_BYTES);
		assert.is(await client.body(1), 'early');
		await client.alive();
		assert.not.ok(client.frames.some(({ type }) => type === FRAME_TYPE.resetStream));
		assert.is(server.finished.length, 1);
	});
});

test('if the client stops sending, a streamed success response ends and the request is reset', async () => {
	await withClient(streamingHandler, async client => {
		begin(client);
		await upload(client, 0, 100_000);
		assert.is(await client.body(1), 'early');
		await client.until(({ type }) => type === FRAME_TYPE.resetStream);
		assert.is(await client.reset(1), 0);
	});
});

test('a client that resets the stream before the end of its response ends the exchange', async () => {
	await withClient(streamingHandler, async (client, server) => {
		begin(client);
		await client.until(({ type, payload }) => type === FRAME_TYPE.data && payload.toString() === 'ly');
		client.send(frame(FRAME_TYPE.resetStream, 0, 1, Buffer.from([0, 0, 0, 8])));
		await client.alive();
		assert.is(server.finished.length, 1);
	});
});

test('if the client stops sending, a success response is sent and the request is reset', async () => {
	await withClient(answering(200), async client => {
		begin(client);
		await upload(client, 0, 100_000);
		assert.is(await client.status(1), '200');
		await client.until(({ type }) => type === FRAME_TYPE.resetStream);
		assert.is(await client.reset(1), 0);
	});
});

test('without Content-Length, a success response is sent at once', async () => {
	await withClient(answering(200), async client => {
		begin(client, POST);
		client.send(frame(FRAME_TYPE.data, 0, 1, Buffer.alloc(1000)));
		const asked = performance.now();
		assert.is(await client.body(1), 'early');
		assert.ok(performance.now() - asked < RESET_DELAY_MS);
	});
});

test('with Expect: 100-continue, a success response is sent at once', async () => {
	await withClient(answering(200), async client => {
		const asked = performance.now();
		begin(client, [...UPLOAD_FIELDS, ['expect', '100-continue']]);
		assert.is(await client.body(1), 'early');
		assert.ok(performance.now() - asked < RESET_DELAY_MS);
	});
});

test('a held-back response is dropped if the client resets the stream or the length is wrong', async () => {
	await withClient(answering(200), async (client, server) => {
		begin(client);
		client.send(frame(FRAME_TYPE.data, FRAME_FLAG.endStream, 1, Buffer.alloc(1000)));
		assert.is(await client.reset(1), 1);
		client.send(request(3, UPLOAD_FIELDS, FRAME_FLAG.endHeaders));
		client.send(frame(FRAME_TYPE.resetStream, 0, 3, Buffer.from([0, 0, 0, 8])));
		await client.alive();
		assert.is(server.finished.length, 2);
		assert.not.ok(client.frames.some(({ type }) => type === FRAME_TYPE.headers));
	});
});

test('a large unread upload does not count as a flood', async () => {
	await withClient(answering(200), async (client, server) => {
		const length = 60_000_000;
		begin(client, [...POST, ['content-length', String(length)]]);
		await upload(client, 0, length);
		client.send(frame(FRAME_TYPE.data, FRAME_FLAG.endStream, 1));
		assert.is(await client.status(1), '200');
		assert.equal(server.cut, []);
	});
});

test.run();
