/** The effects of `map`, `invoke`, `method` and `request_body` on a request. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { buildSite } from '../../../../compiler/codegen/build-site.ts';
import { fakeLeases } from '../../../../compiler/codegen/context/fake-leases.ts';
import { UNKNOWN_HOST_FACTS } from '../../../../compiler/codegen/placeholders/index.ts';
import type { Matcher, Site, Step } from '../../../../compiler/document/document.ts';
import type { BodySource } from '../../../../compiler/exchange/body.ts';
import { HttpError } from '../../../../compiler/exchange/http-error.ts';
import { bodyText, type FakeExchange, fakeExchange, type RequestFields, responseLines } from '../../fake-exchange.ts';

interface SiteParts {
	errors?: Site['errors'];
	routes?: { readonly [name: string]: readonly Step[] };
}

async function ask(
	pipeline: readonly Step[],
	request: RequestFields = {},
	parts: SiteParts = {},
): Promise<FakeExchange> {
	const x = fakeExchange(request);
	const site: Site = { addresses: [':1'], pipeline, ...(parts.errors ? { errors: parts.errors } : {}) };
	const built = buildSite(site, 0, {
		settings: {},
		upstreams: {},
		routes: parts.routes ?? {},
		leases: fakeLeases,
		facts: UNKNOWN_HOST_FACTS,
	});
	await built.runSite(x);
	return x;
}

async function statusOf(asked: Promise<FakeExchange>): Promise<number> {
	return asked.then(
		x => x.response.status,
		error => {
			if (error instanceof HttpError) return error.status;
			throw error;
		},
	);
}

const respond = (body: string): Step => ({ handler: 'respond', body });

const map = suite('map');

map('is evaluated when its placeholder is used', async () => {
	const lookup = {
		handler: 'lookup',
		source: '{http.request.uri.path}',
		destinations: ['kind'],
		mappings: [{ input: '/after', outputs: ['{http.request.uri.query}'] }],
		defaults: ['before'],
	};
	const header = { handler: 'edit_headers', response: { add: [{ name: 'Kind', value: '{kind}' }] } };
	const x = await ask([lookup, header, { handler: 'rewrite_target', to: '/after?q' }, respond('{kind}')]);
	assert.equal(responseLines(x).slice(0, 1), ['Kind: before']);
	assert.is(bodyText(x), 'q');
});

map('a null output is left to the next line, and numbers keep their type', async () => {
	const lookup = {
		handler: 'lookup',
		source: '{http.request.method}',
		destinations: ['a', 'b', 'n'],
		mappings: [
			{ input: 'GET', outputs: [null, 'first', 3] },
			{ input_regexp: '^G', outputs: ['second', 'never', null] },
		],
	};
	const when = { type: 'expression', expression: '{n} == 3 && {a} == "second"' };
	const x = await ask([lookup, { ...respond('{a} {b} {n}'), when }]);
	assert.is(bodyText(x), 'second first 3');
	const y = await ask([lookup, respond('[{a}][{n}]')], { method: 'PUT' });
	assert.is(bodyText(y), '[][]');
});

map('of two maps for one name the first applies; without a match the name is unknown', async () => {
	const lookup = (value: string, when?: Matcher): Step => ({
		handler: 'lookup',
		source: '',
		destinations: ['x'],
		mappings: [],
		defaults: [value],
		...(when ? { when } : {}),
	});
	const never = { type: 'path', patterns: ['/never'] };
	assert.is(bodyText(await ask([lookup('1'), lookup('2'), respond('{x}')])), '1');
	assert.is(bodyText(await ask([lookup('1', never), lookup('2'), respond('{x}')])), '2');
	assert.is(bodyText(await ask([lookup('1', never), respond('{x}')])), '{x}');
	assert.is(bodyText(await ask([respond('{x}')])), '{x}');
});

map('a map that refers to itself terminates', async () => {
	const lookup = (name: string, source: string) => ({
		handler: 'lookup',
		source,
		destinations: [name],
		mappings: [{ input: '', outputs: ['end'] }],
		defaults: [`{${source.slice(1, -1)}}!`],
	});
	assert.is(bodyText(await ask([lookup('a', '{b}'), lookup('b', '{a}'), respond('{a}')])), 'end!');
});

map('values are not expanded', async () => {
	const lookup = {
		handler: 'lookup',
		source: '{http.request.header.Name}',
		destinations: ['x'],
		mappings: [{ input_regexp: '(.*)', outputs: ['<$1>'] }],
	};
	const name = '{http.request.method}$1{x}';
	const x = await ask([lookup, respond('{x}')], { headers: [['Name', name]] });
	assert.is(bodyText(x), `<${name}>`);
});

map.run();

const invoke = suite('invoke');

const run = (route: string): Step => ({ handler: 'run_route', route });
const mark = (value: string): Step => ({ handler: 'edit_headers', response: { add: [{ name: 'Way', value }] } });
const way = (x: FakeExchange) => x.response.headers.getAll('way').join(' ');

invoke('continues after itself if the route does not respond', async () => {
	const routes = { a: [mark('a1'), run('b'), mark('a2')], b: [mark('b')] };
	const x = await ask([run('a'), mark('between'), run('b'), respond('end')], {}, { routes });
	assert.is(way(x), 'a1 b a2 between b');
	assert.is(bodyText(x), 'end');
});

invoke('a response in a route ends the request, and error routes can invoke routes', async () => {
	const routes = { a: [mark('a'), respond('from a')], failing: [run('a2')], a2: [{ handler: 'fail', status: 418 }] };
	assert.is(bodyText(await ask([run('a'), respond('after')], {}, { routes })), 'from a');
	const errors = [{ pipeline: [run('a')] }];
	const x = await ask([run('failing')], {}, { routes, errors });
	assert.is(bodyText(x), 'from a');
});

invoke('continues after a route that waits', async () => {
	const body: BodySource = { length: undefined, pull: singlePiece('text'), cancel() {} };
	const routes = {
		a: [respond('{http.request.body}')].map(step => ({ ...step, status: 103 })),
		b: [run('a'), mark('b')],
	};
	const x = await ask([run('b'), respond('{http.request.body}')], { body }, { routes });
	assert.is(way(x), 'b');
	assert.is(bodyText(x), 'text');
});

invoke('mutual recursion ends with an error, unless a condition ends it first', async () => {
	const routes = { a: [run('b')], b: [run('a')] };
	assert.is(await statusOf(ask([run('a')], {}, { routes })), 500);
	const stripping = {
		strip: [
			{ handler: 'rewrite_target', strip_prefix: '/x' },
			{ ...run('strip'), when: { type: 'path', patterns: ['/x*'] } },
		],
	};
	const x = await ask(
		[run('strip'), respond('{http.request.uri.path}')],
		{ target: '/x/x/x/y' },
		{ routes: stripping },
	);
	assert.is(bodyText(x), '/y');
});

invoke.run();

/** Returns a stream that asynchronously yields a text and then ends. */
function singlePiece(text: string): () => Promise<Uint8Array | null> {
	const pieces = [Buffer.from(text)];
	return async () => pieces.shift() ?? null;
}

