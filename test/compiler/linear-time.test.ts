/** For any 16 KiB from a client, no matcher and no request edit takes more than 50 ms of CPU time. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { buildSite } from '../../compiler/codegen/build-site.ts';
import { UNKNOWN_HOST_FACTS } from '../../compiler/codegen/placeholders/index.ts';
import { compile } from '../../compiler/compiler.ts';
import { IpRanges } from '../../compiler/exchange/ip-ranges.ts';
import { parseTraceState } from '../../compiler/exchange/trace-context.ts';
import { formatQuery, parseQueryLeniently, readQueryParameter } from '../../compiler/exchange/uri-escape.ts';
import { parseCacheControl } from '../../compiler/modules/directives/cache/cache-control.ts';
import { normalizeSelectingValue } from '../../compiler/modules/directives/cache/selection.ts';
import { compileHiddenTest } from '../../compiler/modules/directives/file-server/hidden.ts';
import { preferredCoding } from '../../compiler/modules/representations/accept-encoding.ts';
import { etagListHas } from '../../compiler/modules/representations/conditional.ts';
import { parseRange } from '../../compiler/modules/representations/ranges.ts';
import { ReadError, type Reader } from '../../compiler/source/reader.ts';
import { compileLogFilters } from '../../runtime/logs/log-filters.ts';
import { fakeExchange, NO_LEASES, type RequestFields } from './fake-exchange.ts';
import { templateFailureMessage } from './modules/templates/render-text.ts';

const REQUEST_LENGTH = 16_384;
const MAX_MS = 50;

const missing = (path: string): never => {
	throw new ReadError('ENOENT', path);
};
const NO_FILES: Reader = {
	readText: missing,
	readBytes: missing,
	list: missing,
	kind: () => undefined,
	env: () => undefined,
	workingDirectory: '/work',
};

/** Repeats a text until it is as long as a request may be. */
function fillRequest(text: string): string {
	return text.repeat(Math.ceil(REQUEST_LENGTH / text.length)).slice(0, REQUEST_LENGTH);
}

/** Asserts that a call is fast enough. The fastest of several runs counts, because other processes also use the processor. */
function assertFast(what: () => unknown, description: string): void {
	let minimumMs = Infinity;
	for (let times = 0; times < 4 && minimumMs > MAX_MS; times++) {
		const { user } = process.threadCpuUsage();
		what();
		minimumMs = Math.min(minimumMs, (process.threadCpuUsage().user - user) / 1000);
	}
	assert.ok(minimumMs <= MAX_MS, `${description} takes ${minimumMs} ms`);
}

const requests = suite('requests');

const SLOW = '(.*)-(.*)-(.*)-(.*)!$';
const DASHES = fillRequest('-');

/** Pairs of lines of a site and a request that is chosen to make their evaluation slow. */
const REQUESTS: readonly (readonly [lines: string, request: RequestFields])[] = [
	['@m path_regexp ^/a/(.*)/(.*)/(.*)/(.*)\\.html$', { target: `/a/${fillRequest('x/')}` }],
	[`@m path_regexp (a|aa)+$`, { target: `/${fillRequest('a')}!` }],
	['@m url_pattern /blog/:year-:month-:day-:slug.html', { target: `/blog/${DASHES}` }],
	['@m url_pattern "/x\\\\?a=*b=*c=*d=*e"', { target: `/x?a=${fillRequest('b=c=d=')}` }],
	['@m url_pattern "http://*.*.*.*.test/"', { authority: `${fillRequest('a.')}a` }],
	[`@m expression \`{http.request.uri.path}.matches("${SLOW}")\``, { target: `/${DASHES}` }],
	[`@m expression \`path_regexp("${SLOW}")\``, { target: `/${DASHES}` }],
	['@m expression `{query.q}.matches({query.p})`', { target: `/?p=(a|a)*(a|a)*(a|a)*!&q=${fillRequest('a')}` }],
	[`@m header_regexp Cookie ${SLOW}`, { headers: [['Cookie', DASHES]] }],
	[`@m vars_regexp {query.q} ${SLOW}`, { target: `/?q=${DASHES}` }],
	[`request_header X-A ${SLOW} $1`, { headers: [['X-A', DASHES]] }],
	['request_header X-A "a*b|a" x', { headers: [['X-A', fillRequest('a')]] }],
	[`request_header * * ${SLOW} $1`, { headers: [['X-A', DASHES]] }],
	[
		'request_header X-A {header.Find} x',
		{
			headers: [
				['X-A', fillRequest('a')],
				['Find', '(a|a?)*(a|a?)*!'],
			],
		},
	],
	[`header X-A ${SLOW} $1`, {}],
	[`uri path_regexp ${SLOW} x`, { target: `/${DASHES}` }],
	[`uri query q ${SLOW} x`, { target: `/?q=${DASHES}` }],
	[`uri query * {query.p} x`, { target: `/?p=(-*)*!&q=${DASHES}` }],
	[`map {path} {o} {\n~${SLOW} y\ndefault z\n}\nrespond {o}`, { target: `/${DASHES}` }],
	['@m path /*a*a*a*a*b', { target: `/${fillRequest('a')}` }],
	['@m path *a*a*a*a*b', { target: `/${fillRequest('a')}` }],
	['@m path /*/*/*/[ab]*/x', { target: fillRequest('/a') }],
	['@m path /*%2f*%2f*%2fx', { target: fillRequest('/%2f') }],
	['@m path {query.p}', { target: `/${fillRequest('a').slice(0, 8000)}?p=${fillRequest('*a').slice(0, 8000)}` }],
	['@m header X-A *a*', { headers: [['X-A', fillRequest('b')]] }],
	['@m host *.*.test', { authority: `${fillRequest('a.')}a` }],
	['@m query a=b', { target: `/?${fillRequest('a&')}` }],
	['uri query {\n-a\nx>y\n+z 1\n}', { target: `/?${fillRequest('a=1&')}` }],
	['uri replace a bb', { target: fillRequest('/a') }],
	['rewrite * /x{uri}?{query}&a={query.a}', { target: `/?${fillRequest('a=1&')}` }],
	['respond {cookie.zz}{cookie.a}', { headers: [['Cookie', fillRequest('a=1; ')]] }],
	['respond {path.7}{labels.7}', { target: fillRequest('/a'), authority: `${fillRequest('a.')}a` }],
	[
		'request_header -X-1*\nrequest_header * * a b',
		{ headers: Array.from({ length: 2000 }, (_, at) => [`X-${at}`, 'a']) },
	],
	['@m client_ip 10.0.0.0/8', { headers: [['X-Forwarded-For', fillRequest('1.1.1.1, ')]] }],
];

