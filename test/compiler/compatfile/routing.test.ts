/** Directive order, exclusivity and matchers of the compatible language: a test for each statement of its documentation. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DEFAULT_ORDER } from '../../../compiler/lower/directive-order.ts';
import { compileText, compileToDocument, type DryRunQuery, DryRunServer, errors, warnings } from './page.ts';

const order = suite('order');
order('directives run in the default order', () => {
	const written = [
		'tracing map vars fs root log_append skip_log log_skip log_name',
		'header copy_response_headers request_body timeouts redir method rewrite uri try_files',
		'basicauth basic_auth forward_auth request_header encode push intercept templates',
		'invoke handle handle_path route abort error copy_response respond metrics reverse_proxy php_fastcgi',
		'file_server acme_server',
	];
	const words = written.join(' ').split(' ');
	// The default order also contains directives that Caddy lacks, so only the directives in `words` are
	// compared.
	assert.equal(
		DEFAULT_ORDER.filter(name => words.includes(name)),
		words,
	);
});
order('deprecated names are accepted', () => {
	const hash = '$2b$04$ZpZshsWJKJDyPwjgSOcxNOvLuuk/jzOFG7jQ/4OlKHjAsnKrPgl/S';
	assert.equal(
		compileToDocument(`:80 {\n\tskip_log /x\n\tbasicauth {\n\t\ta ${hash}\n\t}\n}\n`),
		compileToDocument(`:80 {\n\tlog_skip /x\n\tbasic_auth {\n\t\ta ${hash}\n\t}\n}\n`),
	);
});

/** Returns the order in which the `header` lines of a site add values to the field X. */
const fieldSequence = async (lines: string, url = 'http://a/', options = ''): Promise<string> => {
	const server = new DryRunServer(`{\n\tadmin off\n${options}\n}\n:80 {\n${lines}\n}\n`);
	const { seen } = await server.ask(url);
	return [...seen.response!.headers.getAll('x')].join(' ');
};
order('route runs its lines as written, and a site sorts them', async () => {
	assert.is(await fieldSequence('route {\nvars a 1\nheader +X {vars.a}\nvars a 2\nheader +X {vars.a}\n}'), '1 2');
	// Consecutive `vars` with equal matchers run in reverse order, because the comparison function of the sort puts each of the
	// two before the other.
	assert.is(await fieldSequence('vars a 1\nheader +X {vars.a}\nvars a 2\nheader +X {vars.a}'), '1 1');
});
order('the order option moves directives: first, last, before, after; applied in file order', async () => {
	const lines = 'respond "x"\nredir https://y\n';
	const status = async (options: string): Promise<number> =>
		(await new DryRunServer(`{\n${options}\n}\n:80 {\n${lines}}\n`).ask('http://a/')).status;
	assert.is(await status(''), 302);
	assert.is(await status('order respond first'), 200);
	assert.is(await status('order redir last'), 200);
	assert.is(await status('order respond before redir'), 200);
	assert.is(await status('order redir after respond'), 200);
	assert.is(await status('order respond first\norder redir first'), 302);
});
order(
	'single paths are sorted: longer first, then exact, then alphabetically; any matcher comes before none',
	async () => {
		const lines = [
			'respond "none"',
			'respond /b* "b*"',
			'respond /api* "api*"',
			'respond /api/v1* "v1*"',
			'respond /b "b"',
		];
		const server = new DryRunServer(`:80 {\n@m header A b\nrespond @m "m"\n${lines.join('\n')}\n}\n`);
		const bodies = async (path: string, headers = {}): Promise<string> =>
			(await server.ask(`http://a${path}`, { headers })).body;
		assert.is(await bodies('/api/v1/x'), 'v1*');
		assert.is(await bodies('/api/v2'), 'api*');
		assert.is(await bodies('/b'), 'b');
		assert.is(await bodies('/bc'), 'b*');
		assert.is(await bodies('/c'), 'none');
		assert.is(await bodies('/c', { a: 'b' }), 'm');
	},
);
order('vars run from the least to the most specific', async () => {
	assert.is(
		await fieldSequence('vars /foo/bar a 2\nvars * a 0\nvars /foo* a 1\nheader X {vars.a}', 'http://a/foo/bar'),
		'2',
	);
});
order('consecutive directives with equal matchers form one route, whose matcher is evaluated once', async () => {
	const body = async (lines: string, url: string): Promise<string> =>
		(await new DryRunServer(`:80 {\n${lines}\nrespond "last {path}"\n}\n`).ask(url)).body;
	const stripped = 'uri /api/* strip_prefix /api\n';
	assert.is(await body(`${stripped}respond /api/* "api {path}"`, 'http://a/api/x'), 'api /x');
	// Consecutive routes with equal matchers are merged inside `route` blocks, too.
	assert.is(await body(`route {\n${stripped}respond /api/* "api {path}"\n}`, 'http://a/api/x'), 'api /x');
	assert.is(await body(`route {\n${stripped}header X y\nrespond /api/* "api {path}"\n}`, 'http://a/api/x'), 'last /x');
	// The matchers of a set may be in any order, and the names of the sets may differ.
	const named = '@a {\npath /api/*\nmethod GET\n}\n@b {\nmethod GET\npath /api/*\n}\n';
	assert.is(await body(`${named}uri @a strip_prefix /api\nrespond @b "api {path}"`, 'http://a/api/x'), 'api /x');
	// Routes of an exclusive group are merged, too, and then all of them run. A `rewrite` is merged only with other rewrites.
	assert.is(await body('root * /one\nroot * /two\nrespond {vars.root}', 'http://a/'), '/two');
	assert.is(await body('handle /a {\nvars x 1\n}\nhandle /a {\nrespond "x={vars.x}"\n}', 'http://a/a'), 'x=1');
	assert.is(await body('rewrite /a /b\nrespond /a "a"', 'http://a/a'), 'last /b');
});
order('in a Configfile, every matcher is evaluated at its directive', async () => {
	const server = new DryRunServer(
		':80 {\nuri /api/* strip_prefix /api\nrespond /api/* api\nrespond "last {path}"\n}\n',
		{
			format: 'configfile',
		},
	);
	assert.is((await server.ask('http://a/api/x')).body, 'last /x');
});
order('of several root, rewrite or handle directives, only the first that matches runs', async () => {
	assert.is(await fieldSequence('root /x/* /one\nroot * /two\nheader X {vars.root}', 'http://a/x/y'), '/one');
	assert.is(await fieldSequence('rewrite /a* /b\nrewrite /b* /c\nroute {\nheader X {path}\n}', 'http://a/a'), '/b');
	assert.is(await fieldSequence('route {\nrewrite /a* /b\nrewrite /b* /c\nheader X {path}\n}', 'http://a/a'), '/b');
	assert.is(
		await fieldSequence(
			'handle /a* {\nheader +X 1\n}\nhandle_path /a/b* {\nheader +X 2\n}\nhandle {\nheader +X 3\n}',
			'http://a/a/b',
		),
		'2',
	);
});
order('all other matching directives run until one responds', async () => {
	assert.is(await fieldSequence('header +X 1\nheader /a* +X 2\nheader +X 3', 'http://a/a'), '2 1 3');
});
order('matchers are evaluated when their route is reached', async () => {
	assert.is(
		await fieldSequence('route {\nrewrite * /new\nheader /new X new\nheader /old X old\n}', 'http://a/old'),
		'new',
	);
});

