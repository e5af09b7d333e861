/** A server's threads: replacement after a crash, stopping, logs and counters. */

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Site } from '../../../compiler/document/document.ts';
import type { Runtime } from '../../../runtime/main/runtime.ts';
import { pauseFor, until } from '../../harness.ts';
import { eventually, jsonInput, respondingSite, withServer } from '../running-server.ts';

const threads = suite('runtime: threads');

for (const how of ['terminated', 'crashed'] as const) {
	threads(`a thread that is ${how} is replaced within a second and serves the current document`, async () => {
		const starts = performance.now();
		await withServer({ settings: { metrics: {} }, sites: [respondingSite('one')] }, {}, async server => {
			const { runtime, get, log } = server;
			// On a busy machine, a replacement starts as slowly as the first threads did.
			const limit = Math.max(1000, 3 * (performance.now() - starts));
			await runtime.load(jsonInput({ settings: { metrics: {} }, sites: [respondingSite('two')] }));
			const startedAt = performance.now();
			if (how === 'crashed') runtime.crashWorker(0);
			else await runtime.terminateWorker(0);
			await eventually('replaced', () => log.text().includes('a worker thread was replaced'));
			assert.ok(performance.now() - startedAt < limit, `${performance.now() - startedAt} ms, of ${limit} ms`);
			for (let i = 0; i < 20; i++) assert.is((await get()).body, 'two');
			assert.match(await runtime.metrics(), /^svc_worker_restarts_total 1$/m);
			assert.is(
				(await runtime.load(jsonInput({ settings: { metrics: {} }, sites: [respondingSite('three')] }))).result,
				'applied',
			);
			for (let i = 0; i < 20; i++) assert.is((await get()).body, 'three');
		});
	});
}

threads.run();

const stop = suite('runtime: stop');

stop('a stop closes idle connections, ends readiness and resolves', async () => {
	await withServer({ sites: [respondingSite('one')] }, {}, async ({ runtime, port }) => {
		const socket = connect(port, '127.0.0.1');
		socket.setEncoding('latin1');
		socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
		await once(socket, 'data');
		const whenEnded = once(socket, 'close');
		socket.on('end', () => socket.end());
		const stopped = runtime.stop();
		assert.is(runtime.ready, false);
		await Promise.all([stopped, whenEnded]);
		assert.is((await runtime.load(jsonInput({}))).result, 'failed');
	});
});

/** Waits until the server has accepted the test's connection and has had time to read what the client sent. */
async function whenRequestHeld(runtime: Runtime): Promise<void> {
	await until('the connection is accepted', async () => /^svc_connections 1$/m.test(await runtime.metrics()));
	await pauseFor(50);
}

stop('a grace period longer than the maximum timer delay still waits for open requests', async () => {
	const settings = { grace_period: 100 * 86_400_000, metrics: {} };
	await withServer({ settings, sites: [respondingSite('one')] }, {}, async ({ runtime, port }) => {
		const socket = connect(port, '127.0.0.1');
		socket.setEncoding('latin1');
		let text = '';
		socket.on('data', chunk => {
			text += chunk;
		});
		socket.write('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Le');
		await whenRequestHeld(runtime);
		const whenClosed = once(socket, 'close');
		const stopped = runtime.stop();
		await pauseFor(200);
		socket.write('ngth: 0\r\n\r\n');
		await Promise.all([stopped, whenClosed]);
		assert.match(text, 'HTTP/1.1 200');
	});
});

stop('open connections are closed when the grace period ends', async () => {
	await withServer(
		{ settings: { grace_period: 100, metrics: {} }, sites: [respondingSite('one')] },
		{},
		async ({ runtime, port }) => {
			const socket = connect(port, '127.0.0.1');
			socket.on('error', () => {});
			socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Le');
			await whenRequestHeld(runtime);
			const whenClosed = once(socket, 'close');
			const startedAt = performance.now();
			await runtime.stop();
			await whenClosed;
			assert.ok(performance.now() - startedAt < 10_000);
		},
	);
});

stop.run();

const logs = suite('runtime: logs');

