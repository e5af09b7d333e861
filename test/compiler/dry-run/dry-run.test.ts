/** Dry runs, which answer requests without a network: listener selection, fake dependencies, and the response. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UNKNOWN_HOST_FACTS } from '../../../compiler/codegen/placeholders/index.ts';
import { planDocument } from '../../../compiler/codegen/plan/plan-document.ts';
import type { Document, Site } from '../../../compiler/document/document.ts';
import { DryRun, type DryRunResult } from '../../../compiler/dry-run/dry-run.ts';
import { type DryRunRequest, isRequestUrl, parseRequestUrl } from '../../../compiler/dry-run/dry-run-request.ts';
import { listenerFor } from '../../../compiler/dry-run/listener-choice.ts';

function parseRequest(url: string, more: Partial<DryRunRequest> = {}): DryRunRequest {
	const parsed = parseRequestUrl(url);
	if (!isRequestUrl(parsed)) throw new Error(parsed.message);
	return { method: 'GET', url: parsed, headers: [], body: undefined, from: undefined, at: undefined, ...more };
}

function planOf(document: Document) {
	return planDocument(document, diagnostic => {
		throw new Error(diagnostic.message);
	});
}

const SURROUNDINGS = { facts: UNKNOWN_HOST_FACTS, lease: () => undefined };

async function result(
	site: Partial<Site>,
	asked: DryRunRequest,
	settings: Document['settings'] = {},
): Promise<DryRunResult> {
	const document: Document = { settings, sites: [{ addresses: [':8080'], pipeline: [], ...site }] };
	return (await new DryRun(planOf(document), SURROUNDINGS).run(asked))!;
}

const listeners = suite('listener of a URL');

const respond = [{ handler: 'respond' }];
const plan = planOf({
	settings: { http_port: 8000 },
	sites: [
		{ addresses: ['http://a.example'], bind: ['127.0.0.1'], pipeline: respond },
		{ addresses: ['http://b.example'], pipeline: respond },
		{ addresses: [':9000'], bind: ['192.0.2.1'], pipeline: respond },
		{ addresses: [':9000'], bind: ['2001:db8::1'], pipeline: respond },
		{ addresses: [':9001'], bind: ['0.0.0.0'], pipeline: respond },
	],
});

for (const [url, key] of [
	['http://a.example/', 'tcp/127.0.0.1:8000'],
	['http://b.example/', 'tcp/:8000'],
	['http://localhost/', 'tcp/127.0.0.1:8000'],
	['http://127.0.0.1/', 'tcp/127.0.0.1:8000'],
	['http://192.0.2.9/', 'tcp/:8000'],
	['http://other.example/', 'tcp/:8000'],
	['http://a.example:80/', undefined],
	['https://a.example/', undefined],
	['http://192.0.2.1:9000/', 'tcp/192.0.2.1:9000'],
	['http://[2001:db8::1]:9000/', 'tcp/[2001:db8::1]:9000'],
	['http://192.0.2.2:9000/', undefined],
	['http://192.0.2.2:9001/', 'tcp/0.0.0.0:9001'],
	['http://[::1]:9001/', undefined],
] as const) {
	listeners(`${url} reaches ${key ?? 'nothing'}`, () => {
		assert.is(listenerFor(plan, parseRequest(url).url)?.key, key);
	});
}

listeners.run();

const answers = suite('dry-run responses');

answers('a request that no site matches gets an empty 200', async () => {
	const document: Document = { sites: [{ addresses: ['http://a.example:8080'], pipeline: respond }] };
	const came = (await new DryRun(planOf(document), SURROUNDINGS).run(parseRequest('http://b.example:8080/')))!;
	assert.is(came.site, -1);
	assert.is(came.response?.status, 200);
});

answers('the response is as on the network: with Date, and without a body where HTTP forbids one', async () => {
	const steps = [{ handler: 'respond', body: 'héllo' }];
	const at = Date.UTC(2026, 0, 31);
	const get = await result({ pipeline: steps }, parseRequest('http://a:8080/', { at }));
	assert.is(get.response!.headers.get('content-length'), '6');
	assert.is(get.response!.headers.get('date'), 'Sat, 31 Jan 2026 00:00:00 GMT');
	assert.is(get.response!.headers.get('server'), 'svc');
	assert.is(await get.response!.text(), 'héllo');
	const head = await result({ pipeline: steps }, parseRequest('http://a:8080/', { method: 'HEAD' }));
	assert.is(head.response!.headers.get('content-length'), '6');
	assert.is(await head.response!.text(), '');
	const empty = await result(
		{ pipeline: [{ handler: 'respond', status: 204, body: 'x' }] },
		parseRequest('http://a:8080/'),
	);
	assert.not(empty.response!.headers.has('content-length'));
	assert.is(await empty.response!.text(), '');
});

answers('an error that no error route handles becomes its status, with the fields set before', async () => {
	const steps = [
		{ handler: 'edit_headers', response: { set: [{ name: 'X-A', value: '1' }] } },
		{ handler: 'fail', status: 503 },
	];
	const came = await result({ pipeline: steps }, parseRequest('http://a:8080/'));
	assert.is(came.response!.status, 503);
	assert.is(came.response!.headers.get('x-a'), '1');
	assert.ok(came.failure);
});

answers('an aborted connection has no response', async () => {
	assert.is((await result({ pipeline: [{ handler: 'abort' }] }, parseRequest('http://a:8080/'))).response, undefined);
});

answers('a body is streamed with its length, and ambiguous field names are dropped', async () => {
	const steps = [
		{ handler: 'respond', body: '{http.request.body} {http.request.header.Content-Length} {http.request.header.X_A}|' },
	];
	const headers = [['X_A', 'x']] as const;
	const came = await result(
		{ pipeline: steps },
		parseRequest('http://a:8080/', { method: 'POST', body: 'abc', headers }),
	);
	assert.is(await came.response!.text(), 'abc 3 |');
});

answers('a request with a Host field reaches the site of that host', async () => {
	const document: Document = {
		sites: [
			{ addresses: ['http://a.example:8080'], pipeline: [{ handler: 'respond', body: 'a' }] },
			{ addresses: ['http://b.example:8080'], pipeline: [{ handler: 'respond', body: '{http.request.hostport}' }] },
		],
	};
	const asked = parseRequest('http://a.example:8080/', { headers: [['Host', 'B.example:1']] });
	const came = (await new DryRun(planOf(document), SURROUNDINGS).run(asked))!;
	assert.is(came.site, 1);
	assert.is(await came.response!.text(), 'B.example:1');
});

answers('fake upstreams respond as scripted and record their requests', async () => {
	const upstreams = { to: ['a:1', 'b:2'], balance: { policy: 'round_robin' } };
	const document: Document = { sites: [{ addresses: [':8080'], pipeline: [{ handler: 'proxy', upstreams }] }] };
	const dryRun = new DryRun(planOf(document), SURROUNDINGS);
	const ask = async () =>
		(await dryRun.run(parseRequest('http://x:8080/p?q', { from: '203.0.113.9' }), { status: 418, body: 'tea' }))!;
	const [first, second] = [await ask(), await ask()];
	assert.is(first.response!.status, 418);
	assert.is(await first.response!.text(), 'tea');
	const [sent] = first.exchange.upstreamRequests;
	assert.is(sent!.request.target, '/p?q');
	assert.is(sent!.request.headers.get('x-forwarded-for'), '203.0.113.9');
	assert.is.not(sent!.upstream.address, second.exchange.upstreamRequests[0]!.upstream.address);
	dryRun.reset();
	assert.is((await ask()).exchange.upstreamRequests[0]!.upstream.address, sent!.upstream.address);
});

answers.run();
