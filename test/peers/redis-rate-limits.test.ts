/** Rate limits that machines share through a real redis-server. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Rate } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import type { MachinePlan, MachineResult } from './rate-limited-machine.ts';
import { RedisServer } from './redis-server.ts';

const test = suite('rate limits that machines share');
const KEY = randomBytes(32).toString('base64');
const MACHINES = 3;
/** Milliseconds for which the machines send requests. In 150 seconds they send more than a million. */
const DURATION_MS = Number(process.env.SVC_RATE_LIMIT_SECONDS ?? 6) * 1000;

const run = promisify(execFile);

async function runMachine(plan: MachinePlan): Promise<MachineResult> {
	const file = path.join(import.meta.dirname, 'rate-limited-machine.ts');
	const { stdout } = await run(process.execPath, [file, JSON.stringify(plan)], { maxBuffer: 512 * 1024 * 1024 });
	return JSON.parse(stdout) as MachineResult;
}

/** Returns the limit of `requests` per second. */
function limit(requests: number, burst: number, batch: number): Rate {
	const intervalMs = 1000 / requests;
	const shared = { batchMs: batch * intervalMs, waitMs: 10_000, onError: 'local' } as const;
	return { intervalMs, capacityMs: burst * intervalMs, maxDelayMs: 0, shared };
}

/**
 * Simulates a single limit that counts the requests of all machines without delay, for requests at the given times.
 * @param isForced True to admit all requests.
 * @returns The number of admitted requests, and the highest usage.
 */
function model(times: readonly number[], intervalMs: number, burst: number, isForced: boolean) {
	let usage = 0;
	let admitted = 0;
	let highest = 0;
	let last = 0;
	for (const time of times) {
		usage = Math.max(0, usage - (time - last) / intervalMs);
		last = time;
		if (usage + 1 > burst && !isForced) continue;
		usage++;
		admitted++;
		highest = Math.max(highest, usage);
	}
	return { admitted, highest };
}

test('three machines admit at least the limit, and never more than the limit and a batch each', async () => {
	const redis = await RedisServer.start();
	// The requests per second, the burst and the batch size of each kind of limit.
	const kinds = [
		[100, 100, 10],
		[20, 5, 1],
		[50, 200, 20],
		[10, 30, 3],
		[400, 100, 10],
	] as const;
	const limits = Object.fromEntries(kinds.map(kind => [kind.join(' '), limit(kind[0], kind[1], kind[2])]));
	try {
		const plan = { address: redis.address, key: KEY, durationMs: DURATION_MS, limits, pauseMs: 2 };
		const results = await Promise.all(Array.from({ length: MACHINES }, () => runMachine(plan)));
		let requests = 0;
		for (const result of results) {
			assert.is(result.fallbacks, 0);
			assert.is(result.counts.failures, 0);
			assert.ok(result.counts.reports > 0);
		}
		const all = (of: 'requests' | 'admitted', name: string) =>
			results.flatMap(result => result[of][name]!).sort((a, b) => a - b);
		for (const [perSecond, burst, batch] of kinds) {
			const name = [perSecond, burst, batch].join(' ');
			const times = all('admitted', name);
			const wanted = all('requests', name);
			requests += wanted.length;
			const interval = 1000 / perSecond;
			const { highest } = model(times, interval, burst, true);
			const bound = burst + MACHINES * batch;
			const exact = model(wanted, interval, burst, false).admitted;
			const shown = `${name}: ${times.length} of ${wanted.length} admitted, the model ${exact}; ${highest} of at most ${bound} at a time`;
			assert.ok(highest <= bound + 0.5, shown);
			// Machines process replies a moment late, so a little of the limit may remain unused.
			assert.ok(times.length >= exact * 0.99 - 2, shown);
			assert.ok(times.length < wanted.length / 2, shown);
		}
		console.log(`${requests} requests`);
		assert.ok(requests > 10_000);
	} finally {
		await redis.kill();
	}
});

test.run();
