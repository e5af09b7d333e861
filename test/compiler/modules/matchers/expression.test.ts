/** CEL expressions: their values, checks and runtime errors. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fakeLeases } from '../../../../compiler/codegen/context/fake-leases.ts';
import type { Matcher } from '../../../../compiler/document/document.ts';
import { HttpError } from '../../../../compiler/exchange/http-error.ts';
import { bodyText, buildTestSite, fakeExchange, type RequestFields } from '../../fake-exchange.ts';

function expressionHolds(expression: string, request: RequestFields = {}, name?: string): boolean {
	const when: Matcher = { type: 'expression', expression, ...(name === undefined ? {} : { name }) };
	const x = fakeExchange(request);
	const site = buildTestSite(
		[
			{ handler: 'set_variables', variables: { tier: 'gold', count: 3, open: true } },
			{ handler: 'respond', body: 'yes {http.regexp.1}{http.regexp.n.1}', when },
			{ handler: 'respond', body: 'no' },
		],
		{ leases: fakeLeases },
	);
	assert.is(site.runSite(x), undefined, 'no promise');
	return bodyText(x).startsWith('yes');
}

const placeholders = suite('placeholders in expressions');

placeholders('have their values and types', () => {
	for (const [expression, expected] of [
		["{http.request.method} == 'GET'", true],
		['{http.vars.count} == 3', true],
		['{http.vars.count} + 1 > 3', true],
		["{http.vars.count} == '3'", false],
		['{http.vars.open}', undefined],
		['{http.vars.open} == true', true],
		['{http.vars.absent} == null', true],
		['{no.such} == null', true],
		["{http.request.uri.query.a} in ['x', 'y']", true],
		["{http.request.uri.path}.startsWith('/a')", true],
		["{http.request.header.Accept} == ''", true],
		['{time.now} > timestamp("2020-01-01T00:00:00Z")', true],
		['{time.now.year} > 2020', true],
		["'{http.request.method}' == 'GET'", false],
		["{method} == 'GET' // {path}", true],
	] as const) {
		if (expected === undefined)
			assert.throws(() => expressionHolds(expression), /expects return type of bool, not dyn/);
		else assert.is(expressionHolds(expression, { target: '/a?a=y' }), expected, expression);
	}
});

placeholders('are not expanded again', () => {
	const headers = [['Evil', "' || true || '{http.request.method}"]] as const;
	assert.is(expressionHolds("{http.request.header.Evil} == 'GET'", { headers }), false);
	assert.is(expressionHolds("{http.request.header.Evil}.contains('{http.request.method}')", { headers }), true);
	assert.is(expressionHolds('path({http.request.header.Evil})', { headers: [['Evil', '/*']] }), false);
	assert.is(expressionHolds("path({http.request.header.Evil} + '*')", { headers: [['Evil', '/']] }), true);
});

placeholders.run();

const functions = suite('functions of expressions');

functions('every matcher is available as a function', () => {
	const request: RequestFields = {
		target: '/API/x%2Fy/12?a=1&b=',
		authority: 'www.Example.test:80',
		headers: [
			['Foo', 'a bar b'],
			['Foo', 'second'],
			['Content-Type', 'application/grpc+x'],
		],
	};
	for (const [expression, expected] of [
		["host('www.example.test', 'b')", true],
		["host('*.example.test')", true],
		["path('/api/*')", true],
		["path('/other', '/API/x/y/12')", true],
		["method('get')", true],
		["remote_ip('127.0.0.0/8')", true],
		["client_ip('10.0.0.0/8')", false],
		["protocol('HTTP/1.1') && protocol('http/1.0+') && protocol('grpc')", true],
		["protocol('http/2+')", false],
		[String.raw`path_regexp('(\\d+)$')`, true],
		[String.raw`path_regexp('n', '(\\d+)$')`, true],
		["header_regexp('Foo', 'sec(o)nd')", true],
		["header_regexp('n', 'Foo', '^b')", false],
		["vars_regexp('tier', '^g(.)')", true],
		["vars_regexp('{http.request.method}', '^G')", true],
		["header({'Foo': '*bar*'})", true],
		["header({'Foo': ['x', 'second']})", true],
		["header({'!Foo': ''})", false],
		["header({'Bar': '*'})", false],
		["query({'a': '1'}) && query({'b': '*'})", true],
		["query({'a': ['2', '3']})", false],
		["vars({'tier': ['silver', 'gold']})", true],
		["vars({'{http.request.method}': 'GET'})", true],
		["url_pattern('/API/*')", true],
		["url_pattern('/x', 'http://www.example.test')", false],
		["file('/index.html')", false],
		["file({'try_files': ['/a'], 'try_policy': 'largest_size', 'root': '/srv', 'split_path': ['.php']})", false],
		["!path('/x') && (method('PUT') || host('www.example.test'))", true],
		[String.raw`path('\{http.request.uri.path}')`, true],
		[String.raw`vars({'\{path}': '{http.request.uri.path}'})`, true],
	] as const) {
		assert.is(expressionHolds(expression, request), expected, expression);
	}
});

functions('captures are kept under the name of the named matcher', () => {
	const x = fakeExchange({ target: '/v7' });
	const expression = String.raw`path_regexp('^/v(\\d)$')`;
	buildTestSite([
		{ handler: 'respond', body: '{http.regexp.ver.1}', when: { type: 'expression', expression, name: 'ver' } },
	]).runSite(x);
	assert.is(bodyText(x), '7');
});

functions('the standard functions and extensions are available', () => {
	for (const expression of [
		"'a,b'.split(',').size() == 2",
		"'%s-%d'.format(['a', 1]) == 'a-1'",
		"['a', 'b'].exists(x, x == 'b') && [1, 2].all(n, n > 0)",
		'[1, 2, 3].filter(n, n > 1).map(n, n * 2) == [4, 6]',
		"cel.bind(m, {http.request.method}, m == 'GET' && m != 'PUT')",
		'math.greatest(1, 2, 3) == 3 && math.least(2, 1) == 1 && math.abs(-2) == 2',
		'[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct() == [1]',
		'[1, [2]].flatten() == [1, 2] && lists.range(2) == [0, 1] && [1, 2].reverse() == [2, 1]',
		"{'a': 1}['a'] == 1 && has({'a': 1}.a)",
		String.raw`'x1'.matches('^x\\d$')`,
		'(true ? 1 : 2) == 1',
		'"ü".size() == 1',
	])
		assert.is(expressionHolds(expression), true, expression);
});

functions('numbers in strings are decimal, and an empty string is not a number', () => {
	const converted = (of: string, text: string): boolean | number => {
		const target = `/?n=${encodeURIComponent(text)}`;
		try {
			return expressionHolds(`${of}({http.request.uri.query.n}) == ${of}('7')`, { target });
		} catch (error) {
			assert.instance(error, HttpError);
			return (error as HttpError).status;
		}
	};
	for (const [of, text, expected] of [
		['int', '7', true],
		['int', '+7', true],
		['int', '-7', false],
		['int', '', 500],
		['int', ' 7', 500],
		['int', '0x7', 500],
		['int', '7.0', 500],
		['int', '99999999999999999999', 500],
		['uint', '7', true],
		['uint', '-7', 500],
		['uint', '', 500],
		['double', '7.0', true],
		['double', '.7e1', true],
		['double', '7.', true],
		['double', '.', 500],
		['double', 'Inf', false],
		['double', 'NaN', false],
		['double', '', 500],
		['double', 'x', 500],
		['double', ' 7', 500],
	] as const) {
		assert.is(converted(of, text), expected, `${of} ${JSON.stringify(text)}`);
	}
});

functions.run();

const mistakes = suite('errors in expressions');

mistakes('invalid expressions are rejected when loading', () => {
	for (const [expression, message] of [
		["'x'", 'expects return type of bool, not string'],
		['1 + 1', 'not int'],
		['{http.request.method}', 'not dyn'],
		['[true]', 'not list'],
		['foo', "compiling CEL program: undeclared reference to 'foo'"],
		["foo('x')", "undeclared reference to 'foo'"],
		["1 == 'a'", "no matching overload for '_==_' applied to '(int, string)'"],
		["'a' && true", "no matching overload for '_&&_'"],
		["'a'.nothing()", "undeclared reference to 'nothing'"],
		["'a'.contains(1)", "no matching overload for 'contains' applied to 'string.(int)'"],
		['true &&', 'compiling CEL program: '],
		['', 'compiling CEL program: '],
		['path(1)', 'the arguments of path() must be literals, placeholders, or `+` of them'],
		['path({http.request.uri.path}.lowerAscii())', 'must be literals'],
		['path()', 'path() takes texts'],
		["header('Foo')", 'header() takes one map'],
		["path_regexp('(')", 'is not a regular expression'],
		["path_regexp('a b', 'x')", 'invalid regexp name'],
		["{http.request.uri.path}.matches('(')", 'is not a regular expression'],
		["matches('a', '(a{1000}){1000}')", 'is too large'],
		["remote_ip('nowhere')", 'nowhere'],
		["file({'try_policy': 'x'})", 'unknown try policy x'],
		[`${'('.repeat(3000)}true${')'.repeat(3000)}`, ''],
		['placeholder__(7)', 'undeclared'],
	] as const) {
		assert.throws(
			() => expressionHolds(expression),
			(error: Error) => error.name === 'BuildError' && error.message.includes(message),
			expression,
		);
	}
});

mistakes('a runtime error is a 500, and an error in a matcher keeps its status', () => {
	const fails = (expression: string, request: RequestFields = {}): number => {
		try {
			expressionHolds(expression, request);
		} catch (error) {
			if (error instanceof HttpError) return error.status;
			throw error;
		}
		return 0;
	};
	assert.is(fails('{http.request.method} > 1'), 500);
	assert.is(fails('1 / {http.vars.absent} == 1'), 500);
	assert.is(fails('int({http.request.uri.query.n}) == 1', { target: '/?n=x' }), 500);
	assert.is(fails("path('/a')", { target: '/%zz' }), 400);
	assert.is(fails("'a'.matches({http.request.uri.query.n})", { target: '/?n=%28' }), 500);
	assert.is(fails('true || 1 / 0 == 1'), 0);
});

mistakes.run();
