/** `shed` in a server with two threads: what counts towards the limit of an upstream, and what happens above it. */
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { eventually, withServer } from '../running-server.ts';
import { type Answer, messagesOf, proxying, upstreamEntries, withUpstream } from './shedding-upstream.ts';

const test = suite('load shedding');

/** Opens a connection, writes a text, and returns a function that returns what has arrived. */
function rawClient(port: number, text: string): { readonly socket: Socket; readonly received: () => string } {
	let received = '';
	const socket = connect(port, '127.0.0.1', () => socket.write(text));
	socket.setEncoding('latin1');
	socket.on('data', piece => {
		received += piece;
	});
	socket.on('error', () => {});
	return { socket, received: () => received };
}

test('a request above the limit is answered at once, without reaching the upstream', async () => {
	const held: ServerResponse[] = [];
	await withUpstream(
		(_request, response) => void held.push(response),
		async address => {
			const pool = { shed: { min: 1, max: 2, status: 429 }, retry_duration: 60_000 };
			await withServer(proxying([address], pool), {}, async server => {
				const first = server.get();
				const second = server.get();
				await eventually('both requests arrive', () => held.length === 2);
				const refused = await server.get();
				assert.is(refused.status, 429);
				assert.is(refused.headers.get('retry-after'), '1');
				assert.is(held.length, 2);
				held[0]!.end('one');
				assert.is((await Promise.race([first, second])).body, 'one');
				const third = server.get();
				await eventually('the third request arrives', () => held.length === 3);
				for (const response of held) response.end('rest');
				assert.equal(
					(await Promise.all([first, second, third])).map(({ status }) => status),
					[200, 200, 200],
				);
				await eventually('the refusal is logged', () => messagesOf(server).length === 1);
				const entries = server.log.entries.filter(({ logger }) => logger === 'http.reverse_proxy.shed');
				assert.is(entries[0]!.level, 'warn');
				assert.is(entries[0]!.pool, 'app');
				assert.equal(entries[0]!.limits, [2]);
			});
		},
	);
});

test('the requests of one upstream at its limit go to another', async () => {
	const held: ServerResponse[] = [];
	await withUpstream(
		(_request, response) => void held.push(response),
		async slow => {
			await withUpstream(
				(_request, response) => void response.end('other'),
				async other => {
					const pool = { shed: { min: 1, max: 1 }, balance: { policy: 'first' } };
					await withServer(proxying([slow, other], pool), {}, async ({ get }) => {
						const waiting = get();
						await eventually('the first request arrives', () => held.length === 1);
						assert.is((await get()).body, 'other');
						held[0]!.end('slow');
						assert.is((await waiting).body, 'slow');
					});
				},
			);
		},
	);
});

test('WebSockets, responses after their heads, and bodies that clients still send do not count', async () => {
	const unfinished: ServerResponse[] = [];
	let uploadCount = 0;
	const answer: Answer = (request, response) => {
		if (request.method === 'POST') {
			uploadCount++;
			request.resume().on('end', () => response.end('stored'));
		} else if (request.url === '/stream') {
			response.write('begun');
			unfinished.push(response);
		} else response.end('ok');
	};
	await withUpstream(answer, async address => {
		await withServer(proxying([address], { shed: { min: 1, max: 1 } }), {}, async server => {
			const { port, get } = server;
			const socket = rawClient(
				port,
				'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
			);
			await eventually('the upgrade is answered', () => socket.received().includes('101'));
			const stream = rawClient(port, 'GET /stream HTTP/1.1\r\nHost: a\r\n\r\n');
			await eventually('the stream begins', () => stream.received().includes('begun'));
			const upload = rawClient(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345');
			await eventually('the upload arrives', () => uploadCount === 1);
			const [entry] = await upstreamEntries(server);
			assert.is(entry!.num_requests, 3);
			assert.is((await get()).body, 'ok');
			upload.socket.write('67890');
			await eventually('the upload is answered', () => upload.received().includes('stored'));
			assert.is((await get()).body, 'ok');
			for (const { socket: client } of [socket, stream, upload]) client.destroy();
		});
	});
});

test('an upload counts from its end until it is answered', async () => {
	const held: ServerResponse[] = [];
	let uploadCount = 0;
	await withUpstream(
		(request, response) => {
			uploadCount++;
			request.resume().on('end', () => held.push(response));
		},
		async address => {
			await withServer(proxying([address], { shed: { min: 1, max: 1 } }), {}, async ({ port, get }) => {
				const upload = rawClient(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345');
				await eventually('the upload begins', () => uploadCount === 1);
				assert.is(held.length, 0);
				upload.socket.write('67890');
				await eventually('the upload is complete', () => held.length === 1);
				assert.is((await get()).status, 503);
				held[0]!.end('stored');
				await eventually('the upload is answered', () => upload.received().includes('stored'));
				const next = get();
				await eventually('the next request arrives', () => held.length === 2);
				held[1]!.end('ok');
				assert.is((await next).status, 200);
				upload.socket.destroy();
			});
		},
	);
});

test('a request that its client or a time-out has ended no longer counts', async () => {
	let arrivedCount = 0;
	await withUpstream(
		() => {
			arrivedCount++;
		},
		async address => {
			const pool = { shed: { min: 1, max: 1 }, response_header_timeout: 100 };
			await withServer(proxying([address], pool), {}, async ({ port, get }) => {
				assert.is((await get()).status, 504);
				const client = rawClient(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
				await eventually('the second request arrives', () => arrivedCount === 2);
				client.socket.destroy();
				await eventually('another request is sent', async () => (await get()).status === 504);
			});
		},
	);
});

test.run();
