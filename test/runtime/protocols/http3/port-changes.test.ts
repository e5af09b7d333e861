/** Connections follow their clients to other ports, and nobody else can move them. */
import { randomBytes } from 'node:crypto';
import * as assert from 'uvu/assert';
import { isStream } from '../../../../compiler/exchange/body.ts';
import { MAX_PORT_CHANGES, MAX_PORT_TRIES, PORT_PROOF_MS } from '../../../../runtime/sockets/quic/quic-limits.ts';
import { until } from '../../../harness.ts';
import { type FrameServer, frame, headers, openControlStream, POST, response, serve } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { Nat } from './nat.ts';
import { connect, type QuicClient } from './quic-client.ts';

const test = http3Suite('port changes of HTTP/3 clients');
const openResources: { close(): void }[] = [];

const DOWNLOAD_BYTES = 8_000_000;
const UPLOAD_BYTES = 4_000_000;

/** Starts a server, a NAT, and a client that has completed a request through it. */
async function start(handler: Parameters<typeof serve>[0] = () => {}): Promise<[FrameServer, Nat, QuicClient]> {
	const server = await serve(x => {
		x.response.body = 'hello';
		return handler(x);
	});
	openResources.push({ close: () => server.stop() });
	const nat = await Nat.start(server.port);
	openResources.push(nat);
	const client = await connect(nat.port);
	openResources.push(client);
	openControlStream(client);
	await ask(client);
	return [server, nat, client];
}

async function ask(client: QuicClient): Promise<void> {
	assert.is((await response(client, client.open().write(headers(), true))).status, '200');
}

test.after.each(() => {
	for (const one of openResources.splice(0).reverse()) one.close();
});

test('an idle connection continues when its port has changed', async () => {
	const [server, nat, client] = await start();
	for (let round = 1; round <= 3; round++) {
		await nat.rebind();
		await ask(client);
		assert.is(server.counts.portChanges, round);
		assert.is(server.exchanges.at(-1)?.connection.remotePort, nat.outerPort);
	}
	assert.equal([server.counts.connections, server.failures], [1, []]);
});

test('a download continues when the port changes in the middle', async () => {
	const [server, nat, client] = await start(x => {
		x.response.body = new Uint8Array(DOWNLOAD_BYTES);
	});
	const stream = client.open().write(headers(), true);
	await client.until('the first part', () => stream.received > DOWNLOAD_BYTES / 4);
	await nat.rebind();
	await client.until('the second part', () => stream.received > DOWNLOAD_BYTES / 2);
	await nat.rebind();
	await client.until('the end', () => stream.ended);
	assert.ok(stream.received > DOWNLOAD_BYTES);
	assert.equal([server.counts.portChanges, server.failures], [2, []]);
});

test('an upload continues when the port changes in the middle', async () => {
	let received = 0;
	const [server, nat, client] = await start(async x => {
		const { body } = x.request;
		if (!isStream(body)) return;
		for (let piece = await body.pull(); piece !== null; piece = await body.pull()) received += piece.length;
		x.response.body = `${received}`;
	});
	const body = Buffer.alloc(UPLOAD_BYTES);
	const stream = client.open().write(Buffer.concat([headers(POST), frame(0, body)]), true);
	await client.until('the first part', () => received > UPLOAD_BYTES / 4);
	await nat.rebind();
	assert.is((await response(client, stream)).body, `${UPLOAD_BYTES}`);
	assert.equal([server.counts.portChanges, server.failures], [1, []]);
});

test('late datagrams from the former port do not change the port back', async () => {
	const [server, nat, client] = await start();
	const former = nat.socket;
	const delayed: Buffer[] = [];
	nat.intercepts = bytes => delayed.push(bytes) > 0;
	const streams = [client.open().write(headers(), true), client.open().write(headers(), true)];
	await client.until('the requests', () => delayed.length >= 2);
	nat.intercepts = () => false;
	await nat.rebind();
	await ask(client);
	assert.is(server.counts.portChanges, 1);
	for (const bytes of delayed) await nat.send(former, bytes);
	for (const stream of streams) assert.is((await response(client, stream)).status, '200');
	await ask(client);
	assert.is(server.counts.portChanges, 1);
	assert.is(server.exchanges.at(-1)?.connection.remotePort, nat.outerPort);
});

