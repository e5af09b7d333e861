/**
 * Client data is never expanded. In every directive and matcher that accepts placeholders, request text that looks like a
 * placeholder, a template action or a regular expression group is passed through unchanged.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../compiler/compiler.ts';
import type { Step } from '../../compiler/document/document.ts';
import { DryRun, type DryRunResult } from '../../compiler/dry-run/dry-run.ts';
import { isRequestUrl, parseRequestUrl } from '../../compiler/dry-run/dry-run-request.ts';
import { escapeHtml } from '../../compiler/exchange/html-text.ts';
import type { Leases } from '../../compiler/exchange/leases.ts';
import { directives } from '../../compiler/modules/registry/directives.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { dryRunEnvironment } from '../../runtime/compile/dry-run-environment.ts';
import { temporaryFolder } from '../harness.ts';
import { DryRunServer } from './compatfile/page.ts';
import { buildTestSite, fakeExchange } from './fake-exchange.ts';

const SECRET = 'the-secret-of-the-environment';
process.env.SVC_TEST_SECRET = SECRET;

/** Data sent by the client, in a field and in the query. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: client data
const CLIENT_DATA = '{env.SVC_TEST_SECRET}{{env "SVC_TEST_SECRET"}}${1}$1{http.request.host}\\{';
const PLACEHOLDER = '{header.x-data}';

const root = temporaryFolder();
mkdirSync(path.join(root, 'sub'));
writeFileSync(
	path.join(root, 'page.html'),
	`{{.Req.Header.Get "X-Data"}}|{{placeholder "http.request.header.X-Data"}}`,
);
writeFileSync(path.join(root, 'env'), SECRET);

/** A configuration, and the text in which the client's data must appear, unchanged or encoded as its place requires. */
interface Case {
	readonly of: string;
	readonly site: string;
	/** The language; the default is `compatfile`. */
	readonly format?: 'configfile';
	readonly method?: string;
	/** The request target: path and query. */
	readonly target?: string;
	readonly out: (seen: DryRunResult, body: string) => string | undefined;
	readonly expected?: string;
}

const body = (_: DryRunResult, text: string): string => text;
const field =
	(name: string) =>
	(seen: DryRunResult): string | undefined =>
		seen.response!.headers.get(name);
const sent =
	(name: string) =>
	(seen: DryRunResult): string | undefined =>
		seen.exchange.upstreamRequests[0]?.request.headers.get(name);
/** Returns a function that reads a query parameter, decoded, from the URL in the response body. */
const queryParameter =
	(name: string) =>
	(_: DryRunResult, text: string): string | null =>
		new URLSearchParams(text.slice(text.indexOf('?') + 1)).get(name);
const up = 'reverse_proxy 127.0.0.1:9';
/** Returns the value of a variable that was passed to a FastCGI application. */
const fastcgiVariable = (seen: DryRunResult, name: string): string | undefined => {
	const params = seen.exchange.upstreamRequests[0]?.request.transport?.params ?? [];
	return params[params.indexOf(name) + 1];
};

