/** `intercept`, `handle_response` and `copy_response` without a network: handling of bodies and errors. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Step } from '../../../../../compiler/document/document.ts';
import type { BodySource } from '../../../../../compiler/exchange/body.ts';
import type { HeaderList } from '../../../../../compiler/exchange/header-list.ts';
import { HeaderList as Headers } from '../../../../../compiler/exchange/header-list.ts';
import { HttpError } from '../../../../../compiler/exchange/http-error.ts';
import type { Leases, UpstreamResponse } from '../../../../../compiler/exchange/leases.ts';
import type { UpstreamPool } from '../../../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import {
	bodyText,
	buildTestSite,
	type FakeExchange,
	fakeExchange,
	responseLines,
	serveRequest,
} from '../../../fake-exchange.ts';

class SpiedBody implements BodySource {
	readonly length = undefined;
	cancelled = 0;
	pull(): null {
		return null;
	}
	cancel(): void {
		this.cancelled++;
	}
}

/** Returns leases with one upstream, which responds with the given body and fields. */
function upstreamLeases(
	body: BodySource,
	headers: HeaderList = new Headers(['Etag', '"x"', 'Server', 'theirs']),
): Leases {
	const onlyUpstream = { address: 'up:1', host: 'up', port: 1, active: 0 };
	const answer: UpstreamResponse = { status: 200, headers, body, protocol: 'HTTP/1.1', upgradedStream: undefined };
	const send: UpstreamPool['send'] = (_x, _upstream, _request, outcome) => outcome.onResponse(answer);
	const pool = { settings: { to: ['up:1'] }, select: () => onlyUpstream, send };
	return { lease: kind => (kind === 'upstreams' ? pool : { record() {} }) as never };
}

async function proxied(
	responses: readonly object[],
	body: BodySource,
	more: readonly Step[] = [],
): Promise<FakeExchange> {
	const x = fakeExchange();
	const steps = [{ handler: 'proxy', upstreams: { to: ['up:1'] }, responses }, ...more];
	await buildTestSite(steps, { leases: upstreamLeases(body) }).runSite(x);
	return x;
}

const handled = suite('handle_response');

handled('a body that is not copied is cancelled once', async () => {
	const body = new SpiedBody();
	const x = await proxied([{ pipeline: [{ handler: 'respond', body: 'instead' }] }], body);
	assert.is(bodyText(x), 'instead');
	assert.is(body.cancelled, 1);
	assert.is(x.answeredBy, 'respond');
	assert.not.ok(responseLines(x).some(line => line.startsWith('Etag')));
});

handled('a copied body is forwarded and not cancelled', async () => {
	const body = new SpiedBody();
	const x = await proxied([{ pipeline: [{ handler: 'copy_upstream_response' }] }], body);
	assert.is(x.response.body, body);
	assert.is(body.cancelled, 0);
	assert.is(x.answeredBy, 'proxy');
	assert.ok(responseLines(x).includes('Server: theirs'));
});

handled('a failing route cancels the body', async () => {
	const body = new SpiedBody();
	try {
		await proxied([{ pipeline: [{ handler: 'fail', status: 418 }] }], body);
		assert.unreachable();
	} catch (error) {
		assert.is((error as HttpError).status, 418);
	}
	assert.is(body.cancelled, 1);
});

handled('copy_response outside its routes is an error that says so', async () => {
	for (const [handler, word] of [
		['copy_upstream_response', 'copy_response'],
		['copy_upstream_headers', 'copy_response_headers'],
	] as const) {
		try {
			await serveRequest([{ handler }]);
			assert.unreachable();
		} catch (error) {
			assert.is((error as HttpError).status, 500);
			assert.is((error as HttpError).message, `cannot use '${word}' outside of reverse_proxy's handle_response routes`);
		}
	}
});

handled('steps after the proxy cannot copy a response that its routes have finished with', async () => {
	const body = new SpiedBody();
	const routes = [{ handler: 'edit_headers', response: { set: [{ name: 'X', value: 'y' }] } }];
	const x = await proxied([{ pipeline: routes }], body, [{ handler: 'respond', body: 'behind' }]);
	assert.is(bodyText(x), 'behind');
	assert.is(body.cancelled, 1);
});

handled('a response that no rule matches is forwarded', async () => {
	const body = new SpiedBody();
	const x = await proxied([{ match: { status: ['5xx'] }, status: 200 }], body);
	assert.is(x.response.body, body);
	assert.is(x.response.status, 200);
});

handled('a rule must have exactly one of its two actions', () => {
	for (const rule of [{}, { status: 200, pipeline: [] }]) {
		const steps = [{ handler: 'intercept_response', rules: [rule] }];
		assert.throws(() => buildTestSite(steps), /either `status` or `pipeline`/);
	}
});

handled.run();

const intercepted = suite('intercept');

intercepted('a streamed body is cancelled, and earlier deferred edits still apply', async () => {
	const body = new SpiedBody();
	const x = fakeExchange();
	const steps = [
		{
			handler: 'edit_headers',
			response: { deferred: true, set: [{ name: 'X-Late', value: '{http.response.status}' }] },
		},
		{ handler: 'intercept_response', rules: [{ pipeline: [{ handler: 'respond', body: 'new', status: 299 }] }] },
		{ handler: 'proxy', upstreams: { to: ['up:1'] } },
	];
	await buildTestSite(steps, { leases: upstreamLeases(body) }).runSite(x);
	assert.is(body.cancelled, 1);
	assert.is(bodyText(x), 'new');
	assert.ok(responseLines(x).includes('X-Late: 299'));
	assert.ok(responseLines(x).includes('Server: theirs'), 'fields that do not describe the body are kept');
});

intercepted('values of the intercepted response are not expanded', async () => {
	const x = await serveRequest(
		[
			{
				handler: 'intercept_response',
				rules: [{ pipeline: [{ handler: 'respond', body: '{http.intercept.header.X-A}' }] }],
			},
			{ handler: 'edit_headers', response: { set: [{ name: 'X-A', value: '{http.request.uri.query.a}' }] } },
			{ handler: 'respond', body: 'old' },
		],
		{ target: '/?a=%7Benv.PATH%7D' },
	);
	assert.is(bodyText(x), '{env.PATH}');
});

intercepted('dropped and upgraded connections are not intercepted', async () => {
	const rules = [{ status: 500 }];
	const x = await serveRequest([{ handler: 'intercept_response', rules }, { handler: 'abort' }]);
	assert.is(x.isAborted, true);
	assert.is.not(x.response.status, 500);
});

intercepted('nested intercepts run from the inside out', async () => {
	const x = await serveRequest([
		{ handler: 'intercept_response', rules: [{ match: { status: ['401'] }, status: 402 }] },
		{ handler: 'intercept_response', rules: [{ match: { status: ['400'] }, status: 401 }] },
		{ handler: 'respond', status: 400 },
	]);
	assert.is(x.response.status, 402);
});

intercepted('an error is not intercepted', async () => {
	try {
		await serveRequest([
			{ handler: 'intercept_response', rules: [{ status: 200 }] },
			{ handler: 'fail', status: 404 },
		]);
		assert.unreachable();
	} catch (error) {
		assert.instance(error, HttpError);
	}
});

intercepted.run();
