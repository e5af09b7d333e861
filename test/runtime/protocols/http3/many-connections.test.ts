/** State that all connections of a thread share, and what an idle connection costs the other connections. */
import * as assert from 'uvu/assert';
import type { Exchange } from '../../../../compiler/exchange/exchange.ts';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { type FrameServer, headers, REQUEST, response, serve } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { connect, type QuicClient } from './quic-client.ts';
import { udpRelay } from './udp-relay.ts';

const test = http3Suite('many HTTP/3 connections');
const servers: FrameServer[] = [];
const clients: QuicClient[] = [];
/** Milliseconds between two ticks of the connections' clock. */
const TICK_MS = 10;

async function start(handler: (x: Exchange) => void | Promise<void>, limits = {}): Promise<FrameServer> {
	const server = await serve(handler, { limits });
	servers.push(server);
	return server;
}

async function client(server: FrameServer): Promise<QuicClient> {
	const made = await connect(server.port);
	clients.push(made);
	return made;
}

test.after.each(() => {
	for (const one of clients.splice(0)) one.close();
	for (const server of servers.splice(0)) server.stop();
});

test('the clock does not touch idle connections', async () => {
	const ticks = 50;
	const limits = { headTimeout: ticks * TICK_MS, bodyTimeout: 4 * TICK_MS };
	const server = await start(x => {
		x.response.body = 'hello';
	}, limits);
	const runCounts = new Map<bigint, number>();
	const runs = quicThread()!.channelRuns!;
	for (const name of ['run', 'runEstablished'] as const) {
		runs[name] = channel => {
			runCounts.set(channel, (runCounts.get(channel) ?? 0) + 1);
			Object.getPrototypeOf(runs)[name].call(runs, channel);
		};
	}
	try {
		const idle = await client(server);
		assert.is((await response(idle, idle.open().write(headers(), true))).status, '200');
		const [idleChannel] = [...runCounts.keys()] as [bigint];
		// A request whose head does not arrive is canceled by the clock, so a cancellation shows that the clock runs.
		const other = await client(server);
		const stream = other.open().write(headers().subarray(0, 3));
		runCounts.set(idleChannel, 0);
		await other.until('the deadline', () => stream.resetCode !== undefined);
		assert.equal(server.refused, ['header_timeout']);
		// OpenSSL processes the idle connection only a few times, when acknowledgments from its client arrive.
		assert.ok(runCounts.get(idleChannel)! < ticks / 2, `${runCounts.get(idleChannel)} runs`);
	} finally {
		Reflect.deleteProperty(runs, 'run');
		Reflect.deleteProperty(runs, 'runEstablished');
	}
});

test('requests of many connections that arrive together get their own responses', async () => {
	const server = await start(x => {
		x.response.body = x.request.path.repeat(1000);
	});
	const many = await Promise.all(Array.from({ length: 20 }, () => client(server)));
	for (let round = 0; round < 5; round++) {
		const got = await Promise.all(
			many.flatMap((one, i) =>
				[0, 1, 2].map(async k => {
					const path = `/${round}-${i}-${k}`;
					const fields = [...REQUEST.slice(0, 3), [':path', path]] as const;
					return [path, (await response(one, one.open().write(headers(fields), true))).body];
				}),
			),
		);
		for (const [path, body] of got) assert.is(body, path!.repeat(1000));
	}
	assert.equal(server.failures, []);
	assert.is(quicThread()!.datagramMemory.waitingCount, 0);
	assert.not.ok(quicThread()!.datagramPipe.hasOutput);
});

test('a handshake ends although every datagram of the server is lost the first time', async () => {
	const server = await start(x => {
		x.response.body = 'hello';
	});
	const seen = new Set<string>();
	let lostCount = 0;
	const relay = await udpRelay(server.port, {
		loses(toClient, bytes) {
			// OpenSSL never sends the same packet twice, so a repeated packet was sent by our code. Packets after the handshake
			// have short headers.
			if (!toClient || (bytes[0]! & 0x80) === 0) return false;
			const content = bytes.toString('latin1');
			if (seen.has(content)) return false;
			seen.add(content);
			lostCount++;
			return true;
		},
	});
	try {
		const one = await connect(relay.port);
		clients.push(one);
		assert.is((await response(one, one.open().write(headers(), true))).body, 'hello');
		assert.ok(lostCount > 1);
		assert.equal(server.handshakes, ['ok']);
	} finally {
		relay.close();
	}
});

test.run();
