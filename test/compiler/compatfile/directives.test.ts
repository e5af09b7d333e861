/** The directives of the compatible language: a test for each statement of their documentation. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of captures in replacements.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileToDocument, type DryRunQuery, DryRunServer } from './page.ts';

/** The expected parts of a response. */
interface ExpectedResponse {
	readonly status?: number;
	readonly body?: string;
	/** Expected fields; undefined means that the field must be absent. */
	readonly headers?: { readonly [name: string]: string | undefined };
}

type Case = readonly [
	statement: string,
	lines: string,
	asked: string | (DryRunQuery & { readonly url: string }),
	wanted: ExpectedResponse,
];

const CONTROL: readonly Case[] = [
	['handle: exclusive', 'handle /a* {\nheader +X 1\n}\nhandle {\nheader +X 2\n}', '/a', { headers: { x: '1' } }],
	['handle_path: strips', 'handle_path /a/* {\nrespond {path}\n}', '/a/b', { body: '/b' }],
	['handle_path: strips without a slash too', 'handle_path /a* {\nrespond {path}\n}', '/ab', { body: '/b' }],
	['handle_path: an exact path', 'handle_path /a {\nrespond {path}\n}', '/a', { body: '/' }],
	['route: as written', 'route {\nheader +X 1\nrespond x\nheader +X 2\n}', '/', { headers: { x: '1' } }],
	['vars: typed', 'vars a 1.5\n@m expression `{vars.a} == 1.5`\nrespond @m yes', '/', { body: 'yes' }],
	['vars: t is true', 'vars a t\n@m expression `{vars.a} == true`\nrespond @m yes', '/', { body: 'yes' }],
	['vars: T is true', 'vars a T\n@m expression `{vars.a} == true`\nrespond @m yes', '/', { body: 'yes' }],
	['vars: TRUE is true', 'vars a TRUE\n@m expression `{vars.a} == true`\nrespond @m yes', '/', { body: 'yes' }],
	['vars: True is true', 'vars a True\n@m expression `{vars.a} == true`\nrespond @m yes', '/', { body: 'yes' }],
	['vars: f is false', 'vars a f\n@m expression `{vars.a} == false`\nrespond @m yes', '/', { body: 'yes' }],
	['vars: FALSE is false', 'vars a FALSE\n@m expression `{vars.a} == false`\nrespond @m yes', '/', { body: 'yes' }],
	['vars: -3 is -3', 'vars a -3\n@m expression `{vars.a} == -3`\nrespond @m yes', '/', { body: 'yes' }],
	['vars: 1.5 is 1.5', 'vars a 1.5\n@m expression `{vars.a} == 1.5`\nrespond @m yes', '/', { body: 'yes' }],
	['vars: quoted is text', 'vars a "1"\n@m expression `{vars.a} == "1"`\nrespond @m yes', '/', { body: 'yes' }],
	['vars: several', 'vars {\na 1\nb 2\n}\nrespond "{vars.a}{http.vars.b}"', '/', { body: '12' }],
	['root: one argument is the path', 'root /x\nrespond {vars.root}', '/', { body: '/x' }],
	['root: two are matcher and path', 'root /a* /x\nrespond "[{vars.root}]"', '/b', { body: '[]' }],
	['abort: no response', 'abort', '/', { status: 0 }],
	[
		'error: 500',
		'error "x"\nhandle_errors {\nrespond "{err.status_code} {err.message}"\n}',
		'/',
		{ status: 500, body: '500 x' },
	],
	[
		'error: only a status',
		'error 404\nhandle_errors {\nrespond "{err.status_code} [{err.message}]"\n}',
		'/',
		{ status: 404, body: '404 []' },
	],
	['error: both', 'error "x" 403', '/', { status: 403, body: '' }],
	[
		'error: as a block',
		'error 403 {\nmessage "m"\n}\nhandle_errors {\nrespond {err.message}\n}',
		'/',
		{ status: 403, body: 'm' },
	],
	[
		'handle_errors: those with codes come first; among equals, the later one',
		'error 404\nhandle_errors {\nrespond bare\n}\nhandle_errors 404 {\nrespond one\n}\nhandle_errors 4xx {\nrespond two\n}',
		'/',
		{ body: 'two' },
	],
	[
		'handle_errors: the next one runs if one does not respond',
		'error 404\nhandle_errors 404 {\nheader X 1\n}\nhandle_errors {\nrespond bare\n}',
		'/',
		{ body: 'bare' },
	],
	[
		'handle_errors: directives are sorted',
		'error 404\nhandle_errors {\nrespond x\nheader X 1\n}',
		'/',
		{ headers: { x: '1' } },
	],
	[
		'handle_errors: respond keeps the status of the error',
		'error 410\nhandle_errors {\nrespond x\n}',
		'/',
		{ status: 410 },
	],
	['method: in upper case', 'method put\nrespond {method}', '/', { body: 'PUT' }],
	[
		'request_body: set',
		'request_body {\nset "<{query.a}>"\n}\nrespond {http.request.body}',
		{ url: '/?a=b', method: 'POST', body: 'x' },
		{ body: '<b>' },
	],
	[
		'request_body: a body over max_size is a 413',
		'request_body {\nmax_size 3\n}\nrespond {http.request.body}',
		{ url: '/', method: 'POST', body: 'abcd' },
		{ status: 413 },
	],
	[
		'request_body: a body of max_size is accepted',
		'request_body {\nmax_size 4\n}\nrespond {http.request.body}',
		{ url: '/', method: 'POST', body: 'abcd' },
		{ body: 'abcd' },
	],
	['metrics: an exposition', 'metrics /m', '/m', { status: 200 }],
];