for (const [lines, request] of REQUESTS) {
	requests(lines.replaceAll('\n', '; '), async () => {
		const text = `:9080 {\n${lines}\n${lines.startsWith('@m') ? 'respond @m x' : ''}\n}\n`;
		const input = { format: 'configfile', text, name: 'Configfile', path: '/etc/Configfile' } as const;
		const { document, diagnostics } = compile(input, NO_FILES);
		assert.equal(
			diagnostics.filter(({ severity }) => severity === 'error').map(({ message }) => message),
			[],
		);
		const settings = { ...document!.settings, trusted_proxies: ['127.0.0.0/8'] };
		const deps = { settings, upstreams: {}, routes: {}, leases: NO_LEASES, facts: UNKNOWN_HOST_FACTS };
		const site = buildSite(document!.sites![0]!, 0, deps);
		const handle = (): void => {
			const x = fakeExchange(request);
			if (lines.startsWith('header ')) x.response.headers.add('X-A', DASHES);
			try {
				assert.is(site.runSite(x), undefined);
			} catch (error) {
				assert.is((error as Error).name, 'HttpError');
			}
		};
		assertFast(handle, lines);
	});
}

requests.run();

const fields = suite('fields and strings');

/** Texts that may be slow to parse, each for another kind of parser. */
const TEXTS: readonly string[] = [
	...['a', ' ', ',', '=', '"', '/', '.', '-', ';', '&', '%', '\\', '*', '0', '1.', 'é'],
	...['a,', ' ,', 'a=1,', 'a="', '"a",', 'W/"a",', 'a;q=0.1,', '1-2,', 'a=1; ', 'a&', 'a=b&', '/..', '%2e/', 'a '],
].map(fillRequest);
const HARD = [...TEXTS, ...TEXTS.flatMap(text => [`a${text}b`, `a=${text}"x`, `"${text}`, `bytes=${text}`])];

const READERS: { readonly [name: string]: (text: string) => unknown } = {
	'Accept-Encoding': text => preferredCoding(text, ['gzip', 'br']),
	'Accept-Language as it selects': text => normalizeSelectingValue('accept-language', text),
	'Cache-Control': parseCacheControl,
	'If-None-Match': text => etagListHas(text, '"none"', false),
	Range: text => parseRange(text, 1_000_000),
	Tracestate: parseTraceState,
	query: text => formatQuery(parseQueryLeniently(text)),
	'a parameter of a query': text => readQueryParameter(text, 'a'),
	'hidden names': text => compileHiddenTest(['*a*b*c*d*.e'])(`/${text}`, `/${text}`),
	'hidden paths': text => compileHiddenTest(['/srv/*a*b*c*.d/*/e'])(`/srv/${text}`, `/${text}`),
};

for (const [name, read] of Object.entries(READERS)) {
	fields(name, () => {
		for (const text of HARD) assertFast(() => read(text), `${name}: ${text.slice(0, 20)}…`);
	});
}

fields('zones of IP addresses are parsed in linear time', () => {
	const ranges = new IpRanges(['fe80::1%*a*a*a*a*b']);
	const address = `fe80::1%${fillRequest('a')}`;
	assert.is(ranges.contains(`${address}b`), true);
	assertFast(() => ranges.contains(address), 'a zone');
});

fields('log filters take linear time', () => {
	const filters = [
		{ filter: 'regexp', rules: [{ find: SLOW, replace: 'x' }] },
		{ filter: 'ip_mask' },
		{ filter: 'query', actions: [{ action: 'delete', name: 'a' }] },
		{ filter: 'cookie', actions: [{ action: 'replace', name: 'a', value: 'b' }] },
	] as const;
	for (const filter of filters) {
		const edit = compileLogFilters({ field: filter });
		for (const text of HARD) assertFast(() => edit({ field: text }), `${filter.filter}: ${text.slice(0, 20)}…`);
	}
});

fields('template functions take linear time', () => {
	for (const call of [
		...['trim', 'title', 'snakecase', 'initials', 'nospace', 'b32dec', 'toFloat64', 'semver', 'urlParse', 'duration'],
		...['wrap 80', 'regexMatch "(.*)-(.*)-(.*)!"', 'regexFind "(a|a)*!"', 'regexReplaceAll "a*b|a" . "x" | len'],
		...['semverCompare ">=1 - 2" .', 'semverCompare . "1.2.3"', 'splitList ","', 'abbrev 5', 'quote', 'js', 'html'],
	]) {
		const action = call.includes(' . ') || call.endsWith(' .') ? call : `${call} .`;
		for (const text of HARD) {
			const page = `{{with ${JSON.stringify(text)}}}{{${action}}}{{end}}`;
			assertFast(() => templateFailureMessage(page), `${call}: ${text.slice(0, 20)}…`);
		}
	}
});

fields.run();
