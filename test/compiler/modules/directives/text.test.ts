/** Directives and matchers from configuration to response: how each line is lowered, what it does, and its errors. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { buildSite } from '../../../../compiler/codegen/build-site.ts';
import { UNKNOWN_HOST_FACTS } from '../../../../compiler/codegen/placeholders/index.ts';
import { compile } from '../../../../compiler/compiler.ts';
import type { Dialect } from '../../../../compiler/dialects/dialect.ts';
import type { Document, Step } from '../../../../compiler/document/document.ts';
import { ReadError, type Reader } from '../../../../compiler/source/reader.ts';
import {
	bodyText,
	type FakeExchange,
	fakeExchange,
	NO_LEASES,
	type RequestFields,
	responseLines,
} from '../../fake-exchange.ts';

const NO_FILES: Reader = {
	readText: path => {
		throw new ReadError('ENOENT', path);
	},
	readBytes: path => {
		throw new ReadError('ENOENT', path);
	},
	list: path => {
		throw new ReadError('ENOENT', path);
	},
	kind: () => undefined,
	env: () => undefined,
	workingDirectory: '/work',
};

function compiled(lines: string, dialect: Dialect) {
	const text = `:9080 {\n${lines}\n}\n`;
	const name = dialect === 'configfile' ? 'Configfile' : 'Compatfile';
	return compile({ format: dialect, text, name, path: `/etc/site/${name}` }, NO_FILES);
}

function document(lines: string, dialect: Dialect): Document {
	const result = compiled(lines, dialect);
	const errors = result.diagnostics.filter(d => d.severity === 'error');
	assert.equal(
		errors.map(d => d.message),
		[],
		lines,
	);
	return result.document!;
}

/** Returns the steps of the site. */
function stepsOf(lines: string, dialect: Dialect = 'configfile'): readonly Step[] {
	return JSON.parse(JSON.stringify(document(lines, dialect).sites![0]!.pipeline)) as Step[];
}

function problemsOf(lines: string, dialect: Dialect = 'configfile'): string[] {
	return compiled(lines, dialect)
		.diagnostics.filter(d => d.severity === 'error')
		.map(d => `${d.code}: ${d.message}`);
}

async function served(lines: string, request: RequestFields, dialect: Dialect = 'compatfile'): Promise<FakeExchange> {
	const doc = document(lines, dialect);
	const environment = { settings: {}, upstreams: {}, routes: {}, leases: NO_LEASES, facts: UNKNOWN_HOST_FACTS };
	const x = fakeExchange(request);
	await buildSite(doc.sites![0]!, 0, environment).runSite(x);
	return x;
}

const lowering = suite('lowering');

