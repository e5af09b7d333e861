/** Random frames: no frame may crash the server, and every exchange must end. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { FRAME_FLAG, FRAME_TYPE } from '../../../../runtime/protocols/http2/frame-codes.ts';
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
	serve,
	settings,
} from './frames.ts';

const test = suite('HTTP/2 under random frames');

const CONNECTIONS = 150;
const FRAMES = 40;

/** Returns a seeded generator of random integers from 0 to `below` − 1. */
function seededRandom(seed: number): (below: number) => number {
	let state = seed;
	return below => {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		return Math.floor((state / 2 ** 32) * below);
	};
}

/** Returns a random frame, valid or not. */
function randomFrame(random: (below: number) => number, next: () => number): Buffer {
	const stream = random(4) === 0 ? random(40) : 1 + 2 * random(12);
	switch (random(14)) {
		case 0:
		case 1:
		case 2:
			return request(
				next(),
				random(2) === 0 ? REQUEST : POST,
				FRAME_FLAG.endHeaders | (random(2) === 0 ? FRAME_FLAG.endStream : 0),
			);
		case 3:
			return request(next(), [...REQUEST, ['x-random', 'r'.repeat(random(3000))]]);
		case 4:
		case 5:
			return frame(FRAME_TYPE.data, random(16), stream, Buffer.alloc(random(5000)));
		case 6:
			return frame(FRAME_TYPE.windowUpdate, 0, random(3) === 0 ? 0 : stream, encodeUint32s(random(70_000)));
		case 7:
			return frame(FRAME_TYPE.resetStream, 0, stream, encodeUint32s(random(14)));
		case 8:
			return settings(4, random(100_000), 1, random(5000));
		case 9:
			return frame(
				FRAME_TYPE.headers,
				random(64),
				stream,
				Buffer.concat([encodeFieldBlock(REQUEST), Buffer.alloc(random(10), random(256))]),
			);
		case 10:
			return frame(FRAME_TYPE.ping, random(2), 0, Buffer.alloc(8));
		case 11: {
			const broken = Buffer.from(request(next()));
			for (let i = 0; i < 3; i++) broken[random(broken.length)] = random(256);
			return broken;
		}
		case 12:
			return Buffer.from(Array.from({ length: random(30) }, () => random(256)));
		default:
			return frame(random(12), random(256), random(3) === 0 ? 0 : stream, Buffer.alloc(random(20), random(256)));
	}
}

const handler: Handler = async x => {
	if (x.request.path.length > 1) await new Promise(resolve => setTimeout(resolve, x.request.path.length % 5));
	x.response.body = x.request.body === null ? 'h'.repeat(x.request.headers.size * 5000) : await bodyOf(x);
};

test('the server survives them, and its counters return to zero', async () => {
	const server = await serve(handler);
	const random = seededRandom(2026);
	try {
		for (let i = 0; i < CONNECTIONS; i++) {
			const client = await openFrameClient(server.port);
			let stream = -1;
			const next = (): number => {
				stream += 2;
				return stream;
			};
			for (let k = 0; k < FRAMES && !client.ended; k++) {
				client.send(randomFrame(random, next));
				if (random(4) === 0) await new Promise(resolve => setImmediate(resolve));
			}
			if (random(2) === 0) await new Promise(resolve => setTimeout(resolve, random(5)));
			client.socket.destroy();
		}
		await until('the end of all sessions', () => server.counts.sessions === 0);
		assert.is(server.finished.length, server.exchanges.length);
		assert.ok(server.exchanges.length > CONNECTIONS / 3, String(server.exchanges.length));
		const client = await openFrameClient(server.port);
		client.send(request(1));
		assert.is(await client.status(1), '200');
		client.socket.destroy();
	} finally {
		await server.stop();
	}
});

test.run();
