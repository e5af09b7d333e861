/** Clients that attack the server: each is disconnected for the right reason, and the requests that it has in progress end. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { FRAME_FLAG, FRAME_TYPE, H2_ERROR } from '../../../../runtime/protocols/http2/frame-codes.ts';
import type { FrameWriter } from '../../../../runtime/protocols/http2/frame-writer.ts';
import { OutputQueue } from '../../../../runtime/protocols/http2/output-queue.ts';
import { StreamBody } from '../../../../runtime/protocols/http2/request-body.ts';
import { StreamOutput } from '../../../../runtime/protocols/http2/stream-output.ts';
import { until } from '../../../harness.ts';
import { bodyOf } from '../http1/wire.ts';
import {
	encodeFieldBlock,
	encodeUint32s,
	frame,
	openFrameClient,
	POST,
	REQUEST,
	request,
	settings,
	withClient,
} from './frames.ts';

const test = suite('HTTP/2 floods');

const prompt: Handler = x => {
	x.response.status = 200;
	x.response.body = 'hello';
};

/** A handler that waits until the client disconnects. */
const waitingHandler: Handler = x => new Promise(resolve => x.onGone(() => resolve()));

const reset = (stream: number) => frame(FRAME_TYPE.resetStream, 0, stream, encodeUint32s(H2_ERROR.cancel));
const repeatFrames = (count: number, make: (index: number) => Uint8Array) =>
	Array.from({ length: count }, (_, i) => make(i));

const RESET_STREAMS = 'streams that the server must reset';

/** Floods, by the reason for which the server must close the connection. */
const FLOODS: { readonly [reason: string]: readonly (readonly [what: string, frames: Uint8Array[]])[] } = {
	rapid_reset: [
		['streams reset immediately', repeatFrames(2000, i => Buffer.concat([request(i * 2 + 1), reset(i * 2 + 1)]))],
	],
	made_you_reset: [
		[
			RESET_STREAMS,
			repeatFrames(600, i =>
				Buffer.concat([
					request(i * 2 + 1, POST, FRAME_FLAG.endHeaders),
					frame(FRAME_TYPE.windowUpdate, 0, i * 2 + 1, encodeUint32s(0)),
				]),
			),
		],
		['malformed requests', repeatFrames(600, i => request(i * 2 + 1, [...REQUEST, ['Bad', '']]))],
		['streams beyond the limit', repeatFrames(600, i => request(i * 2 + 1, POST, FRAME_FLAG.endHeaders))],
	],
	continuation_flood: [
		[
			'an endless header block',
			[
				frame(FRAME_TYPE.headers, FRAME_FLAG.endStream, 1, encodeFieldBlock(REQUEST)),
				...repeatFrames(40, () => frame(FRAME_TYPE.continuation, 0, 1, Buffer.alloc(8192))),
			],
		],
		[
			'empty CONTINUATION frames',
			[frame(FRAME_TYPE.headers, 0, 1), ...repeatFrames(100, () => frame(FRAME_TYPE.continuation, 0, 1))],
		],
	],
	settings_flood: [
		['settings', repeatFrames(1000, () => settings(4, 65_535))],
		[
			'many settings in a frame',
			repeatFrames(10, () => settings(...Array.from({ length: 2700 }, (_, i): number => (i % 2 ? 65_535 : 4)), 4, 1)),
		],
		['acknowledgements', repeatFrames(2000, () => frame(FRAME_TYPE.settings, FRAME_FLAG.ack, 0))],
	],
	ping_flood: [
		['pings', repeatFrames(5000, () => frame(FRAME_TYPE.ping, 0, 0, Buffer.alloc(8)))],
		[
			'unsolicited PING acknowledgments',
			repeatFrames(5000, () => frame(FRAME_TYPE.ping, FRAME_FLAG.ack, 0, Buffer.alloc(8))),
		],
	],
	priority_flood: [['priorities', repeatFrames(5000, i => frame(FRAME_TYPE.priority, 0, i * 2 + 1, Buffer.alloc(5)))]],
	window_update_flood: [
		['window updates', repeatFrames(5000, () => frame(FRAME_TYPE.windowUpdate, 0, 0, encodeUint32s(1)))],
	],
	empty_frames: [
		[
			'empty DATA',
			[request(1, POST, FRAME_FLAG.endHeaders), ...repeatFrames(2000, () => frame(FRAME_TYPE.data, 0, 1))],
		],
		[
			'DATA with only padding',
			[
				request(1, POST, FRAME_FLAG.endHeaders),
				...repeatFrames(2000, () => frame(FRAME_TYPE.data, FRAME_FLAG.padded, 1, Buffer.from([1, 0]))),
			],
		],
		[
			'DATA on a finished stream',
			[
				request(1, POST, FRAME_FLAG.endHeaders),
				...repeatFrames(4000, () => frame(FRAME_TYPE.data, 0, 1, Buffer.from('x'))),
			],
		],
		[
			'trailers of a stream that the server has reset',
			[
				request(1, POST, FRAME_FLAG.endHeaders),
				frame(FRAME_TYPE.windowUpdate, 0, 1, encodeUint32s(0)),
				...repeatFrames(4000, () => request(1, [['a', 'b']])),
			],
		],
		['unknown frames', repeatFrames(2000, () => frame(0x42, 0, 0))],
	],
};