/** Lines of a site, each with the steps that it compiles to in both dialects. */
const LOWERED_LINES: readonly (readonly [string, readonly object[]])[] = [
	['respond "hi"', [{ handler: 'respond', body: 'hi' }]],
	['respond 404', [{ handler: 'respond', status: 404 }]],
	['respond "{hostport}" 201', [{ handler: 'respond', body: '{http.request.hostport}', status: 201 }]],
	[
		'respond /v 200 {\nbody "hello"\nclose\n}',
		[{ handler: 'respond', when: { type: 'path', patterns: ['/v'] }, status: 200, body: 'hello', close: true }],
	],
	['redir https://x{uri} permanent', [{ handler: 'redirect', to: 'https://x{http.request.uri}', status: 301 }]],
	['redir /a /b html', [{ handler: 'redirect', when: { type: 'path', patterns: ['/a'] }, to: '/b', html: true }]],
	['redir * /b {vars.code}', [{ handler: 'redirect', to: '/b', status: '{http.vars.code}' }]],
	['error "gone" 410', [{ handler: 'fail', message: 'gone', status: 410 }]],
	['error 503', [{ handler: 'fail', status: 503 }]],
	['abort', [{ handler: 'abort' }]],
	['root /srv', [{ handler: 'set_variables', variables: { root: '/srv' } }]],
	['root {vars.dir}', [{ handler: 'set_variables', variables: { root: '{http.vars.dir}' } }]],
	['vars a 1', [{ handler: 'set_variables', variables: { a: 1 } }]],
	[
		'vars {\na "1"\nb 1.5\nc true\nd x\n}',
		[{ handler: 'set_variables', variables: { a: '1', b: 1.5, c: true, d: 'x' } }],
	],
	['rewrite /x?y={path}', [{ handler: 'rewrite_target', to: '/x?y={http.request.uri.path}' }]],
	['uri strip_prefix /a', [{ handler: 'rewrite_target', strip_prefix: '/a' }]],
	['uri replace a b 2', [{ handler: 'rewrite_target', replace: [{ find: 'a', replace: 'b', limit: 2 }] }]],
	['uri path_regexp /+ /', [{ handler: 'rewrite_target', path_regexp: [{ find: '/+', replace: '/' }] }]],
	[
		'uri query {\n+a 1\n-b\nc>d\ne 2\nf x{2} y\n}',
		[
			{
				handler: 'rewrite_target',
				query: {
					add: [{ name: 'a', value: '1' }],
					delete: ['b'],
					rename: [{ from: 'c', to: 'd' }],
					set: [{ name: 'e', value: '2' }],
					replace: [{ name: 'f', find: 'x{2}', replace: 'y' }],
				},
			},
		],
	],
	['header X-A b', [{ handler: 'edit_headers', response: { set: [{ name: 'X-A', value: 'b' }] } }]],
	['header X-A: b', [{ handler: 'edit_headers', response: { set: [{ name: 'X-A', value: 'b' }] } }]],
	['header -Server', [{ handler: 'edit_headers', response: { delete: ['Server'], deferred: true } }]],
	['header >X v', [{ handler: 'edit_headers', response: { set: [{ name: 'X', value: 'v' }], deferred: true } }]],
	['header ?X v', [{ handler: 'edit_headers', response: { default: [{ name: 'X', value: 'v' }] } }]],
	[
		'header X a(.) $1',
		[{ handler: 'edit_headers', response: { replace: [{ name: 'X', find: 'a(.)', replace: '$1' }] } }],
	],
	[
		'header /p* {\n+Link a\n+Link b\n?D v\n-*\nmatch status 2xx\n}',
		[
			{
				handler: 'group',
				when: { type: 'path', patterns: ['/p*'] },
				pipeline: [
					{
						handler: 'edit_headers',
						response: {
							add: [
								{ name: 'Link', value: 'a' },
								{ name: 'Link', value: 'b' },
							],
							clear: true,
							deferred: true,
							match: { status: ['2xx'] },
						},
					},
					{
						handler: 'edit_headers',
						response: { default: [{ name: 'D', value: 'v' }], match: { status: ['2xx'] } },
					},
				],
			},
		],
	],
	[
		'header X v {\ndefer\n}',
		[{ handler: 'edit_headers', response: { set: [{ name: 'X', value: 'v' }], deferred: true } }],
	],
	[
		'request_header +X {uuid}',
		[{ handler: 'edit_headers', request: { add: [{ name: 'X', value: '{http.request.uuid}' }] } }],
	],
];

for (const [lines, expected] of LOWERED_LINES) {
	lowering(lines.replaceAll('\n', '; '), () => {
		for (const dialect of ['configfile', 'compatfile'] as const)
			assert.equal(withoutExclusive(stepsOf(lines, dialect)), expected, dialect);
	});
}

lowering("a relative root is relative to the file, or, in a Compatfile, to the server's working directory", () => {
	const lines = 'root www\nfile_server {\nroot ./www/\nhide secret/*\n}\n@f file {\nroot sub\n}\nabort @f';
	const paths = (dialect: Dialect): unknown[] =>
		stepsOf(lines, dialect).map(({ variables, root, hide, when }) => [
			(variables as { root?: string })?.root ?? root ?? when?.root,
			hide,
		]);
	const written = '/etc/site';
	assert.equal(
		new Map(paths('configfile') as [string, string[]][]),
		new Map([
			[`${written}/www`, undefined],
			[`${written}/www`, [`${written}/secret/*`, `${written}/Configfile`]],
			[`${written}/sub`, undefined],
		] as [string, string[]][]),
	);
	assert.equal(paths('compatfile'), [
		['www', undefined],
		['sub', undefined],
		['./www/', ['secret/*', `${written}/Compatfile`]],
	]);
});