const RESPOND: readonly Case[] = [
	['three digits are a status', 'respond 404', '/', { status: 404, body: '' }],
	['two arguments', 'respond "a b" 201', '/', { status: 201, body: 'a b' }],
	['the status may be a placeholder', 'respond x {query.s}', '/?s=202', { status: 202 }],
	['one that is not a number is a 500', 'respond x {query.s}', '/?s=no', { status: 500 }],
	['known placeholders only', 'respond "{host} {no.such}"', '/', { body: 'x {no.such}' }],
	['text', 'respond x', '/', { headers: { 'content-type': 'text/plain; charset=utf-8' } }],
	['JSON object', 'respond `{"a":1}`', '/', { headers: { 'content-type': 'application/json' } }],
	['JSON list, trimmed', 'respond "\n [1] \n"', '/', { headers: { 'content-type': 'application/json' } }],
	['JSON of two characters is text', 'respond "[]"', '/', { headers: { 'content-type': 'text/plain; charset=utf-8' } }],
	[
		'text that only begins like JSON',
		'respond `{"a":`',
		'/',
		{ headers: { 'content-type': 'text/plain; charset=utf-8' } },
	],
	['nothing has no type', 'respond ""', '/', { body: '', headers: { 'content-type': undefined } }],
	['a type that is set', 'header Content-Type text/x\nrespond x', '/', { headers: { 'content-type': 'text/x' } }],
	['no sniffing', 'respond "<html></html>"', '/', { headers: { 'content-type': 'text/plain; charset=utf-8' } }],
	['body', 'respond 200 {\nbody y\n}', '/', { body: 'y' }],
	['redir: 302', 'redir https://y{uri}', '/a?b', { status: 302, headers: { location: 'https://y/a?b' } }],
	['redir: temporary', 'redir https://y temporary', '/', { status: 302 }],
	['redir: permanent', 'redir https://y permanent', '/', { status: 301 }],
	['redir: a number', 'redir https://y 307', '/', { status: 307 }],
	['redir: 401', 'redir https://y 401', '/', { status: 401, headers: { location: 'https://y' } }],
	['redir: a placeholder', 'redir https://y {query.s}', '/?s=303', { status: 303 }],
	[
		'redir: html',
		'redir "https://y/?a=<b>&c" html',
		'/',
		{ status: 200, headers: { 'content-type': 'text/html; charset=utf-8', location: undefined } },
	],
	['redir: an unknown placeholder is empty', 'redir https://y/{no.such}', '/', { headers: { location: 'https://y/' } }],
];