/** The floods that have an effect only while their streams stay open. */
const FLOODS_WITH_OPEN_STREAMS = new Set([RESET_STREAMS, 'streams beyond the limit', 'DATA with only padding']);

for (const [reason, floods] of Object.entries(FLOODS)) {
	for (const [what, frames] of floods) {
		test(`${what}: cut off for ${reason}`, async () => {
			const handler = FLOODS_WITH_OPEN_STREAMS.has(what) ? waitingHandler : prompt;
			await withClient(handler, async (client, server) => {
				for (let at = 0; at < frames.length && !client.ended; at += 100) {
					client.send(...frames.slice(at, at + 100));
					await new Promise(resolve => setImmediate(resolve));
				}
				assert.is((await client.goAway()).code, H2_ERROR.enhanceYourCalm);
				while (!client.ended) await new Promise(resolve => setTimeout(resolve, 5));
				// The server also counts the window updates that make it reset these streams, and may close the connection because of
				// their number.
				const isLastCost =
					server.cut[0] === reason || (what === RESET_STREAMS && server.cut[0] === 'window_update_flood');
				assert.ok(server.cut.length === 1 && isLastCost, String(server.cut));
				client.socket.destroy();
				await until('the end of the session', () => server.counts.sessions === 0);
				assert.is(server.finished.length, server.exchanges.length);
				assert.ok(server.exchanges.length < 1000, `${server.exchanges.length} exchanges`);
			});
		});
	}
}

test('unread content that arrives byte by byte is not stored byte by byte', () => {
	let taken = 0;
	const feeder = {
		bodyAwaited() {},
		bodyConsumed(bytes: number) {
			taken += bytes;
		},
	};
	const body = new StreamBody(feeder, undefined, undefined);
	const content = Buffer.from(Array.from({ length: 60_000 }, (_, at) => at % 251));
	const large = Buffer.alloc(5000, 7);
	for (let at = 0; at < content.length; at++) {
		body.feed(content, at, at + 1);
		if (at === 1000) body.feed(large, 0, large.length);
		// Pieces that have already been returned do not change.
		if (at === 2000) assert.equal(body.pull(), content.subarray(0, 1001));
	}
	body.end();
	const pieces: Uint8Array[] = [];
	for (let piece = body.pull(); piece !== null; piece = body.pull()) pieces.push(piece as Uint8Array);
	assert.ok(pieces.length < 20, `${pieces.length} pieces`);
	assert.ok(Buffer.concat(pieces).equals(Buffer.concat([large, content.subarray(1001)])));
	assert.is(taken, content.length + large.length);
});

