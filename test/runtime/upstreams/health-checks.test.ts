/** Active health checks: which results pass and which fail, when the state of an upstream changes, and how the change is logged. */

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type {
	HealthCheckSettings,
	UpstreamSettings,
} from '../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { CheckGate } from '../../../runtime/upstreams/check-gate.ts';
import { poolMemoryBytes } from '../../../runtime/upstreams/pool-memory.ts';
import { PoolRegistry } from '../../../runtime/upstreams/pool-registry.ts';
import { pauseFor, waitForNothing } from '../../harness.ts';
import { eventually } from '../running-server.ts';

const test = suite('health checks');

const closing: (() => void)[] = [];

test.after.each(() => {
	for (const close of closing.splice(0).reverse()) close();
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function upstream(answer: Answer, listen: string | number = 0): Promise<string> {
	const server = createServer(answer);
	await new Promise<void>(resolve =>
		typeof listen === 'string' ? server.listen(listen, resolve) : server.listen(listen, '127.0.0.1', resolve),
	);
	closing.push(() => {
		server.closeAllConnections();
		server.close();
	});
	return typeof listen === 'string' ? `unix/${listen}` : `127.0.0.1:${(server.address() as { port: number }).port}`;
}

interface Watched {
	readonly logged: { message: string; cause: unknown }[];
	healthy(): boolean[];
}

function watch(to: readonly string[], health: HealthCheckSettings, more: Partial<UpstreamSettings> = {}): Watched {
	const logged: { message: string; cause: unknown }[] = [];
	const registry = new PoolRegistry({
		log: (_level, _logger, message, fields) => logged.push({ message, cause: fields?.cause }),
		expand: text => text.replaceAll('{env.NAME}', 'value'),
		environment: {},
	});
	closing.push(() => registry.close());
	const settings: UpstreamSettings = { to, health: { interval: 20, timeout: 500, ...health }, ...more };
	registry.onPoolOpened('key', settings, new SharedArrayBuffer(poolMemoryBytes(settings, 1)), 1);
	return { logged, healthy: () => registry.reports().map(({ healthy }) => healthy) };
}

test('upstreams are healthy until a check fails, and again when one passes', async () => {
	let status = 200;
	const up = await upstream((_request, response) => {
		response.statusCode = status;
		response.end();
	});
	const watched = watch([up, '127.0.0.1:1'], { uri: '/health' });
	assert.equal(watched.healthy(), [true, true]);
	await eventually('the second upstream is unhealthy', () => watched.healthy()[1] === false);
	assert.ok(watched.healthy()[0]);
	status = 500;
	await eventually('the first upstream is unhealthy', () => watched.healthy()[0] === false);
	status = 204;
	await eventually('the first upstream is healthy', () => watched.healthy()[0] === true);
	const messages = watched.logged.filter(({ message }) => message !== 'a health check failed');
	assert.equal(
		messages.map(({ message }) => message),
		['an upstream is unhealthy', 'an upstream is unhealthy', 'an upstream is healthy again'],
	);
	assert.is(messages[1]!.cause, 'it answered with status 500');
});

test('the state changes after the configured number of consecutive results', async () => {
	const answers = [200, 500, 200, 500, 500, 500, 200, 500, 200, 200];
	const states: boolean[] = [];
	let requestCount = 0;
	let watched: Watched | undefined;
	const up = await upstream((_request, response) => {
		if (watched) states.push(watched.healthy()[0]!);
		response.statusCode = answers[requestCount++] ?? 200;
		response.end();
	});
	watched = watch([up], { uri: '/', fails: 3, passes: 2 });
	await eventually('more than ten checks have run', () => requestCount > 10);
	// Each entry is the state of the upstream before the response with the same index.
	assert.equal(states.slice(0, 11), [true, true, true, true, true, true, false, false, false, false, true]);
});

test('the check sends the configured request', async () => {
	const seen: string[] = [];
	const up = await upstream((request, response) => {
		let body = '';
		request.on('data', bytes => {
			body += bytes;
		});
		request.on('end', () => {
			seen.push(
				`${request.method} ${request.url} ${request.headers.host} ${request.headers['x-a']} ${request.headers['user-agent']} ${body}`,
			);
			response.end();
		});
	});
	watch([up], {
		uri: '/check?a=b',
		method: 'POST',
		request_body: 'from {env.NAME} to {http.reverse_proxy.active.target_upstream}',
		headers: [
			{ name: 'Host', value: 'app.example' },
			{ name: 'X-A', value: '1' },
			{ name: 'X-A', value: '{rp.active.target_upstream}' },
		],
	});
	await eventually('a check was received', () => seen.length > 0);
	assert.is(seen[0], `POST /check?a=b app.example 1, ${up} svc-health-check from value to ${up}`);
});

test('status and body determine health', async () => {
	const up = await upstream((_request, response) => {
		response.statusCode = 418;
		response.end('I am a teapot\n');
	});
	const well = watch([up], { uri: '/', status: '418', body: '(?i)TEAPOT' });
	const ill = watch([up], { uri: '/', status: '4xx', body: '^coffee' });
	await eventually('the body does not match', () => ill.healthy()[0] === false);
	assert.is(ill.logged[0]!.cause, 'its response body does not match');
	assert.ok(well.healthy()[0]);
});

test('a slow response fails the check, and so does a body that never ends', async () => {
	const silent = await upstream(() => {});
	const dripping = await upstream((_request, response) => {
		const timer = setInterval(() => response.write('x'), 10);
		response.on('close', () => clearInterval(timer));
	});
	const watched = watch([silent, dripping], { uri: '/', timeout: 80 });
	await eventually('both upstreams are unhealthy', () => watched.healthy().every(healthy => !healthy));
	assert.is(watched.logged[0]!.cause, 'it took too long');
});

test('redirects fail the check, or are followed if configured', async () => {
	const up = await upstream((request, response) => {
		if (request.url === '/well') response.end('ok');
		else {
			response.writeHead(302, { Location: request.url === '/loop' ? '/loop' : '/well' });
			response.end();
		}
	});
	const strict = watch([up], { uri: '/' });
	const following = watch([up], { uri: '/', follow_redirects: true, body: 'ok' });
	const looping = watch([up], { uri: '/loop', follow_redirects: true });
	await eventually(
		'two upstreams are unhealthy',
		() => strict.healthy()[0] === false && looping.healthy()[0] === false,
	);
	assert.is(looping.logged[0]!.cause, 'too many redirects');
	assert.ok(following.healthy()[0]);
});

test('checks can use another port, another address or a Unix socket', async () => {
	const well = await upstream((_request, response) => response.end());
	const ill = await upstream((_request, response) => {
		response.statusCode = 500;
		response.end();
	});
	const folder = mkdtempSync(join(tmpdir(), 'svc-health-'));
	closing.push(() => rmSync(folder, { recursive: true }));
	const socket = await upstream((_request, response) => response.end(), join(folder, 's'));
	const port = Number(well.slice(well.indexOf(':') + 1));
	const byPort = watch([ill], { port });
	const byAddress = watch([ill, '127.0.0.1:1'], { uri: '/', upstream: well });
	const unix = watch([socket], { uri: '/' });
	const unixByPort = watch([`unix/${join(folder, 'none')}`], { port });
	const unixGone = watch([`unix/${join(folder, 'none')}`], { uri: '/' });
	await eventually('the upstream with the missing socket is unhealthy', () => unixGone.healthy()[0] === false);
	await waitForNothing(60);
	assert.equal(
		[byPort, byAddress, unix, unixByPort].map(watched => watched.healthy().every(Boolean)),
		[true, true, true, true],
	);
});

test('the number of concurrent checks is limited, and they run in order', async () => {
	const gate = new CheckGate(2);
	const order: string[] = [];
	let running = 0;
	let most = 0;
	const task = (name: string, fails = false) =>
		gate
			.run(async () => {
				order.push(name);
				most = Math.max(most, ++running);
				await pauseFor(5);
				running--;
				if (fails) throw new Error(name);
			})
			.catch(() => order.push(`${name} failed`));
	await Promise.all([task('a'), task('b', true), task('c'), task('d')]);
	await task('e');
	assert.is(most, 2);
	assert.equal(
		order.filter(entry => entry.length === 1),
		['a', 'b', 'c', 'd', 'e'],
	);
});

test('a response that is not HTTP fails the check', async () => {
	const { scriptedUpstream } = await import('./scripted-upstream.ts');
	const garbage = await scriptedUpstream(socket => socket.end('SSH-2.0-OpenSSH_9.2\r\n'));
	const watched = watch([garbage.address], { uri: '/' });
	await eventually('the upstream is unhealthy', () => watched.healthy()[0] === false);
	await garbage.close();
});

test.run();
