/** Numbered facts about Caddy that can be observed without TLS and upstreams. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of captures in replacements.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { temporaryFolder } from '../../harness.ts';
import { compileText, compileToDocument, type DryRunQuery, DryRunServer, errors, warnings } from './page.ts';

const OPTIONS = 'http_port 9080\nhttps_port 9443\nadmin localhost:2999\nskip_install_trust\n';
const pages = temporaryFolder();
writeFileSync(path.join(pages, 'cookie.html'), '<h1>Cookie.ClientName {{.Cookie "clientname"}}</h1>');
mkdirSync(path.join(pages, 'sub'));

type Fact = readonly [
	fact: string,
	sites: string,
	url: string,
	wanted: readonly [status: number, body: string, headers?: { readonly [name: string]: string }],
	asked?: DryRunQuery,
];

const MAP =
	'map {http.request.method} {dest-1} {dest-2} {\ndefault unknown1 unknown2\n~G(.)(.) G${1}${2}-called\nPOST post-called foobar\n}\nrespond /version 200 {\nbody "hello {dest-1} {dest-2}"\n}';
const ONE =
	'map {http.request.method} {dest-name} {\ndefault unknown\nGET get-called\nPOST post-called\n}\nrespond /version 200 {\nbody "hello localhost {dest-name}"\n}';
const ERRORS_1 =
	'error /private* "Unauthorized" 410\nerror /hidden* "Not found" 404\nhandle_errors 404 410 {\nrespond "404 or 410 error"\n}';
const ERRORS_2 =
	'error /private* "Unauthorized" 500\nerror /hidden* "Not found" 404\nhandle_errors {\nrespond "fallback"\n}\nhandle_errors 4xx {\nrespond "4xx"\n}';
const ERRORS_3 =
	'error /private* "Unauthorized" 410\nerror /threehundred* "Moved" 301\nerror /internalerr* "Internal" 500\nhandle_errors 500 3xx {\nrespond "500 or 3xx"\n}\nhandle_errors 4xx {\nrespond "4xx"\n}';
const uri = (lines: string): string => `:9080 {\n${lines}\nrespond "{query}"\n}`;

const FACTS: readonly Fact[] = [
	[
		'R1',
		'localhost:9080 {\nrespond /version 200 {\nbody "hello"\n}\n}',
		'http://localhost:9080/version',
		[200, 'hello'],
	],
	[
		'R2',
		`localhost:9080 {\ntemplates {\nroot ${pages}\n}\nfile_server {\nroot ${pages}\n}\n}`,
		'http://localhost:9080/cookie.html',
		[200, '<h1>Cookie.ClientName svc-user</h1>'],
		{ headers: { cookie: 'clientname=svc-user' } },
	],
	['R3', ':9080 {\nrespond "{http.request.local.port}"\n}', 'http://localhost:9080/', [200, '9080']],
	[
		'R4',
		'localhost {\nrespond {http.request.body}\n}',
		'https://localhost:9443/',
		[200, '{\n "a": 1\n}', { 'content-type': 'application/json' }],
		{ method: 'POST', body: '{\n "a": 1\n}' },
	],
	['R5', `localhost:9080 {\n${MAP}\n}`, 'http://localhost:9080/version', [200, 'hello GET-called unknown2']],
	[
		'R5 POST',
		`localhost:9080 {\n${MAP}\n}`,
		'http://localhost:9080/version',
		[200, 'hello post-called foobar'],
		{ method: 'POST' },
	],
	['R6', `localhost:9080 {\n${ONE}\n}`, 'http://localhost:9080/version', [200, 'hello localhost get-called']],
	[
		'R6 POST',
		`localhost:9080 {\n${ONE}\n}`,
		'http://localhost:9080/version',
		[200, 'hello localhost post-called'],
		{ method: 'POST' },
	],
	[
		'U1',
		uri('uri replace "\\}" %7D\nuri replace "\\{" %7B'),
		'http://localhost:9080/endpoint?test={%20content%20}',
		[200, 'test=%7B%20content%20%7D'],
	],
	['U2', uri('uri query foo bar\nuri query +foo baz'), 'http://localhost:9080/endpoint', [200, 'foo=bar&foo=baz']],
	[
		'U3',
		uri('uri query foo>bar\nuri query bar taz\nuri query +bar baz'),
		'http://localhost:9080/endpoint?foo=bar',
		[200, 'bar=taz&bar=baz'],
	],
	['U4', uri('uri query foo bar baz'), 'http://localhost:9080/endpoint?foo=bar', [200, 'foo=baz']],
	[
		'U5',
		uri('uri query foo bar {query.placeholder}'),
		'http://localhost:9080/endpoint?placeholder=baz&foo=bar',
		[200, 'foo=baz&placeholder=baz'],
	],
	['U6', uri('uri query foo ar az'), 'http://localhost:9080/endpoint?foo=bar', [200, 'foo=baz']],
	['U7', uri('uri query * bar baz'), 'http://localhost:9080/endpoint?foo=bar&baz=bar', [200, 'baz=baz&foo=baz']],
	['E1 410', `localhost:9080 {\n${ERRORS_1}\n}`, 'http://localhost:9080/private', [410, '404 or 410 error']],
	['E1 404', `localhost:9080 {\n${ERRORS_1}\n}`, 'http://localhost:9080/hidden', [404, '404 or 410 error']],
	['E2 500', `localhost:9080 {\n${ERRORS_2}\n}`, 'http://localhost:9080/private', [500, 'fallback']],
	['E2 404', `localhost:9080 {\n${ERRORS_2}\n}`, 'http://localhost:9080/hidden', [404, '4xx']],
	['E3 410', `localhost:9080 {\n${ERRORS_3}\n}`, 'http://localhost:9080/private', [410, '4xx']],
	['E3 301', `localhost:9080 {\n${ERRORS_3}\n}`, 'http://localhost:9080/threehundred', [301, '500 or 3xx']],
	['E3 500', `localhost:9080 {\n${ERRORS_3}\n}`, 'http://localhost:9080/internalerr', [500, '500 or 3xx']],
	...(['a', 'b'] as const).map(
		(host): Fact => [
			`E4 ${host}`,
			['a', 'b'].map(one => `http://${one}:9080 {\nerror 404\nhandle_errors {\nrespond "of ${one}"\n}\n}`).join('\n'),
			`http://${host}:9080/`,
			[404, `of ${host}`],
		],
	),
	['C3 one label', 'http://* {\nrespond yes\n}', 'http://localhost:9080/', [200, 'yes']],
	['C3 two labels', 'http://* {\nrespond yes\n}', 'http://a.b:9080/', [200, '']],
	['C3 no restriction', ':9080, http://example.com {\nrespond yes\n}', 'http://other:9080/', [200, 'yes']],
	['C3 a legal site', 'http://handle {\nrespond yes\n}', 'http://handle:9080/', [200, 'yes']],
	['C4', 'http://x.localhost:81 {\nrespond yes\n}', 'http://x.localhost:81/', [200, 'yes']],
	[
		'C6 heredoc with an indentation of four',
		':9080 {\nrespond <<EOF\n    <b>\n      x\n    </b>\n    EOF 200\n}',
		'http://x:9080/',
		[200, '<b>\n  x\n</b>'],
	],
	['C6 a marker of two', ':9080 {\nrespond <<EOF\n        x\n  EOF 200\n}', 'http://x:9080/', [200, '      x']],
	[
		'C7 static',
		':9080 {\nhandle /api/* {\nrespond api\n}\nhandle_path /static/* {\nrespond {path}\n}\nhandle {\nrespond rest\n}\n}',
		'http://x:9080/static/a',
		[200, '/a'],
	],
	[
		'C7 strip',
		':9080 {\nhandle {\nrespond rest\n}\nhandle_path /strip* {\nrespond "star {path}"\n}\nhandle_path /strip {\nrespond exact\n}\n}',
		'http://x:9080/strip',
		[200, 'exact'],
	],
	[
		'C8',
		':9080 {\nvars /foobar foo last\nvars /foo foo middle-last\nvars /foo* foo middle-first\nvars * foo first\nrespond {vars.foo}\n}',
		'http://x:9080/foobar',
		[200, 'last'],
	],
	['C9', ':9080 {\nrewrite /d\nrespond {path}\n}', 'http://x:9080/a', [200, '/d']],
	[
		'C12 blocks in a header block',
		'(s) {\nheader {\n{block}\n}\n}\n:9080 {\nimport s {\nFoo bar\n}\nrespond x\n}',
		'http://x:9080/',
		[200, 'x', { foo: 'bar' }],
	],
	[
		'C12 a block as a whole site',
		'(s) {\nhttp://{args[0]} {\n{block}\n}\n}\nimport s a.example {\nrespond yes\n}',
		'http://a.example:9080/',
		[200, 'yes'],
	],
	[
		'C14 match',
		':9080 {\nheader {\nFoo bar\nmatch status 200\n}\nrespond x\n}',
		'http://x:9080/',
		[200, 'x', { foo: 'bar' }],
	],
	[
		'C17',
		':9080 {\n@m path_regexp name ^/(\\w+)\nrespond @m "{header.content-type} {labels.0} {query.p} {path.0} {re.name.0}"\n}',
		'http://a.b:9080/x?p=q',
		[200, 'a/b b q x /x'],
		{ headers: { 'content-type': 'a/b' } },
	],
	['C17 unnamed', ':9080 {\n@m path_regexp ^/(\\w+)\nrespond @m "{re.1}"\n}', 'http://a.b:9080/x', [200, 'x']],
	[
		'A1',
		'localhost {\nrespond "Yahaha! You found me!"\n}',
		'http://localhost:9080/',
		[308, '', { location: 'https://localhost/' }],
	],
	[
		'A2',
		'localhost:1234 {\nrespond x\n}',
		'http://localhost:9080/',
		[308, '', { location: 'https://localhost:1234/' }],
	],
	[
		'A3',
		'localhost {\nrespond x\n}\nlocalhost:10443 {\nrespond y\n}',
		'http://localhost:9080/',
		[308, '', { location: 'https://localhost/' }],
	],
	[
		'A5 redirected',
		'http://:9080 {\nrespond Foo\n}\nhttp://baz.localhost:9080 {\nrespond Baz\n}\nbar.localhost {\nrespond Bar\n}',
		'http://bar.localhost:9080/',
		[308, '', { location: 'https://bar.localhost/' }],
	],
	[
		'A5 catch-all',
		'http://:9080 {\nrespond Foo\n}\nhttp://baz.localhost:9080 {\nrespond Baz\n}\nbar.localhost {\nrespond Bar\n}',
		'http://foo.localhost:9080/',
		[200, 'Foo'],
	],
	[
		'A5 explicit',
		'http://:9080 {\nrespond Foo\n}\nhttp://baz.localhost:9080 {\nrespond Baz\n}\nbar.localhost {\nrespond Bar\n}',
		'http://baz.localhost:9080/',
		[200, 'Baz'],
	],
	[
		'F3',
		':9080 {\nrespond /intercept "I am combined with a real server" 408\nheader /intercept To-Intercept ok\nrespond /no-intercept "I am a normal server"\nintercept {\n@t status 408\nhandle_response @t {\nheader /intercept intercepted {resp.header.To-Intercept}\nrespond /intercept "new" 503\n}\n}\n}',
		'http://x:9080/intercept',
		[503, 'new', { intercepted: 'ok' }],
	],
	[
		'F3 untouched',
		':9080 {\nrespond /no-intercept "I am a normal server"\nintercept {\n@t status 408\nhandle_response @t {\nrespond "new" 503\n}\n}\n}',
		'http://x:9080/no-intercept',
		[200, 'I am a normal server'],
	],
	[
		'F4',
		':9080 {\nintercept {\n@err status 5xx\nreplace_status @err 200\n}\nrespond boom 500\n}',
		'http://x:9080/',
		[200, 'boom'],
	],
	[
		'F4 others',
		':9080 {\nintercept {\n@err status 5xx\nreplace_status @err 503\n}\nrespond ok\n}',
		'http://x:9080/',
		[200, 'ok'],
	],
];

const facts = suite('facts');
for (const [fact, sites, url, [status, body, headers = {}], asked] of FACTS) {
	facts(fact, async () => {
		const server = new DryRunServer(`{\n${OPTIONS}}\n${sites}\n`, { folder: pages });
		const answer = await server.ask(url, asked);
		assert.equal([answer.status, answer.body], [status, body]);
		for (const [name, value] of Object.entries(headers)) assert.is(answer.header(name), value, name);
	});
}

/** Returns the listeners of each site as `scheme :port hosts…`. */
const listenersOf = (text: string): string[] => {
	const result = compileText(text);
	assert.ok(result.plan, errors(result).join('\n'));
	return result.plan!.listeners.flatMap(({ scheme, port, sites }) =>
		sites.filter(({ redirect }) => redirect === undefined).map(({ hosts }) => [scheme, port, ...hosts].join(' ')),
	);
};
facts('C1', () => {
	assert.equal(listenersOf('localhost {\n}\n'), ['https 443 localhost']);
	assert.equal(listenersOf('https://localhost {\n}\n'), ['https 443 localhost']);
	assert.equal(listenersOf('http://localhost {\n}\n'), ['http 80 localhost']);
});
facts('C2', () => {
	const to = (upstream: string): unknown => compileToDocument(`:80 {\nreverse_proxy ${upstream}\n}\n`);
	assert.equal(to('http://localhost:3000'), to('localhost:3000'));
	assert.equal(
		to('https://localhost:3000'),
		compileToDocument(':80 {\nreverse_proxy localhost:3000 {\ntransport http {\ntls\n}\n}\n}\n'),
	);
	assert.equal(
		to('h2c://localhost:3000'),
		compileToDocument(':80 {\nreverse_proxy localhost:3000 {\ntransport http {\nversions h2c 2\n}\n}\n}\n'),
	);
});
facts('C4: default_sni alone does not enable TLS on a listener', () => {
	assert.equal(listenersOf('{\ndefault_sni foo.localhost\n}\n:80 {\n}\n'), ['http 80']);
});
facts('C5', () => {
	const text = 'abcdef {\n}\nabcdefg {\n}\nabc {\n}\nabcde, http://abcde {\n}\n:443, ab {\n}\n';
	assert.equal(listenersOf(text), [
		'https 443 abcdefg',
		'https 443 abcdef',
		'https 443 abcde',
		'https 443 abc',
		'https 443',
		'http 80 abcde',
	]);
	const names = compileText(text).plan!.certificates!.managed.policies.flatMap(({ subjects }) => subjects);
	assert.ok(names.includes('ab'));
});
facts('C9: the first argument may be a path, a matcher name or `*`', () => {
	const { sites } = compileToDocument(
		':80 {\n@named path /named\nrewrite * /a\nrewrite /path /b\nrewrite @named /c\nrewrite /d\n}\n',
	) as {
		sites: { pipeline: { branches: { when?: unknown; pipeline: { to: string }[] }[] }[] }[];
	};
	assert.equal(
		sites[0]!.pipeline[0]!.branches.map(({ pipeline, when }) => [pipeline.map(step => step.to), when !== undefined]),
		[
			[['/c'], true],
			[['/b'], true],
			// Consecutive directives with equal matchers form one route, and both run.
			[['/a', '/d'], false],
		],
	);
});
facts('C10: one named route serves several sites, with its own matchers', async () => {
	const route = '&(a) {\n@m path /m\nrespond @m "{host}"\n}\n';
	const server = new DryRunServer(
		`${route}http://x {\n@m path /other\ninvoke a\nrespond @m own\n}\nhttp://y {\ninvoke a\n}\n`,
	);
	assert.is((await server.ask('http://x/m')).body, 'x');
	assert.is((await server.ask('http://y/m')).body, 'y');
	assert.is((await server.ask('http://x/other')).body, 'own');
});
facts('C11', () => {
	const files = { part: 'log {\noutput file /tmp/{args[0]}.log\n}\n' };
	assert.equal(
		compileToDocument(':80 {\nimport part one\nimport part two\n}\n', files),
		compileToDocument(':80 {\nlog {\noutput file /tmp/one.log\n}\nlog {\noutput file /tmp/two.log\n}\n}\n'),
	);
});
facts('C12: unused blocks are dropped, and blocks can be passed on to other snippets', () => {
	const plain = compileToDocument(':80 {\nheader {\nFoo bar\n}\n}\n');
	const inner = '(inner) {\nheader {\n{block}\n}\n}\n';
	assert.equal(
		compileToDocument(
			`${inner}(outer) {\nimport inner {\n{blocks.foo}\n}\n{blocks.x}\n}\n:80 {\nimport outer {\nfoo {\nFoo bar\n}\n}\n}\n`,
		),
		plain,
	);
	assert.equal(compileToDocument('(s) {\nheader Foo bar\n{block}\n}\n:80 {\nimport s\n}\n'), plain);
});
facts('C13: equivalent matchers', () => {
	const forms = [
		'expression {query.a} == "1"',
		'expression `{query.a} == "1"`',
		'`{query.a} == "1"`',
		'expression "{query.a} == \\"1\\""',
	];
	// If the matcher has only one argument, its captures are named after the matcher.
	const documents = forms.map(form =>
		JSON.stringify(compileToDocument(`(s) {\n@g ${form}\nrespond @g x\n}\n:80 {\nimport s\n}\n`)).replace(
			',"name":"g"',
			'',
		),
	);
	for (const one of documents.slice(1)) assert.is(one, documents[0]);
});
facts('C15: repeated lines are merged', () => {
	const site = (lines: string): unknown => compileToDocument(`:80 {\n@m {\n${lines}\n}\nrespond @m x\n}\n`);
	assert.equal(site('remote_ip 10.0.0.1\nremote_ip 10.0.0.2'), site('remote_ip 10.0.0.1 10.0.0.2'));
	assert.equal(site('client_ip 10.0.0.1\nclient_ip 10.0.0.2'), site('client_ip 10.0.0.1 10.0.0.2'));
	assert.equal(site('query foo=bar foo=baz bar=foo\nquery bar=baz'), site('query foo=bar foo=baz bar=foo bar=baz'));
});
facts('C16', () => {
	assert.equal(warnings(compileText(':80 {\nroute {\n@unused path /x\nrespond x\n}\n}\n')), []);
});
facts('C18: servers can be named', () => {
	const result = compileText(
		'{\nservers :443 {\nname https\n}\nservers :80 {\nname http\n}\n}\nexample.com {\n}\nhttp://example.net {\n}\n:8001, :8002 {\n}\n:8002 {\nbind 127.0.0.1\n}\n',
	);
	assert.ok(result.document, errors(result).join('\n'));
});
facts('C19', () => {
	const result = compileText(
		'example.com {\nbind fd/3 {\nprotocols h1 h2\n}\nlog\n}\nhttp://example.com {\nbind fd/{env.X} {\nprotocols h1\n}\nlog\n}\n',
		{},
		'compatfile',
		{ X: '4' },
	);
	assert.equal(errors(result), []);
});
facts('C20: default_bind applies to every port', () => {
	const result = compileText('{\ndefault_bind tcp4/0.0.0.0 tcp6/[::]\n}\nhttp://a {\n}\n:8080 {\n}\n');
	assert.ok(result.plan, errors(result).join('\n'));
	assert.equal(result.plan!.listeners.map(({ host, port }) => `${host} ${port}`).sort(), [
		'0.0.0.0 80',
		'0.0.0.0 8080',
		':: 80',
		':: 8080',
	]);
});
facts('C22: short and long forms may be mixed; masks; several expressions on one field', () => {
	const log = (lines: string): unknown =>
		compileToDocument(`:80 {\nlog {\noutput stdout\nformat filter {\nwrap console\n${lines}\n}\n}\n}\n`);
	const whole =
		'fields {\nuri delete\nrequest>headers>Server delete\nrequest>remote_ip ip_mask {\nipv4 16\nipv6 32\n}\n}';
	assert.equal(log('uri delete\nrequest>headers>Server delete\nrequest>remote_ip ip_mask 16 32'), log(whole));
	log('uri regexp a b\nuri regexp c d');
});
facts('C23: typed values, and a field named wrap', () => {
	const fields = compileToDocument(
		':80 {\nlog {\nformat append {\nwrap json\nfields {\nwrap "foo"\nnumber 1\nquoted "1"\ntruth true\n}\n}\n}\n}\n',
	);
	assert.match(JSON.stringify(fields), '"wrap":"foo","number":1,"quoted":"1","truth":true');
});
facts('C24: upstream addresses', () => {
	const to = (text: string): unknown =>
		(
			compileToDocument(`:80 {\n${text}\n}\n`) as { sites: { pipeline: { upstreams?: { to: unknown } }[] }[] }
		).sites[0]!.pipeline.at(-1)!.upstreams!.to;
	assert.equal(to('reverse_proxy localhost:8001-8002'), to('reverse_proxy localhost:8001 localhost:8002'));
	assert.equal(to('reverse_proxy https://localhost:8001-8002'), to('reverse_proxy localhost:8001 localhost:8002'));
	assert.equal(to('reverse_proxy whoami'), to('reverse_proxy whoami:80'));
	to('reverse_proxy unix//run/a.sock');
	to('reverse_proxy {env.HOST}:8001-8002');
	to('map {host} {upstream} {\ndefault a:90\n}\nreverse_proxy {upstream}');
	to('map {host} {upstream} {\ndefault a\n}\nreverse_proxy {upstream}:80');
});
for (const [fact, text] of [
	[
		'C25',
		'reverse_proxy 127.0.0.1:65535 {\nlb_retry_match expression path(\'/foo*\')\nlb_retry_match {\nmethod POST\n}\nlb_retry_match "{method} == \'GET\'"\nlb_retry_match `path("/x")`\n}',
	],
	[
		'C26',
		'php_fastcgi localhost:9000 {\nindex off\nsplit .php .php5\ntry_files {path} {path}/index.php =404\n@error status 5xx\nhandle_response @error {\nrespond x\n}\n}',
	],
	[
		'C27',
		'reverse_proxy 127.0.0.1:1 {\ntransport fastcgi\n}\nreverse_proxy /a 127.0.0.1:1 {\ntransport http {\nnetwork_proxy none\n}\n}\nreverse_proxy /b 127.0.0.1:1 {\ntransport http {\nnetwork_proxy url http://localhost:8080\n}\n}\nreverse_proxy /c 127.0.0.1:1 {\ntransport http {\nforward_proxy_url http://localhost:8080\n}\n}',
	],
	['C28', 'forward_auth 127.0.0.1:1 {\nuri /\ncopy_headers A>1 B C>3 {\nD\nE>5\n}\n}'],
	['C38', 'acme_server {\nchallenges\n}'],
	['C37', 'metrics /metrics'],
] as const) {
	facts(`${fact}: accepted`, () => {
		assert.equal(errors(compileText(`:80 {\n${text}\n}\n`)), []);
	});
}
facts('C37: global metrics and those of servers are merged', () => {
	const result = compileText('{\nmetrics\nservers :80 {\nmetrics {\nper_host\n}\n}\n}\n:80 {\n}\n');
	assert.equal(errors(result), []);
	assert.match(JSON.stringify(result.document!.settings!.metrics), '"per_host":true');
});
facts('C32', () => {
	assert.equal(listenersOf('http://foo:8447, http://127.0.0.1:8447 {\n}\n').length, 1);
	assert.is(
		compileText('http://foo:8447, http://127.0.0.1:8447 {\n}\n').plan!.certificates?.managed.policies.length ?? 0,
		0,
	);
});
facts.run();
