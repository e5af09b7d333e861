/** Different spellings of paths and hosts, and which of them each matcher recognizes. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Matcher } from '../../../../compiler/document/document.ts';
import { HttpError } from '../../../../compiler/exchange/http-error.ts';
import { matchers } from '../../../../compiler/modules/registry/matchers.ts';
import { temporaryFolder } from '../../../harness.ts';
import { type DryRunQuery, DryRunServer } from '../../compatfile/page.ts';
import { bodyText, buildTestSite, fakeExchange, type RequestFields } from '../../fake-exchange.ts';

/** Returns `y` if the matcher matches, `n` if it does not, or the status of the error that the request causes. */
function verdict(when: Matcher, request: RequestFields): string {
	const x = fakeExchange(request);
	const site = buildTestSite([
		{ handler: 'respond', body: 'y', when },
		{ handler: 'respond', body: 'n' },
	]);
	try {
		site.runSite(x);
	} catch (error) {
		if (error instanceof HttpError) return String(error.status);
		throw error;
	}
	return bodyText(x);
}

/** Spellings of `/admin/x`, and some other paths that look similar. */
const PATH_SPELLINGS = {
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
	'an incomplete escape': '/admin/x%2',
};

/**
 * The expected results of path matchers. Every path matcher uses the path decoded once and cleaned, so that no spelling that a
 * handler would accept evades it. Expressions and URL patterns distinguish upper and lower case.
 */
const CASE_INSENSITIVE = 'y y y y y y y y y n n n n n 400 400';
const CASE_SENSITIVE = 'y n y y y y y y y n n n n n 400 400';

const RULES: { readonly [rule: string]: { readonly when: Matcher; readonly expected: string } } = {
	path: { when: { type: 'path', patterns: ['/admin/*'] }, expected: CASE_INSENSITIVE },
	'path, a glob': { when: { type: 'path', patterns: ['/[a]dmin/*'] }, expected: CASE_INSENSITIVE },
	'path with a placeholder': {
		when: { type: 'path', patterns: ['/{http.request.header.Folder}/*'] },
		expected: CASE_INSENSITIVE,
	},
	'path() of an expression': {
		when: { type: 'expression', expression: "path('/admin/*')" },
		expected: CASE_INSENSITIVE,
	},
	path_regexp: { when: { type: 'path_regexp', pattern: '^/admin/' }, expected: CASE_SENSITIVE },
	'path_regexp without case': { when: { type: 'path_regexp', pattern: '(?i)^/admin/' }, expected: CASE_INSENSITIVE },
	url_pattern: { when: { type: 'url_pattern', pattern: '/admin/*' }, expected: CASE_SENSITIVE },
	'url_pattern without case': {
		when: { type: 'url_pattern', pattern: '/admin/*', ignore_case: true },
		expected: CASE_INSENSITIVE,
	},
	'path, a prefix': { when: { type: 'path', patterns: ['/admin*'] }, expected: 'y y y y y y y y y n y n y y 400 400' },
	'path, a suffix': { when: { type: 'path', patterns: ['*min/x'] }, expected: 'y y y y y y y y y y n y n n 400 400' },
	'path, a part': { when: { type: 'path', patterns: ['*/admin/*'] }, expected: CASE_INSENSITIVE },
	'path, exact': { when: { type: 'path', patterns: ['/admin/x'] }, expected: CASE_INSENSITIVE },
	// A pattern with double slashes matches only a request with double slashes.
	'path with two slashes': {
		when: { type: 'path', patterns: ['//admin//*'] },
		expected: 'n n n n y n n n n n n n n n 400 400',
	},
	// An escape in the pattern matches only an escape in the request, because such patterns exist to tell spellings apart.
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
		expected: CASE_SENSITIVE,
	},
	'url_pattern of an expression': {
		when: { type: 'expression', expression: "url_pattern('/admin/*')" },
		expected: CASE_SENSITIVE,
	},
	// The placeholder's value is the path decoded once but not cleaned. It is meant for insertion, not for access control.
	'vars of a placeholder': {
		when: { type: 'vars_regexp', variable: '{http.request.uri.path}', pattern: '^/admin/' },
		expected: 'y n y y n n n n n n n n n n y y',
	},
};

