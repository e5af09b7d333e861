/** `rate_limit` in a server with two threads: all threads share one count, which survives reloads and the death of a thread. */
import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import { eventually, jsonInput, respondingSite, type TestServer, withServer } from '../running-server.ts';

const test = suite('rate-limited server');

const limitedDocument = (body: string, zone: object): Document => ({
	settings: { metrics: {} },
	sites: [respondingSite(body, { steps: [{ handler: 'rate_limit', zones: [{ name: 'all', ...zone }] }] })],
});
/** A window in milliseconds. It is so long that no used-up request becomes available again during a test. */
const DAY_MS = 86_400_000;

/** Sends each request on its own connection, so that both threads get some. Returns the number of responses by status. */
async function countStatuses({ get }: TestServer, count: number): Promise<{ [status: number]: number }> {
	const found: { [status: number]: number } = {};
	const answers = await Promise.all(Array.from({ length: count }, () => get()));
	for (const { status } of answers) found[status] = (found[status] ?? 0) + 1;
	return found;
}

test('all threads count together, exactly', async () => {
	await withServer(limitedDocument('ok', { requests: 50, window: DAY_MS }), {}, async server => {
		assert.equal(await countStatuses(server, 120), { 200: 50, 429: 70 });
		// A thread tells the main thread of each outcome when it counts the first one, so the metrics may lack it for a moment.
		for (const line of ['outcome="admitted"} 50\n', 'outcome="refused"} 70\n'])
			await eventually(line, async () =>
				(await server.runtime.metrics()).includes(`svc_rate_limit_requests_total{zone="all",${line}`),
			);
	});
});

test('counts survive reloads, also with another limit, and the death of a thread', async () => {
	await withServer(limitedDocument('one', { requests: 40, window: DAY_MS }), {}, async server => {
		assert.equal(await countStatuses(server, 30), { 200: 30 });
		await server.runtime.load(jsonInput(limitedDocument('two', { requests: 40, window: DAY_MS })));
		assert.equal(await countStatuses(server, 30), { 200: 10, 429: 20 });
		// The 40 requests that used up the lower limit take half of the higher limit, whose window is twice as long.
		await server.runtime.load(jsonInput(limitedDocument('three', { requests: 80, window: 2 * DAY_MS })));
		assert.equal(await countStatuses(server, 50), { 200: 40, 429: 10 });
		await server.runtime.terminateWorker(0);
		assert.equal(await countStatuses(server, 10), { 429: 10 });
	});
});

test('requests that run one after the other are charged for their status before the next one is decided', async () => {
	const failures = { name: 'failures', requests: 5, window: DAY_MS, cost: 0, status_cost: { 401: 1 } };
	const site = respondingSite('wrong', {
		steps: [
			{ handler: 'limit_concurrent', zones: [{ name: 'one', requests: 1, queue: 200, timeout: 60_000 }] },
			{ handler: 'rate_limit', zones: [failures] },
			{ handler: 'respond', status: 401 },
		],
	});
	await withServer({ sites: [site] }, {}, async server => {
		assert.equal(await countStatuses(server, 120), { 401: 5, 429: 115 });
	});
});

test('a delayed request whose client leaves does not hold up the server', async () => {
	const document = limitedDocument('ok', { requests: 1, window: 2000, delay: 3_600_000, key: 'static' });
	await withServer(document, {}, async server => {
		assert.is((await server.get()).status, 200);
		const startedAt = performance.now();
		const client = connect(server.port, '127.0.0.1', () => client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'));
		// The delayed request counts against the limit, so another request would have to wait until two windows have passed.
		const delayed = async () => (await server.runtime.metrics()).includes('zone="all",outcome="delayed"} 1');
		await eventually('the request is delayed', delayed);
		client.destroy();
		assert.is((await server.get()).status, 200);
		assert.ok(performance.now() - startedAt >= 2000);
	});
});

test.run();
