/** Sites compiled to closures: conditions, exclusive groups, error routes, access logs. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { buildSite } from '../../../compiler/codegen/build-site.ts';
import { UNKNOWN_HOST_FACTS } from '../../../compiler/codegen/placeholders/index.ts';
import type { ErrorRoute, Matcher, Step } from '../../../compiler/document/document.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import type { AccessLog } from '../../../compiler/exchange/leases.ts';
import { BuildError } from '../../../compiler/modules/contract/compile-context.ts';
import { bodyText, buildTestSite, fakeExchange, NO_LEASES, responseLines, serveRequest } from '../fake-exchange.ts';

const path = (...patterns: string[]): Matcher => ({ type: 'path', patterns });
const markStep = (name: string, more: Partial<Step> = {}): Step => ({
	handler: 'edit_headers',
	response: { add: [{ name: 'M', value: name }] },
	...more,
});
const END: Step = { handler: 'respond', status: 204 };

async function marks(pipeline: readonly Step[], target = '/'): Promise<string> {
	return (await serveRequest(pipeline, { target })).response.headers.getAll('m').join('');
}

const pipelines = suite('pipelines');

pipelines('steps run in order, and those whose matcher does not hold are skipped', async () => {
	const steps = [markStep('a'), markStep('b', { when: path('/x') }), markStep('c'), END, markStep('d')];
	assert.is(await marks(steps), 'ac');
	assert.is(await marks(steps, '/x'), 'abc');
});

pipelines('a matcher sees the edits of the steps before it', async () => {
	assert.is(await marks([{ handler: 'rewrite_target', to: '/x' }, markStep('a', { when: path('/x') }), END]), 'a');
});

pipelines('of consecutive steps in one exclusive group, only the first whose matcher holds runs', async () => {
	const steps = [
		markStep('a', { exclusive: 'g', when: path('/a*') }),
		markStep('b', { exclusive: 'g', when: path('/*b') }),
		markStep('c', { exclusive: 'g' }),
		markStep('d', { exclusive: 'g' }),
		markStep('-'),
		END,
	];
	assert.is(await marks(steps, '/ab'), 'a-');
	assert.is(await marks(steps, '/b'), 'b-');
	assert.is(await marks(steps, '/'), 'c-');
});

pipelines('exclusive groups may be interrupted by other steps, and interleaved', async () => {
	const steps = [
		markStep('a', { exclusive: 'g', when: path('/a*') }),
		markStep('1', { exclusive: 'h' }),
		markStep('b', { exclusive: 'g', when: path('/*b') }),
		markStep('-'),
		markStep('c', { exclusive: 'g' }),
		markStep('2', { exclusive: 'h' }),
		END,
	];
	assert.is(await marks(steps, '/ab'), 'a1-');
	assert.is(await marks(steps, '/b'), '1b-');
	assert.is(await marks(steps, '/'), '1-c');
});

pipelines('there may be more interrupted groups than bits in an integer', async () => {
	const steps: Step[] = [];
	for (const round of ['x', 'y']) {
		for (let i = 0; i < 40; i++) steps.push(markStep(round, { exclusive: `g${i}` }));
	}
	assert.is(await marks([...steps, END]), 'x'.repeat(40));
});

pipelines('`group` runs every matching step, `first_match` only the first', async () => {
	const steps: Step[] = [
		{ handler: 'group', when: path('/g*'), pipeline: [markStep('a'), markStep('b')] },
		{
			handler: 'first_match',
			branches: [
				{ when: path('/gx'), pipeline: [markStep('1')] },
				{ when: path('/y'), pipeline: [markStep('2'), END] },
				{ pipeline: [markStep('3')] },
			],
		},
		markStep('-'),
		END,
	];
	assert.is(await marks(steps, '/gx'), 'ab1-');
	assert.is(await marks(steps, '/y'), '2');
	assert.is(await marks(steps, '/z'), '3-');
});

pipelines('a step that cannot be built is reported with its place', () => {
	const refused = (step: unknown): BuildError => {
		try {
			buildTestSite([END, step as Step]);
		} catch (error) {
			return error as BuildError;
		}
		throw new Error('the invalid step was built');
	};
	const nested = refused({
		handler: 'group',
		pipeline: [{ handler: 'respond', when: { type: 'path_regexp', pattern: '(' } }],
	});
	assert.instance(nested, BuildError);
	assert.is(nested.pointer, '/sites/0/pipeline/1/pipeline/0/when');
	assert.is(nested.code, 'regexp/invalid');
	assert.is(refused({ handler: 'nope' }).code, 'handler/unknown');
	assert.is(refused({ handler: 'respond', when: { type: 'nope' } }).code, 'matcher/unknown');
	assert.is(refused({ handler: 'respond', status: 'abc' }).code, 'status/invalid');
	const deep = refused({ handler: 'respond', when: { type: 'not', of: { type: 'host', hosts: ['a b'] } } });
	assert.is(deep.pointer, '/sites/0/pipeline/1/when/of');
});

pipelines('a tracer receives every handler and matcher with its place as it is built', () => {
	const seen: string[] = [];
	buildSite({ addresses: [':1'], pipeline: [{ handler: 'respond', when: { type: 'not', of: path('/x') } }] }, 3, {
		settings: {},
		upstreams: {},
		routes: {},
		leases: NO_LEASES,
		facts: UNKNOWN_HOST_FACTS,
		tracer: {
			wrapHandler: (pointer, step, handler) => {
				seen.push(`${pointer} ${step.handler}`);
				return handler;
			},
			wrapMatcher: (pointer, matcher, predicate) => {
				seen.push(`${pointer} ${matcher.type}`);
				return predicate;
			},
		},
	});
	assert.equal(seen, [
		'/sites/3/pipeline/0 respond',
		'/sites/3/pipeline/0/when/of path',
		'/sites/3/pipeline/0/when not',
	]);
});

pipelines.run();

const errors = suite('error routes');

const failing = (status: number, message = ''): Step => ({ handler: 'fail', status, message });
const answer = (body: string): readonly Step[] => [{ handler: 'respond', body }];

async function outcome(pipeline: readonly Step[], routes: readonly ErrorRoute[], target = '/'): Promise<string> {
	const x = await serveRequest(pipeline, { target }, { errors: routes });
	return `${x.response.status} ${bodyText(x)}`;
}

errors('E1: a route for listed statuses handles them, and the status is kept', async () => {
	const pipeline = [
		{ ...failing(410, 'Unauthorized'), when: path('/private*') },
		{ ...failing(404, 'Not found'), when: path('/hidden*') },
		END,
	];
	const routes = [{ statuses: ['404', '410'], pipeline: answer('X') }];
	assert.is(await outcome(pipeline, routes, '/private'), '410 X');
	assert.is(await outcome(pipeline, routes, '/hidden'), '404 X');
	assert.is(await outcome(pipeline, routes, '/other'), '204 ');
});

errors('E2: routes for status classes come before the one for every error', async () => {
	const routes = [{ statuses: ['4xx'], pipeline: answer('four') }, { pipeline: answer('any') }];
	assert.is(await outcome([failing(500)], routes), '500 any');
	assert.is(await outcome([failing(404)], routes), '404 four');
});

errors('E3: routes may list classes and statuses, including redirect statuses', async () => {
	const routes = [
		{ statuses: ['500', '3xx'], pipeline: answer('first') },
		{ statuses: ['4xx'], pipeline: answer('second') },
	];
	assert.is(await outcome([failing(500)], routes), '500 first');
	assert.is(await outcome([failing(301)], routes), '301 first');
	assert.is(await outcome([failing(410)], routes), '410 second');
});

errors('E4: each site has its own error routes', async () => {
	const one = buildTestSite([failing(404)], { errors: [{ pipeline: answer('one') }] });
	const two = buildTestSite([failing(404)], { errors: [{ pipeline: answer('two') }] });
	for (const [site, expected] of [
		[one, 'one'],
		[two, 'two'],
	] as const) {
		const x = fakeExchange();
		assert.is(site.runSite(x), undefined);
		assert.is(bodyText(x), expected);
	}
});

errors('a route that does not respond passes the error on; if none responds, the error is thrown', async () => {
	const silent: ErrorRoute = { pipeline: [markStep('s')] };
	assert.is(
		await outcome([failing(404)], [silent, { statuses: ['5xx'], pipeline: answer('no') }, { pipeline: answer('yes') }]),
		'404 yes',
	);
	for (const routes of [[silent], [{ statuses: ['5xx'], pipeline: answer('no') }]]) {
		try {
			await outcome([failing(404, 'lost')], routes);
			assert.unreachable();
		} catch (error) {
			assert.instance(error, HttpError);
			assert.is((error as HttpError).status, 404);
			assert.is((error as HttpError).message, 'lost');
		}
	}
});

errors('error routes see the method and URI as received, and can print the error', async () => {
	const x = await serveRequest(
		[{ handler: 'rewrite_target', to: '/inner?x=1' }, failing(403, 'not {http.request.uri}')],
		{ target: '/outer?q', method: 'POST' },
		{
			errors: [
				{
					pipeline: answer(
						'{http.error.status_code} {http.error.status_text}: {http.error.message} {http.request.method} {http.request.uri}',
					),
				},
			],
		},
	);
	assert.is(bodyText(x), '403 Forbidden: not /inner?x=1 POST /outer?q');
});

errors('a malformed path reaches the error routes as a 400', async () => {
	const site = buildTestSite([{ handler: 'respond', body: 'x', when: path('/x') }], {
		errors: [{ pipeline: answer('bad') }],
	});
	const x = fakeExchange({ target: '/%' });
	site.runSite(x);
	assert.is(`${x.response.status} ${bodyText(x)}`, '400 bad');
	assert.equal(responseLines(x), ['Content-Type: text/plain; charset=utf-8']);
});

errors('errors of asynchronous steps reach the error routes', async () => {
	const pulled = { length: 1, pull: async () => Promise.reject(new HttpError(408, 'slow')), cancel() {} };
	const x = await serveRequest(
		[{ handler: 'respond', body: '{http.request.body}' }],
		{ body: pulled },
		{ errors: [{ pipeline: answer('{http.error.message}') }] },
	);
	assert.is(`${x.response.status} ${bodyText(x)}`, '408 slow');
});

errors('if an error route fails, the response has the status of the first error', async () => {
	try {
		await outcome([failing(404, 'first')], [{ pipeline: [failing(500, 'second')] }]);
		assert.unreachable();
	} catch (error) {
		assert.is((error as HttpError).status, 404);
		assert.match((error as HttpError).message, 'second');
	}
});

errors('an exception in a handler is a 500', async () => {
	const broken = { length: 1, pull: () => Promise.reject(new TypeError('oops')), cancel() {} };
	const x = await serveRequest(
		[{ handler: 'respond', body: '{http.request.body}' }],
		{ body: broken },
		{ errors: [{ pipeline: answer('{http.error.message}') }] },
	);
	assert.is(`${x.response.status} ${bodyText(x)}`, '500 oops');
});

errors.run();

const logs = suite('access logs');

logs('logs are leased once, and only for their own hosts', () => {
	const leased: string[] = [];
	const leases = {
		lease: (_kind: string, settings: { logger: string }) => {
			leased.push(JSON.stringify(settings));
			return { logger: settings.logger, record() {} };
		},
	} as never;
	const site = buildSite(
		{
			addresses: ['http://a.test', 'http://b.test'],
			logs: [
				{},
				{
					name: 'only-b',
					hostnames: ['B.test'],
					output: { writer: 'discard' },
					format: { encoder: 'json' },
					level: 'ERROR',
				},
			],
			pipeline: [END],
		},
		0,
		{
			settings: { logs: { default: { output: { writer: 'stdout' } } } },
			upstreams: {},
			routes: {},
			leases,
			facts: UNKNOWN_HOST_FACTS,
		},
	);
	assert.equal(
		leased.map(text => JSON.parse(text)),
		[
			{ logger: 'http.log.access', output: { writer: 'stdout' }, format: { encoder: 'default' }, level: 'INFO' },
			{ logger: 'http.log.access.only-b', output: { writer: 'discard' }, format: { encoder: 'json' }, level: 'ERROR' },
		],
	);
	const namesFor = (authority: string) => {
		const x = fakeExchange({ authority });
		site.runSite(x);
		return x.accessLogs.map((log: AccessLog) => (log as unknown as { logger: string }).logger);
	};
	assert.equal(namesFor('a.test'), ['http.log.access']);
	assert.equal(namesFor('b.test:80'), ['http.log.access', 'http.log.access.only-b']);
	assert.is(site.logs.length, 2);
	assert.is(site.name, 'http://a.test');
});

logs.run();
