/** `svc diff` reports no difference between configurations with the same meaning, and reports every other difference. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../compiler/compiler.ts';
import { renderDiagnostic } from '../../../compiler/diagnostics/render.ts';
import type { Dialect } from '../../../compiler/dialects/dialect.ts';
import { type ConfigurationDiff, diffConfigurations } from '../../../compiler/diff/configuration-diff.ts';
import { differingAspects, outcomeOf } from '../../../compiler/diff/outcome.ts';
import { isSame, renderDiff } from '../../../compiler/diff/render-diff.ts';
import { DryRun } from '../../../compiler/dry-run/dry-run.ts';
import { isRequestUrl, parseRequestUrl } from '../../../compiler/dry-run/dry-run-request.ts';
import { GraphTracer } from '../../../compiler/explain/graph-tracer.ts';
import { diskReader } from '../../../runtime/compile/disk-reader.ts';
import { dryRunEnvironment } from '../../../runtime/compile/dry-run-environment.ts';
import { temporaryFolder } from '../../harness.ts';
import { roundCount } from '../../round-count.ts';
import { changeLines, randomLines, randomRequest, seededRandom } from './random-configurations.ts';

const nothing = { settings: [], classes: 1, requests: 1, blindSpots: [] };
const folder = temporaryFolder();
const deps = dryRunEnvironment(folder);

function compiled(text: string, format: Dialect = 'configfile') {
	const { plan, locate, diagnostics } = compile({ format, text, name: 'config' }, diskReader(folder));
	if (!plan) throw new Error(diagnostics.map(one => renderDiagnostic(one)).join('\n'));
	return { plan, locate };
}

function diff(
	before: string,
	after: string,
	formats: readonly [Dialect, Dialect] = ['configfile', 'configfile'],
): Promise<ConfigurationDiff> {
	return diffConfigurations(compiled(before, formats[0]), compiled(after, formats[1]), deps);
}

/** Compares two sites with the given directives. Returns the names of everything that differs, such as `status`. */
async function aspectsOf(before: string, after: string): Promise<string[]> {
	const { changes } = await diff(`http://:8080 {\n${before}\n}\n`, `http://:8080 {\n${after}\n}\n`);
	return [...new Set(changes.flatMap(({ aspects }) => aspects.map(({ name }) => name)))].sort();
}

const equal = suite('configurations of equal meaning');

equal('a refactoring into a snippet, a matcher and a constant', async () => {
	const before = `http://:8080 {
	respond /a/* "a" 201
	when path /b/* or path /c/* {
		header X-Y 1
		reverse_proxy 127.0.0.1:9000
	}
	file_server
}
`;
	const after = `let port 8080
(proxied) to {
	header X-Y 1
	reverse_proxy {param.to}
}
http://:{let.port} {
	@bc path /b/* /c/*
	@a path /a/*
	respond @a "a" 201
	handle @bc {
		use proxied to=127.0.0.1:9000
	}
	file_server
}
`;
	const configurationDiff = await diff(before, after);
	assert.equal(configurationDiff.changes, []);
	assert.ok(configurationDiff.classes > 4, `${configurationDiff.classes}`);
});

equal('a named upstream, and the same pool written where it is used', async () => {
	const before = 'http://:8080 {\n\treverse_proxy a:1 b:2 {\n\t\tlb_policy least_conn\n\t}\n}\n';
	const after =
		'upstream pool {\n\tto a:1 b:2\n\tlb_policy least_conn\n}\nhttp://:8080 {\n\treverse_proxy upstream://pool\n}\n';
	assert.equal((await diff(before, after)).changes, []);
});

equal('a Caddyfile and its translation', async () => {
	const before = `http://a.test:8080 {
	handle /api/* {
		uri strip_prefix /api
		reverse_proxy 127.0.0.1:9000
	}
	handle {
		header X-A 1
		respond "rest"
	}
	encode gzip
}
`;
	const after = `http://a.test:8080 {
	encode gzip
	when path /api/* {
		uri strip_prefix /api
		reverse_proxy 127.0.0.1:9000
	} else {
		header X-A 1
		respond "rest"
	}
}
`;
	assert.equal((await diff(before, after, ['compatfile', 'configfile'])).changes, []);
});

