/** Path matchers: every form of pattern, and spellings of a path that try to evade it. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Matcher } from '../../../../compiler/document/document.ts';
import { HttpError } from '../../../../compiler/exchange/http-error.ts';
import { normalizedPath } from '../../../../compiler/exchange/request-path.ts';
import { bodyText, buildTestSite, fakeExchange, type RequestFields, serveRequest } from '../../fake-exchange.ts';

const test = suite('path');

function siteWithMatcher(when: Matcher) {
	return buildTestSite([
		{ handler: 'respond', body: 'yes', when },
		{ handler: 'respond', body: 'no' },
	]);
}

function holds(when: Matcher, target: string, more: RequestFields = {}): boolean {
	const x = fakeExchange({ target, ...more });
	assert.is(siteWithMatcher(when).runSite(x), undefined);
	return bodyText(x) === 'yes';
}

/** Patterns, paths that match, and paths that do not. */
const PATTERN_CASES: readonly (readonly [string | readonly string[], readonly string[], readonly string[]])[] = [
	['*', ['/', '/a', '/a//b', '/%2e'], []],
	[
		'/x',
		['/x', '/X', '/%78', '//x', '/./x', '/a/../x', '/%2e/x', '/a/%2E%2e/x', '/x?q', '/a%2f..%2fx'],
		['/', '/x/', '/xy', '/x/y', '/y'],
	],
	['/foo*', ['/foo', '/foobar', '/foo/bar', '/FOO/', '/%66oo'], ['/fo', '/bar/foo']],
	[
		'/foo/*',
		['/foo/', '/foo/bar', '/foo/.', '/foo/x/..', '/foo%2Fbar', '//foo///bar'],
		['/foo', '/foobar', '/foo/..', '/foo/../x', '/foo/%2e%2e/x'],
	],
	['*.php', ['/a.php', '/.php', '/a/b.PHP', '/a.%70hp'], ['/a.php/', '/a.php5', '/a.php/b']],
	['*/sub/*', ['/a/sub/b', '/sub/', '/sub/x', '/a//sub//'], ['/sub', '/asub/']],
	['/a/*/c', ['/a/b/c', '/a/%62/C'], ['/a/c', '/a/b/b/c', '/a/b/c/d', '/a/b%2Fb/c']],
	['/a/?/c', ['/a/b/c', '/a/%C3%A9/c'], ['/a//c', '/a/bb/c']],
	['/[a-c]x/*.js', ['/ax/1.js', '/Bx/.js'], ['/dx/1.js', '/ax/1/2.js']],
	['/[^a-c]x', ['/dx'], ['/ax', '/x']],
	['/a\\*b*c', ['/a*bc', '/a*bxc'], ['/axbc']],
	['/*a*b', ['/ab', '/xaxb', '/aab'], ['/a/b', '/abc', '/b']],
	['/é', ['/%C3%A9', '/%c3%89'], ['/e']],
	['/a//b', ['/a//b'], ['/a/b', '/a///b']],
	['/a//*', ['/a//b', '/a//'], ['/a/b']],
	['/bands/%2F', ['/bands/%2F', '/bands/%2f', '/b%61nds/%2f'], ['/bands//', '/bands/']],
	['/bands/%*', ['/bands/AC%2FDC', '/bands/x'], ['/bands', '/bands/x/y', '/bands/x/']],
	['/a/%*/b', ['/a/x/b', '/a/x%2Fy/b', '/a/%2f/b'], ['/a/x/y/b', '/a//b', '/a/b', '/a/x/b/c']],
	['/bands/%*/T.N.T', ['/bands/AC%2FDC/T.N.T'], ['/bands/AC/DC/T.N.T', '/bands/T.N.T']],
	['/bands/*/%2f', ['/bands/a/%2F'], ['/bands/a//', '/bands/a%2Fb/%2f']],
	['/caf%C3%A9', ['/caf%c3%a9'], ['/caf\u00e9']],
	[
		['/a', '/b', '/c', '/d', '/e', '/f*'],
		['/a', '/E', '/foo', '//d'],
		['/g', '/aa'],
	],
];