const cycle = suite('life cycle');
cycle('an error runs the error routes with the original method and URI', async () => {
	const server = new DryRunServer(
		':80 {\nmethod PUT\nrewrite * /new\nerror "oops" 418\nhandle_errors {\nrespond "{method} {uri} {err.status_code} {err.status_text} {err.message}"\n}\n}\n',
	);
	const { status, body } = await server.ask('http://a/old');
	assert.is(status, 418);
	assert.is(body, "GET /old 418 I'm a teapot oops");
});
cycle('if no error route responds, the response has the status and no body', async () => {
	for (const routes of ['', 'handle_errors {\nheader X y\n}\n', 'handle_errors 404 {\nrespond no\n}\n']) {
		const { status, body } = await new DryRunServer(`:80 {\nerror 418\n${routes}}\n`).ask('http://a/');
		assert.equal([status, body], [418, ''], routes);
	}
});

/** A URL to request, or the properties of a request that include its URL. */
type Ask = string | (DryRunQuery & { readonly url?: string });
const MATCHERS: readonly (readonly [statement: string, lines: string, holds: readonly Ask[], not: readonly Ask[]])[] = [
	[
		'host: port and letter case are ignored',
		'host example.com',
		['http://EXAMPLE.com/', 'http://example.com:80/'],
		['http://a.example.com/'],
	],
	[
		'host: * matches one label',
		'host *.example.com',
		['http://a.example.com/'],
		['http://example.com/', 'http://a.b.example.com/'],
	],
	[
		'host: IDN',
		'host bücher.example',
		['http://xn--bcher-kva.example/', 'http://bücher.example/'],
		['http://bucher.example/'],
	],
	['host: alternatives', 'host a b', ['http://a/', 'http://b/'], ['http://c/']],
	['host: placeholders', 'host {query.h}', ['http://a/?h=a'], ['http://a/?h=b', 'http://a/']],
	['path: *', 'path *', ['http://a/', 'http://a/x/y'], []],
	[
		'path: exact',
		'path /x',
		['http://a/x', 'http://a/X', 'http://a//x', 'http://a/./x', 'http://a/y/../x'],
		['http://a/x/', 'http://a/xy'],
	],
	['path: prefix', 'path /x*', ['http://a/x', 'http://a/xy', 'http://a/x/y'], ['http://a/y']],
	['path: prefix of a folder', 'path /foo/*', ['http://a/foo/', 'http://a/foo/b'], ['http://a/foo', 'http://a/foobar']],
	['path: suffix', 'path *.x', ['http://a/b.x', 'http://a/c/d.X'], ['http://a/b.xy']],
	['path: substring', 'path *x*', ['http://a/bxc', 'http://a/x'], ['http://a/b']],
	['path: glob', 'path /a/*/c', ['http://a/a/b/c'], ['http://a/a/b/d/c', 'http://a/a/c']],
	['path: one character', 'path /a?c', ['http://a/abc'], ['http://a/ac', 'http://a/a/c']],
	['path: a class', 'path /[a-c]', ['http://a/b'], ['http://a/d']],
	['path: %2F is no slash', 'path /a%2Fb', ['http://a/a%2Fb', 'http://a/a%2fb'], ['http://a/a/b']],
	['path: the rest is decoded', 'path /a%2Fb/c', ['http://a/a%2Fb/%63'], ['http://a/a/b/c']],
	['path: %* is escaped text', 'path /a/%*', ['http://a/a/b%2Fc'], ['http://a/b']],
	['path: // in the pattern keeps slashes', 'path //a', ['http://x//a'], ['http://x/a']],
	['path: a slash at the end stays', 'path /a/', ['http://x/a/', 'http://x//a//'], ['http://x/a']],
	['path: placeholders', 'path /{query.p}', ['http://a/b?p=b'], ['http://a/b?p=c']],
	['path: decoded', 'path "/a b"', ['http://x/a%20b'], ['http://x/a+b']],
	['path_regexp: anywhere, case counts', 'path_regexp b.d', ['http://x/abcde', 'http://x/a//b%63d'], ['http://x/BCD']],
	[
		'path_regexp: the path is cleaned of dots and double slashes',
		'path_regexp ^/a/b$',
		['http://x/a//b', 'http://x/a/./b', 'http://x/c/../a/b'],
		['http://x/a/b/'],
	],
	['method: in upper case', 'method get', [{}], [{ method: 'POST' }]],
	['method: alternatives', 'method PUT POST', [{ method: 'PUT' }, { method: 'POST' }], [{}]],
	[
		'query: all keys must match, with any of their values',
		'query a=1 a=2 b=3',
		['http://x/?a=1&b=3', 'http://x/?a=2&b=3'],
		['http://x/?a=1', 'http://x/?a=3&b=3'],
	],
	['query: * is any value', 'query a=*', ['http://x/?a=1', 'http://x/?a'], ['http://x/?b=1']],
	[
		'query: placeholders',
		'query {header.k}={header.v}',
		[{ url: 'http://x/?a=1', headers: { k: 'a', v: '1' } }],
		[{ url: 'http://x/?a=1', headers: { k: 'a', v: '2' } }],
	],
	['query: ""', 'query ""', ['http://x/'], ['http://x/?a=1']],
	['query: what cannot be decoded', 'query a=*', [], ['http://x/?a=1&b=%zz']],
	['header: a field that is there', 'header A *', [{ headers: { a: '' } }, { headers: { a: 'b' } }], [{}]],
	[
		'header: exact and case-sensitive',
		'header A b',
		[{ headers: { a: 'b' } }],
		[{ headers: { a: 'B' } }, { headers: { a: 'bc' } }],
	],
	['header: prefix', 'header A b*', [{ headers: { a: 'bc' } }], [{ headers: { a: 'cb' } }]],
	['header: suffix', 'header A *b', [{ headers: { a: 'cb' } }], [{ headers: { a: 'bc' } }]],
	['header: substring', 'header A *b*', [{ headers: { a: 'abc' } }], [{ headers: { a: 'ac' } }]],
	[
		'header: any value may match',
		'header A b',
		[
			{
				headers: [
					['a', 'x'],
					['a', 'b'],
				],
			},
		],
		[
			{
				headers: [
					['a', 'x'],
					['a', 'y'],
				],
			},
		],
	],
	[
		'header: placeholders are expanded',
		'header A {query.v}',
		[{ url: 'http://x/?v=b', headers: { a: 'b' } }],
		[{ headers: { a: 'b' } }],
	],
	['header: absent', 'header !A', [{}], [{ headers: { a: '' } }]],
	[
		'header: any line of one field, and all fields, must match',
		'{\nheader A 1\nheader A 2\nheader B 3\n}',
		[{ headers: { a: '2', b: '3' } }],
		[{ headers: { a: '2' } }],
	],
	['header: Host', 'header Host x.example', ['http://x.example/'], ['http://y.example/']],
	[
		'header_regexp: any value may match',
		'header_regexp A ^b',
		[
			{
				headers: [
					['a', 'x'],
					['a', 'bc'],
				],
			},
		],
		[{ headers: { a: 'cb' } }],
	],
	[
		'header_regexp: all fields must match',
		'{\nheader_regexp A a\nheader_regexp B b\n}',
		[{ headers: { a: 'a', b: 'b' } }],
		[{ headers: { a: 'a' } }],
	],
	['protocol: http', 'protocol http', [{}], []],
	['protocol: https', 'protocol https', [], [{}]],
	['protocol: grpc', 'protocol grpc', [{ headers: { 'content-type': 'application/grpc+proto' } }], [{}]],
	['protocol: a version', 'protocol http/1.1', [{}], []],
	['protocol: that or newer', 'protocol http/1.0+', [{}], []],
	['protocol: a newer one', 'protocol http/2+', [], [{}]],
	['tls', 'tls', [], [{}]],
	['remote_ip: ranges', 'remote_ip 10.0.0.0/8 ::1', [{ from: '10.1.2.3' }, { from: '::1' }], [{ from: '11.0.0.1' }]],
	[
		'remote_ip: private_ranges',
		'remote_ip private_ranges',
		[
			{ from: '192.168.1.1' },
			{ from: '172.16.0.1' },
			{ from: '10.0.0.1' },
			{ from: '127.0.0.1' },
			{ from: 'fd00::1' },
			{ from: '::1' },
		],
		[{ from: '8.8.8.8' }, { from: 'fe80::1' }],
	],
	[
		'client_ip: without trusted proxies, it is the address of the peer',
		'client_ip 10.0.0.1',
		[{ from: '10.0.0.1' }],
		[{ from: '10.0.0.2', headers: { 'x-forwarded-for': '10.0.0.1' } }],
	],
	['vars: any of the values, as text', 'vars number 6 7', [{}], []],
	['vars: one that is absent is empty', 'vars none ""', [{}], []],
	['vars: a placeholder as key', 'vars {query.a} b', ['http://x/?a=b'], ['http://x/?a=c']],
	['vars: several lines are or', '{\nvars number 1\nvars {query.a} b\n}', ['http://x/?a=b'], ['http://x/?a=c']],
	[
		'vars: values are not expanded',
		'vars {query.a} {query.b}',
		['http://x/?a=1&b=1', 'http://x/?a=%7Bhost%7D&b=%7Bhost%7D'],
		['http://x/?a=%7Bhost%7D&b=x'],
	],
	['vars_regexp', 'vars_regexp number ^[0-9]$', [{}], []],
	['vars_regexp: of a placeholder', 'vars_regexp {query.a} ^b', ['http://x/?a=bc'], ['http://x/?a=cb']],
	['not', 'not path /a', ['http://x/b'], ['http://x/a']],
	[
		'not: a block is one matcher set',
		'not {\npath /a\nmethod GET\n}',
		['http://x/b', { url: 'http://x/a', method: 'PUT' }],
		['http://x/a'],
	],
	['not: each line must be false', '{\nnot path /a\nnot path /b\n}', ['http://x/c'], ['http://x/a', 'http://x/b']],
	['not: an expression', 'not `path("/a")`', ['http://x/b'], ['http://x/a']],
	[
		'different matchers must all match; a repeated one adds values',
		'{\npath /a\npath /b\nmethod GET\n}',
		['http://x/a', 'http://x/b'],
		[{ url: 'http://x/a', method: 'PUT' }],
	],
	[
		'url_pattern: matches any host',
		'url_pattern /a/:b',
		['http://x/a/1', 'http://y:80/a//1'],
		['http://x/a', 'http://x/a/1/2'],
	],
	['url_pattern: whole', 'url_pattern http://x.example/a', ['http://x.example/a'], ['http://y.example/a']],
	[
		'url_pattern: base_url',
		'url_pattern /a {\nbase_url http://x.example\n}',
		['http://x.example/a'],
		['http://y.example/a'],
	],
	['url_pattern: ignore_case', 'url_pattern /a {\nignore_case\n}', ['http://x/A'], ['http://x/b']],
	['url_pattern: the query', 'url_pattern /a?b=*', ['http://x/a?b=1'], ['http://x/a?c=1']],
	[
		'expression: several words are joined',
		'expression {method} == "GET" && {path}.startsWith("/a")',
		['http://x/ab'],
		['http://x/b'],
	],
	['expression: an unknown placeholder is null', 'expression {no.such} == null', [{}], []],
	['expression: a number against a text is false', 'expression {http.request.local.port} == "x"', [], [{}]],
	[
		'expression: an escaped placeholder is literal',
		'expression `path("/\\{query.p}")`',
		['http://x/b?p=b'],
		['http://x/b?p=c'],
	],
	[
		'expression: host, path, method',
		"expression `host('a') && path('/b') && method('GET')`",
		['http://a/b'],
		['http://a/c', 'http://b/b'],
	],
	['expression: protocol, in any case', "expression `protocol('HTTP/1.1')`", [{}], []],
	[
		'expression: remote_ip, client_ip',
		"expression `remote_ip('10.0.0.0/8') && client_ip('10.0.0.1')`",
		[{ from: '10.0.0.1' }],
		[{ from: '10.0.0.2' }],
	],
	[
		'expression: header',
		"expression `header({'A': '*b*', 'C': ['d', 'e']})`",
		[{ headers: { a: 'xbx', c: 'e' } }],
		[{ headers: { a: 'xbx' } }],
	],
	['expression: query', "expression `query({'a': ['1', '2'], 'b': '*'})`", ['http://x/?a=2&b'], ['http://x/?a=2']],
	['expression: vars', "expression `vars({'number': '7'})`", [{}], []],
	[
		'expression: vars_regexp',
		"expression `vars_regexp('number', '^7$') && vars_regexp('n', '{query.a}', 'b')`",
		['http://x/?a=b'],
		['http://x/?a=c'],
	],
	[
		'expression: path_regexp, header_regexp',
		"expression `path_regexp('^/a') && path_regexp('n', 'b$') && header_regexp('A', 'c') && header_regexp('m', 'A', 'd')`",
		[{ url: 'http://x/ab', headers: { a: 'cd' } }],
		[{ url: 'http://x/ab', headers: { a: 'c' } }],
	],
	[
		'expression: url_pattern',
		"expression `url_pattern('/a/:b') || url_pattern('/c', 'http://x.example')`",
		['http://y/a/1', 'http://x.example/c'],
		['http://y/c'],
	],
	[
		'expression: functions of the standard libraries',
		'expression `"a,b".split(",")[1] == "b" && math.greatest(1, 2) == 2 && cel.bind(x, 1, x + x == 2) && [3, 1].sort()[0] == 1`',
		[{}],
		[],
	],
	[
		'expression: sorting by a key',
		'expression `["bb", "a", {query.a}].sortBy(e, e.size()) == ["a", "bb", "ccc"]`',
		['http://x/?a=ccc'],
		['http://x/?a=c'],
	],
	[
		'expression: bit operations, square roots, reversed strings',
		'expression `math.bitNot(0) == -1 && math.bitShiftLeft(1, 3) == 8 && math.bitShiftRight(-1, 63) == 1 && math.sqrt(9) == 3.0 && "abc".reverse() == "cba"`',
		[{}],
		[],
	],
	[
		'expression: `now` is the time of the request',
		'expression `{time.now} < timestamp("2001-01-01T00:00:00Z")`',
		[{ at: 0 }],
		[{}],
	],
	['expression: times', 'expression `{time.now.year} > 2000`', [{}], []],
];