test('streams that were reset while waiting for the connection window are released', () => {
	const queue = new OutputQueue({ frames: { full: false }, sendPending: () => {} });
	const nothing = { wantsTurn: () => {}, dataSent: () => {}, accountBuffered: () => {} };
	const session = { frames: {} as FrameWriter, sendWindow: 0, maxBufferedBytes: 65_535, ...nothing };
	const owner = {
		bodyBytesSent() {},
		bodyEnded() {},
		bodyBroken() {},
		sendingBlocked() {},
		endsSeparately: () => false,
	};
	let turns = 0;
	class Counted extends StreamOutput {
		override takeTurn(): number {
			turns++;
			return super.takeTurn();
		}
	}
	for (let stream = 1; stream < 20_000; stream += 2) {
		const output = new Counted(stream, 65_535, session, owner);
		output.sendComplete(Buffer.from('x'));
		queue.add(output);
		queue.run();
		if (stream > 200) output.cancel();
	}
	turns = 0;
	queue.onWindowGrown();
	// Each run serves only a few streams, and then yields.
	for (let runs = 0; runs < 200; runs++) queue.run();
	assert.ok(turns >= 100 && turns < 400, `${turns} were kept`);
});

test('a client that cancels occasionally is not cut off', async () => {
	await withClient(prompt, async (client, server) => {
		for (let i = 0; i < 1500; i++) {
			const stream = i * 2 + 1;
			client.send(request(stream), ...(i % 5 === 0 ? [reset(stream)] : []));
			if (i % 50 === 49) await client.alive();
		}
		await client.alive();
		assert.equal(server.cut, []);
		assert.is(server.counts.streams, 1500);
	});
});

test('the window updates of a large download do not count as a flood', async () => {
	const large = Buffer.alloc(30_000_000);
	const handler: Handler = x => {
		x.response.body = large;
	};
	await withClient(handler, async (client, server) => {
		client.send(request(1));
		let size = 0;
		for (let at = 0; size < large.length; at++) {
			while (at >= client.frames.length) await new Promise(resolve => setTimeout(resolve, 1));
			const { type, payload } = client.frames[at]!;
			if (type !== FRAME_TYPE.data || payload.length === 0) continue;
			size += payload.length;
			client.send(
				frame(FRAME_TYPE.windowUpdate, 0, 0, encodeUint32s(payload.length)),
				frame(FRAME_TYPE.windowUpdate, 0, 1, encodeUint32s(payload.length)),
			);
			assert.not(client.ended);
		}
		assert.equal(server.cut, []);
	});
});

test('exchanges of reset streams count against the concurrency limit until they have ended', async () => {
	const ends: (() => void)[] = [];
	// A handler that continues after its client has disconnected, as some upstreams do.
	const stubbornHandler: Handler = () => new Promise(resolve => ends.push(resolve));
	await withClient(stubbornHandler, async (client, server) => {
		for (let i = 0; i < 160; i++) client.send(request(i * 2 + 1), reset(i * 2 + 1));
		await client.alive();
		assert.is(server.exchanges.length, 128);
		assert.equal([...new Set(server.refused)], ['refused_stream']);
		for (const end of ends) end();
		await client.alive();
		assert.is(server.finished.length, 128);
	});
});

test('a client that does not read its PING acknowledgments is cut off', async () => {
	await withClient(prompt, async (client, server) => {
		client.socket.pause();
		const pings = Buffer.concat(repeatFrames(200, () => frame(FRAME_TYPE.ping, 0, 0, Buffer.alloc(8))));
		await until('the client to be cut off', () => {
			client.send(pings);
			return server.cut.length === 1;
		});
	});
});

test('a stream without a window is reset after the timeout, and others are not', async () => {
	const cancelled: string[] = [];
	const handler: Handler = x => {
		if (x.request.path === '/') {
			x.onGone(() => cancelled.push('gone'));
			x.response.body = Buffer.alloc(200_000);
		} else x.response.body = null;
	};
	await withClient(
		handler,
		async (client, server) => {
			client.send(settings(4, 0), request(1));
			await client.status(1);
			assert.is(await client.reset(1), H2_ERROR.cancel);
			assert.equal(cancelled, ['gone']);
			assert.equal(server.refused, ['write_timeout']);
			client.send(
				request(3, [
					[':method', 'GET'],
					[':scheme', 'http'],
					[':path', '/none'],
					[':authority', 'a'],
				]),
			);
			assert.is(await client.status(3), '200');
		},
		{ writeIdleTimeout: 150 },
	);
});

