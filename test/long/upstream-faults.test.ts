/** Under load, one of three upstream processes is killed and restarted every second. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startRuntime } from '../../runtime/main/runtime.ts';
import { freePorts } from '../harness.ts';
import { jsonInput, recordingLog } from '../runtime/running-server.ts';
import { startUpstreams } from '../runtime/upstreams/upstream-process.ts';

const LOAD_MS = Number(process.env.FAULT_SECONDS ?? 45) * 1000;
/** Minimum number of kills, and of answered POST requests. On a busy machine, an upstream takes long to start again. */
const MIN_KILLS = LOAD_MS / 2500;
const MIN_ANSWERED = 100;
const CLIENTS = 8;

const faults = suite('upstreams that die and restart');

faults('every GET succeeds thanks to retries, and no POST is sent twice', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'svc-faults-'));
	const record = join(folder, 'requests');
	writeFileSync(record, '');
	const ports = await freePorts(3);
	const start = (i: number) => startUpstreams([`${ports[i]}:well`], record);
	const processes = await Promise.all(ports.map((_port, i) => start(i)));
	const log = recordingLog();
	const step = {
		handler: 'proxy',
		upstreams: {
			to: ports.map(port => `127.0.0.1:${port}`),
			balance: { policy: 'round_robin' },
			retry_duration: 5000,
			retry_interval: 20,
			fail_duration: 300,
		},
	};
	const runtime = await startRuntime({
		input: jsonInput({ sites: [{ addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline: [step] }] }),
		threads: 2,
		writers: { stdout: log, stderr: log },
	});
	const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
	const { port } = runtime.listeners[0]!;
	const send = (method: string, id: string) =>
		new Promise<number>((resolve, reject) => {
			const body = method === 'POST' ? 'a=b' : '';
			const headers = { 'X-Id': id, ...(body ? { 'Content-Length': body.length } : {}) };
			const call = request({ agent, port, host: '127.0.0.1', method, path: '/', headers }, response => {
				response.resume();
				response.on('end', () => resolve(response.statusCode!));
				response.on('error', reject);
			});
			call.on('error', reject);
			call.end(body);
		});
	const statuses: { [method: string]: { [status: string]: number } } = { GET: {}, POST: {} };
	const answered = new Set<string>();
	let isOver = false;
	let number = 0;
	try {
		const load = Promise.all(
			Array.from({ length: CLIENTS }, async (_, client) => {
				while (!isOver) {
					const method = number % 4 === 3 ? 'POST' : 'GET';
					const id = `${client}-${number++}`;
					const status = await send(method, id).catch(error => String(error));
					statuses[method]![status] = (statuses[method]![status] ?? 0) + 1;
					if (method === 'POST' && status === 200) answered.add(id);
					// The pause limits the load independently of the machine's speed. The load is still high enough to have
					// requests in progress at each kill.
					await new Promise(resolve => setTimeout(resolve, 2));
				}
			}),
		);
		let kills = 0;
		const end = performance.now() + LOAD_MS;
		for (; performance.now() < end || kills < MIN_KILLS || answered.size <= MIN_ANSWERED; kills++) {
			const i = kills % 3;
			await processes[i]!.stop();
			await new Promise(resolve => setTimeout(resolve, 200));
			processes[i] = await start(i);
			await new Promise(resolve => setTimeout(resolve, 600));
		}
		isOver = true;
		await load;
		const posts = readFileSync(record, 'utf8')
			.split('\n')
			.filter(line => line.includes(' POST '))
			.map(line => line.split(' ')[2]!);
		console.log(JSON.stringify({ kills, statuses, posts: posts.length }));
		assert.equal(Object.keys(statuses.GET!), ['200'], JSON.stringify(statuses));
		assert.is(new Set(posts).size, posts.length, 'a POST was sent twice');
		for (const id of answered) assert.ok(posts.includes(id));
	} finally {
		isOver = true;
		agent.destroy();
		runtime.kill();
		await runtime.stop();
		for (const one of processes) await one.stop();
		rmSync(folder, { recursive: true });
	}
});

faults.run();
