/**
 * What the Admin API, metrics and access logs report about upstreams, and what happens to upgraded connections when the
 * configuration is reloaded.
 */
import { connect, createServer, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type AdminServer, startAdmin } from '../../../admin/server.ts';
import type { Document } from '../../../compiler/document/document.ts';
import { waitForNothing } from '../../harness.ts';
import { eventually, jsonInput, type TestServer, withServer } from '../running-server.ts';
import { onRequestHead, type ScriptedUpstream, scriptedUpstream } from './scripted-upstream.ts';

const test = suite('reports about upstreams');

const closingUpstreams: ScriptedUpstream[] = [];

test.after.each(async () => {
	for (const one of closingUpstreams.splice(0)) await one.close();
});

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

async function deadPort(): Promise<number> {
	const server = createServer();
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	const { port } = server.address() as { port: number };
	await new Promise(resolve => server.close(resolve));
	return port;
}

test('an upstream that requests make unavailable is logged once, with the cause, and a circuit also when it closes', async () => {
	let answer = 'HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n';
	const up = await scriptedUpstream(socket => onRequestHead(socket, () => socket.write(answer)));
	closingUpstreams.push(up);
	const dead = `127.0.0.1:${await deadPort()}`;
	const circuit = { min_requests: 2, probes: 1, open_for: 50 };
	const toDead = { handler: 'proxy', upstreams: { to: [dead], fail_duration: 60_000, max_fails: 2 } };
	const pipeline = [
		{ handler: 'group', when: { type: 'path', patterns: ['/dead'] }, pipeline: [toDead] },
		{ handler: 'proxy', upstreams: { to: [up.address], circuit } },
	];
	const sites = [{ addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline }];
	await withServer({ sites } as unknown as Document, {}, async ({ get, log }) => {
		const logged = () =>
			log.entries
				.filter(({ logger }) => logger === 'http.reverse_proxy')
				.map(({ level, msg, upstream, cause, pause_ms }) => [level, msg, upstream, cause, pause_ms]);
		for (let i = 0; i < 5; i++) await get('/dead');
		const failing = [
			'warn',
			'an upstream has failed too often and is not used for a while',
			dead,
			`connect ECONNREFUSED ${dead}`,
			60_000,
		];
		await eventually('the failures are reported', () => logged().length > 0);
		assert.equal(logged(), [failing]);
		for (let i = 0; i < 5; i++) await get();
		await eventually('the circuit is reported', () => logged().length > 1);
		assert.equal(logged()[1]!.slice(0, 3), [
			'warn',
			'the circuit of an upstream has opened, so it is not used for a while',
			up.address,
		]);
		assert.match(logged()[1]![3] as string, /^status 500 after \d+ ms$/);
		assert.is(logged()[1]![4], 50);
		answer = OK;
		await eventually('a probe succeeds', async () => (await get()).status === 200);
		await eventually('its end is reported', () => logged().length > 2);
		assert.equal(logged()[2], [
			'info',
			'the circuit of an upstream has closed, so it is used again',
			up.address,
			undefined,
			undefined,
		]);
		assert.is(logged().length, 3);
	});
});

test('an upstream that is tried again and still fails is not logged again, but its first answer is', async () => {
	let answer = 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n';
	let requestCount = 0;
	const up = await scriptedUpstream(socket =>
		onRequestHead(socket, () => {
			requestCount++;
			socket.write(answer);
		}),
	);
	closingUpstreams.push(up);
	const upstreams = { to: [up.address], fail_duration: 20, unhealthy_status: ['503'] };
	const sites = [{ addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline: [{ handler: 'proxy', upstreams }] }];
	await withServer({ sites } as unknown as Document, {}, async ({ get, log }) => {
		const logged = () => log.entries.filter(({ logger }) => logger === 'http.reverse_proxy');
		await eventually('the upstream has been tried several times', async () => {
			await get();
			return requestCount >= 4;
		});
		answer = OK;
		await eventually('it answers', async () => (await get()).status === 200);
		await eventually('its answer is reported', () => logged().length > 1);
		assert.equal(
			logged().map(({ level, msg, upstream }) => [level, msg, upstream]),
			[
				['warn', 'an upstream has failed too often and is not used for a while', up.address],
				['info', 'an upstream that had failed too often answers again', up.address],
			],
		);
		assert.ok((logged()[1]!.failed_for_ms as number) >= 60);
	});
});