test('a connection whose client reads nothing times out; one whose client reads a little does not', async () => {
	const large = Buffer.alloc(40_000_000);
	const handler: Handler = x => {
		x.response.body = large;
	};
	const wide = frame(FRAME_TYPE.windowUpdate, 0, 0, encodeUint32s(0x7f000000 - 65_535));
	const run = async (slowly: boolean): Promise<string[]> => {
		let cut: string[] = [];
		await withClient(
			handler,
			async (client, server) => {
				cut = server.cut;
				client.send(settings(4, 0x7f000000), wide, request(1));
				await client.status(1);
				client.socket.pause();
				if (!slowly) await until('the timeout', () => server.cut.length > 0);
				for (let i = 0; i < 60 && server.cut.length === 0; i++) {
					await new Promise(resolve => setTimeout(resolve, 25));
					// The client reads now and then, so that the buffers of the system have room.
					let reads = 0;
					const read = (): void => {
						if (++reads < 16) return;
						client.socket.pause();
						client.socket.off('data', read);
					};
					client.socket.on('data', read);
					client.socket.resume();
				}
			},
			{ writeIdleTimeout: 600 },
		);
		return cut;
	};
	assert.equal(await run(false), ['timeout']);
	assert.equal(await run(true), []);
});

test('a window opened byte by byte does not keep a response open indefinitely', async () => {
	const handler: Handler = x => {
		x.response.body = Buffer.alloc(200_000);
	};
	await withClient(
		handler,
		async client => {
			client.send(settings(4, 1), request(1));
			const timer = setInterval(() => client.send(frame(FRAME_TYPE.windowUpdate, 0, 1, encodeUint32s(1))), 20);
			try {
				assert.is(await client.reset(1), H2_ERROR.cancel);
			} finally {
				clearInterval(timer);
			}
		},
		{ writeIdleTimeout: 200, writeRate: 10_000 },
	);
});

test('reading a body that arrives too late fails', async () => {
	const handler: Handler = async x => {
		x.response.body = await bodyOf(x);
	};
	await withClient(
		handler,
		async (client, server) => {
			client.send(request(1, POST, FRAME_FLAG.endHeaders), frame(FRAME_TYPE.data, 0, 1, Buffer.from('some')));
			assert.is(await client.status(1), '408');
			assert.equal(server.refused, ['body_timeout']);
			await client.alive();
		},
		{ bodyIdleTimeout: 100 },
	);
});

test('limits of an exchange override those of its listener', async () => {
	const handler: Handler = async x => {
		x.setLimits({ writeTimeout: 100 });
		if (x.request.body !== null) {
			x.setLimits({ readTimeout: 100 });
			await bodyOf(x);
		}
		x.response.body = Buffer.alloc(200_000);
	};
	await withClient(handler, async (client, server) => {
		client.send(request(1, POST, FRAME_FLAG.endHeaders), request(3));
		assert.is(await client.status(1), '408');
		await client.until(({ type, stream }) => type === FRAME_TYPE.resetStream && stream === 3);
		assert.equal(server.refused.sort(), ['body_timeout', 'write_timeout']);
	});
});

test('an incomplete header block or frame ends the connection after the timeout', async () => {
	for (const bytes of [
		frame(FRAME_TYPE.headers, FRAME_FLAG.endStream, 1, encodeFieldBlock(REQUEST)),
		request(1).subarray(0, 20),
		Buffer.from([0, 0]),
	]) {
		await withClient(
			prompt,
			async (client, server) => {
				client.send(bytes);
				assert.is((await client.goAway()).code, H2_ERROR.none);
				assert.equal(server.refused, ['header_timeout']);
				assert.equal(server.cut, ['timeout']);
			},
			{ headTimeout: 100 },
		);
	}
});

test('a connection that sends nothing is closed after the timeout', async () => {
	await withClient(
		prompt,
		async (_client, server) => {
			const silent = await openFrameClient(server.port, false);
			await until('the connection is closed', () => silent.ended);
			silent.socket.destroy();
		},
		{ headTimeout: 100 },
	);
});

test.run();