const method = suite('method');

method('the method is converted to upper case, and an invalid one is an error', async () => {
	const set = { handler: 'set_method', method: '{http.request.header.M}' };
	const echo = respond('{http.request.method} {http.request.orig_method}');
	assert.is(bodyText(await ask([set, echo], { headers: [['M', 'patch']] })), 'PATCH GET');
	for (const value of ['', 'A B', 'A\tB', '{http.request.method}']) {
		assert.is(await statusOf(ask([set, echo], { headers: [['M', value]] })), 500, value);
	}
});

method.run();

const requestBody = suite('request_body');

const echo = respond('{http.request.body}');
const bound = (most: number): Step => ({ handler: 'request_content', max_size: most });

requestBody('a streamed body may have exactly the allowed number of bytes', async () => {
	const stream = (length: number | undefined): BodySource => ({ length, pull: singlePiece('12345'), cancel() {} });
	assert.is(bodyText(await ask([bound(5), echo], { body: stream(undefined) })), '12345');
	assert.is(await statusOf(ask([bound(4), echo], { body: stream(undefined) })), 413);
	assert.is(await statusOf(ask([bound(4), echo], { body: stream(5) })), 413);
	assert.is(await statusOf(ask([bound(4), respond('unread')], { body: stream(5) })), 200);
	assert.is(await statusOf(ask([bound(4), echo], { body: '12345' })), 413);
	assert.is(await statusOf(ask([bound(0), echo], { body: null })), 200);
});

requestBody('a refused body is cancelled', async () => {
	let cancelled = 0;
	const body: BodySource = { length: undefined, pull: singlePiece('12345'), cancel: () => cancelled++ };
	assert.is(await statusOf(ask([bound(4), echo], { body })), 413);
	assert.is(cancelled, 1);
});

requestBody('a replaced body may contain the previous one', async () => {
	const replace = { handler: 'request_content', replace: '[{http.request.body}]' };
	assert.is(bodyText(await ask([replace, echo], { body: '{http.request.method}' })), '[{http.request.method}]');
	assert.is(bodyText(await ask([{ ...replace, replace: '' }, echo], { body: 'x' })), '');
});

requestBody.run();