test("each upstream appears in the Admin API's list, the metrics and log entries", async () => {
	const up = await scriptedUpstream(socket => onRequestHead(socket, () => socket.write(OK)));
	closingUpstreams.push(up);
	const dead = `127.0.0.1:${await deadPort()}`;
	const pool = { to: [dead, up.address], retries: 1, balance: { policy: 'first' }, fail_duration: 60_000, circuit: {} };
	const document = {
		settings: { metrics: {} },
		upstreams: { api: pool },
		sites: [
			{
				addresses: ['http://:0'],
				bind: ['127.0.0.1'],
				logs: [{}],
				pipeline: [
					{
						handler: 'group',
						when: { type: 'path', patterns: ['/in/*'] },
						pipeline: [{ handler: 'proxy', upstreams: { to: ['{http.request.header.to}'] } }],
					},
					{ handler: 'proxy', pool: 'api' },
				],
			},
		],
	} as unknown as Document;
	await withServer(document, {}, async ({ get, runtime, log }) => {
		assert.is((await get()).status, 200);
		assert.is((await get()).status, 200);
		const admin: AdminServer = await startAdmin(runtime, {
			settings: { listen: '127.0.0.1:0' },
			log: () => {},
			onStop: () => {},
		});
		const list = (await (await fetch(`http://${admin.address}/reverse_proxy/upstreams`)).json()) as {
			address: string;
		}[];
		await admin.close();
		const common = { num_requests: 0, latency_ms: null };
		const of = (wanted: string) => list.find(({ address }) => address === wanted);
		const template = '{http.request.header.to}';
		assert.is(list.length, 3);
		assert.equal(of(template), { address: template, fails: 0, healthy: true, circuit: 'closed', ...common });
		assert.equal(of(dead), { address: dead, pool: 'api', fails: 1, healthy: false, circuit: 'closed', ...common });
		assert.equal(of(up.address), {
			address: up.address,
			pool: 'api',
			fails: 0,
			healthy: true,
			circuit: 'closed',
			...common,
		});
		const metrics = await runtime.metrics();
		assert.match(metrics, `std_reverse_proxy_upstreams_healthy{upstream="${dead}"} 0\n`);
		assert.match(metrics, `std_reverse_proxy_upstreams_healthy{upstream="${up.address}"} 1\n`);
		assert.match(metrics, `svc_upstream_circuit_state{upstream="${up.address}"} 0\n`);
		assert.match(metrics, `svc_upstream_errors_total{upstream="${dead}",kind="connect"} 1\n`);
		assert.match(metrics, `svc_upstream_retries_total{upstream="${dead}"} 1\n`);
		assert.match(metrics, `svc_upstream_first_byte_seconds_count{upstream="${up.address}"} 2\n`);
		assert.match(metrics, `svc_upstream_duration_seconds_count{upstream="${up.address}"} 2\n`);
		assert.match(metrics, new RegExp(`svc_upstream_connect_seconds_count\\{upstream="${up.address}"\\} [12]\n`));
		assert.match(metrics, 'svc_upstream_queue 0\n');
		const entries = () => log.entries.filter(({ msg }) => msg === 'handled request');
		await eventually('both entries are logged', () => entries().length === 2);
		// Each thread writes its own entries, so the entries of two threads may arrive in any order.
		const [second, first] = entries()
			.map(({ upstream }) => upstream as { readonly address: string; readonly tries: number; readonly latency: number })
			.sort((a, b) => a.tries - b.tries);
		assert.equal([first!.address, first!.tries, second!.tries], [up.address, 2, 1]);
		assert.ok(first!.latency > 0);
		// Another balancing policy creates a new pool with the same upstreams. The state of the upstreams is kept.
		const changed = structuredClone(document) as { upstreams: { api: { balance: object } } };
		changed.upstreams.api.balance = { policy: 'round_robin' };
		assert.is((await runtime.load(jsonInput(JSON.stringify(changed)))).result, 'applied');
		const report = () => runtime.upstreams().find(({ address }) => address === dead)!;
		assert.equal([report().healthy, report().fails], [false, 1]);
		assert.is((await get()).status, 200);
		assert.is(report().fails, 1, 'the failing upstream was contacted again');
	});
});

/** Returns the upstreams listed by `GET /reverse_proxy/upstreams`, in order. */
async function listUpstreams(runtime: TestServer['runtime']): Promise<{ address: string; pool?: string }[]> {
	const admin = await startAdmin(runtime, { settings: { listen: '127.0.0.1:0' }, log: () => {}, onStop: () => {} });
	try {
		return (await (await fetch(`http://${admin.address}/reverse_proxy/upstreams`)).json()) as { address: string }[];
	} finally {
		await admin.close();
	}
}