equal('values that are different for each request are named, not reported', async () => {
	const { changes, blindSpots } = await diff(
		'http://:8080 {\n\trespond "{http.request.uuid}"\n}\n',
		'http://:8080 {\n\trespond "{http.request.uuid}"\n}\n',
	);
	assert.equal(changes, []);
	assert.ok(
		blindSpots.some(text => text.startsWith('body ')),
		blindSpots.join(),
	);
});

equal.run();

const different = suite('configurations of different meaning');

for (const [name, before, after, aspects] of [
	['a status', 'respond /a "x" 200\nrespond b', 'respond /a "x" 201\nrespond b', ['status']],
	['a pattern without its slash', 'respond /api/* x\nrespond y', 'respond /api* x\nrespond y', ['body']],
	['a method', '@m method POST\nrespond @m x\nrespond y', '@m method PUT\nrespond @m x\nrespond y', ['body']],
	[
		'a field of a request',
		'@m header X-A 1\nrespond @m x\nrespond y',
		'@m header X-A 2\nrespond @m x\nrespond y',
		['body'],
	],
	['a parameter', '@m query a=1\nrespond @m x\nrespond y', '@m query b=1\nrespond @m x\nrespond y', ['body']],
	[
		'an address',
		'@m remote_ip 10.0.0.0/8\nrespond @m x\nrespond y',
		'@m remote_ip 11.0.0.0/8\nrespond @m x\nrespond y',
		['body'],
	],
	[
		'an expression',
		'@m path_regexp ^/v(\\d+)/\nrespond @m x\nrespond y',
		'@m path_regexp ^/w(\\d+)/\nrespond @m x\nrespond y',
		['body'],
	],
	['a query that a redirect drops', 'redir * /new{uri}', 'redir * /new{path}', ['header location']],
	[
		'a field that is removed on the way up',
		'reverse_proxy a:1 {\nheader_up -X-Secret\n}',
		'reverse_proxy a:1',
		['upstream field x-secret'],
	],
	[
		'a field that is removed on the way down',
		'reverse_proxy a:1 {\nheader_down -X-Secret\n}',
		'reverse_proxy a:1',
		['header x-secret'],
	],
	[
		'a time-out of a pool',
		'reverse_proxy a:1 {\ntransport http {\nresponse_header_timeout 5s\n}\n}',
		'reverse_proxy a:1',
		['settings of the upstream'],
	],
	[
		'the order of two directives',
		'rewrite /a /b\nrespond /b x\nrespond y',
		'respond /b x\nrewrite /a /b\nrespond y',
		['body'],
	],
	['compression', 'encode gzip\nrespond x', 'respond x', ['settings of `compress`']],
	[
		'what a password protects',
		`basic_auth /a/* {\njoe ${'$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG'}\n}\nrespond x`,
		'respond x',
		['status'],
	],
	[
		'the answer after a password',
		`basic_auth {\njoe ${'$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG'}\n}\nrespond x`,
		`basic_auth {\njoe ${'$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG'}\n}\nrespond z`,
		['body'],
	],
	[
		'an error route',
		'error 418\nhandle_errors {\nrespond "{err.status_code}"\n}',
		'error 418\nhandle_errors {\nrespond "oops"\n}',
		['body'],
	],
	[
		'an error route when no upstream can be reached',
		'reverse_proxy a:1\nhandle_errors {\nrespond "sorry" 503\n}',
		'reverse_proxy a:1',
		['status', 'body'],
	],
	[
		'a version of HTTP',
		'@new protocol http/2+\nrespond @new "new"\nrespond "old"',
		'@new protocol http/3\nrespond @new "new"\nrespond "old"',
		['body'],
	],
	[
		'an error route after all retries within a time',
		'reverse_proxy a:1 {\nlb_try_duration 5s\n}\nhandle_errors {\nrespond "sorry" 503\n}',
		'reverse_proxy a:1 {\nlb_try_duration 5s\n}',
		['status', 'body'],
	],
	[
		'an error route after a number of retries',
		'reverse_proxy a:1 b:1 {\nlb_retries 3\n}\nhandle_errors {\nrespond "sorry" 503\n}',
		'reverse_proxy a:1 b:1 {\nlb_retries 3\n}',
		['status', 'body'],
	],
	[
		'the number of retries',
		'reverse_proxy a:1 b:1 {\nlb_retries 1\n}',
		'reverse_proxy a:1 b:1 {\nlb_retries 2\n}',
		['upstream 3'],
	],
	[
		'the answers that are retried',
		'reverse_proxy a:1 b:1 {\nlb_retries 1\nlb_retry_match `{rp.status_code} == 421`\n}',
		'reverse_proxy a:1 b:1 {\nlb_retries 1\nlb_retry_match `{rp.status_code} > 421`\n}',
		['upstream 2'],
	],
	[
		'an error route for a connection that takes too long',
		'reverse_proxy a:1\nhandle_errors 504 {\nrespond "slow" 504\n}',
		'reverse_proxy a:1',
		['body'],
	],
	[
		'an error route while no upstream is available',
		'reverse_proxy a:1 {\nfail_duration 5s\n}\nhandle_errors 503 {\nrespond "later" 503\n}',
		'reverse_proxy a:1 {\nfail_duration 5s\n}',
		['body'],
	],
	[
		'what follows a retry that succeeds',
		'reverse_proxy a:1 b:1 {\nlb_retries 1\nheader_down X-Retries {rp.retries}\n}',
		'reverse_proxy a:1 b:1 {\nlb_retries 1\nheader_down X-Retries 0\n}',
		['header x-retries'],
	],
	[
		'the methods that are retried',
		'reverse_proxy a:1 b:1 {\nlb_retries 1\nlb_retry_match method POST\n}',
		'reverse_proxy a:1 b:1 {\nlb_retries 1\nlb_retry_match method PUT\n}',
		['upstream 2'],
	],
	[
		'an error route of the second upstream that is asked',
		'forward_auth a:1 {\nuri /\n}\nreverse_proxy b:1\nhandle_errors {\n@b expression `{rp.upstream.hostport} == "b:1"`\nrespond @b "b fails"\n}',
		'forward_auth a:1 {\nuri /\n}\nreverse_proxy b:1\nhandle_errors {\n@b expression `{rp.upstream.hostport} == "b:1"`\nrespond @b "b failed"\n}',
		['body'],
	],
	[
		'an error route of a second upstream, where none is available',
		'forward_auth a:1 {\nuri /\nfail_duration 5s\n}\nreverse_proxy b:1 {\nfail_duration 6s\n}\nhandle_errors 503 {\nrespond "{header.X-User}" 503\n}',
		'forward_auth a:1 {\nuri /\nfail_duration 5s\n}\nrequest_header X-User passed\nreverse_proxy b:1 {\nfail_duration 6s\n}\nhandle_errors 503 {\nrespond "{header.X-User}" 503\n}',
		['body'],
	],
	[
		'an error route, beside a field of all answers',
		'header X-A 1\nreverse_proxy a:1\nhandle_errors {\nrespond "one"\n}',
		'header X-A 2\nreverse_proxy a:1\nhandle_errors {\nrespond "two"\n}',
		['header x-a', 'body'],
	],
	[
		'what replaces an answer of the upstream',
		'reverse_proxy a:1 {\n@gone status 410\nhandle_response @gone {\nrespond "gone" 404\n}\n}',
		'reverse_proxy a:1',
		['status'],
	],
	[
		'a mapping',
		'map {path} {to} {\n/a one\ndefault two\n}\nrespond {to}',
		'map {path} {to} {\n/a three\ndefault two\n}\nrespond {to}',
		['body'],
	],
] as const) {
	different(name, async () => {
		const found = await aspectsOf(before, after);
		for (const aspect of aspects)
			assert.ok(found.includes(aspect), `${aspect} is not among ${found.join(', ') || 'nothing'}`);
		assert.equal(await aspectsOf(before, before), []);
		assert.equal(await aspectsOf(after, after), []);
	});
}

