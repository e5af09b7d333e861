/** Measures the servers of one row of the bench. They take turns, so that no server benefits when the machine's speed changes. */
import { connect, type Socket } from 'node:net';
import { freePorts } from '../harness.ts';
import { openIdleHttp3, runLoad } from './load.ts';
import { type BenchServer, isInstalled, PROGRAMS, startBenchServer } from './servers.ts';
import { sampleStart } from './starting.ts';
import { BACKEND_FILES, backendConfiguration } from './tasks/proxying.ts';
import type { Backends, Contender, IdleTask, LoadTask, StartTask, Task } from './tasks/task.ts';

/** The measurements of one server in one row. */
export interface ServerMeasurement {
	readonly label: string;
	/** The value that is compared, as the median over the rounds: µs of CPU time per request, KiB per connection, or ms. */
	readonly value: number;
	/** Our value divided by this server's, per round: median, minimum, maximum. Undefined for our own server. */
	readonly ratio?: readonly [median: number, least: number, greatest: number];
	/** Upper bound of the ratio. */
	readonly bound?: number;
	/** Upper bound of our own server's value. */
	readonly limit?: number;
	/** Requests per second, as a median over the rounds. Only in rows with a load. */
	readonly rate?: number;
	/** Percentiles of the latency in microseconds. Each is the median over the rounds. */
	readonly p50?: number;
	readonly p99?: number;
	readonly p999?: number;
}

/** The measurements of one row of the bench. */
export interface RowResult {
	readonly name: string;
	readonly unit: 'µs/request' | 'KiB/connection' | 'ms' | 'MiB';
	readonly figures: readonly ServerMeasurement[];
}

/** How often, how long and on which cores to measure. */
export interface MeasurementConditions {
	readonly rounds: number;
	/** Number of seconds of load per server and round. */
	readonly seconds: number;
	readonly serverCore: string;
	readonly loadCore: string;
}

/** Number of seconds of load before the measurement starts. */
const WARM_UP_SECONDS = 3;

/** The measurement of one server in one round. */
interface Sample {
	readonly value: number;
	readonly rate?: number;
	readonly p50?: number;
	readonly p99?: number;
	readonly p999?: number;
}

/** Number of rounds for a row that measures startup. */
const START_ROUNDS = 10;

/** Measures a row. Servers that are not installed are skipped. Throws if a request failed. */
export async function measureTask(task: Task, conditions: MeasurementConditions): Promise<RowResult> {
	if ('start' in task) return measureStarts(task);
	const contenders = task.contenders.filter(({ server, needsRedis }) => {
		const program = PROGRAMS[server];
		return (program === undefined || isInstalled(program)) && (!needsRedis || isInstalled(PROGRAMS.redis!));
	});
	const [files, secure, h2c, program, redis] = (await freePorts(5)) as [number, number, number, number, number];
	const backends = { files, secure, h2c, program, redis };
	const needsBackends = 'load' in task;
	const running = needsBackends
		? [
				await startBenchServer('nginx', backendConfiguration(backends), files, conditions.loadCore, BACKEND_FILES),
				await startBenchServer('node', '', program, conditions.loadCore),
			]
		: [];
	if (contenders.some(({ needsRedis }) => needsRedis))
		running.push(await startBenchServer('redis', '', redis, conditions.loadCore));
	try {
		const samples = await sampleTask(task, contenders, backends, conditions);
		const ours = samples[0]!;
		const figures = samples.map((taken, index): ServerMeasurement => {
			const label = contenders[index]!.label ?? contenders[index]!.server;
			const ratios = ours.map((own, round) => own.value / taken[round]!.value);
			const bound = task.bounds?.[label];
			return {
				label,
				value: median(taken.map(sample => sample.value)),
				...(index > 0 && { ratio: [median(ratios), Math.min(...ratios), Math.max(...ratios)] }),
				...(bound !== undefined && { bound }),
				...(index === 0 && 'limit' in task && { limit: task.limit }),
				...(taken[0]!.rate !== undefined && {
					rate: median(taken.map(sample => sample.rate!)),
					p50: median(taken.map(sample => sample.p50!)),
					p99: median(taken.map(sample => sample.p99!)),
					p999: median(taken.map(sample => sample.p999!)),
				}),
			};
		});
		return {
			name: task.name,
			unit: 'idle' in task ? 'KiB/connection' : 'µs/request',
			figures,
		};
	} finally {
		for (const server of running) await server.stop();
	}
}

async function measureStarts(task: StartTask): Promise<RowResult> {
	const contenders = task.contenders.filter(({ server }) => server !== 'caddy' || isInstalled('caddy'));
	const samples: number[][] = contenders.map(() => []);
	// A first round fills the file cache and is not counted.
	for (let round = 0; round <= START_ROUNDS; round++) {
		for (const [index, contender] of contenders.entries()) {
			const sample = await sampleStart(contender, task.start);
			if (round > 0) samples[index]!.push(sample);
		}
	}
	const least = samples.map(taken => Math.min(...taken));
	const figures = contenders.map(({ label, server }, index): ServerMeasurement => {
		const name = label ?? server;
		const value = least[index]!;
		if (index === 0) return { label: name, value, ...(task.limit !== undefined && { limit: task.limit }) };
		const ratios = samples[0]!.map((own, round) => own / samples[index]![round]!);
		const bound = task.bounds?.[name];
		const ratio = [least[0]! / value, Math.min(...ratios), Math.max(...ratios)] as const;
		return { label: name, value, ratio, ...(bound !== undefined && { bound }) };
	});
	return { name: task.name, unit: task.start.startsWith('memory') ? 'MiB' : 'ms', figures };
}

