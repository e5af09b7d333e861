/** Configuration reloads while clients are being served: short versions of the benchmarks in test/bench. */
import { readdirSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document, Site } from '../../../compiler/document/document.ts';
import { pauseFor } from '../../harness.ts';
import { type LoadResponse, quantile, startLoad } from '../../load-client.ts';
import { eventually, jsonInput, respondingSite, withServer } from '../running-server.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: a.example\r\n\r\n';

/** Returns a document whose status, header and body all identify the document by its number. */
function numberedDocument(number: number): Document {
	const odd = number % 2 === 1;
	const site = respondingSite(`body ${number} ${'x'.repeat(odd ? 10 : 3000)}`);
	return {
		sites: [
			{
				...site,
				pipeline: [
					{ handler: 'edit_headers', response: { set: [{ name: 'X-Document', value: String(number) }] } },
					{ ...site.pipeline[0]!, status: odd ? 201 : 200 },
				],
			},
		],
	};
}

/**
 * Returns what is wrong with a response; undefined if nothing is. `mark` is the number of the document that had been loaded
 * completely when the request was sent.
 */
function checkResponse({ status, head, body, mark }: LoadResponse): string | undefined {
	const header = /^x-document: *(\d+)/im.exec(head)?.[1];
	const number = Number(/^body (\d+) /.exec(body)?.[1]);
	if (String(number) !== header) return `mixed: ${head} ${body.slice(0, 20)}`;
	if (status !== (number % 2 === 1 ? 201 : 200)) return `mixed: ${status} of document ${number}`;
	return number < mark ? `old: document ${number} after ${mark}` : undefined;
}

const swap = suite('swap under load');

swap('no response fails or mixes generations, and none is older than the last completed load', async () => {
	await withServer(numberedDocument(0), {}, async ({ runtime, port }) => {
		let answeredCount = 0;
		const load = startLoad({
			port,
			connections: 64,
			request: REQUEST,
			check: checkResponse,
			mark: () => answeredCount,
		});
		for (let number = 1; number <= 60; number++) {
			const outcome = await runtime.load(jsonInput(numberedDocument(number)));
			assert.is(outcome.result, 'applied');
			answeredCount = number;
			await pauseFor(10);
		}
		const result = await load.stop();
		assert.equal(result.failures, []);
		assert.ok(result.requests > 1000, `${result.requests} requests`);
	});
});

swap('a killed thread ends only its own connections', async () => {
	await withServer(numberedDocument(0), {}, async ({ runtime, port, log }) => {
		const load = startLoad({ port, connections: 32, request: REQUEST, check: checkResponse, reconnect: true });
		await pauseFor(200);
		await runtime.terminateWorker(0);
		await eventually('replaced', () => log.text().includes('a worker thread was replaced'));
		const result = await load.stop();
		assert.equal(result.failures, []);
	});
});

swap('hundreds of loads leak no thread, descriptor or old generation', async () => {
	const document = (number: number): Document => ({
		sites: [
			respondingSite(String(number), {
				logs: [{ name: `log${number}`, output: { writer: 'discard' }, format: { encoder: 'json' } }],
			}),
		],
	});
	await withServer(document(0), {}, async ({ runtime, get }) => {
		const open = () => readdirSync('/proc/self/fd').length;
		const running = () => readdirSync('/proc/self/task').length;
		for (let number = 1; number <= 20; number++) await runtime.load(jsonInput(document(number)));
		await get();
		const before = { open: open(), running: running() };
		for (let number = 21; number <= 220; number++) await runtime.load(jsonInput(document(number)));
		assert.is((await get()).body, '220');
		await eventually('no additional descriptor is open', () => open() <= before.open + 2);
		assert.ok(running() <= before.running, `${running()} threads, ${before.running} before`);
	});
});

swap.run();

const many = suite('ten thousand sites');

many('changing one site takes less than a second and blocks no thread', async () => {
	const sites = Array.from(
		{ length: 10_000 },
		(_, index): Site => ({
			addresses: [`http://site${index}.example:0`],
			bind: ['127.0.0.1'],
			pipeline: [{ handler: 'respond', body: `site ${index}` }],
		}),
	);
	await withServer({ sites }, {}, async ({ runtime, port }) => {
		const load = startLoad({
			port,
			connections: 8,
			request: 'GET / HTTP/1.1\r\nHost: site77.example\r\n\r\n',
			check: ({ body }) => (body.startsWith('site 77') ? undefined : body),
		});
		const took: number[] = [];
		for (let round = 0; round < 3; round++) {
			sites[77] = { ...sites[77]!, pipeline: [{ handler: 'respond', body: `site 77 round ${round}` }] };
			const input = jsonInput({ sites });
			const startedAt = performance.now();
			const outcome = await runtime.load(input);
			took.push(performance.now() - startedAt);
			assert.is(outcome.result, 'applied');
		}
		const result = await load.stop();
		assert.equal(result.failures, []);
		if (process.env.SHOW) {
			console.log(took, {
				p50: quantile(result.times, 0.5),
				p99: quantile(result.times, 0.99),
				requests: result.requests,
			});
		}
		assert.ok(Math.min(...took) < 1000, `${took} ms`);
	});
});

many.run();
