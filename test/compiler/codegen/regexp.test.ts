/** Regular expressions: RE2's syntax on this engine, and what is refused. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileRegexp, RegexpError } from '../../../compiler/codegen/regexp.ts';

const test = suite('regexp');

/** expression, subject, whole match or null. */
const MATCHES: readonly (readonly [string, string, string | null])[] = [
	['(?i)abc', 'xABc', 'ABc'],
	['a(?i)b|c', 'C', 'C'],
	['a(?i)b|c', 'AB', null],
	['a(?i)b(?-i)c', 'aBc', 'aBc'],
	['a(?i)b(?-i)c', 'aBC', null],
	['(?i:a)b', 'AB', null],
	['a.c', 'a\nc', null],
	['a.c', 'a\rc', 'a\rc'],
	['(?s)a.c', 'a\nc', 'a\nc'],
	['^b$', 'a\nb\nc', null],
	['(?m)^b$', 'a\nb\nc', 'b'],
	['(?m)^b$', 'a\rb\rc', null],
	['\\Ab', 'ab', null],
	['b\\z', 'b\n', null],
	['(?U)a+', 'aaa', 'a'],
	['(?U)a+?', 'aaa', 'aaa'],
	['\\Qa.b\\E+', 'a.bb', 'a.bb'],
	['[[:alpha:]]+', '12ab3', 'ab'],
	['[[:^alpha:]]+', 'ab12', '12'],
	['[^[:space:]x]+', 'x  y', 'y'],
	['\\pL+', '1äb', 'äb'],
	['\\p{Greek}+', 'aβγ', 'βγ'],
	['\\p{^Greek}', 'β', null],
	['[\\p{L}\\d]+', '-é1-', 'é1'],
	['\\x41\\x{42}\\103', 'ABC', 'ABC'],
	['[]a]+', 'a]', 'a]'],
	['[a\\-z]+', 'm-az', '-az'],
	['\\s', '\u00a0', null],
	['\\S', '\u00a0', '\u00a0'],
	['(?i)\\W', 's', null],
	['x{2,3}', 'xxxx', 'xxx'],
	['x{,3}', 'x{,3}', 'x{,3}'],
	['{', '{', '{'],
	['a}]', 'a}]', 'a}]'],
	['^*a', 'a', 'a'],
	['/a\\/b', '/a/b', '/a/b'],
	['^/(?:[^/]+/)*x$', '/a/b/x', '/a/b/x'],
	['\\.(?:php|phtml)$', 'a.php', '.php'],
];

test('the syntax means what it means in RE2', () => {
	for (const [source, subject, expected] of MATCHES) {
		assert.is(compileRegexp(source).exec(subject)?.[0] ?? null, expected, `${source} on ${JSON.stringify(subject)}`);
	}
});

test('groups are numbered and named', () => {
	const match = compileRegexp('(?P<year>\\d+)-(?<month>\\d+)-(x)?').exec('2026-08-')!;
	assert.is(match.groups?.year, '2026');
	assert.is(match.groups?.month, '08');
	assert.is(match[3], undefined);
});

test('what RE2 does not have is refused by name', () => {
	for (const [source, part] of [
		['a(?=b)', 'lookaround'],
		['(?<!a)b', 'lookaround'],
		['(a)\\1', 'backreferences'],
		['(?P<n>a)\\k<n>', 'backreferences'],
		['(?>a)', 'atomic'],
		['a**', 'repeats a repetition'],
		['a++', 'repeats a repetition'],
		['*a', 'nothing stands before'],
		['(a', 'not closed'],
		['a)', 'unexpected'],
		['[a', 'not closed'],
		['[z-a]', 'upside down'],
		['a{1001}', 'repeat count'],
		['a{3,2}', 'repeat count'],
		['\\y', 'not an escape'],
		['\\', 'backslash'],
		['\\p{Nonsense}', 'name of a class'],
		['[[:nope:]]', 'name of a class'],
		['(?P<1>a)', 'cannot name'],
		['(?P<a>x)(?P<a>y)', 'two groups'],
		['(?x)a', 'not known'],
		['(?)', 'not known'],
	] as const) {
		try {
			compileRegexp(source);
			assert.unreachable(source);
		} catch (error) {
			assert.instance(error, RegexpError, source);
			assert.match((error as Error).message, part, source);
		}
	}
});

test('exponential expressions are refused', () => {
	for (const source of [
		'(a+)+$',
		'(a*)*b',
		'(a|a)*b',
		'(a|ab|b)*c',
		'(\\w+\\s?)+$',
		'([a-z]+|[a-f0-9]+)*x',
		'(.*)*x',
		'(?i)(a|A)+$',
		'((a{1,3}))*b',
		'(a{0,9})*b',
		'(?:/?[^?]*)+x',
	]) {
		assert.throws(() => compileRegexp(source), /exponential/, source);
	}
});

test('ordinary expressions are not', () => {
	for (const source of [
		'^/api/v(\\d+)/(.*)$',
		'^(/[^/]+)*/?$',
		'(\\d{1,3}\\.){3}\\d{1,3}',
		'^([a-z0-9]+-)*[a-z0-9]+$',
		'(a|b)*',
		'(foo|bar|baz)+',
		'.*foo.*bar',
		'^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==)?$',
		'[a-z]{2,60}\\.(com|org)',
		'(\\d{5})*',
		'("[^"]*"|[^",]*)(,|$)',
	]) {
		compileRegexp(source);
	}
});

test('a search that begins with a run of anything takes no square of the length', () => {
	const subject = 'a'.repeat(200_000);
	const started = performance.now();
	assert.is(compileRegexp('.*b').test(subject), false);
	assert.is(compileRegexp('(?s).*b').test(subject), false);
	assert.ok(performance.now() - started < 1000);
	assert.is(compileRegexp('.*b').exec('a\nxb')?.[0], 'xb');
	assert.is('axbx'.replace(compileRegexp('.*?x', 'g'), '-'), '--');
});

test('the check itself is bounded', () => {
	const started = performance.now();
	assert.throws(
		() => compileRegexp(`(${Array.from({ length: 150 }, () => '.').join('|')})*x`),
		/more than one way|too large/,
	);
	compileRegexp(`(${Array.from({ length: 100 }, (_, i) => `w${i}`).join('|')})x`);
	assert.ok(performance.now() - started < 1000);
});

test('a long literal is cheap to check', () => {
	compileRegexp('abcdefghij'.repeat(300));
});

test.run();