const CASES: readonly Case[] = [
	{ of: 'respond', site: `respond "${PLACEHOLDER}"`, out: body },
	{ of: 'respond', site: 'respond "{query.x}"', out: body },
	{ of: 'respond', site: 'respond "{http.request.body}"', out: body },
	{
		of: 'respond',
		site: 'respond "{http.request.header.x-data}" {header.x-data}',
		out: seen => String(seen.response!.status),
		expected: '500',
	},
	{
		of: 'redir',
		site: 'redir * /to?x={query.x}',
		out: seen => new URLSearchParams(field('location')(seen)!.split('?')[1]).get('x')!,
	},
	{ of: 'rewrite', site: 'rewrite * /to?x={query.x}\nrespond {uri}', out: queryParameter('x') as Case['out'] },
	{ of: 'rewrite', site: 'rewrite * /to/{query.x}\nrespond {path}', out: (_, text) => text.slice(4) },
	{ of: 'uri', site: 'uri query x2 {query.x}\nrespond {uri}', out: queryParameter('x2') as Case['out'] },
	{ of: 'uri', site: 'uri query +x {query.x}\nrespond {uri}', out: queryParameter('x') as Case['out'] },
	{ of: 'uri', site: 'uri query x (.+) "<$1>"\nrespond {query.x}', out: (_, text) => text.slice(1, -1) },
	{
		of: 'uri',
		site: 'uri path_regexp ^/(.*)$ "/<$1>"\nrespond {path}',
		target: `/${encodeURIComponent('{env.SVC_TEST_SECRET}$1')}`,
		out: body,
		expected: '/<{env.SVC_TEST_SECRET}$1>',
	},
	{
		of: 'uri',
		site: 'uri replace a {query.x}\nrespond {path}',
		target: `/a?x=${encodeURIComponent(CLIENT_DATA)}`,
		out: (_, text) => decodeURIComponent(text.slice(1)),
	},
	{ of: 'header', site: `header X-Out "${PLACEHOLDER}"\nrespond x`, out: field('x-out') },
	{ of: 'header', site: `header +X-Out "${PLACEHOLDER}"\nrespond x`, out: field('x-out') },
	{ of: 'header', site: `header ?X-Out "${PLACEHOLDER}"\nrespond x`, out: field('x-out') },
	{ of: 'header', site: `header >X-Out "${PLACEHOLDER}"\nrespond x`, out: field('x-out') },
	{
		of: 'header',
		site: `header X-Out "(b)"\nheader X-Out (b) "${PLACEHOLDER}"\nrespond x`,
		out: seen => field('x-out')(seen)?.slice(1, -1),
	},
	{ of: 'request_header', site: `request_header X-Out "${PLACEHOLDER}"\nrespond {header.x-out}`, out: body },
	{
		of: 'request_header',
		site: `request_header X-Data (.+) "<$1>"\nrespond {header.x-data}`,
		out: (_, text) => text.slice(1, -1),
	},
	{ of: 'vars', site: `vars out "${PLACEHOLDER}"\nrespond {vars.out}`, out: body },
	{ of: 'vars', site: `route {\nvars one "${PLACEHOLDER}"\nvars two {vars.one}\nrespond {vars.two}\n}`, out: body },
	{ of: 'map', site: `map ${PLACEHOLDER} {out} {\n~^(.*)$ "\${1}"\n}\nrespond {out}`, out: body },
	{ of: 'map', site: `map {host} {out} {\ndefault "${PLACEHOLDER}"\n}\nrespond {out}`, out: body },
	{ of: 'error', site: `error "${PLACEHOLDER}" 410\nhandle_errors {\nrespond {err.message}\n}`, out: body },
	{ of: 'handle_errors', site: `error x 410\nhandle_errors {\nheader X-Out "${PLACEHOLDER}"\n}`, out: field('x-out') },
	{ of: 'request_body', site: `request_body {\nset "${PLACEHOLDER}"\n}\nrespond {http.request.body}`, out: body },
	{
		of: 'method',
		site: 'method {query.m}\nrespond {method}',
		target: '/?m=%7Benv.SVC_TEST_SECRET%7D',
		out: seen => String(seen.response!.status),
		expected: '500',
	},
	{
		of: 'root',
		method: 'GET',
		site: `root * ${root}/{query.x}\nfile_server`,
		target: '/env',
		out: seen => String(seen.response!.status),
		expected: '200',
	},
	{
		of: 'root',
		method: 'GET',
		site: `root * ${root}/{query.x}\nfile_server`,
		target: '/env?x=%7Benv.SVC_TEST_SECRET%7D',
		out: seen => String(seen.response!.status),
		expected: '404',
	},
	{
		of: 'file_server',
		method: 'GET',
		site: `file_server {\nroot ${root}/{query.x}\n}`,
		target: '/env?x=..%2F%7Benv.PATH%7D',
		out: seen => String(seen.response!.status),
		expected: '400',
	},
	{
		of: 'try_files',
		site: `root * ${root}\ntry_files /{query.x} /none\nrespond {path}`,
		target: '/?x=%7Bpath%7D',
		out: body,
		expected: '/',
	},
	{
		of: 'templates',
		method: 'GET',
		site: `root * ${root}\ntemplates\nfile_server`,
		target: '/page.html',
		out: body,
		expected: `${CLIENT_DATA}|${CLIENT_DATA}`,
	},
	{
		of: 'templates',
		site: `templates\nheader Content-Type text/html\nrespond "<${PLACEHOLDER}>"`,
		out: (_, text) => text.slice(1, -1),
	},
	{
		of: 'push',
		method: 'GET',
		site: 'push * /{query.x}.css\nrespond x',
		target: '/?x=%7Benv.SVC_TEST_SECRET%7D',
		out: seen => seen.exchange.interimResponses[0]?.headers.get('link'),
		expected: '</%7Benv.SVC_TEST_SECRET%7D.css>; rel=preload; as=style',
	},
	{
		of: 'log_append',
		site: `log_append <out "${PLACEHOLDER}"\nrespond x`,
		out: seen => seen.exchange.log?.fields?.out as string,
	},
	{
		of: 'tracing',
		site: `tracing {\nspan "${PLACEHOLDER}"\n}\nrespond {header.traceparent}`,
		out: (_, text) => text.slice(0, 3),
		expected: '00-',
	},
	{
		of: 'intercept',
		site: `header X-From "${PLACEHOLDER}"\nintercept {\nhandle_response {\nrespond {resp.header.X-From}\n}\n}\nrespond x`,
		out: body,
	},
	{
		of: 'intercept',
		site: 'intercept {\nreplace_status {query.s}\n}\nrespond x',
		target: '/?s=%7Benv.PATH%7D',
		out: seen => String(seen.response!.status),
		expected: '500',
	},
	{ of: 'invoke', site: `invoke shared`, out: body },
	{ of: 'handle', site: `handle {\nheader X-Out "${PLACEHOLDER}"\n}`, out: field('x-out') },
	{
		of: 'handle_path',
		site: `handle_path /a/* {\nrespond {path}\n}`,
		target: `/a/${encodeURIComponent('{env.PATH}$1')}`,
		out: body,
		expected: '/{env.PATH}$1',
	},
	{ of: 'route', site: `route {\nrespond "${PLACEHOLDER}"\n}`, out: body },
	{ of: 'reverse_proxy', site: `${up} {\nheader_up X-Out "${PLACEHOLDER}"\n}`, out: sent('x-out') },
	{ of: 'reverse_proxy', site: up, out: sent('x-data') },
	{ of: 'reverse_proxy', site: `${up} {\nheader_down X-Out "${PLACEHOLDER}"\n}`, out: field('x-out') },
	{
		of: 'reverse_proxy',
		site: `${up} {\nrewrite /up?x={query.x}\n}`,
		out: seen => new URLSearchParams(seen.exchange.upstreamRequests[0]!.request.target.split('?')[1]).get('x')!,
	},
	{
		of: 'mirror',
		format: 'configfile',
		site: `mirror 127.0.0.1:9 {\nheader_up X-Out "${PLACEHOLDER}"\n}\nrespond "{http.request.body}"`,
		out: seen => seen.exchange.mirroredRequests[0]?.request.headers.get('x-out'),
	},
	{
		of: 'mirror',
		format: 'configfile',
		site: 'mirror 127.0.0.1:9 {\nrewrite /up?x={query.x}\n}\nrespond "{http.request.body}"',
		out: seen => new URLSearchParams(seen.exchange.mirroredRequests[0]!.request.target.split('?')[1]).get('x')!,
	},
	{
		of: 'mirror',
		format: 'configfile',
		method: 'GET',
		site: 'mirror {query.x}\nrespond ok',
		target: '/?x=%7Bhttp.request.host%7D:80',
		// If the text were expanded, it would be an address, and a request would be sent to it.
		out: seen => String(seen.exchange.mirroredRequests.length),
		expected: '0',
	},
	{
		of: 'forward_auth',
		site: 'forward_auth 127.0.0.1:9 {\nuri /auth?x={query.x}\n}',
		out: seen => new URLSearchParams(seen.exchange.upstreamRequests[0]!.request.target.split('?')[1]).get('x')!,
	},
	{
		of: 'reverse_proxy',
		method: 'GET',
		site: 'reverse_proxy {query.x}',
		target: '/?x=%7Bhttp.request.host%7D:80',
		// If the text were expanded, it would be an address, and a request would be sent to it.
		out: seen => String(seen.exchange.upstreamRequests.length),
		expected: '0',
	},
	{
		of: 'reverse_proxy',
		site: `reverse_proxy https://127.0.0.1:9 {\ntransport http {\ntls_server_name {query.x}\n}\n}`,
		target: '/?x=%7Bhttp.request.host%7D',
		out: seen => String(seen.exchange.upstreamRequests[0]?.request.transport?.serverName),
		expected: '',
	},
	{
		of: 'reverse_proxy',
		site: `${up} {\nheader_up X-Data (.+) "<$1>"\n}`,
		out: seen => sent('x-data')(seen)?.slice(1, -1),
	},
	{
		of: 'reverse_proxy',
		site: `${up} {\nhandle_response {\nrespond "{query.x}"\n}\n}`,
		out: body,
	},
	{
		of: 'forward_auth',
		site: 'forward_auth 127.0.0.1:9 {\nuri /auth\ncopy_headers X-Data\n}\nrespond "[{header.x-data}]"',
		out: body,
		expected: '[]',
	},
	{
		of: 'php_fastcgi',
		method: 'GET',
		site: `root * ${root}\nphp_fastcgi 127.0.0.1:9 {\nenv OUT "${PLACEHOLDER}"\ntry_files /env\nsplit env\n}`,
		target: '/x',
		out: seen => fastcgiVariable(seen, 'OUT'),
	},
	{
		of: 'php_fastcgi',
		method: 'GET',
		site: `root * ${root}\nreverse_proxy 127.0.0.1:9 {\ntransport fastcgi {\nenv OUT "${PLACEHOLDER}"\n}\n}`,
		target: '/x.php',
		out: seen => fastcgiVariable(seen, 'HTTP_X_DATA'),
	},
	{
		of: 'push',
		method: 'GET',
		site: 'push * {\n/a.css\nheaders {\nX-Out {header.x-data}\n}\n}\nrespond x',
		out: seen => seen.exchange.interimResponses[0]?.headers.get('link'),
		expected: '</a.css>; rel=preload; as=style',
	},
	{
		of: 'error',
		site: 'error x {query.s}\nhandle_errors {\nrespond {err.status_code}\n}',
		target: '/?s=%7Benv.PATH%7D',
		out: body,
		expected: '500',
	},
	{
		of: 'redir',
		site: 'redir https://x {query.s}',
		target: '/?s=%7Benv.PATH%7D',
		out: seen => String(seen.response!.status),
		expected: '500',
	},
	{
		of: 'redir',
		site: 'redir https://x/{header.x-data} html',
		out: (_, text) => (text.includes(SECRET) ? SECRET : 'x'),
		expected: 'x',
	},
	{
		of: 'basic_auth',
		site: 'basic_auth {\nbob $2b$04$ZpZshsWJKJDyPwjgSOcxNOvLuuk/jzOFG7jQ/4OlKHjAsnKrPgl/S\n}\nhandle_errors {\nrespond "{http.auth.user.id}{http.auth.candidate.id}"\n}',
		out: (_, text) => (text.includes(SECRET) ? SECRET : 'x'),
		expected: 'x',
	},
	{
		of: 'matcher path',
		site: `@m path /{query.x}\nrespond @m yes\nrespond no`,
		target: `/${encodeURIComponent('{env.PATH}')}?x=%7Benv.PATH%7D`,
		out: body,
		expected: 'yes',
	},
	{
		of: 'matcher host',
		site: `@m host {query.x}\nrespond @m yes\nrespond no`,
		target: '/?x=%7Bhttp.request.host%7D',
		out: body,
		expected: 'no',
	},
	{ of: 'matcher header', site: `@m header X-Data {query.x}\nrespond @m yes\nrespond no`, out: body, expected: 'yes' },
	{
		of: 'matcher header',
		site: `@m header X-Data {query.x}\nrespond @m yes\nrespond no`,
		target: '/?x=%7Bhttp.request.header.X-Data%7D',
		out: body,
		expected: 'no',
	},
	{ of: 'matcher query', site: `@m query x={header.x-data}\nrespond @m yes\nrespond no`, out: body, expected: 'yes' },
	{
		of: 'matcher query',
		site: `@m query x={query.y}\nrespond @m yes\nrespond no`,
		target: '/?x=a&y=%7Bquery.x%7D',
		out: body,
		expected: 'no',
	},
	{
		of: 'matcher vars',
		site: `@m vars {query.x} {header.x-data}\nrespond @m yes\nrespond no`,
		out: body,
		expected: 'yes',
	},
	{
		of: 'matcher vars',
		site: `@m vars {query.x} ${SECRET}\nrespond @m yes\nrespond no`,
		target: '/?x=%7Benv.SVC_TEST_SECRET%7D',
		out: body,
		expected: 'no',
	},
	{
		of: 'matcher vars_regexp',
		site: `@m vars_regexp {query.x} ${SECRET}\nrespond @m yes\nrespond no`,
		target: '/?x=%7Benv.SVC_TEST_SECRET%7D',
		out: body,
		expected: 'no',
	},
	{ of: 'matcher header_regexp', site: `@m header_regexp X-Data (.+)\nrespond @m {re.1}\nrespond no`, out: body },
	{
		of: 'matcher path_regexp',
		site: `@m path_regexp ^/(.+)$\nrespond @m {re.1}\nrespond no`,
		target: `/${encodeURIComponent('{env.PATH}$1')}`,
		out: body,
		expected: '{env.PATH}$1',
	},
	{
		of: 'matcher expression',
		site: `@m expression \`{query.x} == {header.x-data}\`\nrespond @m yes\nrespond no`,
		out: body,
		expected: 'yes',
	},
	{
		of: 'matcher expression',
		site: `@m expression \`{query.x} == "${SECRET}" || {query.x} == true\`\nrespond @m yes\nrespond no`,
		target: '/?x=%7Benv.SVC_TEST_SECRET%7D',
		out: body,
		expected: 'no',
	},
	{
		of: 'matcher expression',
		site: '@m expression `path("/" + {query.x})`\nrespond @m yes\nrespond no',
		target: '/a?x=%7Bpath%7D',
		out: body,
		expected: 'no',
	},
	{
		of: 'matcher file',
		site: `@m file {\nroot ${root}\ntry_files /{query.x}\n}\nrespond @m yes\nrespond no`,
		target: '/?x=*',
		out: body,
		expected: 'no',
	},
	{
		of: 'matcher url_pattern',
		site: '@m url_pattern /:x\nrespond @m {http.url_pattern.pathname.x}',
		target: `/${encodeURIComponent('{env.PATH}')}`,
		out: body,
		expected: '{env.PATH}',
	},
];