const matchers = suite('matchers');
for (const [statement, lines, holds, not] of MATCHERS) {
	matchers(`${statement}: ${lines.replaceAll('\n', '; ')}`, async () => {
		const server = new DryRunServer(`:80 {\nvars number 7\n@m ${lines}\nroute {\nrespond @m yes\nrespond no\n}\n}\n`);
		for (const [asked, wanted] of [
			...holds.map(one => [one, 'yes'] as const),
			...not.map(one => [one, 'no'] as const),
		]) {
			const request = typeof asked === 'string' ? { url: asked } : asked;
			const { body } = await server.ask(request.url ?? 'http://x/', request);
			assert.is(body, wanted, JSON.stringify(request));
		}
	});
}
matchers('the first argument may be *, a path or a matcher name, also in quotes', async () => {
	const server = new DryRunServer(
		':80 {\n@b path /b\nroute {\nrespond "/a" "a"\nrespond @b "b"\nrespond * "rest"\n}\n}\n',
	);
	for (const [path, body] of [
		['/a', 'a'],
		['/b', 'b'],
		['/c', 'rest'],
	] as const) {
		assert.is((await server.ask(`http://x${path}`)).body, body);
	}
});
matchers('a matcher may be used before its definition and in nested blocks', async () => {
	const server = new DryRunServer(
		':80 {\nrespond @late late\nhandle {\nrespond @late2 "below"\n}\n@late path /late\n@late2 path /b\n}\n',
	);
	assert.is((await server.ask('http://x/late')).body, 'late');
	assert.is((await server.ask('http://x/b')).body, 'below');
});
matchers("captures can be read by name and number, under the matcher's name and as the last match", async () => {
	const lines = [
		'@one path_regexp n /(a)(?P<w>b)?',
		'@two path_regexp /(c)',
		'respond @one "{http.regexp.n.0} {re.n.1} {re.n.w} {re.1} [{re.n.7}]"',
		'respond @two "{re.two.1} {re.1} {http.regexp.two.0}"',
	];
	const server = new DryRunServer(`:80 {\n${lines.join('\n')}\n}\n`);
	assert.is((await server.ask('http://x/ab')).body, '/ab a b a [{http.regexp.n.7}]');
	assert.is((await server.ask('http://x/c')).body, 'c c /c');
});
matchers('groups of URL patterns are named by component; unnamed groups have numbers', async () => {
	const server = new DryRunServer(
		':80 {\n@p url_pattern http://:sub.example/*/:id\nrespond @p "{http.url_pattern.hostname.sub} {http.url_pattern.pathname.0} {http.url_pattern.pathname.id}"\n}\n',
	);
	assert.is((await server.ask('http://a.example/b/c')).body, 'a b c');
});
matchers('unused matcher definitions are accepted', () => {
	assert.equal(warnings(compileText(':80 {\n@m path /x\nrespond x\n}\n')), []);
});
matchers('a runtime error in an expression is a 500', async () => {
	const server = new DryRunServer(':80 {\n@m expression `int({query.a}) > 1`\nrespond @m x\n}\n');
	assert.is((await server.ask('http://x/?a=b')).status, 500);
});