different('a Server field that is removed', async () => {
	assert.equal(await aspectsOf('respond "x"', 'header -Server\nrespond "x"'), ['header server']);
});

different('a path pattern with a percent sign, by a request that a client could send', async () => {
	const configurationDiff = await diff(
		'http://:8080 {\n\trespond "x"\n}\n',
		'http://:8080 {\n\trespond /%* "y"\n\trespond "x"\n}\n',
	);
	assert.ok(configurationDiff.changes.length > 0);
	for (const { request } of configurationDiff.changes) assert.not.match(request.url.path, /%(?![0-9A-Fa-f]{2})/);
});

different('a path after a condition that most requests meet', async () => {
	const site = (pattern: string) => `handle {
	@page header !Cookie
	respond @page "page"
	respond ${pattern} "one"
	respond "two"
}`;
	assert.equal(await aspectsOf(site('/a/*'), site('/b/*')), ['body']);
});

different('a path in another spelling', async () => {
	const site = (pattern: string) => `handle /dir* {\n\turi ${pattern} strip_suffix .txt\n}\nrespond "end of {path}"`;
	assert.equal(await aspectsOf(site('/a/*'), site('/*')), ['body']);
});

different('a path in capital letters, where only a regular expression distinguishes them', async () => {
	const site = (text: string) => `@lower path_regexp ^/([a-z]+)
respond @lower "lower"
respond /api/* "${text}"
respond "other"`;
	assert.equal(await aspectsOf(site('one'), site('two')), ['body']);
});

