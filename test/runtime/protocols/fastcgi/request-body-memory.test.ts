/** The memory for request bodies of unknown length, which FastCGI needs whole before it can send them. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	bufferedBytesPerThread,
	MAX_BUFFERED_BODY_BYTES,
	RequestBodyMemory,
} from '../../../../runtime/protocols/fastcgi/buffered-request-body.ts';
import { PLAIN_POOL_DEPS } from '../../../../runtime/upstreams/pool-deps.ts';
import { type ProxiedSite, proxiedSite } from '../../../compiler/modules/directives/reverse-proxy/proxied-site.ts';
import { until } from '../../../harness.ts';
import { withServer } from '../../running-server.ts';
import { openWire, statusOf, type WireClient } from '../http1/wire.ts';
import { responseRecords, type ScriptedApplication, scriptedApplication } from './scripted-application.ts';

const test = suite('memory of FastCGI request bodies');

const HEAD = 'PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n';
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;
const LAST_CHUNK = '0\r\n\r\n';

function chunk(length: number, letter = 'x'): string {
	return `${length.toString(16)}\r\n${letter.repeat(length)}\r\n`;
}

/** Starts an application that responds with the length and the first and last byte of each body. */
function startApplication(): Promise<ScriptedApplication> {
	return scriptedApplication(({ params, body, socket }) => {
		const text = `${params.CONTENT_LENGTH} ${body.length} ${body.toString('latin1', 0, 1)}${body.toString('latin1').at(-1)}`;
		socket.write(responseRecords(`\r\n${text}`));
	});
}

interface BoundedSite {
	readonly memory: RequestBodyMemory;
	readonly site: ProxiedSite;
	/** Number of requests that were refused for lack of memory. */
	refusedCount(): number;
	/** Opens a request whose body has begun with these bytes, and waits until they are in memory. */
	begin(length: number): Promise<WireClient>;
}

/** Runs `use` with a site whose bodies may take 100,000 bytes, and whose application becomes unavailable after one failure. */
async function withBoundedSite(use: (bounded: BoundedSite) => Promise<void>): Promise<void> {
	let refusedCount = 0;
	const memory = new RequestBodyMemory(100_000, () => refusedCount++);
	const app = await startApplication();
	const lines = `reverse_proxy 127.0.0.1:${app.port} {\n max_fails 1\n fail_duration 1m\n transport fastcgi\n}`;
	const site = await proxiedSite(lines, '', undefined, 'configfile', { ...PLAIN_POOL_DEPS, requestBodyMemory: memory });
	try {
		await use({
			memory,
			site,
			refusedCount: () => refusedCount,
			begin: async length => {
				const expectedBytes = memory.usedBytes + length;
				const client = await openWire(site.port);
				client.send(CHUNKED + chunk(length));
				await until('the bytes are in memory', () => memory.usedBytes === expectedBytes);
				return client;
			},
		});
		assert.is(memory.usedBytes, 0);
	} finally {
		await site.close();
		await app.close();
	}
}

test('a request whose body exceeds the memory for all of them is refused, and the others are not disturbed', async () => {
	await withBoundedSite(async ({ begin, memory, refusedCount, site }) => {
		const first = await begin(60_000);
		const second = await openWire(site.port);
		second.send(CHUNKED + chunk(60_000));
		assert.is(statusOf(await second.whole()), 503);
		assert.is(refusedCount(), 1);
		assert.is(memory.usedBytes, 60_000);
		first.send(chunk(10, 'y') + LAST_CHUNK);
		assert.match(await first.whole(), /^HTTP\/1\.1 200 .*60010 60010 xy$/s);
		// The refusal does not count as a failure of the application.
		const third = await begin(90_000);
		third.send(LAST_CHUNK);
		assert.match(await third.whole(), /^HTTP\/1\.1 200 .*90000 90000 xx$/s);
	});
});

test('a client that leaves while its body is read frees the memory at once', async () => {
	await withBoundedSite(async ({ begin, memory }) => {
		const client = await begin(60_000);
		client.socket.destroy();
		await until('the memory is free', () => memory.usedBytes === 0);
	});
});