const HEADERS: readonly Case[] = [
	['set replaces all', 'route {\nheader +X 1\nheader +X 2\nheader X 3\nrespond x\n}', '/', { headers: { x: '3' } }],
	['add', 'route {\nheader X 1\nheader +X 2\nrespond x\n}', '/', { headers: { x: '1, 2' } }],
	['delete', 'header -X\nroute {\nheader X 1\nrespond x\n}', '/', { headers: { x: undefined } }],
	[
		'delete by prefix, case-insensitive',
		'header -x-*\nroute {\nheader X-A 1\nheader Y 2\nrespond x\n}',
		'/',
		{ headers: { 'x-a': undefined, y: '2' } },
	],
	['delete by suffix', 'header -*-A\nroute {\nheader X-a 1\nrespond x\n}', '/', { headers: { 'x-a': undefined } }],
	['delete by what is in it', 'header -*b*\nroute {\nheader aBc 1\nrespond x\n}', '/', { headers: { abc: undefined } }],
	[
		'delete all runs first',
		'header {\nX 1\n-*\n}\nroute {\nheader Y 1\nrespond x\n}',
		'/',
		{ headers: { x: '1', y: undefined } },
	],
	['default: where it is not set', 'header ?X 1\nrespond x', '/', { headers: { x: '1' } }],
	['default: not where it is', 'header ?X 1\nroute {\nheader X 2\nrespond x\n}', '/', { headers: { x: '2' } }],
	['deferred set', 'header >X 1\nroute {\nheader X 2\nrespond x\n}', '/', { headers: { x: '1' } }],
	['deferred replace', 'header >X 2 3\nroute {\nheader X 121\nrespond x\n}', '/', { headers: { x: '131' } }],
	[
		'immediate changes are overwritten by later handlers',
		'header X 1\nroute {\nheader X 2\nrespond x\n}',
		'/',
		{ headers: { x: '2' } },
	],
	['defer', 'header {\nX 1\ndefer\n}\nroute {\nheader X 2\nrespond x\n}', '/', { headers: { x: '1' } }],
	['defer with arguments', 'header X 1 {\ndefer\n}\nroute {\nheader X 2\nrespond x\n}', '/', { headers: { x: '1' } }],
	[
		'a delete defers the whole directive',
		'header {\nX 1\n-Y\n}\nroute {\nheader X 2\nrespond x\n}',
		'/',
		{ headers: { x: '1' } },
	],
	[
		'a default does not defer',
		'header {\nX 1\n?Y 1\n}\nroute {\nheader X 2\nrespond x\n}',
		'/',
		{ headers: { x: '2', y: '1' } },
	],
	[
		'replace applies to every value',
		'route {\nheader +X ab\nheader +X cab\nheader X (a)b $1-${1}\nrespond x\n}',
		'/',
		{ headers: { x: 'a-a, ca-a' } },
	],
	[
		'replace applies to all fields',
		'route {\nheader X b\nheader Y bb\nheader * * b c\nrespond x\n}',
		'/',
		{ headers: { x: 'c', y: 'cc' } },
	],
	[
		'an expression with a placeholder is compiled per request',
		'route {\nheader X abc\nheader X {query.r} z\nrespond x\n}',
		'/?r=%5Bab%5D',
		{ headers: { x: 'zzc' } },
	],
	[
		'an invalid expression is skipped',
		'route {\nheader X abc\nheader X {query.r} z\nrespond x\n}',
		'/?r=(',
		{ headers: { x: 'abc' } },
	],
	[
		'order in one directive: add, set, delete, replace',
		'header {\nX b c\n-Z\nX b\n+X a\nZ 1\n}\nrespond x',
		'/',
		{ headers: { x: 'c', z: undefined } },
	],
	['a colon after the name', 'header {\nX: 1\n}\nrespond x', '/', { headers: { x: '1' } }],
	['match', 'header {\nX 1\nmatch status 404\n}\nrespond x', '/', { headers: { x: undefined } }],
	[
		'match as a block',
		'header {\nX 1\nmatch {\nstatus 2xx\nheader Y *\n}\n}\nroute {\nheader Y 1\nrespond x\n}',
		'/',
		{ headers: { x: '1' } },
	],
	[
		'known placeholders are replaced, others kept',
		'header X-{query.n} "{host} {no.such}"\nrespond x',
		'/?n=a',
		{ headers: { 'x-a': 'x {no.such}' } },
	],
	[
		'request_header: set, add, delete',
		'request_header A 1\nrequest_header +A 2\nrequest_header -B\nrespond "{header.a} [{header.b}]"',
		{ url: '/', headers: { b: '1' } },
		{ body: '1,2 []' },
	],
	[
		'request_header: replace',
		'request_header A (.)b ${1}c\nrespond {header.a}',
		{ url: '/', headers: { a: 'ab' } },
		{ body: 'ac' },
	],
	['request_header: Host', 'request_header Host y\nrespond "{host} {http.request.hostport}"', '/', { body: 'y y' }],
	[
		'immediate changes stay in error routes',
		'header X 1\nerror 500\nhandle_errors {\nrespond x\n}',
		'/',
		{ headers: { x: '1' } },
	],
	[
		'deferred changes of a failed handler are dropped',
		'header >X 1\nerror 500\nhandle_errors {\nrespond x\n}',
		'/',
		{ headers: { x: undefined } },
	],
];

