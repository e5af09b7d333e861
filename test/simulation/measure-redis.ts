/**
 * Measures what the commands of a cluster cost a real redis-server, and writes redis-costs.json. A cost is the processor time of
 * the server's main thread, which executes all commands, including receiving and sending.
 *
 * Usage: node test/simulation/measure-redis.ts
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import path from 'node:path';
import { HEARTBEAT_SCRIPT } from '../../runtime/cluster/cluster-members.ts';
import { REPORT_SCRIPT } from '../../runtime/cluster/shared-limits.ts';
import { CONFIRM_SCRIPT, PUBLISH_SCRIPT } from '../../runtime/cluster/shared-purges.ts';
import { RedisServer } from '../peers/redis-server.ts';
import { encodeCommand, RedisClient } from './redis-client.ts';
import type { CommandCost, RedisCosts } from './redis-costs.ts';

/** Number of machines, each of which has two connections. */
const MACHINES = 1000;
/** Number of keys in the zone of limits. */
const ZONE_KEYS = 1_000_000;
/** Number of keys in a large report. */
const LARGE_REPORT = 100;
/** Duration of each measurement in milliseconds. */
const MEASURED_MS = 3000;
/** Number of rounds. The median of their results is used. */
const ROUNDS = 3;

const redis = await RedisServer.start();
const clients = await Promise.all(Array.from({ length: MACHINES }, () => RedisClient.connect(redis.port)));
const readers = await Promise.all(Array.from({ length: MACHINES }, () => RedisClient.connect(redis.port)));
const script = (source: string, keys: readonly string[], args: readonly (string | Buffer)[]): Buffer =>
	encodeCommand(['EVAL', source, String(keys.length), ...keys, ...args]);

let lastReportNumber = 0;
const names = Array.from({ length: ZONE_KEYS }, () => randomBytes(12));
function report(
	keyCount: number,
	client: number,
	amountMicroseconds: number,
	nameOf: (index: number) => Buffer,
): Buffer {
	const args: (string | Buffer)[] = ['2', 'svc:limits:api', `svc:limits:api:${String(client).padStart(16, '0')}`];
	args.push(String(++lastReportNumber), '2000000');
	for (let index = 0; index < keyCount; index++) args.push(nameOf(index), String(amountMicroseconds), '60000000', '0');
	return encodeCommand(['EVALSHA', REPORT_SCRIPT.hash, ...args]);
}

try {
	console.log('filling a zone …');
	redis.cli('script', 'load', REPORT_SCRIPT.source);
	for (let first = 0; first < ZONE_KEYS; first += 500)
		await clients[0]!.send(report(500, 0, 3_600_000_000, index => names[first + index]!));

	// Half of the keys are new, and are forgotten after three seconds.
	const someName = (): Buffer =>
		Math.random() < 0.5 ? randomBytes(12) : names[Math.floor(Math.random() * ZONE_KEYS)]!;
	const [smallReport, smallScript] = await measure('evalsha', client => report(1, client, 3_000_000, someName));
	const [largeReport, largeScript] = await measure('evalsha', client =>
		report(LARGE_REPORT, client, 3_000_000, someName),
	);

	const idOf = (client: number): string => `machine-${String(client).padStart(4, '0')}-01234567`;
	const description = JSON.stringify({
		id: idOf(0),
		host: 'machine-0000',
		pid: 12345,
		version: '0.2.2',
		generation: 12,
		since: 1_790_000_000,
	});
	const members = ['svc:members', 'svc:members:facts', 'svc:members:missing'];
	const heartbeat = (client: number): Buffer =>
		script(HEARTBEAT_SCRIPT, members, [idOf(client), '600000', description, '86400000']);
	let purgeCount = 0;
	const publish = (): Buffer => {
		const keys = ['svc:purges', 'svc:purges:last', 'svc:members', 'svc:members:missing'];
		const args = [idOf(0), Buffer.alloc(90, 'x'), '10000', '600000'];
		return script(PUBLISH_SCRIPT, [...keys, `svc:purges:accepted:x:${purgeCount++}`], args);
	};
	const [emptyPublish] = await measure('eval', publish);
	const [heartbeatCost] = await measure('eval', heartbeat);
	await Promise.all(clients.map((client, index) => client.send(heartbeat(index))));
	const [fullPublish] = await measure('eval', publish);
	const confirm = (client: number): Buffer =>
		script(CONFIRM_SCRIPT, ['svc:purges:confirmed:x'], ['1790000000000-0', idOf(client), '60000']);
	const [confirmCost] = await measure('eval', confirm);
	const read = (position: string, blockMs: number): Buffer =>
		encodeCommand([
			...['XREAD', 'COUNT', '100', 'BLOCK', String(blockMs), 'STREAMS'],
			...['svc:purges', 'svc:purges:confirmed:none', position, '0-0'],
		]);
	const [waitCost] = await measure('xread', () => read('9999999999999-0', 1));
	// An entry is printed as seven lines: its ID, and three names and values.
	const position = redis.cli('xrevrange', 'svc:purges', '+', '-', 'count', '2').split('\n')[7]!;
	const [oneRead] = await measure('xread', () => read(position, 1000), 1);
	const [rangeCost] = await measure('xrange', () => encodeCommand(['XRANGE', 'svc:purges', position, position]), 1);

	const purgeCost = await measurePurges(publish, read);
	const costs: RedisCosts = {
		date: new Date().toISOString().slice(0, 10),
		redis: `Redis ${/redis_version:(\S+)/.exec(redis.cli('info', 'server'))![1]}`,
		machine: `${cpus()[0]!.model.trim()}, ${cpus().length} cores`,
		report: fit(smallReport, 1, largeReport, LARGE_REPORT),
		heartbeat: only(heartbeatCost),
		publish: fit(emptyPublish, 0, fullPublish, MACHINES),
		confirm: only(confirmCost),
		read: { each: rounded(waitCost), perUnit: rounded(Math.max(0, oneRead - waitCost)) },
		wake: only((purgeCost - fullPublish) / MACHINES - waitCost),
		range: only(rangeCost),
		reportScript: fit(smallScript, 1, largeScript, LARGE_REPORT),
	};
	console.log(costs);
	writeFileSync(path.join(import.meta.dirname, 'redis-costs.json'), `${JSON.stringify(costs, null, '\t')}\n`);
} finally {
	for (const client of [...clients, ...readers]) client.close();
	await redis.kill();
}