const REFUSED: readonly (readonly [statement: string, text: string, message: string])[] = [
	['order: no directive', '{\norder nope first\n}\n:80', 'nope is not a registered directive'],
	['order: no position', '{\norder respond sideways\n}\n:80', "unknown positional 'sideways'"],
	['order: not in the order', '{\norder respond before nope\n}\n:80', "directive 'nope' not found"],
	[
		'order: too few arguments',
		'{\norder respond before\n}\n:80',
		"wrong argument count or unexpected line ending after 'before'",
	],
	['order: too many', '{\norder respond first x\n}\n:80', "wrong argument count or unexpected line ending after 'x'"],
	[
		'in a route, only handlers are accepted',
		':80 {\nroute {\nbind 127.0.0.1\n}\n}\n',
		'bind directive returned something other than an HTTP route or subroute',
	],
	[
		'in a route, only handlers are accepted: tls',
		':80 {\nroute {\ntls internal\n}\n}\n',
		'(only handler directives can be used in routes)',
	],
	[
		'in a nested block, only handlers are accepted',
		':80 {\nhandle {\nhandle_errors {\n}\n}\n}\n',
		"directive 'handle_errors' is not an ordered HTTP handler, so it cannot be used here - try placing within a route block or using the order global option",
	],
	['an undefined name', ':80 {\nrespond @x y\n}\n', 'unrecognized matcher name: @x'],
	['a name twice', ':80 {\n@x path /\n@x path /\n}\n', 'matcher is defined more than once: @x'],
	[
		'a matcher name of the outer block defined again',
		':80 {\n@x path /\nhandle {\n@x path /\n}\n}\n',
		'matcher is defined more than once: @x',
	],
	['an unknown kind', ':80 {\n@x nope\nrespond @x y\n}\n', "getting matcher module 'nope':"],
	['a host twice', ':80 {\n@x host a b a\nrespond @x y\n}\n', 'host at index 0 is repeated at index 2: a'],
	[
		'two regular expressions in one set',
		':80 {\n@x {\npath_regexp a\npath_regexp b\n}\nrespond @x y\n}\n',
		'regular expression can only be used once per named matcher',
	],
	[
		'a query without =',
		':80 {\n@x query a\nrespond @x y\n}\n',
		'malformed query matcher token: a; must be in param=val format',
	],
	['remote_ip forwarded', ':80 {\n@x remote_ip forwarded 10.0.0.1\nrespond @x y\n}\n', 'client_ip'],
	['a regular expression', ':80 {\n@x path_regexp (\nrespond @x y\n}\n', 'compiling matcher regexp ('],
	[
		'a regular expression with an invalid name',
		':80 {\n@x path_regexp a-b c\nrespond @x y\n}\n',
		'invalid regexp name (must contain only word characters): a-b',
	],
	[
		'header: a negated field with a value',
		':80 {\n@x header !A b\nrespond @x y\n}\n',
		'malformed header matcher: null matching headers cannot have a field value',
	],
	[
		'header: no name',
		':80 {\n@x header !\nrespond @x y\n}\n',
		'malformed header matcher: must have field name following ! character',
	],
	['header without anything', ':80 {\n@x header\nrespond @x y\n}\n', 'malformed header matcher: expected field'],
	[
		'header: no value',
		':80 {\n@x header A\nrespond @x y\n}\n',
		'malformed header matcher: expected both field and value',
	],
	[
		'header: a block',
		':80 {\n@x header A b {\n}\nrespond @x y\n}\n',
		'malformed header matcher: blocks are not supported',
	],
	['an unknown policy', ':80 {\n@x file {\ntry_policy newest\n}\nrespond @x y\n}\n', 'unknown try policy newest'],
	['an expression that does not parse', ':80 {\n@x expression `a &&`\nrespond @x y\n}\n', 'compiling CEL program: '],
	[
		'an expression whose type is not bool',
		':80 {\n@x expression `1 + 1`\nrespond @x y\n}\n',
		'CEL request matcher expects return type of bool, not int',
	],
	[
		'a matcher function with an invalid argument',
		':80 {\n@x expression `path(1)`\nrespond @x y\n}\n',
		'compiling CEL program: ',
	],
	['two patterns in one set', ':80 {\n@x {\nurl_pattern /a\nurl_pattern /b\n}\nrespond @x y\n}\n', 'url_pattern'],
	[
		'response matchers: an unknown kind',
		':80 {\nintercept {\n@x nope 1\nreplace_status @x 200\n}\n}\n',
		'unrecognized response matcher nope',
	],
	[
		'response matchers: an invalid status',
		':80 {\nintercept {\n@x status 6000\nreplace_status @x 200\n}\n}\n',
		"bad status value '6000': ",
	],
	[
		'response matchers: a duplicate name',
		':80 {\nintercept {\n@x status 200\n@x status 201\nreplace_status @x 200\n}\n}\n',
		'matcher is defined more than once: @x',
	],
	[
		'replace_status: a name defined below it',
		':80 {\nintercept {\nreplace_status @x 200\n@x status 404\n}\n}\n',
		"no named response matcher defined with name 'x'",
	],
];