const data = suite('request data');

for (const { of, site, format, target, out, expected, method = 'POST' } of CASES) {
	data(`${of}: ${site.replaceAll('\n', '; ').replaceAll(root, 'ROOT')} ${target ?? ''}`, async () => {
		const route = format === 'configfile' ? '' : `&(shared) {\nrespond "${PLACEHOLDER}"\n}\n`;
		const text = `${route}:8080 {\n${site}\n}\n`;
		const compiled = compile({ format: format ?? 'compatfile', text, name: 'text' }, diskReader(root));
		const errors = compiled.diagnostics.filter(({ severity }) => severity === 'error');
		assert.ok(compiled.plan, errors.map(({ message }) => message).join('\n'));
		const url = parseRequestUrl(`http://example.com:8080${target ?? `/?x=${encodeURIComponent(CLIENT_DATA)}`}`);
		if (!isRequestUrl(url)) throw new Error(url.message);
		const seen = await new DryRun(compiled.plan!, dryRunEnvironment(root)).run({
			method,
			url,
			headers: [['X-Data', CLIENT_DATA]],
			body: method === 'GET' ? undefined : CLIENT_DATA,
			from: undefined,
			at: undefined,
		});
		const answer = Buffer.from(await seen!.response!.bytes()).toString('utf8');
		assert.is(out(seen!, answer), expected ?? CLIENT_DATA);
		if (!site.includes('file_server')) assert.not.ok(answer.includes(SECRET), answer);
	});
}