const paths = suite('path spellings');

for (const [rule, { when, expected }] of Object.entries(RULES)) {
	paths(rule, () => {
		const found = Object.values(PATH_SPELLINGS).map(target =>
			verdict(when, { target, headers: [['Folder', 'admin']] }),
		);
		const table = (verdicts: readonly string[]) =>
			Object.keys(PATH_SPELLINGS).map((name, at) => `${name}: ${verdicts[at]}`);
		assert.equal(table(found), table(expected.split(' ')));
	});
}

paths.run();

const HOST_SPELLINGS = ['example.com', 'EXAMPLE.com', 'example.com.', 'example.com:81', 'Example.Com.:81'];
const OTHER_HOSTS = ['example.com.evil.test', 'xexample.com', 'example.comx'];

const hosts = suite('host spellings');

for (const when of [
	{ type: 'host', hosts: ['Example.com'] },
	{ type: 'host', hosts: ['{http.request.header.Name}'] },
	{ type: 'expression', expression: "host('example.com')" },
	{ type: 'vars', variables: { '{http.request.host}': ['example.com'] } },
	{ type: 'url_pattern', pattern: 'http://example.com:*/*' },
]) {
	hosts(JSON.stringify(when), () => {
		const headers = [['Name', 'EXAMPLE.com.']] as const;
		for (const authority of HOST_SPELLINGS) assert.is(verdict(when, { authority, headers }), 'y', authority);
		for (const authority of OTHER_HOSTS) assert.is(verdict(when, { authority, headers }), 'n', authority);
	});
}

hosts.run();

/**
 * The folder whose files are served. Every spelling of a path must find a file in this folder, and no spelling may find a file
 * above it.
 */
const root = temporaryFolder();
mkdirSync(path.join(root, 'site/admin'), { recursive: true });
writeFileSync(path.join(root, 'site/admin/x'), '');
writeFileSync(path.join(root, 'secret'), '');

/**
 * The rules of the other matchers. Values of the query and of fields are compared exactly, after they are decoded once. Field
 * names and hosts ignore letter case. Addresses are compared by value, not by spelling.
 */