const refused = suite('routing errors');
for (const [statement, text, message] of REFUSED) {
	refused(statement, () => {
		const messages = errors(compileText(text));
		assert.ok(
			messages.some(one => one.includes(message)),
			`wants ${message}\ngot   ${messages.join('\n      ')}`,
		);
	});
}

/** Matchers of `intercept`, and whether each of them matches a response with status 404, `X-A: abc` and `X-B: 1`. */
const RESPONSE_MATCHERS: readonly (readonly [rule: string, holds: boolean])[] = [
	['@r status 404', true],
	['@r status 2xx 4xx', true],
	['@r status 4', true],
	['@r status 5xx 200', false],
	['@r header X-A *', true],
	['@r header X-A abc', true],
	['@r header X-A ABC', false],
	['@r header X-A a*', true],
	['@r header X-A *c', true],
	['@r header X-A *b*', true],
	['@r header !X-C', true],
	['@r header !X-A', false],
	['@r {\nstatus 404\nheader X-A x\n}', false],
	['@r {\nstatus 404 405\nheader X-A x\nheader X-A abc\nheader X-B 1\n}', true],
];
const responses = suite('response matchers');
for (const [rule, holds] of RESPONSE_MATCHERS) {
	responses(rule.replaceAll('\n', '; '), async () => {
		const lines = `header X-A abc\nheader X-B 1\nintercept {\n${rule}\nreplace_status @r 299\n}\nrespond x 404`;
		assert.is((await new DryRunServer(`:80 {\n${lines}\n}\n`).ask('http://x/')).status, holds ? 299 : 404);
	});
}
responses('handle_response may use matchers defined below it', async () => {
	const lines = 'intercept {\nhandle_response @r {\nrespond y\n}\n@r status 404\n}\nrespond x 404';
	assert.is((await new DryRunServer(`:80 {\n${lines}\n}\n`).ask('http://x/')).body, 'y');
});

for (const one of [order, cycle, matchers, refused, responses]) one.run();