test('a body with a Content-Length needs none of this memory', async () => {
	await withBoundedSite(async ({ memory, site }) => {
		memory.reserve(memory.limitBytes);
		const client = await openWire(site.port);
		client.send(`${HEAD}Content-Length: 200000\r\n\r\n${'z'.repeat(200_000)}`);
		assert.match(await client.whole(), /^HTTP\/1\.1 200 .*200000 200000 zz$/s);
		memory.release(memory.limitBytes);
	});
});

test('a long body arrives whole and in order, and an even longer one needs a Content-Length', async () => {
	const app = await startApplication();
	const memory = new RequestBodyMemory(bufferedBytesPerThread(1));
	const lines = `reverse_proxy 127.0.0.1:${app.port} {\n transport fastcgi\n}`;
	const site = await proxiedSite(lines, '', undefined, 'configfile', { ...PLAIN_POOL_DEPS, requestBodyMemory: memory });
	try {
		const long = await openWire(site.port);
		long.send(CHUNKED + chunk(1, 'a'));
		for (let i = 0; i < 100; i++) long.send(chunk(1 + i * 37));
		long.send(chunk(900_000) + chunk(1, 'b') + LAST_CHUNK);
		const bytes = 900_102 + 37 * 4950;
		assert.match(await long.whole(), new RegExp(`^HTTP/1\\.1 200 .*${bytes} ${bytes} ab$`, 's'));
		const tooLong = await openWire(site.port);
		tooLong.send(CHUNKED + chunk(MAX_BUFFERED_BODY_BYTES + 1));
		assert.is(statusOf(await tooLong.whole()), 411);
		assert.is(memory.usedBytes, 0);
	} finally {
		await site.close();
		await app.close();
	}
});

test('the limit is divided among threads, and each has room for two of the largest bodies', () => {
	assert.is(bufferedBytesPerThread(1), 134_217_728);
	assert.is(bufferedBytesPerThread(2), 67_108_864);
	assert.is(bufferedBytesPerThread(64), 2 * MAX_BUFFERED_BODY_BYTES);
});

test('a server counts and logs the requests that it refuses', async () => {
	const app = await startApplication();
	const document = {
		settings: { metrics: {} },
		sites: [
			{
				addresses: ['http://:0'],
				bind: ['127.0.0.1'],
				pipeline: [
					{
						handler: 'proxy',
						upstreams: { to: [`127.0.0.1:${app.port}`], transport: { type: 'fastcgi' } },
					},
				],
			},
		],
	} as never;
	const clients: WireClient[] = [];
	try {
		await withServer(document, { threads: 1 }, async server => {
			const clientCount = bufferedBytesPerThread(1) / MAX_BUFFERED_BODY_BYTES;
			const largestChunk = chunk(MAX_BUFFERED_BODY_BYTES);
			for (let i = 0; i <= clientCount; i++) {
				const client = await openWire(server.port);
				clients.push(client);
				client.send(CHUNKED + largestChunk);
			}
			// Whichever body is the last to be read finds no memory.
			const refused = await Promise.any(clients.map(client => client.whole()));
			assert.match(refused, /^HTTP\/1\.1 503 .*\r\nRetry-After: 5\r\n/s);
			await until('the refusal is logged', () => server.log.text().includes('requests are refused: too many bodies'));
			const entry = server.log.entries.find(({ msg }) =>
				String(msg).startsWith('requests are refused: too many bodies'),
			)!;
			assert.is(entry.level, 'warn');
			assert.is(entry.bytes_per_thread, bufferedBytesPerThread(1));
			assert.is(entry.refused, 1);
			const metrics = await server.runtime.metrics();
			assert.match(metrics, /^svc_overload_rejected_total\{limit="buffered_bodies"\} 1$/m);
		});
	} finally {
		for (const client of clients) client.socket.destroy();
		await app.close();
	}
});

test.run();
