/** `rewrite` and `uri`: the resulting path and query. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Step } from '../../../../compiler/document/document.ts';
import { bodyText, buildTestSite, fakeExchange, type RequestFields, serveRequest } from '../../fake-exchange.ts';

const test = suite('uri');

type Edit = { readonly [field: string]: unknown };

function steps(...edits: readonly Edit[]): Step[] {
	return [
		...edits.map(edit => ({ handler: 'rewrite_target', ...edit })),
		{ handler: 'respond', body: '{http.request.uri.query}' },
	];
}

const query = (edits: Edit): Edit => ({ query: edits });

/** Facts U1 to U7 about Caddy: edits, target, resulting path and query. */
const FACTS: readonly (readonly [string, readonly Edit[], string, string])[] = [
	[
		'U1',
		[{ replace: [{ find: '\\}', replace: '%7D' }] }, { replace: [{ find: '\\{', replace: '%7B' }] }],
		'/endpoint?test={%20content%20}',
		'test=%7B%20content%20%7D',
	],
	[
		'U2',
		[query({ set: [{ name: 'foo', value: 'bar' }] }), query({ add: [{ name: 'foo', value: 'baz' }] })],
		'/endpoint',
		'foo=bar&foo=baz',
	],
	[
		'U3',
		[
			query({ rename: [{ from: 'foo', to: 'bar' }] }),
			query({ set: [{ name: 'bar', value: 'taz' }] }),
			query({ add: [{ name: 'bar', value: 'baz' }] }),
		],
		'/endpoint?foo=bar',
		'bar=taz&bar=baz',
	],
	['U4', [query({ replace: [{ name: 'foo', find: 'bar', replace: 'baz' }] })], '/endpoint?foo=bar', 'foo=baz'],
	[
		'U5',
		[query({ replace: [{ name: 'foo', find: 'bar', replace: '{http.request.uri.query.placeholder}' }] })],
		'/endpoint?placeholder=baz&foo=bar',
		'foo=baz&placeholder=baz',
	],
	['U6', [query({ replace: [{ name: 'foo', find: 'ar', replace: 'az' }] })], '/endpoint?foo=bar', 'foo=baz'],
	[
		'U7',
		[query({ replace: [{ name: '*', find: 'bar', replace: 'baz' }] })],
		'/endpoint?foo=bar&baz=bar',
		'baz=baz&foo=baz',
	],
];

for (const [name, edits, target, expected] of FACTS) {
	test(`${name}: ${target} gives ${expected}`, async () => {
		assert.is(bodyText(await serveRequest(steps(...edits), { target })), expected);
	});
}

async function target(edit: Edit, from: string, more: RequestFields = {}): Promise<string> {
	const x = await serveRequest([{ handler: 'rewrite_target', ...edit }], { target: from, ...more });
	return x.request.query === undefined ? x.request.path : `${x.request.path}?${x.request.query}`;
}

/** The target of a rewrite, the target of a request, and the request's target after the rewrite. */
const REWRITE_CASES: readonly (readonly [string, string, string])[] = [
	['/x', '/a?b=c', '/x?b=c'],
	['/x?', '/a?b=c', '/x'],
	['?a=b', '/p?x=y', '/p?a=b'],
	['/x?a=b', '/p?x=y', '/x?a=b'],
	['/x#frag', '/p?x=y', '/x?x=y'],
	['/new{http.request.uri.path}', '/a%2Fb%20c?q', '/new/a%2Fb%20c?q'],
	['/index.php?{http.request.uri.query}&p={http.request.uri.path}', '/a/b', '/index.php?p=%2Fa%2Fb'],
	[
		'/index.php?{http.request.uri.query}&p={http.request.uri.path}',
		'/a/b?x=1&y=%20',
		'/index.php?x=1&y=%20&p=%2Fa%2Fb',
	],
	['/i?a={http.request.uri.query}', '/a?x=1&y', '/i?a=x%3D1%26y'],
	['/i?a={http.request.header.none}&b=1', '/', '/i?a=&b=1'],
	['/i?{http.request.header.none}&b=1', '/', '/i?b=1'],
	['{http.request.uri}', '/a?b=c', '/a?b=c'],
	['/v{http.request.uri}', '/a%20b?c', '/v/a%20b?c'],
	['/v{http.request.uri}?z=1', '/a?c', '/v/a?z=1'],
	['{http.request.uri.path.file}', '/dir/a%3Fb%25', '/a%3Fb%25'],
	['/{no.such}x', '/a', '/x'],
	['/a b"c', '/', '/a%20b%22c'],
	['relative', '/a', '/relative'],
];

for (const [to, from, expected] of REWRITE_CASES) {
	test(`rewrite ${to}: ${from} becomes ${expected}`, async () => {
		assert.is(await target({ to }, from), expected);
	});
}