different('what a request beyond a rate limit gets, also for the second zone', async () => {
	const site = (text: string) => `rate_limit all 20 per 1h
rate_limit /api/* api 5 per 1h
respond "admitted"
handle_errors 429 {
	@api expression \`{http.rate_limit.exceeded.name} == "api"\`
	respond @api "${text}"
	respond "too many"
}`;
	const { changes } = await diff(`http://:8080 {\n${site('one')}\n}\n`, `http://:8080 {\n${site('two')}\n}\n`);
	assert.equal(
		changes.map(({ upstream, aspects }) => [upstream?.exceeds, aspects.map(({ name }) => name)]),
		[['api', ['body']]],
	);
});

different('a field that only upstreams send, with the assumption that they do', async () => {
	const { changes } = await diff(
		'http://:8080 {\n\treverse_proxy a:1\n}\n',
		'http://:8080 {\n\treverse_proxy a:1 {\n\t\theader_down -X-Old\n\t}\n}\n',
	);
	assert.ok(changes.length > 0);
	for (const { upstream } of changes) assert.equal(upstream?.headers, [['X-Old', 'svc-diff']]);
	assert.match(
		renderDiff({ ...nothing, changes }, 'before', 'after'),
		/if the upstream answers 200 with `X-Old: svc-diff`/,
	);
});

different('the folder of files that do not exist here', async () => {
	assert.equal(await aspectsOf('root /srv/a\nfile_server', 'root /srv/b\nfile_server'), ['file looked for']);
});

different('an encoded slash', async () => {
	const site = (path: string) => `@pages path /%*\nhandle @pages {\n\trespond ${path} "one"\n}\nrespond "two"`;
	assert.equal(await aspectsOf(site('/api/x'), site('/api/y')), ['body']);
});

different('an encoded letter that a regular expression in `uri` replaces', async () => {
	assert.equal(await aspectsOf('uri /page.html path_regexp [0-9]+ N\nrespond {path}', 'respond {path}'), ['body']);
});