data('cache: a key contains the data as sent, not expanded', async () => {
	const server = new DryRunServer(
		`:8080 {\ncache {\nttl 1m\nkey "{query.x}"\n}\nheader Cache-Control max-age=60\nrespond "{query.n}"\n}\n`,
	);
	const ask = async (x: string, n: string): Promise<string> =>
		(await server.ask(`http://a:8080/?n=${n}&x=${encodeURIComponent(x)}`)).body;
	assert.is(await ask(SECRET, '1'), '1');
	assert.is(await ask(SECRET, '2'), '1', 'one key has one response');
	assert.is(await ask('{env.SVC_TEST_SECRET}', '3'), '3');
});

data('rate_limit: a key contains the data as sent, not expanded', async () => {
	const server = new DryRunServer(`:8080 {\nrate_limit a 1 per 1h {\nkey "{query.x}"\n}\nrespond "ok"\n}\n`);
	const ask = async (x: string): Promise<number> =>
		(await server.ask(`http://a:8080/?x=${encodeURIComponent(x)}`)).status;
	assert.is(await ask(SECRET), 200);
	assert.is(await ask(SECRET), 429, 'one key has one limit');
	assert.is(await ask('{env.SVC_TEST_SECRET}'), 200);
});

data('limit_concurrent: a key contains the data as sent, not expanded', async () => {
	const keys: string[] = [];
	const limiter = {
		enter: (_x: unknown, key: string) => {
			keys.push(key);
			return { leave: () => {} };
		},
		countOutcome: () => {},
	};
	const leases: Leases = { lease: kind => (kind === 'concurrency_limiter' ? limiter : { record() {} }) as never };
	const step = { handler: 'limit_concurrent', zones: [{ name: 'a', requests: 1, key: '{http.request.header.X-Key}' }] };
	const site = buildTestSite([step as Step, { handler: 'respond' }], { leases });
	await site.runSite(fakeExchange({ headers: [['X-Key', CLIENT_DATA]] }));
	assert.equal(keys, [CLIENT_DATA]);
});