lowering('{host} in a Compatfile is the host as sent, in a Configfile the one used to select the site', () => {
	const lines =
		'respond "{host} {http.request.host} {rp.upstream.address} \\{host}"\n@m expression `{host} == "a"`\nabort @m';
	const texts = (dialect: Dialect) => {
		const all = stepsOf(lines, dialect);
		return [
			all.find(({ handler }) => handler === 'respond')!.body,
			all.find(({ handler }) => handler === 'abort')!.when!.expression,
		];
	};
	assert.equal(texts('configfile'), [
		'{http.request.host} {http.request.host} {http.reverse_proxy.upstream.address} \\{host}',
		'{http.request.host} == "a"',
	]);
	assert.equal(texts('compatfile'), [
		'{http.request.sent_host} {http.request.sent_host} {http.reverse_proxy.upstream.network_address} \\{host}',
		'{http.request.sent_host} == "a"',
	]);
});

lowering('default files and fallbacks differ between a Compatfile and a Configfile', () => {
	const lines =
		"@a file\nabort @a\n@b file {\ntry_files /x /y\ntry_policy first_exist_fallback\n}\nabort @b\n@c expression `file() || file({'try_policy': 'first_exist_fallback'})`\nabort @c\n@d expression `{query.file} == '1'`\nabort @d";
	const matchers = (dialect: Dialect) => stepsOf(lines, dialect).map(({ when }) => when);
	const expression = (policy: string) => `file() || file({'try_policy': '${policy}'})`;
	assert.equal(matchers('configfile'), [
		{ type: 'file' },
		{ type: 'file', files: ['/x', '/y'], policy: 'first_exist_fallback' },
		{ type: 'expression', expression: expression('first_exist_fallback'), name: 'c' },
		{ type: 'expression', expression: "{http.request.uri.query.file} == '1'", name: 'd' },
	]);
	assert.equal(matchers('compatfile'), [
		{ type: 'file', files: ['{http.request.uri.path}'] },
		{ type: 'file', files: ['/x', '/y'], policy: 'first_exist_last_any' },
		{
			type: 'expression',
			expression: expression('first_exist_last_any'),
			name: 'c',
			files: ['{http.request.uri.path}'],
		},
		{ type: 'expression', expression: "{http.request.uri.query.file} == '1'", name: 'd' },
	]);
});

/** Removes `exclusive`, the name of an exclusive group, because only one of the dialects sets it. */
function withoutExclusive(pipeline: readonly Step[]): object[] {
	return pipeline.map(({ exclusive: _, ...step }) => step);
}

/** Pairs of lines that define a matcher `@m` and that matcher in the document. */
const MATCHER_LINES: readonly (readonly [string, object])[] = [
	['@m path /a /B*', { type: 'path', patterns: ['/a', '/B*'] }],
	['@m path_regexp ^/(\\d{2})$', { type: 'path_regexp', pattern: '^/(\\d{2})$', name: 'm' }],
	['@m path_regexp n ^/x', { type: 'path_regexp', pattern: '^/x', name: 'n' }],
	['@m method get POST', { type: 'method', methods: ['GET', 'POST'] }],
	['@m host a.test *.b.test', { type: 'host', hosts: ['a.test', '*.b.test'] }],
	['@m header X y*', { type: 'header', name: 'X', values: ['y*'] }],
	['@m header X *', { type: 'header', name: 'X', present: true }],
	['@m header !X', { type: 'header', name: 'X', absent: true }],
	['@m query a=1 a=2 b=*', { type: 'query', parameters: { a: ['1', '2'], b: ['*'] } }],
	['@m query ""', { type: 'query', parameters: {} }],
	['@m remote_ip 10.0.0.0/8 private_ranges', { type: 'remote_ip', ranges: ['10.0.0.0/8', 'private_ranges'] }],
	['@m client_ip ::1', { type: 'client_ip', ranges: ['::1'] }],
	['@m not method GET', { type: 'not', of: { type: 'method', methods: ['GET'] } }],
	[
		'@m not {\nheader A *\nheader B *\n}',
		{
			type: 'not',
			of: {
				type: 'all',
				of: [
					{ type: 'header', name: 'A', present: true },
					{ type: 'header', name: 'B', present: true },
				],
			},
		},
	],
	[
		'@m {\npath /a\npath /b\nmethod GET\n}',
		{
			type: 'all',
			of: [
				{ type: 'path', patterns: ['/a', '/b'] },
				{ type: 'method', methods: ['GET'] },
			],
		},
	],
];

