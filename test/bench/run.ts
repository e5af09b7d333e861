/**
 * `npm run bench`: processor time per request, ours beside nginx, haproxy and caddy, one core each, in one run.
 *
 * Servers take turns for a few rounds, so that a machine whose speed drifts favours none; the ratio of a pair is the
 * median over the rounds. Absolute times mean little on a shared machine: read the ratios.
 *
 * Usage: node test/bench/run.ts [--rounds N] [--seconds N] [part of a row's name …]
 */
import { parseArgs } from 'node:util';
import { freePorts } from '../harness.ts';
import { type BenchServer, isInstalled, runLoad, type ServerName, startBenchServer, type Task } from './servers.ts';
import { BACKEND_FILES, backendConfiguration, TASKS } from './tasks.ts';

const SERVER_CORE = 0;
const LOAD_CORE = 1;
const CONNECTIONS = 64;

const { values, positionals } = parseArgs({
	options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '2' } },
	allowPositionals: true,
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);

for (const program of ['wrk', 'taskset', 'nginx']) {
	if (!isInstalled(program)) {
		console.error(`The bench needs ${program}, from the distribution's packages.`);
		process.exit(1);
	}
}

console.log(`processor time per request, one core, ${CONNECTIONS} connections, ${rounds} rounds of ${seconds} s`);
for (const task of TASKS) {
	if (positionals.length === 0 || positionals.some(part => task.name.includes(part))) await benchTask(task);
}

async function benchTask(task: Task): Promise<void> {
	const names = (Object.keys(task.configurations) as ServerName[]).filter(name => name === 'svc' || isInstalled(name));
	const ports = await freePorts(names.length + 1);
	const backendPort = ports.pop()!;
	const backend = await startBenchServer(
		'nginx',
		backendConfiguration(backendPort),
		backendPort,
		LOAD_CORE,
		BACKEND_FILES,
	);
	const servers: BenchServer[] = [];
	try {
		for (const [index, name] of names.entries()) {
			const port = ports[index]!;
			servers.push(await startBenchServer(name, task.configurations[name]!(port, backendPort), port, SERVER_CORE));
		}
		for (const server of servers) await measure(server, task, 1);
		const cost = new Map<string, number[]>(names.map(name => [name, []]));
		for (let round = 0; round < rounds; round++) {
			for (const server of servers) cost.get(server.name)!.push(await measure(server, task, seconds));
		}
		const ours = cost.get('svc')!;
		console.log(`\n${task.name}`);
		for (const [name, costs] of cost) {
			const ratios = ours.map((own, round) => own / costs[round]!);
			const line = `  ${name.padEnd(8)} ${median(costs).toFixed(2).padStart(7)} µs`;
			console.log(
				name === 'svc'
					? line
					: `${line}   svc/${name} ${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`,
			);
		}
	} finally {
		for (const server of servers) await server.stop();
		await backend.stop();
	}
}

/** Microseconds of processor time per request. */
async function measure(server: BenchServer, task: Task, duration: number): Promise<number> {
	const before = server.cpuSeconds();
	const load = await runLoad(`http://127.0.0.1:${server.port}${task.path}`, LOAD_CORE, CONNECTIONS, duration);
	if (load.failures) throw new Error(`${server.name}: ${load.failures} of ${load.requests} requests failed`);
	return ((server.cpuSeconds() - before) * 1e6) / load.requests;
}

function median(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	const middle = sorted.length >> 1;
	return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