data('limit_rate: a rate is the data as sent, not expanded', async () => {
	process.env.SVC_TEST_RATE = '1MiB';
	const server = new DryRunServer(':8080 {\nlimit_rate {query.x}\nrespond ok\n}\n', { format: 'configfile' });
	const ask = async (x: string): Promise<number> =>
		(await server.ask(`http://a:8080/?x=${encodeURIComponent(x)}`)).status;
	assert.is(await ask('1MiB'), 200);
	assert.is(await ask('{env.SVC_TEST_RATE}'), 500);
});

data('replace: a replacement is the data as sent, not expanded', async () => {
	const server = new DryRunServer(
		`:8080 {\nreplace here "{query.x}"\nheader Content-Type text/plain\nrespond "It is here."\n}\n`,
		{ format: 'configfile' },
	);
	const { body } = await server.ask(`http://a:8080/?x=${encodeURIComponent(CLIENT_DATA)}`);
	assert.is(body, `It is ${CLIENT_DATA}.`);
	assert.not.ok(body.includes(SECRET));
});

data('errors_page: texts contain the data as sent, escaped for the type of the page and not expanded', async () => {
	const server = new DryRunServer(
		`:8080 {\nerrors_page {\ntitle "{query.x}"\ntext "${PLACEHOLDER}"\n}\nerror 400\n}\n`,
		{ format: 'configfile' },
	);
	const ask = async (accept: string): Promise<string> => {
		const url = `http://a:8080/?x=${encodeURIComponent(`<b>${CLIENT_DATA}`)}`;
		return (
			await server.ask(url, {
				headers: [
					['Accept', accept],
					['X-Data', CLIENT_DATA],
				],
			})
		).body;
	};
	const page = await ask('text/html');
	assert.ok(page.includes(`<h1>${escapeHtml(`<b>${CLIENT_DATA}`)}</h1>`), page);
	assert.ok(page.includes(`<p>${escapeHtml(CLIENT_DATA)}</p>`), page);
	assert.equal(JSON.parse(await ask('application/json')), { status: 400, error: 'Bad Request', message: CLIENT_DATA });
	assert.is(await ask('*/*'), `400 <b>${CLIENT_DATA}\n${CLIENT_DATA}\n`);
	assert.not.ok(page.includes(SECRET));
});

data('every directive that takes text is tested', () => {
	const covered = new Set(CASES.map(({ of }) => of));
	// These directives accept either no placeholders of the request, or only names that occur in the configuration itself.
	const withoutPlaceholders = new Set([
		...['abort', 'bind', 'copy_response', 'copy_response_headers', 'fs', 'log', 'log_name', 'log_skip'],
		...['live', 'metrics', 'ready', 'when', 'timeouts', 'tls', 'encode', 'acme_server', 'cookie', 'split'],
		// The directives in the next line are tested below.
		...['cache', 'errors_page', 'limit_concurrent', 'limit_rate', 'rate_limit', 'replace'],
	]);
	const words = directives.flatMap(({ names }) => (names.compatfile[0] ?? names.configfile[0]) || []);
	const untested = words.filter(name => !covered.has(name) && !withoutPlaceholders.has(name));
	assert.equal(untested, [], 'add a case to CASES, or the name to `withoutPlaceholders`');
});

data.run();