const OTHER_RULES: readonly (readonly [
	rule: string,
	lines: string,
	table: readonly (readonly [verdict: string, url: string, asked?: DryRunQuery])[],
])[] = [
	[
		'file: the path decoded once and cleaned, below the root, letter case as on the disk',
		`file {\nroot ${root}/site\n}`,
		[
			['y', '/admin/x'],
			['n', '/ADMIN/x'],
			['y', '/%61dmin/x'],
			['y', '//admin//x'],
			['y', '/./admin/./x'],
			['y', '/public/../admin/x'],
			['y', '/public/%2e%2e/admin/x'],
			['n', '/%2561dmin/x'],
			['n', '/admin\\x'],
			['n', '/../secret'],
			['n', '/%2e%2e/secret'],
			['n', '/admin/..%2f..%2fsecret'],
			['n', '/admin./x'],
			['n', '/admin/*'],
			['n', '/admin/%2a'],
			['n', '/admin/%3f'],
		],
	],
	[
		'query: decoded once, names and values with their case, any of several values',
		'query a=1',
		[
			['y', '/?a=1'],
			['y', '/?%61=%31'],
			['y', '/?b=2&a=2&a=1'],
			['n', '/?A=1'],
			['n', '/?a=1;b=2'],
			['n', '/?%2561=1'],
			['n', '/?a=+1'],
			['n', '/?a=1%00'],
			['n', '/?a=1&b=%zz'],
			['n', '/?a[]=1'],
		],
	],
	[
		'not query: what cannot be decoded has no such parameter',
		'not query a=1',
		[
			['n', '/?a=1'],
			['y', '/?a=1&b=%zz'],
		],
	],
	[
		'header: any of the values whole, the name in any case',
		'header X-Role admin',
		[
			['y', '/', { headers: { 'x-role': 'admin' } }],
			['y', '/', { headers: { 'X-ROLE': 'admin' } }],
			[
				'y',
				'/',
				{
					headers: [
						['X-Role', 'guest'],
						['x-role', 'admin'],
					],
				},
			],
			['n', '/', { headers: { 'X-Role': 'ADMIN' } }],
			['n', '/', { headers: { 'X-Role': 'admin, guest' } }],
			['n', '/', { headers: { X_Role: 'admin' } }],
		],
	],
	[
		'header_regexp: each value for itself',
		'header_regexp X-Role ^admin$',
		[
			['y', '/', { headers: { 'X-ROLE': 'admin' } }],
			['n', '/', { headers: { 'X-Role': 'guest, admin' } }],
		],
	],
	[
		'method: as it is sent',
		'method GET',
		[
			['y', '/', { method: 'GET' }],
			['n', '/', { method: 'get' }],
			['n', '/', { method: 'GETX' }],
		],
	],
	...(['remote_ip', 'client_ip'] as const).map(
		name =>
			[
				`${name}: by the address, however it is written`,
				`${name} 10.0.0.0/8 2001:db8::/32`,
				[
					['y', '/', { from: '10.1.2.3' }],
					['y', '/', { from: '::ffff:10.1.2.3' }],
					['y', '/', { from: '::ffff:a01:203' }],
					['y', '/', { from: '2001:0DB8:0:0::1' }],
					['n', '/', { from: '11.1.2.3' }],
					['n', '/', { from: '2002:a01:203::' }],
					['n', '/', { from: '11.1.2.3', headers: { 'x-forwarded-for': '10.1.2.3', 'x-real-ip': '10.1.2.3' } }],
				],
			] as const,
	),
	[
		'protocol: what is spoken, not what a field says',
		'protocol https',
		[['n', '/', { headers: { 'x-forwarded-proto': 'https' } }]],
	],
	[
		'share: by the key as it was received, letter by letter; an empty key is in no share',
		'share 0-100% {http.request.header.X-Visitor}',
		[
			['y', '/', { headers: { 'X-Visitor': 'anybody' } }],
			['y', '/', { headers: { 'x-visitor': 'ANYBODY' } }],
			['n', '/', { headers: { 'X-Visitor': '' } }],
			['n', '/'],
			['n', '/', { headers: { X_Visitor: 'anybody' } }],
		],
	],
	['tls: what is spoken, not what a field says', 'tls', [['n', '/', { headers: { 'x-forwarded-proto': 'https' } }]]],
];

const others = suite('other spellings');

for (const [rule, lines, table] of OTHER_RULES) {
	others(rule, async () => {
		const server = new DryRunServer(`http://x {\n@m ${lines}\nroute {\nrespond @m y\nrespond n\n}\n}\n`);
		for (const [expected, url, asked] of table) {
			const { body, status } = await server.ask(`http://x${url}`, asked);
			assert.is(status === 200 ? body : 'n', expected, `${url} ${JSON.stringify(asked ?? '')}`);
		}
	});
}

others('every matcher has a rule', () => {
	const paths = Object.values(RULES).map(({ when }) => when.type);
	const rest = OTHER_RULES.map(([, lines]) => lines.split(' ')[0]!);
	const shown = new Set([...paths, ...rest, 'host', 'vars']);
	// These matchers only combine others or are covered by other rules.
	const made = new Set(['all', 'any', 'not', 'vars_regexp']);
	assert.equal(
		matchers.map(({ id }) => id).filter(id => !shown.has(id) && !made.has(id)),
		[],
	);
});

others.run();
