/** Regular expressions: the syntax of RE2 on the JavaScript engine, and the expressions that are rejected. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileRegexp, RegexpError, RegexpTooLarge } from '../../../compiler/codegen/regexp/regexp.ts';

const test = suite('regexp');

/** An expression, a subject, and the text that the expression matches in it, or null if it does not match. */
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

/**
 * Expressions that keep a backtracking engine busy for seconds or longer, each with the text that a subject must repeat to cause
 * this.
 */
const SLOW_EXPRESSIONS: readonly (readonly [string, string])[] = [
	['^/a/(.*)/(.*)/(.*)/(.*)\\.html$', '/'],
	['^/blog/([^/]+?)-([^/]+?)-([^/]+?)-([^/]+?)\\.html$', '-'],
	['(.+)-(.+)-(.+)', '-'],
	['(a+)+$', 'ab'],
	['(a+)+$', 'a'],
	['(a*)*b', 'a'],
	['(a|a)*b', 'a'],
	['(a|ab|b)*c', 'ab'],
	['(\\w+\\s?)+$', 'a'],
	['([a-z]+|[a-f0-9]+)*x', 'a'],
	['(.*)*x', 'a'],
	['(?i)(a|A)+$', 'Aa'],
	['((a{1,3}))*b', 'a'],
	['(a{0,9})*b', 'a'],
	['(?:/?[^?]*)+x', '/'],
	['(a?){30}a{30}b', 'a'],
	['[a-z]+@[a-z]+\\.com', 'a'],
	['\\s+$', ' '],
	['(?m)^(.*?),(.*?),(.*?)$', 'a,'],
	['\\b\\w+\\b.*\\b\\w+\\b!', 'a '],
	['.*a.{150}b', 'aab'],
];

/** Returns the CPU milliseconds of a call: the minimum of three runs. */
function cpuMilliseconds(what: () => unknown): number {
	const times = [1, 2, 3].map(() => {
		const { user } = process.threadCpuUsage();
		what();
		return (process.threadCpuUsage().user - user) / 1000;
	});
	return Math.min(...times);
}

