/** What clients observe of a server in front of upstreams that are down, silent, slow, broken or overloaded. */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Runtime, startRuntime } from '../../runtime/main/runtime.ts';
import { freePorts, temporaryFolder } from '../harness.ts';
import { eventually, jsonInput, recordingLog } from '../runtime/running-server.ts';
import { startUpstreams } from '../runtime/upstreams/upstream-process.ts';

const test = suite('misbehaving upstreams');

type Process = Awaited<ReturnType<typeof startUpstreams>>;

/** The behavior of each upstream, by the name that the tests use for the upstream. All upstreams run in one process. */
const BEHAVIORS: { readonly [name: string]: string } = {
	well: 'well',
	also: 'well',
	reset: 'reset',
	garbage: 'garbage',
	early: 'early',
	closing: 'closing',
	late: 'slow=1500',
	failing: 'status=500',
	crawling: 'slow=2000',
	...Object.fromEntries(Array.from({ length: 49 }, (_, i) => [`of-fifty-${i}`, 'well'])),
};

let ports: { [name: string]: number };
let processes: Process[] = [];
let stoppable: Process;
let flapping: Process;
let runtime: Runtime | undefined;
/** The file in which the upstream that can be stopped records its requests. */
const stoppableRecord = path.join(temporaryFolder(), 'requests');

/** Starts one server for all scenarios, each with its own path and pool. */
test.before(async () => {
	const names = [...Object.keys(BEHAVIORS), 'dead', 'stoppable', 'flapping'];
	const free = await freePorts(names.length);
	ports = Object.fromEntries(names.map((name, i) => [name, free[i]!]));
	processes = [await startUpstreams(Object.entries(BEHAVIORS).map(([name, manner]) => `${ports[name]}:${manner}`))];
	stoppable = await startUpstreams([`${ports.stoppable}:well`], stoppableRecord);
	flapping = await startUpstreams([`${ports.flapping}:well`]);
	const fifty = ['crawling', ...Object.keys(BEHAVIORS).filter(name => name.startsWith('of-fifty-'))];
	const pools: [path: string, upstreams: readonly string[], settings?: object][] = [
		['/refusing', ['dead', 'well'], { retries: 1, fail_duration: 60_000 }],
		[
			'/black-hole',
			['stoppable', 'also'],
			{
				retries: 1,
				// Even if the machine is busy, the other upstream responds within these times.
				response_header_timeout: 2000,
				health: { uri: '/', interval: 50, timeout: 2000 },
			},
		],
		['/reset', ['reset']],
		['/garbage', ['garbage']],
		['/garbage-and-well', ['garbage', 'well'], { retries: 1 }],
		['/early', ['early']],
		['/closing', ['closing']],
		[
			'/flapping',
			['flapping', 'well'],
			{
				retries: 3,
				retry_interval: 20,
				health: { uri: '/', interval: 30 },
				fail_duration: 100,
			},
		],
		['/slow', ['late', 'well'], { fail_duration: 60_000, unhealthy_latency: 1000 }],
		['/circuit', ['failing', 'well'], { circuit: { min_requests: 5, open_for: 60_000 } }],
		['/even', fifty],
		['/avoiding', fifty, { balance: { policy: 'peak_ewma' } }],
	];
	const pipeline = pools.map(([path]) => ({
		handler: 'proxy',
		when: { type: 'path', patterns: [path] },
		pool: path,
	}));
	const upstreams = Object.fromEntries(pools.map(([path, names, more]) => [path, pool(names, more)]));
	const log = recordingLog();
	runtime = await startRuntime({
		input: jsonInput({ upstreams, sites: [{ addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline }] }),
		threads: 2,
		writers: { stdout: log, stderr: log },
	});
});

test.after(async () => {
	agent.destroy();
	runtime?.kill();
	await runtime?.stop();
	for (const one of [...processes, stoppable, flapping]) await one.stop();
});

function pool(names: readonly string[], more: object = {}): object {
	return { to: names.map(name => `127.0.0.1:${ports[name]}`), balance: { policy: 'round_robin' }, ...more };
}

const port = () => runtime!.listeners[0]!.port;

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** Requests a path. Resolves to the status and `X-Port` of a complete response; rejects if the response is cut off. */
function get(path: string, id = ''): Promise<{ status: number; upstream: string | undefined }> {
	return new Promise((resolve, reject) => {
		const headers = { 'x-id': id };
		const call = request({ agent, port: port(), host: '127.0.0.1', path, headers }, response => {
			const upstream = response.headers['x-port'] as string | undefined;
			response.resume();
			response.on('end', () => resolve({ status: response.statusCode!, upstream }));
			response.on('error', reject);
		});
		call.on('error', reject);
		call.end();
	});
}

/** Returns the server's reports on the upstreams of the scenario with the path `path`. */
const reports = (path: string) => runtime!.upstreams().filter(({ pool }) => pool === path);