const proxyTo = (address: string) => ({ handler: 'proxy', upstreams: { to: [address] } });

test('the list contains every upstream of the configuration, used or not', async () => {
	const document = {
		upstreams: {
			used: { to: ['127.0.0.1:9001'] },
			unused: { to: ['127.0.0.1:9002-9003', 'https://127.0.0.1:9004', '{http.request.header.to}'] },
		},
		routes: {
			runs: [proxyTo('127.0.0.1:9005')],
			idle: [{ handler: 'group', pipeline: [proxyTo('127.0.0.1:9006'), proxyTo('127.0.0.1:9005')] }],
		},
		sites: [
			{
				addresses: ['http://:0'],
				bind: ['127.0.0.1'],
				pipeline: [
					{ handler: 'run_route', route: 'runs' },
					{
						handler: 'group',
						pipeline: [
							{ handler: 'intercept_response', rules: [{ pipeline: [proxyTo('127.0.0.1:9007')] }] },
							{ ...proxyTo('127.0.0.1:9008'), responses: [{ pipeline: [proxyTo('127.0.0.1:9009')] }] },
						],
					},
					{ handler: 'proxy', pool: 'used' },
				],
				errors: [{ pipeline: [proxyTo('127.0.0.1:9010')] }],
			},
		],
	} as unknown as Document;
	await withServer(document, {}, async ({ runtime }) => {
		const list = await listUpstreams(runtime);
		const ports = ['5', '6', '7', '8', '9', '10'].map(port => `127.0.0.1:90${port.padStart(2, '0')}`);
		assert.equal(
			list
				.filter(({ pool }) => pool === undefined)
				.map(({ address }) => address)
				.sort(),
			ports,
		);
		const named = (name: string) => list.filter(({ pool }) => pool === name).map(({ address }) => address);
		assert.equal(named('used'), ['127.0.0.1:9001']);
		assert.equal(named('unused'), ['127.0.0.1:9002', '127.0.0.1:9003', '127.0.0.1:9004', '{http.request.header.to}']);
		const changed = structuredClone(document) as unknown as {
			upstreams: { unused?: object };
			routes: { idle?: object };
		};
		delete changed.upstreams.unused;
		delete changed.routes.idle;
		assert.is((await runtime.load(jsonInput(JSON.stringify(changed)))).result, 'applied');
		assert.is((await listUpstreams(runtime)).length, 6, 'upstreams removed from the configuration are still listed');
	});
});

test('the list contains dynamically found upstreams with their state', async () => {
	const up = await scriptedUpstream(socket => onRequestHead(socket, () => socket.write(OK)));
	closingUpstreams.push(up);
	const port = up.address.split(':').pop()!;
	const dynamic = { source: 'a', name: 'localhost', port: '{http.request.header.to}', versions: ['ipv4'] };
	const upstreams = { to: ['127.0.0.1:9011'], dynamic, retries: 0, fail_duration: 60_000 };
	const pipeline = [{ handler: 'proxy', upstreams }];
	const document = { sites: [{ addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline }] } as unknown as Document;
	await withServer(document, {}, async ({ get, runtime }) => {
		assert.equal(
			(await listUpstreams(runtime)).map(({ address }) => address),
			['127.0.0.1:9011'],
		);
		assert.is((await get('/', { to: port })).status, 200);
		const dead = await deadPort();
		assert.is((await get('/', { to: String(dead) })).status, 502);
		const all = () => runtime.upstreams().map(({ address, fails, healthy }) => ({ address, fails, healthy }));
		await eventually('both upstreams are listed', () => all().length === 3);
		const found = [
			{ address: up.address, fails: 0, healthy: true },
			{ address: `127.0.0.1:${dead}`, fails: 1, healthy: false },
		];
		const byAddress = (a: { address: string }, b: { address: string }) => (a.address < b.address ? -1 : 1);
		assert.equal(all().slice(1).sort(byAddress), found.sort(byAddress));
	});
});

