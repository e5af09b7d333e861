/** `shed` in a server with two threads whose upstream gets three times as many requests as it can answer. */
import { Agent, request as httpRequest, type ServerResponse } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { waitForClock } from '../../harness.ts';
import { type TestServer, withServer } from '../../runtime/running-server.ts';
import {
	type Answer,
	messagesOf,
	proxying,
	upstreamEntries,
	withUpstream,
} from '../../runtime/upstreams/shedding-upstream.ts';

const test = suite('an overloaded upstream');

const WORKERS = 8;
const SERVICE_MS = 40;
const CAPACITY_PER_SECOND = (WORKERS * 1000) / SERVICE_MS;

/**
 * Returns an upstream that answers with a fixed number of workers, each of which needs {@link SERVICE_MS} for a request. Calls
 * `onQueued` with the number of requests that wait for a worker.
 */
function fixedCapacity(onQueued: (count: number) => void): Answer {
	const queue: ServerResponse[] = [];
	let busyCount = 0;
	const work = (): void => {
		while (busyCount < WORKERS && queue.length > 0) {
			const response = queue.shift()!;
			busyCount++;
			setTimeout(() => {
				busyCount--;
				response.end('done');
				work();
			}, SERVICE_MS);
		}
	};
	return (_request, response) => {
		queue.push(response);
		work();
		onQueued(queue.length);
	};
}

interface Sample {
	readonly status: number;
	readonly milliseconds: number;
}

/** Sends requests at a fixed rate, whether or not earlier ones have been answered. Resolves when all have been answered. */
async function sendAtRate(port: number, agent: Agent, perSecond: number, seconds: number): Promise<Sample[]> {
	const pending: Promise<Sample>[] = [];
	const startedAt = performance.now();
	while (pending.length < perSecond * seconds) {
		const dueCount = Math.min(perSecond * seconds, ((performance.now() - startedAt) / 1000) * perSecond);
		while (pending.length < dueCount) pending.push(timedRequest(port, agent));
		await waitForClock(5);
	}
	return Promise.all(pending);
}

function timedRequest(port: number, agent: Agent): Promise<Sample> {
	const sentAt = performance.now();
	return new Promise((resolve, reject) => {
		const request = httpRequest({ host: '127.0.0.1', port, agent }, response => {
			const milliseconds = performance.now() - sentAt;
			response.resume().on('end', () => resolve({ status: response.statusCode!, milliseconds }));
		});
		request.on('error', reject).end();
	});
}

function p99Ms(samples: readonly Sample[]): number {
	const sorted = samples.map(({ milliseconds }) => milliseconds).sort((a, b) => a - b);
	return sorted[Math.floor(sorted.length * 0.99)]!;
}

async function metric({ runtime }: TestServer, name: string): Promise<number | undefined> {
	const text = await runtime.metrics();
	const value = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1];
	return value === undefined ? undefined : Number(value);
}

test('at three times the capacity, answered requests are nearly as fast as without load, and others are refused', async () => {
	const agent = new Agent({ keepAlive: true });
	try {
		let unprotected: Sample[] = [];
		let longestQueue = 0;
		const onQueued = (count: number): void => {
			longestQueue = Math.max(longestQueue, count);
		};
		await withUpstream(fixedCapacity(onQueued), async address => {
			await withServer(proxying([address], {}), {}, async ({ port }) => {
				unprotected = await sendAtRate(port, agent, CAPACITY_PER_SECOND * 3, 2);
			});
		});
		const unprotectedQueue = longestQueue;
		await withUpstream(fixedCapacity(onQueued), async address => {
			await withServer(proxying([address], { shed: {} }), {}, async server => {
				const { port } = server;
				const quiet = await sendAtRate(port, agent, CAPACITY_PER_SECOND / 4, 1);
				const beginning = await sendAtRate(port, agent, CAPACITY_PER_SECOND * 3, 2);
				longestQueue = 0;
				const overloaded = await sendAtRate(port, agent, CAPACITY_PER_SECOND * 3, 2);
				const answered = overloaded.filter(({ status }) => status === 200);
				const refused = overloaded.filter(({ status }) => status === 503);
				const facts = {
					quietMs: p99Ms(quiet),
					unprotectedMs: p99Ms(unprotected),
					answeredMs: p99Ms(answered),
					refusedMs: p99Ms(refused),
					answered: answered.length,
					refused: refused.length,
					unprotectedQueue,
					queue: longestQueue,
				};
				const text = JSON.stringify(facts);
				assert.ok(quiet.every(({ status }) => status === 200));
				assert.is(answered.length + refused.length, overloaded.length, text);
				// A busy machine delays timers of the test, too, so latencies are only compared with each other.
				assert.ok(facts.queue < facts.unprotectedQueue / 5, text);
				assert.ok(facts.unprotectedMs > facts.answeredMs * 5, text);
				assert.ok(answered.length > overloaded.length / 10, text);
				const refusedCount = [...beginning, ...overloaded].filter(({ status }) => status === 503).length;
				assert.is(await metric(server, 'svc_upstream_shed_requests_total'), refusedCount);
				const [entry] = await upstreamEntries(server);
				assert.is(entry!.shedding, true);
				assert.ok((entry!.concurrency_limit as number) < 50, JSON.stringify(entry));
				// Only the beginning of the overload is logged, not each refused request.
				assert.equal(messagesOf(server), ['upstreams are overloaded: requests are refused']);
			});
		});
	} finally {
		agent.destroy();
	}
});

test.run();