test('a capture from the decoded path cannot inject a query or an escape', async () => {
	const x = await serveRequest(
		[
			{
				handler: 'rewrite_target',
				to: '/p/{http.regexp.r.1}',
				when: { type: 'path_regexp', name: 'r', pattern: '^/x/(.*)$' },
			},
		],
		{ target: '/x/%252e%252e%3Fadmin=1%23' },
	);
	assert.is(x.request.path, '/p/%252e%252e%3Fadmin=1%23');
	assert.is(x.request.query, undefined);
});

/** An edit, the target of a request, and the request's target after the edit. */
const EDIT_CASES: readonly (readonly [Edit, string, string])[] = [
	[{ strip_prefix: '/api' }, '/api/x?y', '/x?y'],
	[{ strip_prefix: 'api' }, '/api/x', '/x'],
	[{ strip_prefix: '/API' }, '/api', '/'],
	[{ strip_prefix: '/api' }, '//api/x', '/x'],
	[{ strip_prefix: '/api' }, '/%61pi/x%2Fy', '/x%2Fy'],
	[{ strip_prefix: '/a%2Fb' }, '/a%2fb/c', '/c'],
	[{ strip_prefix: '/a/b' }, '/a%2Fb/c', '/c'],
	[{ strip_prefix: '/a%2Fb' }, '/a/b/c', '/a/b/c'],
	[{ strip_prefix: '/api' }, '/other', '/other'],
	[{ strip_prefix: '/{http.request.host}' }, '/example.test/x', '/x'],
	[{ strip_prefix: '/api' }, '/apifoo', '/foo'],
	[{ strip_prefix: '/x' }, '/x//evil.example/', '/evil.example/'],
	// The path is cleaned even if nothing is stripped.
	[{ strip_prefix: '/api' }, '/a/../b//c?x=//', '/b/c?x=//'],
	[{ strip_prefix: '//api' }, '/a/../b//c', '/b//c'],
	[{ strip_suffix: '.html' }, '/a/./b//', '/a/b/'],
	[{ replace: [{ find: 'x', replace: 'y' }] }, '/a//b/..?x', '/a/?y'],
	[{ replace: [{ find: 'x//', replace: 'y' }] }, '/a//b', '/a//b'],
	[{ path_regexp: [{ find: 'x', replace: 'y' }] }, '/a//b', '/a//b'],
	[{ strip_suffix: '.html' }, '/a/b.HTML?q', '/a/b?q'],
	[{ strip_suffix: '/' }, '/a/', '/a'],
	[{ strip_suffix: '%2F' }, '/a%2f', '/a'],
	[{ strip_suffix: '.html' }, '/a.htm', '/a.htm'],
	[{ replace: [{ find: 'a', replace: 'b' }] }, '/aa?a=a', '/bb?b=b'],
	[{ replace: [{ find: 'a', replace: 'b', limit: 1 }] }, '/aa?aa', '/ba?ba'],
	[{ replace: [{ find: '/x/', replace: '/$&/' }] }, '/x/y', '/$&/y'],
	[{ path_regexp: [{ find: '/+', replace: '/' }] }, '//a///b', '/a/b'],
	// biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a named group in a replacement
	[{ path_regexp: [{ find: '^/u/(\\d+)/(?P<rest>.*)$', replace: '/user-$1/${rest}' }] }, '/u/7/a/b', '/user-7/a/b'],
	[{ path_regexp: [{ find: 'a', replace: ' ?' }] }, '/a', '/%20%3F'],
	[{ query: { delete: ['b'] } }, '/?c=1&b=2&a=3', '/?a=3&c=1'],
	[{ query: { delete: ['a'] } }, '/?a=1', '/'],
	[{ query: { rename: [{ from: 'a', to: 'b' }] } }, '/?a=1&b=2', '/?b=1'],
	[{ query: { set: [{ name: 'k', value: '{http.request.host} &=' }] } }, '/', '/?k=example.test+%26%3D'],
	[{ query: { delete: ['x'], add: [{ name: 'x', value: '1' }], set: [{ name: 'y', value: '2' }] } }, '/', '/?y=2'],
	[{ query: { replace: [{ name: 'a', find: '(\\d)', replace: '<$1>' }] } }, '/?a=x1y2', '/?a=x%3C1%3Ey%3C2%3E'],
];

for (const [edit, from, expected] of EDIT_CASES) {
	test(`${JSON.stringify(edit)}: ${from} becomes ${expected}`, async () => {
		assert.is(await target(edit, from), expected);
	});
}

test('rewrites are synchronous', () => {
	assert.is(buildTestSite([{ handler: 'rewrite_target', to: '/x' }]).runSite(fakeExchange()), undefined);
});

test.run();
