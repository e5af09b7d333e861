/** Bytes that were read from a socket are copied if they are kept, because the next read of any socket overwrites the buffer. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { PendingBytes } from '../../../../runtime/protocols/http1/pending-bytes.ts';
import { until } from '../../../harness.ts';
import { bodyOf, openWire, serve, statusOf, type WireServer } from './wire.ts';

const wait = (milliseconds: number): Promise<void> => new Promise(resolve => setTimeout(resolve, milliseconds));

for (const asStreams of [false, true]) {
	const input = suite(`HTTP/1.1: sockets read ${asStreams ? 'as streams' : 'into shared memory'}`);

	const test = (name: string, handler: Handler, run: (server: WireServer) => Promise<void>): void => {
		input(name, async () => {
			const server = await serve(handler, {}, asStreams);
			try {
				await run(server);
			} finally {
				await server.stop();
			}
			await until('the end of all connections', () => server.protocol.connections === 0);
			assert.is(server.closed(), server.opened());
			assert.is(server.finished.length, server.exchanges.length);
		});
	};

	test(
		'waiting bodies keep the bytes of their own connection',
		async x => {
			await wait(20);
			x.response.body = await bodyOf(x);
		},
		async server => {
			const size = 300_000;
			const bodies = ['a', 'b', 'c'].map(letter => letter.repeat(size));
			const wires = await Promise.all(bodies.map(() => openWire(server.port)));
			for (const [i, wire] of wires.entries()) {
				wire.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`);
				for (let at = 0; at < size; at += 50_000) {
					wire.send(bodies[i]!.slice(at, at + 50_000));
					await wait(1);
				}
			}
			for (const [i, wire] of wires.entries()) {
				const text = await wire.until(received => received.length > size);
				assert.ok(text.endsWith(`\r\n\r\n${bodies[i]}`));
				wire.socket.destroy();
			}
		},
	);

	test(
		'chunked bodies and requests pipelined behind a slow one are kept',
		async x => {
			const body = await bodyOf(x);
			await wait(10);
			x.response.body = `[${x.request.path}:${body}]`;
		},
		async server => {
			const wires = await Promise.all(['a', 'b'].map(() => openWire(server.port)));
			for (const [i, wire] of wires.entries()) {
				wire.send(`POST /${i} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n${i}${i}${i}\r\n`);
				await wait(1);
			}
			for (const [i, wire] of wires.entries()) wire.send(`0\r\n\r\nGET /next${i} HTTP/1.1\r\nHo`);
			await wait(2);
			for (const wire of wires) wire.send('st: a\r\n\r\n');
			for (const [i, wire] of wires.entries()) {
				await wire.until(text => text.includes(`[/${i}:${i}${i}${i}]`) && text.includes(`[/next${i}:]`));
				wire.socket.destroy();
			}
		},
	);

	test(
		'an upgraded stream delivers bytes that came with the head, later bytes, and the end',
		x => {
			x.response.headers.add('Upgrade', 'echo');
			x.upgrade(stream => {
				let text = '';
				stream.on('data', bytes => {
					text += bytes.toString('latin1');
					stream.write(`<${bytes.toString('latin1')}>`);
				});
				stream.on('end', () => stream.end(`.${text.length}`));
				setTimeout(() => stream.resume(), 10);
			});
		},
		async server => {
			const wire = await openWire(server.port);
			wire.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly');
			await wire.until(text => text.endsWith('<early>'));
			wire.send('late');
			await wire.until(text => text.endsWith('<late>'));
			wire.socket.end('last');
			assert.ok((await wire.whole()).endsWith('<last>.13'));
		},
	);

	test(
		'an upgraded stream is not read faster than its consumer reads',
		x => {
			x.response.headers.add('Upgrade', 'slow');
			x.upgrade(stream => {
				stream.on('error', () => {});
				x.variables.set('stream', stream);
			});
		},
		async server => {
			const wire = await openWire(server.port);
			wire.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: slow\r\n\r\n');
			await wire.until(text => text.endsWith('\r\n\r\n'));
			const piece = Buffer.alloc(1_000_000);
			for (let i = 0; i < 30; i++) wire.socket.write(piece);
			await wait(100);
			const stream = server.exchanges[0]!.variable('stream') as import('node:stream').Duplex;
			assert.ok(stream.readableLength < 300_000, `${stream.readableLength} bytes are held`);
			assert.ok(wire.socket.writableLength > 0, 'backpressure stops the client');
			let receivedBytes = 0;
			stream.on('data', bytes => {
				receivedBytes += bytes.length;
			});
			stream.resume();
			await until('the whole body', () => receivedBytes >= 30_000_000);
			assert.is(receivedBytes, 30_000_000);
			wire.socket.destroy();
		},
	);

	test(
		'an invalid head is refused for the same reason however it is split',
		() => {},
		async server => {
			for (const last of ['\x01', '\x01\r\n', ' b\x01\r\n\r\n']) {
				const wire = await openWire(server.port);
				for (const piece of ['GET / HTTP/1.1\r\nHost: a\r', '\nX', ':']) {
					wire.send(piece);
					await wait(3);
				}
				wire.socket.end(last, 'latin1');
				assert.is(statusOf(await wire.whole(500)), 400);
			}
		},
	);

	input.run();
}

const pending = suite('HTTP/1.1: pending bytes');

pending('a head that arrives byte by byte is not scanned after every byte', () => {
	const head = Buffer.from(
		`GET / HTTP/1.1\r\nHost: a\r\n${Array.from({ length: 90 }, (_, i) => `X-${i}: ${'v'.repeat(150)}\r\n`).join('')}\r\n`,
	);
	const held = new PendingBytes(head, 0, 1);
	let looks = 0;
	for (let i = 1; i < head.length; i++) if (held.add(head.subarray(i, i + 1))) looks++;
	assert.ok(held.bytes.equals(head));
	assert.is(looks, 93, 'more than one scan per line');
	const line = new PendingBytes(Buffer.from('G'), 0, 1);
	looks = 0;
	for (let i = 0; i < 16_384; i++) if (line.add(Buffer.from('E'))) looks++;
	assert.is(looks, 64);
	assert.is(line.length, 16_385);
});

pending.run();
