/** `edit_headers`: every operation, their order, deferral, and values that cannot contain line breaks. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Step } from '../../../../compiler/document/document.ts';
import { HttpError } from '../../../../compiler/exchange/http-error.ts';
import type { HeaderEdits } from '../../../../compiler/modules/words/header-edits.ts';
import { buildTestSite, fakeExchange, responseLines, serveRequest } from '../../fake-exchange.ts';

const test = suite('header edits');

const START: Step = {
	handler: 'edit_headers',
	response: {
		add: [
			{ name: 'Server', value: 'a' },
			{ name: 'X-One', value: '1' },
			{ name: 'X-Two', value: '2' },
			{ name: 'x-one', value: '11' },
		],
	},
};
const END: Step = { handler: 'respond', status: 204 };

async function edited(response: HeaderEdits & { deferred?: boolean; match?: unknown }): Promise<string[]> {
	return responseLines(await serveRequest([START, { handler: 'edit_headers', response }, END]));
}

const TABLE: readonly (readonly [HeaderEdits, readonly string[]])[] = [
	[{ set: [{ name: 'X-One', value: 'n' }] }, ['Server: a', 'X-One: n', 'X-Two: 2']],
	[{ add: [{ name: 'X-One', value: 'n' }] }, ['Server: a', 'X-One: 1', 'X-Two: 2', 'x-one: 11', 'X-One: n']],
	[{ delete: ['x-ONE'] }, ['Server: a', 'X-Two: 2']],
	[{ delete: ['X-*'] }, ['Server: a']],
	[{ delete: ['*-one'] }, ['Server: a', 'X-Two: 2']],
	[{ delete: ['*erv*'] }, ['X-One: 1', 'X-Two: 2', 'x-one: 11']],
	[{ clear: true }, []],
	[{ clear: true, add: [{ name: 'A', value: 'b' }] }, ['A: b']],
	[
		{ replace: [{ name: 'X-One', find: '(1)$', replace: '<$1>' }] },
		['Server: a', 'X-One: <1>', 'X-Two: 2', 'x-one: 1<1>'],
	],
	// biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a named group in a replacement
	[{ replace: [{ name: '*', find: '\\d', replace: '${0}!' }] }, ['Server: a', 'X-One: 1!', 'X-Two: 2!', 'x-one: 1!1!']],
	[
		{ replace: [{ name: 'server', find: 'a', replace: '$1x-$$-$9' }] },
		['Server: -$-', 'X-One: 1', 'X-Two: 2', 'x-one: 11'],
	],
	// The operations run in the order add, set, delete, replace, whatever their order in the step.
	[
		{
			replace: [{ name: 'A', find: 'b', replace: 'c' }],
			delete: ['X-*', 'Server'],
			set: [{ name: 'A', value: 'b' }],
			add: [
				{ name: 'A', value: 'gone' },
				{ name: 'X-New', value: 'gone' },
			],
		},
		['A: c'],
	],
	[{ default: [{ name: 'X-One', value: 'n' }] }, ['Server: a', 'X-One: 1', 'X-Two: 2', 'x-one: 11']],
];

for (const [edits, expected] of TABLE) {
	test(JSON.stringify(edits), async () => {
		assert.equal(await edited(edits), expected);
		assert.equal(await edited({ ...edits, deferred: true }), expected);
	});
}

test('a default is set only if the response lacks the field when it is sent', async () => {
	const defaults: Step = { handler: 'edit_headers', response: { default: [{ name: 'A', value: 'default' }] } };
	const set: Step = { handler: 'edit_headers', response: { set: [{ name: 'A', value: 'later' }] } };
	assert.equal(responseLines(await serveRequest([defaults, END])), ['A: default']);
	assert.equal(responseLines(await serveRequest([defaults, set, END])), ['A: later']);
});

test('immediate edits can be overwritten by later handlers, deferred ones cannot', async () => {
	const first = (deferred: boolean): Step => ({
		handler: 'edit_headers',
		response: { set: [{ name: 'Content-Type', value: 'first' }], deferred },
	});
	const page: Step = { handler: 'redirect', to: '/x', html: true };
	assert.equal(responseLines(await serveRequest([first(false), page])), ['Content-Type: text/html; charset=utf-8']);
	assert.equal(responseLines(await serveRequest([first(true), page])), ['Content-Type: first']);
});

test('if later handlers fail, deferred edits are dropped and immediate ones kept', async () => {
	const edit = (name: string, deferred: boolean): Step => ({
		handler: 'edit_headers',
		response: { set: [{ name, value: '1' }], deferred },
	});
	const x = await serveRequest(
		[edit('Immediate', false), edit('Deferred', true), { handler: 'fail', status: 404 }],
		{},
		{ errors: [{ pipeline: [END] }] },
	);
	assert.equal(responseLines(x), ['Immediate: 1']);
});

test('match limits edits to matching responses', async () => {
	const edit = (match: unknown): Step => ({
		handler: 'edit_headers',
		response: { set: [{ name: 'A', value: '1' }], match },
	});
	const count = async (match: unknown) =>
		responseLines(await serveRequest([edit(match), START, END])).filter(line => line === 'A: 1').length;
	assert.is(await count({ status: ['204'] }), 1);
	assert.is(await count({ status: ['404', '2xx'] }), 1);
	assert.is(await count({ status: ['4'] }), 0);
	assert.is(await count({ headers: [{ name: 'server', values: ['a'] }] }), 1);
	assert.is(await count({ headers: [{ name: 'server', values: ['b'] }] }), 0);
	assert.is(await count({ headers: [{ name: 'Nope', absent: true }], status: ['2xx'] }), 1);
	assert.is(
		await count({
			headers: [
				{ name: 'X-One', values: ['1*'] },
				{ name: 'Nope', present: true },
			],
		}),
		0,
	);
});

test('values from a request cannot split the response', async () => {
	const steps = (location: string): Step[] => [
		{ handler: 'edit_headers', response: { set: [{ name: 'X-Path', value: 'p {http.request.uri.path}' }] } },
		{ handler: 'redirect', to: location },
	];
	for (const target of ['/a%0d%0aSet-Cookie:%20a=b', '/a%0aX:%20y', '/a%00b']) {
		const x = await serveRequest(steps('https://h{http.request.uri.path}'), { target });
		for (const line of responseLines(x)) assert.not.match(line, /[\r\n\0]/);
		assert.is(x.response.headers.size, 2);
	}
	// U+010A and U+010D would become LF and CR if truncated to a byte.
	const x = await serveRequest(steps('/{http.request.uri.path}'), { target: '/%C4%8D%C4%8A' });
	assert.is(Buffer.from(x.response.headers.get('location')!, 'latin1').toString('utf8'), '//\u010d\u010a');
	for (const line of responseLines(x)) assert.not.match(line, /[^\u0020-\u00ff]/);
});

test('text in the configuration is sent as UTF-8', async () => {
	const x = await serveRequest([
		{ handler: 'edit_headers', response: { set: [{ name: 'A', value: 'é{http.request.method}' }] } },
		END,
	]);
	assert.is(Buffer.from(x.response.headers.get('a')!, 'latin1').toString('utf8'), 'éGET');
});

test('values are not expanded again, and their dollar signs are literal', async () => {
	const headers = [['In', '{http.request.method} $1 {env.HOME}']] as const;
	const x = await serveRequest(
		[
			{ handler: 'edit_headers', response: { set: [{ name: 'Out', value: '<{http.request.header.In}>' }] } },
			{
				handler: 'edit_headers',
				response: { replace: [{ name: 'Out', find: '(<)', replace: '{http.request.header.In}$1' }] },
			},
			END,
		],
		{ headers },
	);
	assert.equal(responseLines(x), [`Out: ${headers[0][1]}<${headers[0][1]}>`]);
});

test('an invalid field name from a request is dropped, and a constant one is refused', async () => {
	const dynamic: Step = {
		handler: 'edit_headers',
		response: { set: [{ name: 'X-{http.request.header.N}', value: '1' }] },
	};
	assert.equal(responseLines(await serveRequest([dynamic, END], { headers: [['N', 'ok']] })), ['X-ok: 1']);
	assert.equal(responseLines(await serveRequest([dynamic, END], { headers: [['N', 'a b:']] })), []);
	assert.throws(
		() => buildTestSite([{ handler: 'edit_headers', response: { set: [{ name: 'a b', value: '' }] } }]),
		/not the name of a header field/,
	);
});

test('an expression with placeholders is compiled per request, and an invalid one replaces nothing', async () => {
	const step: Step = {
		handler: 'edit_headers',
		response: { replace: [{ name: 'Server', find: '{http.request.header.Find}', replace: 'X' }] },
	};
	const server = async (find: string) =>
		(await serveRequest([START, step, END], { headers: [['Find', find]] })).response.headers.get('server');
	assert.is(await server('^a$'), 'X');
	assert.is(await server('('), 'a');
	assert.is(await server('(a{1000}){1000}'), 'a');
	assert.is(await server('(a+)+$'), 'X');
});

test('request fields, including Host, are edited before later steps see them', async () => {
	const x = await serveRequest(
		[
			{
				handler: 'edit_headers',
				request: {
					set: [
						{ name: 'Host', value: 'Other.Example:8080' },
						{ name: 'X-Was', value: '{http.request.host}' },
					],
					delete: ['Cookie'],
				},
			},
			{
				handler: 'respond',
				body: '{http.request.host} {http.request.hostport} {http.request.header.X-Was}',
				status: 200,
			},
		],
		{ headers: [['Cookie', 'a=b']] },
	);
	assert.is(x.response.body, 'other.example Other.Example:8080 example.test');
	assert.is(x.request.headers.has('host'), false);
	assert.is(x.request.headers.has('cookie'), false);
});

test('an invalid host changes nothing', async () => {
	const x = await serveRequest([{ handler: 'edit_headers', request: { set: [{ name: 'host', value: 'a b' }] } }, END]);
	assert.is(x.request.host, 'example.test');
	assert.is(x.request.authority, 'example.test');
});

test('constant edits are synchronous, and deferred edits pass errors on', () => {
	const site = buildTestSite([
		{ handler: 'edit_headers', response: { delete: ['A'], deferred: true } },
		{ handler: 'fail', status: 410 },
	]);
	assert.throws(
		() => site.runSite(fakeExchange()),
		(error: unknown) => error instanceof HttpError && error.status === 410,
	);
});

test.run();