const URI: readonly Case[] = [
	['rewrite: the path, the query stays', 'rewrite * /x', '/a?b=c', { body: '/x?b=c' }],
	['rewrite: one argument is the target', 'rewrite /x', '/a', { body: '/x' }],
	['rewrite: the query, the path stays', 'rewrite * ?d=e', '/a?b=c', { body: '/a?d=e' }],
	['rewrite: an empty query clears', 'rewrite * /x?', '/a?b=c', { body: '/x' }],
	['rewrite: both', 'rewrite * /x?d', '/a?b=c', { body: '/x?d' }],
	['rewrite: the query as it is', 'rewrite * /x?{query}&d=e', '/a?b=%20c', { body: '/x?b=%20c&d=e' }],
	['rewrite: nothing leaves no &', 'rewrite * /x?{query}&d=e', '/a', { body: '/x?d=e' }],
	['rewrite: other values are escaped', 'rewrite * /x?d={path}', '/a&b', { body: '/x?d=%2Fa%26b' }],
	['rewrite: placeholders read what was before', 'rewrite * {path}{path}?{query}', '/a?b', { body: '/a/a?b' }],
	['rewrite: ? of a placeholder begins the query', 'rewrite * {query.to}', '/a?to=%2Fx%3Fy%3Dz', { body: '/x?y=z' }],
	['rewrite: paths are escaped', 'rewrite * "/a b{path}"', '/c%20d', { body: '/a%20b/c%20d' }],
	['uri strip_prefix', 'uri strip_prefix /a', '/a/b?c', { body: '/b?c' }],
	['uri strip_prefix: without its slash', 'uri strip_prefix a', '/a/b', { body: '/b' }],
	['uri strip_prefix: case does not count', 'uri strip_prefix /A', '/a/b', { body: '/b' }],
	['uri strip_prefix: cleaned path', 'uri strip_prefix /a/b', '/a//b/c', { body: '/c' }],
	['uri strip_prefix: escapes must match', 'uri strip_prefix /a%2Fb', '/a/b/c', { body: '/a/b/c' }],
	['uri strip_prefix: escapes that match', 'uri strip_prefix /a%2Fb', '/a%2Fb/c', { body: '/c' }],
	['uri strip_suffix', 'uri strip_suffix .html', '/a.HTML', { body: '/a' }],
	['uri replace: path and query', 'uri replace a b', '/a?a=1', { body: '/b?b=1' }],
	['uri replace: at most', 'uri replace a b 1', '/aa', { body: '/ba' }],
	['uri replace: braces', 'uri replace "\\{" x', '/a?b={', { body: '/a?b=x' }],
	['uri path_regexp', 'uri path_regexp /(\\d)(\\d) /$2$1', '/12/34', { body: '/21/43' }],
	['uri query: set', 'uri query a 2', '/?a=1&b=3', { body: '/?a=2&b=3' }],
	['uri query: add', 'uri query +a 2', '/?a=1', { body: '/?a=1&a=2' }],
	['uri query: delete', 'uri query -a', '/?a=1&b=2', { body: '/?b=2' }],
	['uri query: rename', 'uri query a>b', '/?a=1', { body: '/?b=1' }],
	['uri query: rename overwrites', 'uri query a>b', '/?a=1&b=2', { body: '/?b=1' }],
	['uri query: replace', 'uri query a (1) <$1>', '/?a=1&b=1', { body: '/?a=%3C1%3E&b=1' }],
	['uri query: replace in every key', 'uri query * 1 2', '/?a=1&b=1', { body: '/?a=2&b=2' }],
	[
		'uri query: rename, set, add, replace, delete',
		'uri query {\n-d\na 2 3\n+a 2\na 1\nc>d\n}',
		'/?c=1',
		{ body: '/?a=1&a=3' },
	],
	['uri query: keys are sorted', 'uri query c 3', '/?b=2&a=1', { body: '/?a=1&b=2&c=3' }],
	['uri query: placeholders', 'uri query {query.k} {host}', '/?k=v', { body: '/?k=v&v=x' }],
];