test('a truncated response is logged and counted, although the client already got a success status', async () => {
	let breakOff: () => void = () => {};
	const up = await scriptedUpstream(socket =>
		onRequestHead(socket, () => {
			socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf');
			breakOff = () => socket.destroy();
		}),
	);
	closingUpstreams.push(up);
	const document = {
		settings: { metrics: {} },
		sites: [
			{
				addresses: ['http://:0'],
				bind: ['127.0.0.1'],
				logs: [{}],
				pipeline: [{ handler: 'proxy', upstreams: { to: [up.address] } }],
			},
		],
	} as unknown as Document;
	await withServer(document, { threads: 1 }, async ({ port, runtime, log }) => {
		const response = await fetch(`http://127.0.0.1:${port}`);
		breakOff();
		let broken = false;
		await response.text().catch(() => {
			broken = true;
		});
		assert.equal([response.status, broken], [200, true]);
		const find = (message: string) => log.entries.find(({ msg }) => msg === message) as unknown as Entry;
		await eventually('both entries are logged', () => !!find('handled request') && !!find('a response was cut short'));
		const cause = 'the connection was closed within the response body';
		assert.match(JSON.stringify(find('handled request').upstream), `"error":"${cause}"`);
		const { level, upstream, cause: loggedCause } = find('a response was cut short');
		assert.equal([level, upstream, loggedCause], ['warn', up.address, cause]);
		assert.match(await runtime.metrics(), `svc_upstream_errors_total{upstream="${up.address}",kind="response"} 1\n`);
	});
});

/** The fields of a log entry that this test reads. */
interface Entry {
	readonly level: string;
	readonly cause: string;
	readonly upstream: unknown;
}

/** Starts an upstream that switches protocols and then echoes what it receives. */
function startEchoUpstream(): Promise<ScriptedUpstream> {
	return scriptedUpstream(socket => {
		socket.once('data', () => {
			socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
			socket.pipe(socket);
		});
	});
}

async function upgraded(
	port: number,
	path = '/',
): Promise<{ socket: Socket; text: () => string; closed: () => boolean }> {
	const socket = connect(port, '127.0.0.1');
	let text = '';
	let isClosed = false;
	socket.on('data', bytes => {
		text += bytes.toString();
	});
	socket.on('error', () => {});
	socket.on('close', () => {
		isClosed = true;
	});
	socket.write(`GET ${path} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
	await eventually('the protocol is switched', () => text.includes('\r\n\r\n'));
	return { socket, text: () => text, closed: () => isClosed };
}

function streaming(to: string, body: string, more: object = {}, pool: object = {}): Document {
	return {
		sites: [
			{
				addresses: ['http://:0'],
				bind: ['127.0.0.1'],
				pipeline: [
					{ handler: 'respond', when: { type: 'path', patterns: ['/text'] }, body },
					{
						handler: 'proxy',
						when: { type: 'path', patterns: ['/short'] },
						upstreams: { to: [to], connect_timeout: 999 },
						stream_timeout: 150,
					},
					{ handler: 'proxy', upstreams: { to: [to], ...pool }, ...more },
				],
			},
		],
	} as unknown as Document;
}

async function load(server: TestServer, document: Document): Promise<void> {
	assert.is((await server.runtime.load(jsonInput(document))).result, 'applied');
}

test('a stream ends at its timeout, survives a load that keeps its pool, and ends after its delay when no pool uses it', async () => {
	const up = await startEchoUpstream();
	closingUpstreams.push(up);
	const delayed = { stream_close_delay: 300 };
	await withServer(streaming(up.address, 'one', delayed), {}, async server => {
		const short = await upgraded(server.port, '/short');
		await eventually('the stream ends at its timeout', short.closed);
		const stream = await upgraded(server.port);
		await load(server, streaming(up.address, 'two', delayed));
		assert.is((await server.get('/text')).body, 'two');
		stream.socket.write('still here');
		await eventually('the stream echoes', () => stream.text().endsWith('still here'));
		await load(server, streaming(up.address, 'three', delayed, { connect_timeout: 1234 }));
		assert.is((await server.get('/text')).body, 'three');
		stream.socket.write(', and here');
		await eventually('the stream echoes', () => stream.text().endsWith(', and here'));
		// The first pool is used again before the delay has passed, so the stream continues.
		await load(server, streaming(up.address, 'four', delayed));
		assert.is((await server.get('/text')).body, 'four');
		await waitForNothing(500);
		assert.not.ok(stream.closed());
		await load(server, streaming(up.address, 'five', delayed, { connect_timeout: 4321 }));
		await server.get('/text');
		const start = performance.now();
		await eventually('the stream ends', stream.closed);
		assert.ok(performance.now() - start < 20_000);
	});
});

test.run();