different('an encoded slash that a regular expression in `uri` replaces', async () => {
	const site = (path: string) => `uri ${path} path_regexp [0-9]+ N\nrespond {path}`;
	assert.equal(await aspectsOf(site('/A/B'), site('/a')), ['body']);
});

for (const status of ['206', '304', '2xx']) {
	different(`the status ${status} of a file, which only some requests get`, async () => {
		const root = temporaryFolder();
		writeFileSync(path.join(root, 'index.html'), 'a page');
		const site = (edit: string) => `intercept {\n@found status ${status}\n${edit}\n}\nroot ${root}\nfile_server`;
		const aspects = await aspectsOf(site('replace_status @found 200'), site(''));
		assert.ok(aspects.includes('status'), aspects.join());
	});
}

different('the page of a folder, to which its path without a slash is redirected', async () => {
	const root = temporaryFolder();
	mkdirSync(path.join(root, 'dir'));
	writeFileSync(path.join(root, 'dir', 'index.html'), 'a page');
	const site = (edit: string) => `intercept {\n@found status 206\n${edit}\n}\nroot ${root}\nfile_server /dir*`;
	const aspects = await aspectsOf(site('replace_status @found 200'), site(''));
	assert.ok(aspects.includes('status'), aspects.join());
});

different('a body that is longer than a limit, or that something mentions', async () => {
	const limited = 'request_body {\n\tmax_size 5\n}\nreverse_proxy 127.0.0.1:9000\n';
	const handled = (status: number): string => `handle_errors ${status} {\n\trespond "too long"\n}\n`;
	const configurationDiff = await diff(
		`http://:8080 {\n${limited}${handled(413)}}\n`,
		`http://:8080 {\n${limited}${handled(414)}}\n`,
	);
	assert.equal(
		configurationDiff.changes.map(({ request: { method, body }, aspects }) => [
			method,
			body,
			aspects.map(({ name }) => name),
		]),
		[['GET', 'xxxxxx', ['body', 'header content-type']]],
	);
	assert.match(
		renderDiff(configurationDiff, 'before', 'after'),
		"1. GET http://example.com:8080/?svc-diff=1 -d 'xxxxxx'\n",
	);
	assert.equal(await aspectsOf('respond "{http.request.body}"', 'respond ""'), ['body', 'header content-type']);
	const larger = limited.replace('5', '1MB');
	const long = await diff(`http://:8080 {\n${larger}${handled(413)}}\n`, `http://:8080 {\n${larger}}\n`);
	assert.match(renderDiff(long, 'before', 'after'), ' with a body of 1,000,001 bytes\n');
});

different('a file that exists and that no configuration mentions, and a method that files refuse', async () => {
	mkdirSync(path.join(folder, 'unmentioned/folder'), { recursive: true });
	for (const name of ['.hidden.html', 'one.html', 'two.html', 'three.txt', 'folder/index.html'])
		writeFileSync(path.join(folder, 'unmentioned', name), name);
	const site = (status: number): string =>
		`http://:8080 {\n\troot ${folder}/unmentioned\n\thandle_path /files/* {\n\t\tfile_server\n\t}\n\thandle_errors ${status} {\n\t\trespond "no"\n\t}\n}\n`;
	const configurationDiff = await diff(site(405), site(406));
	assert.equal(
		configurationDiff.changes.map(({ request: { method, url } }) => [method, url.path]),
		[['POST', '/files/one.html']],
	);
});

different('upstreams that nothing watches are never taken to be unavailable', async () => {
	const routes = (text: string): string => `reverse_proxy a:1\nhandle_errors 503 {\nrespond "${text}"\n}`;
	assert.equal(await aspectsOf(routes('one'), routes('two')), []);
});

