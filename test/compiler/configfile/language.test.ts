/** The Configfile language: a test for each statement of its documentation. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lint } from '../../../compiler/lint/lint.ts';
import { dryRunEnvironment } from '../../../runtime/compile/dry-run-environment.ts';
import { compileText, compileToDocument, type DryRunQuery, DryRunServer, errors } from '../compatfile/page.ts';
import { memoryReader } from '../syntax/memory-config.ts';

const ask = async (text: string, url: string, asked?: DryRunQuery): Promise<string> =>
	(await new DryRunServer(text, { format: 'configfile' }).ask(url, asked)).body;
const assertSameDocument = (one: string, other: string): void =>
	assert.equal(compileToDocument(one, {}, 'configfile'), compileToDocument(other, {}, 'configfile'));
const mistakes = (text: string): string[] => errors(compileText(text, {}, 'configfile'));
const codes = (text: string, severity: 'error' | 'warning' = 'error'): string[] =>
	compileText(text, {}, 'configfile')
		.diagnostics.filter(one => one.severity === severity)
		.map(({ code }) => code);

const order = suite('order');
order('directives run as written, in every block', async () => {
	const text =
		':80 {\n\tvars a 1\n\theader +X {vars.a}\n\tvars a 2\n\theader +X {vars.a}\n\troute {\n\t\trewrite * /x\n\t\theader +X {path}\n\t}\n}\n';
	const { seen } = await new DryRunServer(text, { format: 'configfile' }).ask('http://a/');
	assert.equal(seen.response!.headers.getAll('x'), ['1', '2', '/x']);
});
order('the order option is an error that gives the reason', () => {
	assert.match(mistakes('{\n\torder respond first\n}\n:80 {\n}\n')[0]!, 'in the order in which they are written');
});
order('consecutive handle blocks are alternatives, even with matchers and comments in between', async () => {
	const handles = (between: string): string =>
		`:80 {\n\thandle /a* {\n\t\theader +X 1\n\t}\n${between}\n\thandle_path /a/* {\n\t\theader +X 2\n\t}\n\thandle {\n\t\theader +X 3\n\t}\n}\n`;
	const all = async (text: string): Promise<string> =>
		(await new DryRunServer(text, { format: 'configfile' }).ask('http://x/a/b')).seen
			.response!.headers.getAll('x')
			.join();
	assert.is(await all(handles('')), '1');
	assert.is(await all(handles('\t# a comment\n\t@m path /m')), '1');
	assert.is(await all(handles('\theader Y 1')), '1,2');
});
order('route is a plain group, and all rewrites and roots in it run', async () => {
	assert.is(
		await ask(':80 {\n\troute {\n\t\trewrite * /b\n\t\trewrite /b /c\n\t}\n\trespond {path}\n}\n', 'http://x/a'),
		'/c',
	);
	assert.is(await ask(':80 {\n\troot * /a\n\troot * /b\n\trespond {vars.root}\n}\n', 'http://x/'), '/b');
});
order('a quoted first argument is not a matcher', async () => {
	assert.is(await ask(':80 {\n\trespond "/a"\n}\n', 'http://x/b'), '/a');
	assert.is(await ask(':80 {\n\trespond "@a" \n}\n', 'http://x/b'), '@a');
	assert.is(await ask(':80 {\n\trespond /a "x"\n}\n', 'http://x/b'), '');
});

const matchers = suite('matchers are expressions');
for (const [expression, holds, not] of [
	['path /a or path /b and method GET', ['/a', 'POST /a', '/b'], ['POST /b']],
	['( path /a or path /b ) and method GET', ['/a', '/b'], ['POST /a']],
	['not path /a and method GET', ['/b'], ['/a', 'POST /b']],
	['not ( path /a and method GET )', ['/b', 'POST /a'], ['/a']],
	['not not path /a', ['/a'], ['/b']],
	['@other and method GET', ['/other'], ['POST /other', '/a']],
	['host "and" "or" x', ['/x'], []],
	['expression `{path} == "/a"`', ['/a'], ['/b']],
	['`{path} == "/a"`', ['/a'], ['/b']],
	['{\n\t\tpath /a\n\t\tmethod GET\n\t}', ['/a'], ['POST /a']],
] as const) {
	matchers(expression.replaceAll(/\s+/g, ' '), async () => {
		const text = `:80 {\n\t@m ${expression}\n\t@other path /other\n\twhen @m {\n\t\trespond yes\n\t} else when @other {\n\t\trespond no\n\t}\n\trespond no\n}\n`;
		for (const [list, wanted] of [
			[holds, 'yes'],
			[not, 'no'],
		] as const) {
			for (const one of list) {
				const [method, path] = one.startsWith('/') ? ['GET', one] : (one.split(' ') as [string, string]);
				assert.is(await ask(text, `http://x${path}`, { method }), wanted, one);
			}
		}
	});
}
matchers('matchers may be defined in any order, and a cycle is an error', () => {
	assert.equal(mistakes(':80 {\n\t@a @b\n\t@b path /b\n\trespond @a x\n}\n'), []);
	assert.is(mistakes(':80 {\n\t@a @b\n\t@b not @a\n\trespond @a x\n}\n').length >= 1, true);
});
matchers('a parenthesis without a space before it is an error with a hint', () => {
	assert.match(mistakes(':80 {\n\t@a (path /a or path /b)\n\trespond @a x\n}\n').join('\n'), 'space');
});

const when = suite('when');
const branches =
	':80 {\n\twhen path /api/* and not method DELETE {\n\t\theader +X 1\n\t\theader +X 2\n\t} else when path /health {\n\t\trespond ok\n\t} else {\n\t\theader +X else\n\t}\n\theader +X after\n\trespond "{http.response.header.X}"\n}\n';
for (const [path, body, method] of [
	['/api/x', '1, 2, after'.replaceAll(', ', ','), 'GET'],
	['/api/x', 'else,after', 'DELETE'],
	['/health', 'ok', 'GET'],
	['/x', 'else,after', 'GET'],
] as const) {
	when(`${method} ${path}`, async () => {
		assert.is((await ask(branches, `http://x${path}`, { method })).replaceAll(', ', ','), body);
	});
}

const lets = suite('let');
lets('let defines a port, a path or a list, also for addresses', () => {
	assertSameDocument(
		'let port 8080\nlet nets 10.0.0.0/8 ::1\nlet dir /srv\n:{let.port} {\n\t@m remote_ip {let.nets}\n\troot {let.dir}/www\n\trespond @m x\n}\n',
		':8080 {\n\t@m remote_ip 10.0.0.0/8 ::1\n\troot /srv/www\n\trespond @m x\n}\n',
	);
});
lets('a let in a site hides the one in the file', () => {
	assertSameDocument('let a 1\n:80 {\n\tlet a 2\n\trespond {let.a}00\n}\n', ':80 {\n\trespond 200\n}\n');
});
lets('a list inside a longer word is an error', () => {
	assert.is(mistakes('let a 1 2\n:80 {\n\trespond "x{let.a}"\n}\n').length, 1);
});
lets('a let must be defined before its use', () => {
	assert.is(mistakes(':80 {\n\trespond {let.a}\n\tlet a 1\n}\n').length >= 1, true);
});
lets('let, upstream and test are not addresses, and else follows its }', () => {
	for (const text of [
		'let {\n}\n',
		'upstream {\n}\n',
		'test {\n}\n',
		':80 {\n\twhen path / {\n\t}\n\telse {\n\t}\n}\n',
	]) {
		assert.is(mistakes(text).length >= 1, true, text);
	}
});

const snippets = suite('snippets with parameters');
const secure =
	'(secure) max_age policy="default-src self" {\n\theader A "max-age={param.max_age}"\n\theader B "{param.policy}"\n}\n';
snippets('parameters have defaults, and values may be quoted', () => {
	assertSameDocument(
		`${secure}:80 {\n\tuse secure max_age=600\n}\n`,
		':80 {\n\theader A "max-age=600"\n\theader B "default-src self"\n}\n',
	);
	assertSameDocument(
		`${secure}:80 {\n\tuse secure max_age=600 policy="a b"\n}\n`,
		':80 {\n\theader A "max-age=600"\n\theader B "a b"\n}\n',
	);
});
for (const [what, use] of [
	['missing', 'use secure'],
	['unknown', 'use secure max_age=1 nope=2'],
	['repeated', 'use secure max_age=1 max_age=2'],
	['of no snippet', 'use nope'],
] as const) {
	snippets(`a parameter that is ${what}`, () => assert.is(mistakes(`${secure}:80 {\n\t${use}\n}\n`).length >= 1, true));
}
snippets('import still works', () => {
	assertSameDocument('(s) {\n\theader A {args[0]}\n}\n:80 {\n\timport s 1\n}\n', ':80 {\n\theader A 1\n}\n');
});

const upstreams = suite('named upstreams');
upstreams('an upstream pool may be shared by two sites, or defined in a site', () => {
	const text =
		'upstream api {\n\tto 10.0.0.1:80 10.0.0.2:80\n\tlb_policy least_conn\n\thealth_uri /h\n\tlb_retries 2\n\ttransport http {\n\t\tdial_timeout 1s\n\t}\n}\n';
	const { upstreams: found, sites } = compileToDocument(
		`${text}http://a {\n\treverse_proxy upstream://api\n}\nhttp://b {\n\treverse_proxy upstream://api\n}\n`,
		{},
		'configfile',
	) as {
		upstreams: object;
		sites: { pipeline: unknown[] }[];
	};
	assert.equal(Object.keys(found), ['api']);
	assert.equal(sites[0]!.pipeline, sites[1]!.pipeline);
	assert.equal(mistakes(`:80 {\n\t${text.trim().replaceAll('\n', '\n\t')}\n\treverse_proxy upstream://api\n}\n`), []);
});
upstreams('an unknown upstream is an error that suggests the nearest name', () => {
	const { diagnostics } = compileText(
		'upstream api {\n\tto a:1\n}\n:80 {\n\treverse_proxy upstream://apy\n}\n',
		{},
		'configfile',
	);
	assert.match(diagnostics.find(({ severity }) => severity === 'error')!.label ?? '', 'api');
});

const strict = suite('strictness');
/** A kind of name, a configuration with an unknown name of that kind, and the known name that the error suggests. */
for (const [what, text, near] of [
	['directive', ':80 {\n\trespnd x\n}\n', 'respond'],
	['sub-directive', ':80 {\n\tfile_server {\n\t\tindx a\n\t}\n}\n', 'index'],
	['matcher', ':80 {\n\t@a pth /\n\trespond @a x\n}\n', 'path'],
	['name of a matcher', ':80 {\n\t@api path /\n\trespond @apy x\n}\n', '@api'],
	['placeholder', ':80 {\n\trespond {hots}\n}\n', 'host'],
	['snippet', '(secure) {\n}\n:80 {\n\tuse secur\n}\n', 'secure'],
	['parameter', `${secure}:80 {\n\tuse secure max_age=1 polcy=2\n}\n`, 'policy'],
	['constant', 'let port 80\n:80 {\n\trespond {let.prot}\n}\n', 'port'],
	['option', '{\n\tdebgu\n}\n:80 {\n}\n', 'debug'],
] as const) {
	strict(`an unknown ${what}`, () => {
		const diagnostics = compileText(text, {}, 'configfile').diagnostics.filter(({ severity }) => severity === 'error');
		assert.is(diagnostics.length, 1, diagnostics.map(({ message }) => message).join('\n'));
		assert.match(`${diagnostics[0]!.label ?? ''} ${diagnostics[0]!.hint ?? ''}`, near);
	});
}
for (const [what, lines] of [
	['duration', 'request_header A b\n\ttimeouts {\n\t\tread_timeout x\n\t}'],
	['size', 'request_body {\n\t\tmax_size x\n\t}'],
	['status', 'respond "x" x'],
	['address', 'reverse_proxy a:b:c'],
	['CIDR', '@m remote_ip 10.0.0.0/99\n\trespond @m x'],
	['regular expression', '@m path_regexp (\n\trespond @m x'],
	['number', 'encode {\n\t\tminimum_length x\n\t}'],
	['boolean', 'cache {\n\t\tclient_control maybe\n\t}'],
	['URL', 'reverse_proxy http://a/b'],
] as const) {
	strict(`a value that is no ${what}`, () => assert.is(mistakes(`:80 {\n\t${lines}\n}\n`).length, 1));
}
strict('a duplicate name is an error', () => {
	for (const text of [
		':80 {\n\t@a path /\n\t@a path /\n\trespond @a x\n}\n',
		'(a) {\n}\n(a) {\n}\n:80 {\n\timport a\n}\n',
		'let a 1\nlet a 2\n:80 {\n\trespond {let.a}\n}\n',
		'upstream a {\n\tto b:1\n}\nupstream a {\n\tto b:1\n}\n:80 {\n\treverse_proxy upstream://a\n}\n',
	]) {
		assert.is(mistakes(text).length, 1, text);
	}
});
strict('old spellings are errors that give the new ones', () => {
	for (const [old, now] of [
		['skip_log', 'log_skip'],
		['basicauth', 'basic_auth'],
	] as const) {
		const diagnostics = compileText(`:80 {\n\t${old}\n}\n`, {}, 'configfile').diagnostics;
		assert.match(JSON.stringify(diagnostics.map(({ message, label, hint }) => [message, label, hint])), now);
	}
});
/** Each of these configurations gives a warning. */
for (const [what, text] of [
	['a matcher that nothing uses', 'http://localhost:8080 {\n\t@a path /\n\trespond x\n}\n'],
	['a snippet that is not used', '(a) {\n\trespond x\n}\nhttp://localhost:8080 {\n\trespond x\n}\n'],
	['a constant that is not used', 'let a 1\nhttp://localhost:8080 {\n\trespond x\n}\n'],
	['an upstream that is not used', 'upstream a {\n\tto b:1\n}\nhttp://localhost:8080 {\n\trespond x\n}\n'],
	['a directive that can never run', 'http://localhost:8080 {\n\trespond x\n\tfile_server\n}\n'],
	[
		'a branch that an earlier one makes unreachable',
		'http://localhost:8080 {\n\twhen path /a* {\n\t\trespond x\n\t} else when path /ab {\n\t\trespond y\n\t}\n}\n',
	],
	['TLS off on a public name', 'http://example.com {\n\trespond x\n}\n'],
	[
		'a secret in the file',
		'{\n\tadmin localhost:2019 a-token-that-is-secret\n}\nhttp://localhost:8080 {\n\trespond x\n}\n',
	],
] as const) {
	strict(what, async () => {
		const { document, plan, ...more } = compileText(text, {}, 'configfile');
		assert.ok(document && plan, mistakes(text).join('\n'));
		const findings = await lint({
			input: { format: 'configfile', text, name: 'Configfile', path: '/config/Configfile' },
			compiled: { ...more, document: document!, plan: plan! },
			reader: memoryReader({ main: '' }),
			deps: dryRunEnvironment('/'),
			ruleSelection: 'usual',
		});
		assert.ok(
			findings.some(({ severity }) => severity === 'warning'),
			'no warning',
		);
	});
}
strict('all mistakes are reported at once, each with its place', () => {
	assert.is(codes(':80 {\n\trespnd x\n\tredir https://a sometimes\n\t@m pth /\n\trespond @n x\n}\n').length, 4);
});