test('an expression matches as in RE2', () => {
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

test('syntax that RE2 does not support is refused by name', () => {
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

test('matching takes linear time even for input chosen to cause backtracking', () => {
	for (const [source, subject] of SLOW_EXPRESSIONS) {
		const regexp = compileRegexp(source);
		for (const text of [subject.repeat(Math.ceil(16_384 / subject.length)), subject.repeat(10)]) {
			const cpuMs = cpuMilliseconds(() => regexp.exec(text));
			assert.ok(cpuMs < 50, `${source} took ${cpuMs} ms`);
		}
	}
});

test('finding all matches takes linear time', () => {
	for (const source of ['a*b|a', '.*x|a', '(a*)(?:b|$)|(?:)', '[^b]*b|[ac]']) {
		const regexp = compileRegexp(source, 'g');
		const cpuMs = cpuMilliseconds(() => `${'a'.repeat(16_383)}c`.replace(regexp, '-'));
		assert.ok(cpuMs < 50, `${source} took ${cpuMs} ms`);
	}
});

test('expressions that cannot backtrack badly use the built-in engine', () => {
	for (const source of [
		'^/api/v(\\d+)/(.*)$',
		'^/posts/(\\d+)$',
		'(?i)\\.(jpe?g|png|gif|webp|svg|ico|css|js|woff2?)$',
		'session=([a-z0-9]+)',
		'(?i)(bot|crawler|spider|curl|wget)',
		'^(www\\.)(.*)$',
		'^/(?:[a-z]{2}/)?docs/(.+?)/?$',
		'^/(\\d{4})/(\\d{2})/(\\d{2})/([^/]+)/?$',
		'^[a-z0-9-]{1,63}$',
		'.*\\.php$',
		'\\b(select|union|insert)\\b',
	]) {
		assert.is(compileRegexp(source).constructor, RegExp, source);
	}
	assert.is.not(compileRegexp('^/(.*)/(.*)$').constructor, RegExp);
});

test('ordinary expressions and long lists of words are accepted', () => {
	const words = Array.from({ length: 700 }, (_, at) => `w${((at * 7919) % 100_003).toString(36)}bot`);
	const list = compileRegexp(`(?i)(${words.join('|')})`);
	assert.is(list.exec(`Mozilla/5.0 ${words[600]!.toUpperCase()}/1.0`)?.[1], words[600]!.toUpperCase());
	assert.is(list.test('w1'.repeat(8000)), false);
	for (const source of [
		'^(/[^/]+)*/?$',
		'(\\d{1,3}\\.){3}\\d{1,3}',
		'^([a-z0-9]+-)*[a-z0-9]+$',
		'^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==)?$',
		'[a-z]{2,60}\\.(com|org)',
		'("[^"]*"|[^",]*)(,|$)',
		'\\w{1,64}@\\w{1,253}\\.\\w{2,63}',
		'^.{1,1000}$',
		'^(?:[a-z]{1,63}\\.){1,10}$',
	]) {
		compileRegexp(source);
	}
});

test('an expression that would need too large an automaton is refused quickly', () => {
	const brackets = Array.from({ length: 800 }, (_, at) => `[\\pL${String.fromCodePoint(0x2600 + at)}]`);
	for (const source of [
		'(a{1000}){1000}',
		'((((a{1000}){1000}){1000}){1000}){1000}',
		'((a?){1000}b?){1000}',
		'.*a.{1000}b',
		brackets.join('').slice(0, 8000),
	]) {
		const startedAt = performance.now();
		assert.throws(
			() => compileRegexp(source),
			(error: Error) => error instanceof RegexpTooLarge,
			source.slice(0, 60),
		);
		assert.ok(performance.now() - startedAt < 10_000, source.slice(0, 60));
	}
	assert.throws(
		() => compileRegexp('\\pL\\p{Lu}\\p{Ll}\\p{Lt}\\p{Lm}\\p{Lo}\\pM\\p{Mn}\\p{Mc}\\p{Me}\\pN'),
		/Unicode classes/,
	);
});

test('the check of the longest expressions takes bounded time', () => {
	for (const piece of ['(.|', 'a?', '(a*)*', '[^x]*', '(a|b*)', '.*a', '\\w+\\s?', '(?i)é', '[a-z]{1,100}']) {
		const count = Math.floor(8000 / piece.length);
		const source = piece === '(.|' ? `(${'.|'.repeat(4000)}x)*y` : piece.repeat(count);
		const cpuMs = cpuMilliseconds(() => {
			try {
				compileRegexp(source);
			} catch (error) {
				assert.instance(error, RegexpError);
			}
		});
		assert.ok(cpuMs < 1000, `${piece} took ${cpuMs} ms`);
	}
});

test('a surrogate pair is one character', () => {
	for (const flags of ['', 'g']) {
		assert.is(compileRegexp('(.*)-(.)-(.*)', flags).exec(`${'😀'.repeat(500)}-😁-é`)?.[2], '😁');
		assert.is(compileRegexp('(.*)-([^a])$', flags).exec(`${'a'.repeat(500)}-😁`)?.[2], '😁');
		assert.is(compileRegexp('(.*)-(.)$', flags).exec(`${'a'.repeat(500)}-\ud83d`)?.[2], '\ud83d');
		assert.is(compileRegexp('(.*)(.*)\\x{1f600}+$', flags).test(`${'a'.repeat(500)}\ude00`), false);
	}
});

test('a search that starts with `.*` does not take quadratic time', () => {
	const subject = 'a'.repeat(200_000);
	const startedAt = performance.now();
	assert.is(compileRegexp('.*b').test(subject), false);
	assert.is(compileRegexp('(?s).*b').test(subject), false);
	assert.ok(performance.now() - startedAt < 10_000);
	assert.is(compileRegexp('.*b').exec('a\nxb')?.[0], 'xb');
	assert.is('axbx'.replace(compileRegexp('.*?x', 'g'), '-'), '--');
});

test.run();