test('forged and repeated datagrams from other ports change nothing, and few are decrypted', async () => {
	const [server, nat, client] = await start();
	const attacker = await nat.openSocket();
	const [genuine] = nat.recent.slice(-1);
	assert.is(genuine![0]! & 0x80, 0, 'a short header');
	const forged = (): Buffer =>
		Buffer.concat([Buffer.of(0x40 | (randomBytes(1)[0]! & 0x3f)), genuine!.subarray(1, 9), randomBytes(60)]);
	const movedCount = (): number => server.refusals.filter(reason => reason === 'moved').length;
	const count = 2000;
	const startedAt = performance.now();
	for (let i = 0; i < count; i++) {
		const bytes = i % 2 === 0 ? forged() : nat.recent[i % nat.recent.length]!;
		await nat.send(attacker, bytes);
		if (i % 100 === 99) await ask(client);
	}
	const periods = Math.ceil((performance.now() - startedAt) / 1000) + 1;
	assert.ok(movedCount() >= count - MAX_PORT_TRIES * periods, `${movedCount()} in ${periods}`);
	assert.equal([server.counts.portChanges, server.failures, nat.lostCount], [0, [], 0]);
	// The client can still change its port once the limit permits it.
	await nat.rebind();
	await ask(client);
	assert.is(server.counts.portChanges, 1);
});

test('a change of the IP address is not followed', async () => {
	const [server, nat, client] = await start();
	const home = nat.socket;
	await nat.rebind(await nat.openSocket('127.0.0.2'));
	const stream = client.open().write(headers(), true);
	await until('the refusal', () => server.refusals.includes('moved'));
	assert.is(server.counts.portChanges, 0);
	assert.not.ok(stream.ended);
	await nat.rebind(home);
	assert.is((await response(client, stream)).status, '200');
	assert.is(server.counts.portChanges, 0);
});

/** Makes the next datagram of the client arrive from another port first, as if an attacker had copied it. */
async function copyNext(nat: Nat): Promise<void> {
	const attacker = await nat.openSocket();
	nat.intercepts = bytes => {
		nat.intercepts = () => false;
		void nat.send(attacker, bytes).then(() => nat.send(nat.socket, bytes));
		return true;
	};
}

test('when an attacker delivers a copy first, the next datagram of the client restores its port', async () => {
	const [server, nat, client] = await start();
	for (let round = 1; round <= 2; round++) {
		await copyNext(nat);
		await ask(client);
		assert.is(server.counts.portChanges, 2 * round);
	}
	assert.is(server.exchanges.length, 3);
});

test('when an attacker delivers a copy and the client is not heard, its port is restored after a while', async () => {
	const [server, nat, client] = await start(x => {
		x.response.body = new Uint8Array(DOWNLOAD_BYTES);
	});
	const stream = client.open().write(headers(), true);
	await client.until('the first part', () => stream.received > DOWNLOAD_BYTES / 4);
	// Only the copy of one datagram arrives, and nothing from the client itself, so only the time limit can restore the port.
	const attacker = await nat.openSocket();
	let copiedAt = 0;
	nat.intercepts = bytes => {
		if (copiedAt === 0) void nat.send(attacker, bytes);
		copiedAt ||= performance.now();
		return true;
	};
	await until('the copy', () => server.counts.portChanges === 1);
	await until('the return', () => server.counts.portChanges === 2);
	assert.ok(performance.now() - copiedAt >= PORT_PROOF_MS - 1, `${performance.now() - copiedAt}`);
	nat.intercepts = () => false;
	await client.until('the end', () => stream.ended);
	assert.equal([server.counts.portChanges, server.failures], [2, []]);
});

test('the number of changes is limited', async () => {
	const [server, nat, client] = await start();
	for (let round = 0; round < MAX_PORT_CHANGES; round++) {
		await nat.rebind();
		await ask(client);
	}
	const known = nat.socket;
	await nat.rebind();
	const stream = client.open().write(headers(), true);
	await until('a response to the former port', () => nat.lostCount > 0);
	assert.is(server.counts.portChanges, MAX_PORT_CHANGES);
	await nat.rebind(known);
	assert.is((await response(client, stream)).status, '200');
	assert.is(server.counts.portChanges, MAX_PORT_CHANGES);
});

test.run();