const values = suite('values');
for (const [one, other] of [
	['1m', '60s'],
	['2h', '120m'],
	['1d', '24h'],
	['250ms', '0.25s'],
] as const) {
	values(`${one} equals ${other}`, () =>
		assertSameDocument(`{\n\tgrace_period ${one}\n}\n:80 {\n}\n`, `{\n\tgrace_period ${other}\n}\n:80 {\n}\n`),
	);
}
for (const [one, other] of [
	['1KB', '1000'],
	['64KiB', '65536'],
	['10MB', '10000000B'],
	['1gib', '1073741824'],
] as const) {
	values(`${one} equals ${other}`, () => {
		const body = (size: string): string => `:80 {\n\trequest_body {\n\t\tmax_size ${size}\n\t}\n}\n`;
		assertSameDocument(body(one), body(other));
	});
}
values('on, yes and true are equal; so are off, no and false', () => {
	const cache = (word: string): string => `:80 {\n\tcache {\n\t\tclient_control ${word}\n\t}\n}\n`;
	for (const word of ['yes', 'true']) assertSameDocument(cache(word), cache('on'));
	for (const word of ['no', 'false']) assertSameDocument(cache(word), cache('off'));
});
values('upstream addresses may have a scheme and a port', () => {
	assert.equal(mistakes(':80 {\n\treverse_proxy a:1 :8080 unix//run/app.sock [::1]:80\n}\n'), []);
});

for (const one of [order, matchers, when, lets, snippets, upstreams, strict, values]) one.run();