/** Sends `count` requests, `atOnce` at a time, and counts their statuses. */
async function countStatuses(path: string, count: number, atOnce = 10, id = ''): Promise<{ [status: number]: number }> {
	const seen: { [status: number]: number } = {};
	let remaining = count;
	await Promise.all(
		Array.from({ length: atOnce }, async () => {
			while (remaining-- > 0) {
				const { status } = await get(path, id);
				seen[status] = (seen[status] ?? 0) + 1;
			}
		}),
	);
	return seen;
}

test('refusing connections: clients notice nothing, and the upstream gets no more requests', async () => {
	assert.equal(await countStatuses('/refusing', 40), { 200: 40 });
	const [dead] = reports('/refusing');
	assert.is(dead!.healthy, false);
	assert.ok(dead!.fails >= 1);
});

test('not responding: requests are retried elsewhere after the timeout; the upstream is removed until it responds again', async () => {
	assert.equal(await countStatuses('/black-hole', 10), { 200: 10 });
	stoppable.kill('SIGSTOP');
	assert.equal(await countStatuses('/black-hole', 20), { 200: 20 });
	await eventually('the upstream is removed', () => reports('/black-hole').some(({ healthy }) => !healthy));
	assert.equal(await countStatuses('/black-hole', 20, 10, 'while-removed'), { 200: 20 });
	stoppable.kill('SIGCONT');
	await eventually('the upstream is back', () => reports('/black-hole').every(({ healthy }) => healthy));
	assert.equal(await countStatuses('/black-hole', 20, 10, 'when-back'), { 200: 20 });
	const record = readFileSync(stoppableRecord, 'utf8');
	assert.match(record, 'when-back');
	assert.not.match(record, 'while-removed');
});

test('resetting during the body: the client sees a broken connection, never a message that looks complete', async () => {
	for (let i = 0; i < 5; i++) {
		let failed = false;
		await get('/reset').catch(() => {
			failed = true;
		});
		assert.ok(failed);
	}
});

test('garbage instead of a response: the client gets 502, or the response of another upstream', async () => {
	assert.equal(await countStatuses('/garbage', 5), { 502: 5 });
	assert.equal(await countStatuses('/garbage-and-well', 20), { 200: 20 });
});

test('responding early: the client gets the response, even though the upstream never read the body', async () => {
	const status = await new Promise<number>((resolve, reject) => {
		const call = request({ port: port(), host: '127.0.0.1', method: 'POST', path: '/early' }, response => {
			resolve(response.statusCode!);
			response.resume().on('close', () => call.destroy());
		});
		call.on('error', reject);
		const piece = Buffer.alloc(65_536);
		const timer = setInterval(() => call.write(piece), 5);
		call.on('close', () => clearInterval(timer));
	});
	assert.is(status, 413);
});

test('closing reused connections during requests: every idempotent request succeeds', async () => {
	assert.equal(await countStatuses('/closing', 300, 8), { 200: 300 });
});

test('flapping: requests succeed with a few retries', async () => {
	let isOver = false;
	const load = (async () => {
		const seen = new Set<number>();
		while (!isOver) seen.add((await get('/flapping')).status);
		return seen;
	})();
	for (let i = 0; i < 2; i++) {
		await flapping.stop();
		await new Promise(resolve => setTimeout(resolve, 80));
		flapping = await startUpstreams([`${ports.flapping}:well`]);
		await new Promise(resolve => setTimeout(resolve, 80));
	}
	isOver = true;
	assert.equal([...(await load)], [200]);
});

test('slow: responses over the latency limit count as failures', async () => {
	await countStatuses('/slow', 4, 2);
	assert.equal(
		reports('/slow').map(({ healthy }) => healthy),
		[false, true],
	);
	for (let i = 0; i < 20; i++) assert.equal(await get('/slow'), { status: 200, upstream: String(ports.well) });
});

test('the circuit of a failing upstream opens, and it gets no more requests', async () => {
	const seen = await countStatuses('/circuit', 60);
	assert.ok(seen[500]! >= 5 && seen[500]! <= 16, JSON.stringify(seen));
	assert.is(reports('/circuit')[0]!.circuit, 'open');
	assert.equal(await countStatuses('/circuit', 20), { 200: 20 });
});

test('one of fifty upstreams takes two seconds: peak_ewma sends it at most a quarter of the requests that round_robin does', async () => {
	const shareOf = async (path: string, count: number) => {
		let slow = 0;
		let remaining = count;
		await Promise.all(
			Array.from({ length: 25 }, async () => {
				while (remaining-- > 0) {
					if ((await get(path)).upstream === String(ports.crawling)) slow++;
				}
			}),
		);
		return slow / count;
	};
	const [even, avoiding] = [await shareOf('/even', 100), await shareOf('/avoiding', 600)];
	assert.ok(Math.abs(even - 0.02) < 0.006, `${even}`);
	assert.ok(avoiding <= even / 4, `${avoiding} against ${even}`);
});

test.run();