const MAP: readonly Case[] = [
	['a literal', 'map {path} {o} {\n/a 1\n}', '/a', { body: '[1]' }],
	['an expression', 'map {path} {o} {\n~^/(.) <${1}>\n}', '/a', { body: '[<a>]' }],
	['a name of a group', 'map {path} {o} {\n~/(?P<n>.) ${n}\n}', '/a', { body: '[a]' }],
	['the first that fits', 'map {path} {o} {\n~a 1\n/a 2\n}', '/a', { body: '[1]' }],
	['the default', 'map {path} {o} {\n/a 1\ndefault {host}\n}', '/b', { body: '[x]' }],
	['no default is nothing', 'map {path} {o} {\n/a 1\n}', '/b', { body: '[]' }],
	['- is left to the next', 'map {path} {p} {o} {\n/a 1 -\n~a 2 3\n}', '/a', { body: '[3]' }],
	['a quoted - is text', 'map {path} {o} {\n/a "-"\n}', '/a', { body: '[-]' }],
	['fewer outputs', 'map {path} {p} {o} {\n/a 1\ndefault 2 3\n}', '/a', { body: '[3]' }],
	['literal outputs hold placeholders', 'map {path} {o} {\n/a "{host}!"\n}', '/a', { body: '[x!]' }],
	['outputs of expressions do not', 'map {path} {o} {\n~a "{host}"\n}', '/a', { body: '[{host}]' }],
];

const OTHERS: readonly Case[] = [
	[
		'intercept: replace_status',
		'intercept {\n@e status 5xx\nreplace_status @e 200\n}\nrespond boom 500',
		'/',
		{ status: 200, body: 'boom' },
	],
	[
		'intercept: handle_response',
		'intercept {\n@e status 404\nhandle_response @e {\nrespond "was {resp.status_code} {http.intercept.header.X}" 201\n}\n}\nroute {\nheader X y\nrespond gone 404\n}',
		'/',
		{ status: 201, body: 'was 404 y' },
	],
	[
		'intercept: routes without a matcher come last',
		'intercept {\nreplace_status 201\n@e status 404\nreplace_status @e 202\n}\nrespond x 404',
		'/',
		{ status: 202 },
	],
	[
		'intercept: other responses are unchanged',
		'intercept {\n@e status 404\nreplace_status @e 202\n}\nrespond x 403',
		'/',
		{ status: 403, body: 'x' },
	],
	['copy_response elsewhere is an error', 'copy_response', '/', { status: 500 }],
	[
		'basic_auth: without credentials',
		'basic_auth {\nbob $2b$04$ZpZshsWJKJDyPwjgSOcxNOvLuuk/jzOFG7jQ/4OlKHjAsnKrPgl/S\n}\nrespond x',
		'/',
		{ status: 401, headers: { 'www-authenticate': 'Basic realm="restricted"' } },
	],
	[
		'basic_auth: the realm is sent',
		'basic_auth bcrypt R {\nbob $2b$04$ZpZshsWJKJDyPwjgSOcxNOvLuuk/jzOFG7jQ/4OlKHjAsnKrPgl/S\n}\nrespond x',
		'/',
		{ headers: { 'www-authenticate': 'Basic realm="R"' } },
	],
	['templates: only their types', 'templates\nheader Content-Type text/x\nrespond "{{1}}"', '/', { body: '{{1}}' }],
	[
		'templates: mime and between',
		'templates {\nmime text/x\nbetween [[ ]]\n}\nheader Content-Type text/x\nrespond "[[add 1 2]]{{1}}"',
		'/',
		{ body: '3{{1}}' },
	],
	[
		'templates: an error in a page is a 500',
		'templates\nheader Content-Type text/html\nrespond "{{nope}}"',
		'/',
		{ status: 500 },
	],
	[
		'templates: httpError',
		'templates\nheader Content-Type text/html\nrespond "{{httpError 418}}"',
		'/',
		{ status: 418 },
	],
	[
		'templates: request fields are available',
		'templates\nheader Content-Type text/html\nrespond `{{.Host}} {{.Req.Method}} {{.Req.URL.Path}} {{.RemoteIP}} {{.ClientIP}} {{.Cookie "a"}} {{ph "http.request.host"}} {{env "SVC_NO_SUCH"}}`',
		{ url: '/p', headers: { cookie: 'a=1' }, from: '10.0.0.1' },
		{ body: 'x GET /p 10.0.0.1 10.0.0.1 1 x ' },
	],
	[
		'templates: validators are removed',
		'templates\nheader Content-Type text/html\nheader Etag x\nheader Last-Modified y\nheader Accept-Ranges z\nrespond abc',
		'/',
		{ headers: { etag: undefined, 'last-modified': undefined, 'accept-ranges': undefined, 'content-length': '3' } },
	],
];