logs('an access entry has its fields, hides credentials and cannot be forged', async () => {
	const site = respondingSite('hello', { logs: [{ format: { encoder: 'json' }, output: { writer: 'stdout' } }] });
	await withServer({ sites: [site] }, {}, async ({ get, log }) => {
		await get('/a%0ab?x=%22', {
			cookie: 'id=1',
			authorization: 'Bearer s3cret',
			'x-api-key': 's3cret',
			'x-odd': 'a\u0085b',
		});
		await eventually('logged', () => log.text().includes('handled request'));
		assert.not.match(log.text(), 's3cret');
		assert.not.match(log.text(), '\u0085');
		const entry = log.entries.find(({ msg }) => msg === 'handled request') as {
			request: Record<string, unknown>;
			[field: string]: unknown;
		};
		assert.is(entry.level, 'info');
		assert.is(entry.logger, 'http.log.access');
		assert.is(entry.status, 200);
		assert.is(entry.size, 5);
		assert.is(entry.request.uri, '/a%0ab?x=%22');
		assert.is(entry.request.method, 'GET');
		assert.is(entry.request.remote_ip, '127.0.0.1');
		const named = Object.fromEntries(
			Object.entries(entry.request.headers as object).map(([name, values]) => [name.toLowerCase(), values]),
		);
		assert.equal(named.cookie, ['REDACTED']);
		assert.equal(named.authorization, ['REDACTED']);
	});
});

logs('an error without an error route is logged as handled, and a request that nothing answers as NOP', async () => {
	const site: Site = {
		addresses: ['http://:0'],
		bind: ['127.0.0.1'],
		logs: [{ format: { encoder: 'json' }, output: { writer: 'stdout' } }],
		pipeline: [{ handler: 'fail', status: 404, when: { type: 'path', patterns: ['/error'] } }],
	};
	await withServer({ sites: [site] }, {}, async ({ get, log }) => {
		await get('/error');
		await get('/nothing');
		await eventually('logged', () => log.entries.filter(({ logger }) => logger === 'http.log.access').length === 2);
		const said = log.entries
			.filter(({ logger }) => logger === 'http.log.access')
			.map(({ status, msg }) => [status, msg]);
		assert.equal(said.sort(), [
			[200, 'NOP'],
			[404, 'handled request'],
		]);
	});
});

logs('a log file is appended to with mode 600', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'svc-log-'));
	try {
		const path = join(folder, 'deep/access.log');
		const site = respondingSite('hello', { logs: [{ output: { writer: 'file', path } }] });
		await withServer({ sites: [site] }, {}, async ({ get, runtime }) => {
			await get();
			await runtime.stop();
			assert.match(readFileSync(path, 'utf8'), '"status":200');
			assert.is(statSync(path).mode & 0o777, 0o600);
		});
	} finally {
		rmSync(folder, { recursive: true });
	}
});

logs.run();

const metrics = suite('runtime: metrics');

metrics('metrics are empty when turned off', async () => {
	await withServer({ sites: [respondingSite('one')] }, {}, async ({ runtime, get }) => {
		await get();
		assert.is(await runtime.metrics(), '');
	});
});

metrics('metrics are summed over threads and survive the death of one', async () => {
	await withServer({ settings: { metrics: {} }, sites: [respondingSite('hello')] }, {}, async ({ runtime, get }) => {
		for (let i = 0; i < 30; i++) await get();
		runtime.countAdminRequest('/metrics', 'GET', 200);
		const total = /^std_http_requests_total\{server="[^"]+",handler="respond"\} 30$/m;
		await eventually('counted', async () => total.test(await runtime.metrics()));
		await runtime.terminateWorker(1);
		const text = await runtime.metrics();
		assert.match(text, total);
		assert.match(text, /^std_http_request_duration_seconds_count\{.*handler="respond",code="200",method="GET"\} 30$/m);
		assert.match(text, /^std_http_response_size_bytes_sum\{.*\} 150$/m);
		assert.match(text, /^std_http_response_size_bytes_bucket\{.*le="256"\} 30$/m);
		assert.match(text, /^std_admin_http_requests_total\{path="\/metrics",method="GET",code="200"\} 1$/m);
		await eventually('ready again', async () => /^svc_ready 1$/m.test(await runtime.metrics()));
		assert.match(text, /^process_resident_memory_bytes \d+$/m);
	});
});

metrics.run();