/**
 * Sends commands on all connections, one at a time on each. Returns, in microseconds per command, the processor time, and the part
 * of it that `INFO commandstats` attributes to the command.
 */
async function measure(
	statistic: string,
	commandOf: (client: number) => Buffer,
	distinct: number = 20_000,
): Promise<[processor: number, command: number]> {
	const commands = Array.from({ length: distinct }, (_, index) => commandOf(index % MACHINES));
	const rounds: [number, number][] = [];
	for (let round = 0; round < ROUNDS; round++) {
		redis.cli('config', 'resetstat');
		const start = processorTime();
		const end = performance.now() + MEASURED_MS;
		let count = 0;
		await Promise.all(
			clients.map(async client => {
				while (performance.now() < end) await client.send(commands[count++ % distinct]!);
			}),
		);
		const processor = (processorTime() - start) / count;
		const perCall = new RegExp(`cmdstat_${statistic}:.*usec_per_call=([\\d.]+)`).exec(
			redis.cli('info', 'commandstats'),
		)!;
		rounds.push([processor, Number(perCall[1])]);
	}
	rounds.sort(([one], [other]) => one - other);
	const median = rounds[ROUNDS >> 1]!;
	console.log(statistic, rounds);
	return median;
}

/** Measures a purge for which all machines are waiting, and after which all of them wait again. */
async function measurePurges(
	publish: () => Buffer,
	read: (position: string, blockMs: number) => Buffer,
): Promise<number> {
	const wait = read('$', 60_000);
	const publisher = clients[0]!;
	let waiting = readers.map(reader => reader.send(wait));
	while (!redis.cli('info', 'clients').includes(`blocked_clients:${MACHINES}`));
	const purges = 100;
	const start = processorTime();
	for (let purge = 0; purge < purges; purge++) {
		const woken = waiting;
		await publisher.send(publish());
		await Promise.all(woken);
		waiting = readers.map(reader => reader.send(wait));
		// The server executes commands in order of arrival, so all readers are waiting once it has answered this one.
		await publisher.send(encodeCommand(['PING']));
		while (!redis.cli('info', 'clients').includes(`blocked_clients:${MACHINES}`));
	}
	const cost = (processorTime() - start) / purges;
	console.log('a purge with waiting readers', cost);
	for (const wait of waiting) wait.catch(() => {});
	return cost;
}

/** Returns the processor time of the server's main thread in microseconds. */
function processorTime(): number {
	const text = redis.cli('info', 'cpu');
	const seconds = ['sys', 'user'].map(kind =>
		Number(new RegExp(`used_cpu_${kind}_main_thread:([\\d.]+)`).exec(text)![1]),
	);
	return (seconds[0]! + seconds[1]!) * 1e6;
}

/** Returns the line through two measured costs, one for few units and one for many. */
function fit(small: number, smallUnits: number, large: number, largeUnits: number): CommandCost {
	const perUnit = (large - small) / (largeUnits - smallUnits);
	return { each: rounded(small - smallUnits * perUnit), perUnit: rounded(perUnit) };
}

function only(cost: number): CommandCost {
	return { each: rounded(cost), perUnit: 0 };
}

function rounded(microseconds: number): number {
	return Math.round(microseconds * 100) / 100;
}