for (const [name, table] of Object.entries({ CONTROL, RESPOND, HEADERS, URI, MAP, OTHERS })) {
	const cases = suite(name.toLowerCase());
	for (const [statement, lines, asked, wanted] of table) {
		cases(`${statement}: ${lines.replaceAll('\n', '; ')}`, async () => {
			const end = name === 'URI' ? '\nrespond {uri}' : name === 'MAP' ? '\nrespond "[{o}]"' : '';
			const server = new DryRunServer(`:80 {\n${lines}${end}\n}\n`);
			const { url, ...more } = typeof asked === 'string' ? { url: asked } : asked;
			const { status, body, header, seen } = await server.ask(`http://x${url}`, more);
			if (wanted.status !== undefined) assert.is(status, wanted.status);
			if (wanted.body !== undefined) assert.is(body, wanted.body);
			for (const [field, value] of Object.entries(wanted.headers ?? {})) {
				const all = seen.response!.headers.getAll(field);
				assert.is(value === undefined ? header(field) : all.join(', '), value, field);
			}
		});
	}
	cases.run();
}

/** Pairs of configurations with the same meaning. */
const EQUIVALENT_LINES: readonly (readonly [statement: string, one: string, other: string])[] = [
	['encode: the block first, then the arguments', 'encode gzip {\nzstd\n}', 'encode zstd gzip'],
	['header lines and one line', 'header {\nX y\n}', 'header X y'],
	['a naked precompressed', 'file_server {\nprecompressed\n}', 'file_server {\nprecompressed br zstd gzip\n}'],
	['hide adds up', 'file_server {\nhide a\nhide b\n}', 'file_server {\nhide a b\n}'],
	['status of a file server', 'file_server browse', 'file_server {\nbrowse\n}'],
	['bind adds up', 'bind 127.0.0.1\nbind ::1', 'bind 127.0.0.1 ::1'],
	[
		'basicauth',
		'basicauth {\na $2b$04$ZpZshsWJKJDyPwjgSOcxNOvLuuk/jzOFG7jQ/4OlKHjAsnKrPgl/S\n}',
		'basic_auth bcrypt restricted {\na $2b$04$ZpZshsWJKJDyPwjgSOcxNOvLuuk/jzOFG7jQ/4OlKHjAsnKrPgl/S\n}',
	],
];
const same = suite('equivalent spellings');
for (const [statement, one, other] of EQUIVALENT_LINES) {
	same(statement, () =>
		assert.equal(compileToDocument(`:80 {\n${one}\n}\n`), compileToDocument(`:80 {\n${other}\n}\n`)),
	);
}
same.run();