for (const [patterns, matching, others] of PATTERN_CASES) {
	const when = { type: 'path', patterns: typeof patterns === 'string' ? [patterns] : patterns };
	test(JSON.stringify(patterns), () => {
		for (const target of matching) assert.is(holds(when, target), true, `${target} should match`);
		for (const target of others) assert.is(holds(when, target), false, `${target} should not match`);
	});
}

test('a path that cannot be decoded is a 400', () => {
	for (const target of ['/%', '/%zz', '/a%2', '/%00', '/a/%00/b']) {
		assert.throws(
			() => holds({ type: 'path', patterns: ['/x'] }, target),
			(error: unknown) => error instanceof HttpError && error.status === 400,
			target,
		);
	}
});

test('bytes that are not UTF-8 do not prevent a match', () => {
	assert.is(holds({ type: 'path', patterns: ['/x/*'] }, '/x/%ff%fe'), true);
});

test('placeholders are expanded, and an asterisk in a value is not a wildcard', () => {
	const when = (pattern: string) => ({ type: 'path', patterns: [pattern] });
	const name = (value: string) => ({ headers: [['N', value]] as const });
	assert.is(holds(when('/{http.request.header.N}/*'), '/Bob/x', name('bob')), true);
	assert.is(holds(when('/{http.request.header.N}/*'), '/eve/x', name('*')), false);
	assert.is(holds(when('/{http.request.header.N}'), '/anything', name('*')), false);
	assert.is(holds(when('/a/*/{http.request.header.N}'), '/a/b/c', name('c')), true);
	assert.is(holds(when('/a/*/{http.request.header.N}'), '/a/b/c', name('[a-z]')), false);
	assert.is(holds(when('/a/*/{http.request.header.N}'), '/a/b/[x]', name('[x]')), true);
	assert.is(holds(when('/{http.request.header.N}'), '/{http.request.host}', name('{http.request.host}')), true);
});

test('a malformed pattern is refused when loading', () => {
	assert.throws(() => siteWithMatcher({ type: 'path', patterns: ['/a[b'] }), /not closed/);
	assert.throws(() => siteWithMatcher({ type: 'path', patterns: ['/%2f{http.request.host}'] }), /not both/);
});

test('the cleaned path is matched', () => {
	const clean = (target: string) => normalizedPath(fakeExchange({ target }).request);
	for (const [target, expected] of [
		['/', '/'],
		['/a/./b/../c/', '/a/c/'],
		['/a/.', '/a/'],
		['/a/..', '/'],
		['/../../a', '/a'],
		['/..', '/'],
		['/a//b///', '/a/b/'],
		['/.a/..b/c.', '/.a/..b/c.'],
		['/%2e%2E%2f%2e./x', '/x'],
		['/a%5c..%5cb', '/a\\..\\b'],
		['/%252e%252e/x', '/%2e%2e/x'],
		['*', '*'],
	]) {
		assert.is(clean(target!), expected, target);
	}
});

test('path_regexp searches the cleaned path and keeps its captures', async () => {
	const when = { type: 'path_regexp', name: 'post', pattern: '^/posts/(?P<id>\\d+)(/edit)?$' };
	const x = await serveRequest(
		[
			{
				handler: 'respond',
				body: '{http.regexp.post.id} {http.regexp.post.1} {http.regexp.1}[{http.regexp.post.2}][{http.regexp.post.9}]{http.regexp.other.1}',
				when,
			},
		],
		{ target: '//posts/./%31' },
	);
	assert.is(bodyText(x), '1 1 1[][{http.regexp.post.9}]{http.regexp.other.1}');
	assert.is(holds(when, '/Posts/1'), false);
	assert.is(holds({ type: 'path_regexp', pattern: '(?i)/POSTS' }, '/a/posts'), true);
	assert.throws(() => siteWithMatcher({ type: 'path_regexp', pattern: '(a{1000}){1000}' }), /too large/);
});

test.run();