for (const [definition, expected] of MATCHER_LINES) {
	lowering(definition.replaceAll('\n', '; '), () => {
		for (const dialect of ['configfile', 'compatfile'] as const) {
			assert.equal(stepsOf(`${definition}\nrespond @m 204`, dialect)[0]!.when, expected, dialect);
		}
	});
}

lowering.run();

const mistakes = suite('mistakes');

/** Lines with mistakes, their dialect, and parts of the expected messages in order. */
const MISTAKES: readonly (readonly [string, Dialect, readonly string[]])[] = [
	['redir /x /y permament', 'configfile', ['redirect/unknown-status: `permament` is not a redirect status.']],
	['redir * /y 200', 'compatfile', ["Redir code not in the 3xx range or 401: '200'"]],
	['redir * /y abc', 'compatfile', ["Not a supported redir code type or not valid integer: 'abc'"]],
	['respond "a" {\nbody "b"\nclose\nclose\n}', 'compatfile', ['body already specified', 'close already specified']],
	['error "a" 404 {\nmessage b\n}', 'compatfile', ['message already specified']],
	['root', 'compatfile', ['too few arguments; must have at least a root path']],
	['root * /a /b', 'compatfile', ['too many arguments; should only be a matcher and a path']],
	['rewrite', 'compatfile', ['too few arguments; must have at least a rewrite URI']],
	['rewrite * /a /b', 'compatfile', ['too many arguments; should only be a matcher and a URI']],
	['uri replace a b x', 'compatfile', ['limit must be an integer; invalid: x']],
	['uri path_regexp "" x', 'compatfile', ['path_regexp find cannot be empty']],
	['uri mangle x', 'compatfile', ["unrecognized URI manipulation 'mangle'"]],
	['uri query a b {\nc d\n}', 'compatfile', ['Cannot specify uri query rewrites in both argument and block']],
	['header A b {\nC d\n}', 'compatfile', ['cannot specify headers in both arguments and block']],
	['request_header ?A b', 'compatfile', ["A: the default header modifier ('?') can only be used on response headers"]],
	['header A b {\nmatch nope 1\n}', 'compatfile', ['unrecognized response matcher nope']],
	['header A b {\nmatch status 9999\n}', 'compatfile', ["bad status value '9999'"]],
	['@m header\nrespond @m 204', 'compatfile', ['malformed header matcher: expected field']],
	['@m header A\nrespond @m 204', 'compatfile', ['malformed header matcher: expected both field and value']],
	[
		'@m header !A b\nrespond @m 204',
		'compatfile',
		['malformed header matcher: null matching headers cannot have a field value'],
	],
	[
		'@m header !\nrespond @m 204',
		'compatfile',
		['malformed header matcher: must have field name following ! character'],
	],
	['@m query a\nrespond @m 204', 'compatfile', ['malformed query matcher token: a; must be in param=val format']],
	['@m host a.test A.test\nrespond @m 204', 'compatfile', ['host at index 0 is repeated at index 1: A.test']],
	[
		'@m path_regexp a-b x\nrespond @m 204',
		'compatfile',
		['invalid regexp name (must contain only word characters): a-b'],
	],
	['@m path_regexp (\nrespond @m 204', 'compatfile', ['(']],
	['@m remote_ip 10.0.0.0/33\nrespond @m 204', 'configfile', ['`10.0.0.0/33` is not an IP address or range.']],
	['header "a b" c', 'configfile', ['is not the name of a header field']],
	['header A', 'configfile', ['`A` has no value.']],
	['header A (a{1000}){1000} b', 'configfile', ['too large']],
	['uri mangle x', 'configfile', ['mangle']],
];

for (const [lines, dialect, expected] of MISTAKES) {
	mistakes(`${dialect}: ${lines.replaceAll('\n', '; ')}`, () => {
		const found = problemsOf(lines, dialect);
		assert.is(found.length, expected.length, found.join('\n'));
		expected.forEach((part, i) => {
			assert.match(found[i]!, part);
		});
	});
}

mistakes.run();

const facts = suite('facts from text to answer');