different('a host, a port and a global option', async () => {
	const { changes, settings } = await diff(
		'http://a.test:8080 {\n\trespond x\n}\n',
		'{\n\tgrace_period 5s\n}\nhttp://b.test:8080, http://:8081 {\n\trespond x\n}\n',
	);
	const urls = changes.map(({ request }) => request.url.text);
	assert.ok(
		urls.some(url => url.startsWith('http://a.test:8080/')),
		urls.join(),
	);
	assert.ok(
		urls.some(url => url.includes(':8081/')),
		urls.join(),
	);
	assert.equal(
		settings.map(({ name }) => name),
		['grace_period'],
	);
});

different('the bound on requests is kept, and named', async () => {
	const text = 'http://:8080 {\n\trespond x\n}\n';
	const { requests, blindSpots } = await diffConfigurations(compiled(text), compiled(text), deps, 1);
	assert.is(requests, 1);
	assert.match(blindSpots.join(), /more requests than 1/);
});

different.run();

const secrets = suite('secrets in differences');

secrets('are shown as numbers, equal ones as the same number', async () => {
	const [first, second] = ['a', 'b'].map(c => `$2b$04$${c}htDU1s.zTjurSinO5o6pOxcas3hePGlWxp7j6ggvc/lyTAmhslhC`);
	const text = (hash: string, token: string) =>
		`{\n\tadmin 127.0.0.1:2019 ${token}\n}\nhttp://:8080 {\n\tbasic_auth {\n\t\tbob ${hash}\n\t}\n\treverse_proxy 127.0.0.1:9000 {\n\t\theader_up Authorization "Bearer ${token}"\n\t}\n}\n`;
	const configurationDiff = await diff(text(first!, 'old-token-1'), text(second!, 'new-token-2'));
	const rendered = renderDiff(configurationDiff, 'before', 'after');
	const values = JSON.stringify([configurationDiff.settings, configurationDiff.changes.map(({ aspects }) => aspects)]);
	assert.match(values, /\[redacted \d\].*\[redacted \d\]/);
	for (const secret of [first!, second!, 'old-token-1', 'new-token-2'])
		assert.not.ok(values.includes(secret), rendered);
	assert.not.ok(isSame(configurationDiff));
});

secrets.run();

const random = suite('random pairs of configurations');
const PAIR_COUNT = roundCount({ few: 20, many: 300 });

random('the comparison finds the differences that random requests show, and its witnesses are true', async () => {
	const seed = Number(process.env.SEED ?? 20261123);
	const numbers = seededRandom(seed);
	let differing = 0;
	let missed = 0;
	for (let pair = 0; pair < PAIR_COUNT; pair++) {
		const lines = randomLines(numbers, 8080);
		const sides = [lines, changeLines(numbers, lines)].map(text => compiled(text.join('\n')));
		const configurationDiff = await diffConfigurations(sides[0]!, sides[1]!, deps);
		const tracers = sides.map(() => new GraphTracer());
		const runs = sides.map(({ plan }, index) => new DryRun(plan, deps, tracers[index]));
		const outcomes = async (request: Parameters<DryRun['run']>[0]) => {
			const all = [];
			for (const [index, run] of runs.entries()) {
				const result = await run.run(request);
				all.push(await outcomeOf(result, result && tracers[index]!.traceOf(result.exchange), run.plan.document));
			}
			return differingAspects(all[0]!, all[1]!);
		};
		for (const { request } of configurationDiff.changes)
			assert.ok((await outcomes(request)).length > 0, `a false witness, seed ${seed}`);
		let differs = false;
		for (let i = 0; i < 100 && !differs; i++) {
			const { method, host, target, headers, from } = randomRequest(numbers);
			const url = parseRequestUrl(`http://${host}:8080${target}`);
			assert.ok(isRequestUrl(url));
			differs = (await outcomes({ method, url, headers, body: undefined, from, at: 0 })).length > 0;
		}
		if (!differs) continue;
		differing++;
		if (isSame(configurationDiff)) missed++;
	}
	assert.ok(differing > PAIR_COUNT / 3, `only ${differing} pairs differ`);
	assert.is(missed, 0, `seed ${seed}`);
});

random.run();
