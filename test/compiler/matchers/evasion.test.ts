/** Spellings of one path and one host, and which matchers see through them: a rule for each. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Matcher } from '../../../compiler/document/document.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { bodyText, builtSite, fakeExchange, type RequestFields } from '../fake-exchange.ts';

/** `y`, `n`, or the status of the error that the request is. */
function verdict(when: Matcher, request: RequestFields): string {
	const x = fakeExchange(request);
	const site = builtSite([
		{ handler: 'respond', body: 'y', when },
		{ handler: 'respond', body: 'n' },
	]);
	try {
		site.handle(x);
	} catch (error) {
		if (error instanceof HttpError) return String(error.status);
		throw error;
	}
	return bodyText(x);
}

/** Ways to ask for `/admin/x`, and some that only look like one. */
const PATHS = {
	plain: '/admin/x',
	case: '/ADMIN/x',
	escaped: '/%61dmin/x',
	'escaped slash': '/admin%2Fx',
	'two slashes': '//admin//x',
	dot: '/./admin/./x',
	'dots up': '/public/../admin/x',
	'escaped dots': '/public/%2e%2E/admin/x',
	'dots behind an escaped slash': '/public%2f..%2fadmin/x',
	'escaped twice': '/%2561dmin/x',
	backslash: '/admin\\x',
	'escaped backslash': '/public%5c..%5cadmin/x',
	'trailing dot': '/admin./x',
	parameter: '/admin;a=b/x',
	NUL: '/admin/x%00',
	'half an escape': '/admin/x%2',
};

/**
 * Every matcher of paths decides on the path decoded once and cleaned, so that no spelling of a path that a handler would
 * take for another gets around it. Letter case is not a spelling for expressions and URL patterns.
 */
const INSENSITIVE = 'y y y y y y y y y n n n n n 400 400';
const SENSITIVE = 'y n y y y y y y y n n n n n 400 400';

const RULES: { readonly [rule: string]: { readonly when: Matcher; readonly expected: string } } = {
	path: { when: { type: 'path', patterns: ['/admin/*'] }, expected: INSENSITIVE },
	'path, a glob': { when: { type: 'path', patterns: ['/[a]dmin/*'] }, expected: INSENSITIVE },
	'path with a placeholder': {
		when: { type: 'path', patterns: ['/{http.request.header.Folder}/*'] },
		expected: INSENSITIVE,
	},
	'path() of an expression': { when: { type: 'expression', expression: "path('/admin/*')" }, expected: INSENSITIVE },
	path_regexp: { when: { type: 'path_regexp', pattern: '^/admin/' }, expected: SENSITIVE },
	'path_regexp without case': { when: { type: 'path_regexp', pattern: '(?i)^/admin/' }, expected: INSENSITIVE },
	url_pattern: { when: { type: 'url_pattern', pattern: '/admin/*' }, expected: SENSITIVE },
	'url_pattern without case': {
		when: { type: 'url_pattern', pattern: '/admin/*', ignore_case: true },
		expected: INSENSITIVE,
	},
	'path, a prefix': { when: { type: 'path', patterns: ['/admin*'] }, expected: 'y y y y y y y y y n y n y y 400 400' },
	'path, a suffix': { when: { type: 'path', patterns: ['*min/x'] }, expected: 'y y y y y y y y y y n y n n 400 400' },
	'path, a part': { when: { type: 'path', patterns: ['*/admin/*'] }, expected: INSENSITIVE },
	'path, exact': { when: { type: 'path', patterns: ['/admin/x'] }, expected: INSENSITIVE },
	// Slashes that the pattern doubles are slashes that the request has to double.
	'path with two slashes': {
		when: { type: 'path', patterns: ['//admin//*'] },
		expected: 'n n n n y n n n n n n n n n 400 400',
	},
	// What the pattern writes escaped has to come escaped: to tell spellings apart is what it is for.
	'path with an escape': {
		when: { type: 'path', patterns: ['/admin%2F*'] },
		expected: 'n n n y n n n n n n n n n n 400 400',
	},
	'path with a wildcard over escapes': {
		when: { type: 'path', patterns: ['/admin/%*'] },
		expected: 'y y y y y y y y n n n n n n 400 400',
	},
	'not path': {
		when: { type: 'not', of: { type: 'path', patterns: ['/admin/*'] } },
		expected: 'n n n n n n n n n y y y y y 400 400',
	},
	'path_regexp of an expression': {
		when: { type: 'expression', expression: "path_regexp('^/admin/')" },
		expected: SENSITIVE,
	},
	'url_pattern of an expression': {
		when: { type: 'expression', expression: "url_pattern('/admin/*')" },
		expected: SENSITIVE,
	},
	// A placeholder is the path decoded once and no more: it is for inserting, and no guard.
	'vars of a placeholder': {
		when: { type: 'vars_regexp', variable: '{http.request.uri.path}', pattern: '^/admin/' },
		expected: 'y n y y n n n n n n n n n n y y',
	},
};

const paths = suite('spellings of a path');

for (const [rule, { when, expected }] of Object.entries(RULES)) {
	paths(rule, () => {
		const found = Object.values(PATHS).map(target => verdict(when, { target, headers: [['Folder', 'admin']] }));
		const table = (verdicts: readonly string[]) => Object.keys(PATHS).map((name, at) => `${name}: ${verdicts[at]}`);
		assert.equal(table(found), table(expected.split(' ')));
	});
}

paths.run();

/** Ways to name `example.com`. */
const HOSTS = ['example.com', 'EXAMPLE.com', 'example.com.', 'example.com:81', 'Example.Com.:81'];
const OTHERS = ['example.com.evil.test', 'xexample.com', 'example.comx'];

const hosts = suite('spellings of a host');

for (const when of [
	{ type: 'host', hosts: ['Example.com'] },
	{ type: 'host', hosts: ['{http.request.header.Name}'] },
	{ type: 'expression', expression: "host('example.com')" },
	{ type: 'vars', variables: { '{http.request.host}': ['example.com'] } },
	{ type: 'url_pattern', pattern: 'http://example.com:*/*' },
]) {
	hosts(JSON.stringify(when), () => {
		const headers = [['Name', 'EXAMPLE.com.']] as const;
		for (const authority of HOSTS) assert.is(verdict(when, { authority, headers }), 'y', authority);
		for (const authority of OTHERS) assert.is(verdict(when, { authority, headers }), 'n', authority);
	});
}

hosts.run();