const URIS: readonly (readonly [string, string, string, string])[] = [
	['U1', 'uri replace "\\}" %7D\nuri replace "\\{" %7B', '/endpoint?test={%20content%20}', 'test=%7B%20content%20%7D'],
	['U2', 'uri query foo bar\nuri query +foo baz', '/endpoint', 'foo=bar&foo=baz'],
	['U3', 'uri query foo>bar\nuri query bar taz\nuri query +bar baz', '/endpoint?foo=bar', 'bar=taz&bar=baz'],
	['U4', 'uri query foo bar baz', '/endpoint?foo=bar', 'foo=baz'],
	['U5', 'uri query foo bar {query.placeholder}', '/endpoint?placeholder=baz&foo=bar', 'foo=baz&placeholder=baz'],
	['U6', 'uri query foo ar az', '/endpoint?foo=bar', 'foo=baz'],
	['U7', 'uri query * bar baz', '/endpoint?foo=bar&baz=bar', 'baz=baz&foo=baz'],
];

for (const [name, lines, target, expected] of URIS) {
	facts(name, async () => {
		assert.is(bodyText(await served(`${lines}\nrespond "{query}"`, { target })), expected);
	});
}

facts('R1 and R3', async () => {
	const x = await served('respond /version 200 {\nbody "hello"\n}', { target: '/version' });
	assert.is(`${x.response.status} ${bodyText(x)}`, '200 hello');
	assert.is(bodyText(await served('respond "{http.request.local.port}"', {})), '9080');
});

facts('E1 to E3', async () => {
	const at = async (lines: string, target: string) => {
		const x = await served(lines, { target });
		return `${x.response.status} ${bodyText(x)}`;
	};
	const one =
		'error /private* "Unauthorized" 410\nerror /hidden* "Not found" 404\nhandle_errors 404 410 {\nrespond "X"\n}';
	assert.is(await at(one, '/private'), '410 X');
	assert.is(await at(one, '/hidden'), '404 X');
	const two = 'error /a 500\nerror /b 404\nhandle_errors {\nrespond "bare"\n}\nhandle_errors 4xx {\nrespond "four"\n}';
	assert.is(await at(two, '/a'), '500 bare');
	assert.is(await at(two, '/b'), '404 four');
	const three =
		'error /a 410\nerror /b 301\nerror /c 500\nhandle_errors 500 3xx {\nrespond "first"\n}\nhandle_errors 4xx {\nrespond "second"\n}';
	assert.is(await at(three, '/a'), '410 second');
	assert.is(await at(three, '/b'), '301 first');
	assert.is(await at(three, '/c'), '500 first');
});

facts('C8: of several vars the most specific is assigned last', async () => {
	const lines = 'vars /foobar v 1\nvars /foo v 2\nvars /foo* v 3\nvars * v 4\nrespond "{vars.v}"';
	for (const [target, expected] of [
		['/foobar', '1'],
		['/foo', '2'],
		['/foox', '3'],
		['/', '4'],
	] as const) {
		assert.is(bodyText(await served(lines, { target })), expected, target);
	}
});

facts('C14: deferred and immediate header edits together', async () => {
	const x = await served(
		'header {\n+Link a\n+Link b\nF: v\n?Once 1\n-Content-Type\n}\nheader >Late y\nrespond "x"',
		{},
	);
	assert.equal(responseLines(x).sort(), ['F: v', 'Late: y', 'Link: a', 'Link: b', 'Once: 1']);
});

facts('C17: shorthands with parameters in quoted text', async () => {
	const lines =
		'@r path_regexp name ^/(\\w+)\nrespond @r "{header.content-type} {labels.0} {query.p} {path.0} {re.name.1} {re.1}"';
	const x = await served(lines, { target: '/seg?p=q', authority: 'a.example', headers: [['Content-Type', 't']] });
	assert.is(bodyText(x), 't example q seg seg seg');
});

facts('handle_path strips its prefix, and only the first matching handle runs', async () => {
	const lines =
		'handle_path /static/* {\nrespond "static {path}"\n}\nhandle /api/* {\nrespond "api {path}"\n}\nhandle {\nrespond "rest"\n}';
	for (const dialect of ['configfile', 'compatfile'] as const) {
		assert.is(bodyText(await served(lines, { target: '/static/a/b' }, dialect)), 'static /a/b');
		assert.is(bodyText(await served(lines, { target: '/api/x' }, dialect)), 'api /api/x');
		assert.is(bodyText(await served(lines, { target: '/static/../x' }, dialect)), 'rest');
	}
});

facts.run();