/** Returns the samples of each contender, one sample per round. */
async function sampleTask(
	task: LoadTask | IdleTask,
	contenders: readonly Contender[],
	backends: Backends,
	conditions: MeasurementConditions,
): Promise<Sample[][]> {
	const samples: Sample[][] = contenders.map(() => []);
	if ('load' in task) {
		const servers: BenchServer[] = [];
		try {
			for (const contender of contenders) servers.push(await start(contender, backends, conditions));
			const loadCores = contenders.map(contender => contender.loadCores ?? [Number(conditions.loadCore)]);
			for (const [index, server] of servers.entries())
				await sampleLoad(server, task, loadCores[index]!, task.warmUp ?? WARM_UP_SECONDS);
			for (let round = 0; round < conditions.rounds; round++) {
				for (const [index, server] of servers.entries())
					samples[index]!.push(await sampleLoad(server, task, loadCores[index]!, conditions.seconds));
			}
		} finally {
			for (const server of servers) await server.stop();
		}
		return samples;
	}
	for (const [index, contender] of contenders.entries()) {
		samples[index]!.push(await sampleIdle(contender, task, backends, conditions));
	}
	return samples;
}

async function start(
	contender: Contender,
	backends: Backends,
	conditions: MeasurementConditions,
): Promise<BenchServer> {
	const [port] = (await freePorts(1)) as [number];
	const text = contender.configuration(port, backends);
	return startBenchServer(contender.server, text, port, contender.cores ?? conditions.serverCore);
}

/** Measures the server's CPU time per request, and returns it with the counts of the load generator. */
async function sampleLoad(
	server: BenchServer,
	task: LoadTask,
	loadCores: readonly number[],
	seconds: number,
): Promise<Sample> {
	const before = server.cpuSeconds();
	const count = await runLoad(server.port, task.load, loadCores, seconds, () => server.cpuSeconds());
	// A few connections may still be connecting when the load ends, and are counted as failures. A larger share of failures is the
	// server's fault.
	if (count.failures > count.requests / 1000) {
		throw new Error(`${task.name}: ${server.name}: ${count.failures} of ${count.requests} requests failed`);
	}
	const { p50, p99, p999 } = count;
	const value = ((count.cpuSeconds ?? server.cpuSeconds() - before) * 1e6) / count.requests;
	return { value, rate: count.requests / count.seconds, p50, p99, p999 };
}

/** Measures the memory in KiB that an open connection takes after it has been used once. */
async function sampleIdle(
	contender: Contender,
	task: IdleTask,
	backends: Backends,
	conditions: MeasurementConditions,
): Promise<Sample> {
	const server = await start(contender, backends, conditions);
	if (task.protocol === 'http3') {
		try {
			return { value: await http3MemoryPerConnection(server, task.idle, Number(conditions.loadCore)) };
		} finally {
			await server.stop();
		}
	}
	const sockets: Socket[] = [];
	try {
		await useOnce(server.port, 200, sockets);
		await new Promise(resolve => setTimeout(resolve, 1000));
		const before = server.residentBytes();
		for (let open = 0; open < task.idle; open += 200) await useOnce(server.port, 200, sockets);
		await new Promise(resolve => setTimeout(resolve, 2000));
		return { value: (server.residentBytes() - before) / 1024 / task.idle };
	} finally {
		for (const socket of sockets) socket.destroy();
		await server.stop();
	}
}

/** Number of connections opened before the measurement, so that memory which a server allocates only once is not measured. */
const UNMEASURED_CONNECTIONS = 20;

async function http3MemoryPerConnection(server: BenchServer, count: number, core: number): Promise<number> {
	const first = await openIdleHttp3(server.port, UNMEASURED_CONNECTIONS, core);
	try {
		await new Promise(resolve => setTimeout(resolve, 1000));
		const before = server.residentBytes();
		const others = await openIdleHttp3(server.port, count, core);
		try {
			await new Promise(resolve => setTimeout(resolve, 2000));
			return (server.residentBytes() - before) / 1024 / count;
		} finally {
			await others.stop();
		}
	} finally {
		await first.stop();
	}
}

/** Opens connections and reads one response on each. */
async function useOnce(port: number, count: number, sockets: Socket[]): Promise<void> {
	await Promise.all(
		Array.from(
			{ length: count },
			() =>
				new Promise<void>((resolve, reject) => {
					const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: idle.example\r\n\r\n'));
					sockets.push(socket);
					socket.once('data', () => {
						socket.resume();
						resolve();
					});
					socket.once('error', reject);
				}),
		),
	);
}

export function median(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	const middle = sorted.length >> 1;
	return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
