/** The `render` handler on real files: what is executed and what is data, file access, sub-requests, errors and limits. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UNKNOWN_HOST_FACTS } from '../../../../../compiler/codegen/placeholders/index.ts';
import type { Step } from '../../../../../compiler/document/document.ts';
import type { BodySource } from '../../../../../compiler/exchange/body.ts';
import { isStream } from '../../../../../compiler/exchange/body.ts';
import { HttpError } from '../../../../../compiler/exchange/http-error.ts';
import type { Leases } from '../../../../../compiler/exchange/leases.ts';
import { createFileReader } from '../../../../../runtime/files/file-reader.ts';
import {
	bodyText,
	buildTestSite,
	type FakeExchange,
	fakeExchange,
	type RequestFields,
} from '../../../fake-exchange.ts';

const scratch = mkdtempSync(path.join(tmpdir(), 'svc-templates-'));
const root = path.join(scratch, 'www');
mkdirSync(path.join(root, 'parts/deep'), { recursive: true });
writeFileSync(path.join(scratch, 'secret.txt'), 'SECRET');
symlinkSync(path.join(scratch, 'secret.txt'), path.join(root, 'link.txt'));
/** Files of the site, by name. */
const FILES: { readonly [name: string]: string } = {
	'cookie.html': '<p>{{.Cookie "name"}}</p>',
	'page.html': '{{include "parts/head.html" "T" 2}}|{{import "/parts/defs.html"}}{{template "box" "x"}}',
	'parts/head.html': '<{{index .Args 0}}:{{index .Args 1}}:{{len .Args}}>',
	'parts/defs.html': '{{define "box"}}[{{.}}]{{end}}',
	'parts/deep/plain.md': '# {{"{{"}} plain',
	'loop.html': '{{include "loop.html"}}',
	'self.html': 'self {{httpInclude "/self.html"}}',
	'twice.html': '{{httpInclude "/data?q=1"}}{{httpInclude "/data?q=1"}}',
	'outer.html': '<{{httpInclude "/cookie.html"}}>',
	'reflect.html':
		'{{.Req.URL.Query.Get "q"}}|{{placeholder "http.request.uri.query.q"}}|{{ph "http.request.uri.query.q"}}',
	'broken.html': 'line one\n{{.Nope}}',
	'unparsed.html': 'line one\n{{if}}',
	'gone.html': '{{httpError 410}}',
	'climb.html': '{{fileExists "../secret.txt"}} {{fileExists "/../../www/cookie.html"}} {{fileExists "link.txt"}}',
	'read.html': '{{readFile "../secret.txt"}}',
	'endless.html': '{{range 1000000000}}{{range 1000000000}}{{end}}{{end}}',
	'field.html': '{{.RespHeader.Set "X-Page" "1"}}{{.RespHeader.Add "X-Page" "2"}}{{.RespHeader.Del "X-Gone"}}ok',
	'framing.html': '{{.RespHeader.Set "Content-Length" "1"}}',
	'splitting.html': '{{.RespHeader.Set "X-A" (print "a\\r\\nX-B: c")}}',
	'front.md':
		'{\n"title": "T"\n}\n{{$doc := splitFrontMatter (readFile "front.json.txt")}}{{$doc.Meta.title}}:{{$doc.Body}}',
	'front.json.txt': '{\n"title": "Hello"\n}\nbody',
	'body.html': '{{placeholder "http.request.body"}}',
	'list.html': '{{range listFiles "parts"}}{{.}} {{end}}{{(fileStat "cookie.html").Size}} {{(fileStat "parts").IsDir}}',
	// biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of `expandenv` variables
	'env.html': '{{env "HOME_OF"}} {{expandenv "$HOME_OF/${HOME_OF}"}} {{env "NONE"}}.',
	'later.html': '{{.RespHeader.Add "X-Page" "1"}}1{{httpInclude "/big.txt"}}',
	'fan.html': '{{range until 9}}{{httpInclude (printf "/fan.html?n=%d" .)}}{{end}}',
	'many.html': '{{range until 60}}{{httpInclude (printf "/data?n=%d" .)}}{{end}}',
	'image.png': '{{.Nope}}',
	'text.txt': '{{now | date "2006"}}',
	'markdown.html': '{{$doc := splitFrontMatter (readFile "post.md")}}{{$doc.Meta.title}}{{markdown $doc.Body}}',
	'post.md': '---\ntitle: Post\n---\n# A\n',
	'toml.html': '{{$doc := splitFrontMatter (readFile "toml.md")}}{{$doc.Meta.n}}{{markdown $doc.Body}}',
	'toml.md': '+++\nn = 7\n+++\n*{{not executed}}*',
	'long.html': '{{markdown (repeat 300000 "a")}}',
	'wide.html': '{{repeat 10 "ä"}}',
	'facts.html':
		'{{.Host}} {{.RemoteIP}} {{.ClientIP}} {{.Req.Method}} {{.Req.Header.Get "x-a"}} {{.OriginalReq.URL.Path}} {{.Req.URL.Path}} {{.Req.Host}} {{.Req.RemoteAddr}} {{.Req.Proto}}',
};
for (const [name, text] of Object.entries(FILES)) writeFileSync(path.join(root, name), text);
writeFileSync(path.join(root, 'big.txt'), `${'x'.repeat(200_000)}{{"end"}}`);
writeFileSync(path.join(root, 'huge.html'), Buffer.alloc(10 * 1024 * 1024 + 1, 'x'));
writeFileSync(path.join(root, 'bytes.html'), Buffer.from([0xe4, 0x20, ...Buffer.from('{{"x"}}')]));

const reader = createFileReader();
const leases: Leases = {
	lease(kind) {
		if (kind === 'files') return reader as never;
		throw new Error(`the test provides no lease for ${kind}`);
	},
};
const facts = { ...UNKNOWN_HOST_FACTS, env: (name: string) => (name === 'HOME_OF' ? '/home/{{.Host}}' : undefined) };

const RENDER: Step = { handler: 'render' };
const SITE: readonly Step[] = [
	{ handler: 'set_variables', variables: { root } },
	RENDER,
	{
		handler: 'respond',
		when: { type: 'path', patterns: ['/data'] },
		body: 'data {http.request.uri.query.q}{http.request.uri.query.n};',
	},
	{ handler: 'files' },
];

async function served(pipeline: readonly Step[], request: RequestFields): Promise<FakeExchange> {
	const x = fakeExchange(request);
	await buildTestSite(pipeline, { leases, facts }).runSite(x);
	return x;
}

async function text(target: string, fields: RequestFields = {}): Promise<string> {
	return bodyText(await served(SITE, { ...fields, target }));
}

async function failure(target: string, fields: RequestFields = {}): Promise<HttpError> {
	try {
		await served(SITE, { ...fields, target });
	} catch (error) {
		if (error instanceof HttpError) return error;
		throw error;
	}
	return assert.unreachable(`${target} was expected to fail`) as never;
}

const pages = suite('pages');

const TABLE: readonly (readonly [target: string, expected: string])[] = [
	['/page.html', '<T:2:2>|[x]'],
	['/outer.html', '<<p></p>>'],
	['/twice.html', 'data 1;data 1;'],
	['/climb.html', 'false false false'],
	['/markdown.html', 'Post<h1 id="a">A</h1>\n'],
	['/toml.html', '7<p><em>{{not executed}}</em></p>\n'],
	['/front.md', '{\n"title": "T"\n}\nHello:\nbody'],
	['/list.html', 'deep defs.html head.html 25 true'],
	['/env.html', '/home/{{.Host}} /home/{{.Host}}//home/{{.Host}} .'],
	['/image.png', '{{.Nope}}'],
	['/text.txt', String(new Date().getFullYear())],
	['/parts/deep/plain.md', '# {{ plain'],
	['/wide.html', 'ää'.repeat(5)],
];
for (const [target, expected] of TABLE) pages(target, async () => assert.is(await text(target), expected));

pages('a page can read cookies', async () => {
	assert.is(await text('/cookie.html', { headers: [['Cookie', 'a=b; name="Vera"; name=no']] }), '<p>Vera</p>');
});

pages('a page can read the request', async () => {
	const got = await text('/facts.html', { headers: [['X-A', 'v']], authority: 'site.test:8080' });
	assert.is(got, 'site.test 127.0.0.1 127.0.0.1 GET v /facts.html /facts.html site.test:8080 127.0.0.1:40000 HTTP/1.1');
});

pages('length and validators are those of the output', async () => {
	const x = await served(SITE, { target: '/cookie.html' });
	for (const name of ['content-length', 'etag', 'last-modified', 'accept-ranges']) {
		assert.not.ok(x.response.headers.has(name), name);
	}
	assert.is(x.response.headers.get('content-type'), 'text/html; charset=utf-8');
	assert.ok((await served(SITE, { target: '/image.png' })).response.headers.has('etag'));
});

pages('a page can set fields, but not framing fields', async () => {
	const x = await served(SITE, { target: '/field.html' });
	assert.equal(x.response.headers.getAll('x-page'), ['1', '2']);
	assert.match((await failure('/framing.html')).message, /"Content-Length" is not a field that a page can set/);
	assert.match((await failure('/splitting.html')).message, /a value of X-A contains a control character/);
});

pages('the request body is read when the page asks for it', async () => {
	const pieces = [Buffer.from('hello '), Buffer.from('{{.Host}}'), null];
	const body: BodySource = { length: undefined, pull: () => Promise.resolve(pieces.shift()!), cancel() {} };
	const render = [RENDER, { handler: 'respond', body: '{{placeholder "http.request.body"}}!' }];
	const x = await served(
		[{ handler: 'edit_headers', response: { set: [{ name: 'Content-Type', value: 'text/html' }] } }, ...render],
		{
			method: 'POST',
			body,
		},
	);
	assert.is(bodyText(x), 'hello {{.Host}}!');
});

pages('a page waits for slow sub-requests, and its earlier effects are not repeated', async () => {
	const got = await served(SITE, { target: '/later.html' });
	assert.is(bodyText(got), `1${'x'.repeat(200_000)}end`);
	assert.equal(got.response.headers.getAll('x-page'), ['1']);
});

pages('a page included several times in one request shares its limits', async () => {
	// The page includes itself nine times, and so does each included page. All of them count towards the limits of the first page.
	assert.match((await failure('/fan.html')).message, /more than 50 requests|virtual request cycle|http 500/);
});

pages('a long file is collected from its stream, and bytes that are not UTF-8 are kept', async () => {
	const big = await text('/big.txt');
	assert.is(big.length, 200_003);
	assert.ok(big.endsWith('xend'));
	const x = await served(SITE, { target: '/bytes.html' });
	assert.equal([...(x.response.body as Uint8Array)], [0xe4, 0x20, 0x78]);
});

pages('HEAD sends no length that a GET would not have', async () => {
	const x = await served(SITE, { target: '/cookie.html', method: 'HEAD' });
	assert.is(x.response.status, 200);
	assert.ok(isStream(x.response.body) && x.response.body.length === undefined);
	assert.not.ok(x.response.headers.has('etag'));
});

for (const range of ['bytes=5-', 'bytes=0-3', 'bytes=0-1,10-11']) {
	pages(`a range (${range}) of a template does not reveal its source`, async () => {
		const x = await served(SITE, { target: '/cookie.html', headers: [['Range', range]] });
		assert.is(x.response.status, 200);
		assert.is(bodyText(x), '<p></p>');
		assert.not.ok(x.response.headers.has('content-range'));
		assert.is(x.response.headers.getAll('vary').length, 1);
	});
}

pages('for a range, what follows `templates` changes the request once', async () => {
	const site: readonly Step[] = [
		{ handler: 'set_variables', variables: { root } },
		RENDER,
		{ handler: 'rewrite_target', to: '/parts{http.request.uri}' },
		{ handler: 'files' },
	];
	const x = await served(site, { target: '/defs.html', headers: [['Range', 'bytes=0-2']] });
	assert.is(x.response.status, 200);
	assert.is(x.request.path, '/parts/defs.html');
});

pages('a range of a response that is not a template is unchanged', async () => {
	const x = await served(SITE, { target: '/image.png', headers: [['Range', 'bytes=0-2']] });
	assert.is(x.response.status, 206);
});

pages('types, delimiters and root are configurable', async () => {
	const steps = (fields: object): Step[] => [
		{ handler: 'edit_headers', response: { set: [{ name: 'Content-Type', value: 'application/xml' }] } },
		{ handler: 'render', ...fields },
		{ handler: 'respond', body: '[[readFile "head.html"]] {{1}}' },
	];
	const x = await served(steps({ types: ['xml'], delimiters: ['[[', ']]'], root: path.join(root, 'parts') }), {});
	assert.is(bodyText(x), '<{{index .Args 0}}:{{index .Args 1}}:{{len .Args}}> {{1}}');
	assert.is(bodyText(await served(steps({}), {})), '[[readFile "head.html"]] {{1}}');
});

pages.run();

const data = suite('data is never executed');
const ATTACK = '{{env "HOME_OF"}}{{httpError 418}}';
const query = `?q=${encodeURIComponent(ATTACK)}`;

data('request data printed by a page is not executed', async () => {
	assert.is(await text(`/reflect.html${query}`), `${ATTACK}|${ATTACK}|${ATTACK}`);
	assert.is(
		await text('/cookie.html', { headers: [['Cookie', `name=${ATTACK.replaceAll('"', "'")}`]] }),
		`<p>${ATTACK.replaceAll('"', "'")}</p>`,
	);
});

data('placeholder values in the body of the template are not executed', async () => {
	const steps = (body: string): Step[] => [RENDER, { handler: 'respond', body }];
	const target = `/${query}`;
	assert.is(bodyText(await served(steps('<{http.request.uri.query.q}> {{1}}'), { target })), `<${ATTACK}> 1`);
	assert.is(bodyText(await served(steps('{{upper "{http.request.uri.query.q}"}}'), { target })), ATTACK.toUpperCase());
	// In the first page, data is followed by half a delimiter. In the second, two values together form a delimiter.
	const brace = { target: '/?q=%7B' };
	assert.is(bodyText(await served(steps('{http.request.uri.query.q}{{1}}'), brace)), '{1');
	assert.is(bodyText(await served(steps('{http.request.uri.query.q}{http.request.uri.query.q}1}}'), brace)), '{{1}}');
	try {
		await served(steps('{{ {http.request.uri.query.q} }}'), { target });
		assert.unreachable();
	} catch (error) {
		assert.match((error as Error).message, /request data inside an action/);
	}
});

data('sub-request responses and nested template output are not executed', async () => {
	const steps: Step[] = [...SITE.slice(0, 2), ...SITE.slice(1)];
	assert.is(bodyText(await served(steps, { target: `/reflect.html${query}` })), `${ATTACK}|${ATTACK}|${ATTACK}`);
	const site: Step[] = [
		{ handler: 'render', when: { type: 'path', patterns: ['/outer'] } },
		{ handler: 'respond', when: { type: 'path', patterns: ['/inner'] }, body: '{http.request.uri.query.q}' },
		{ handler: 'respond', body: '{{httpInclude "/inner?q=%7B%7Benv%20%22HOME_OF%22%7D%7D"}}' },
	];
	assert.is(bodyText(await served(site, { target: '/outer' })), '{{env "HOME_OF"}}');
});

data('the page of a redirect is not executed', async () => {
	const steps: Step[] = [RENDER, { handler: 'redirect', to: '/x?{http.request.uri.query}', html: true }];
	assert.match(bodyText(await served(steps, { target: '/?{{env`HOME_OF`}}' })), /\{\{env/);
});

data.run();

const errors = suite('page errors');

const FAILURES: readonly (readonly [target: string, status: number, message: RegExp])[] = [
	[
		'/broken.html',
		500,
		/^template: \/broken\.html:2:3: executing "\/broken\.html" at <\.Nope>: can't evaluate field Nope/,
	],
	['/unparsed.html', 500, /^template: \/unparsed\.html:2: missing value for if$/],
	['/gone.html', 410, /asked for this status/],
	['/loop.html', 500, /nest deeper than/],
	['/self.html', 500, /http 500/],
	['/read.html', 500, /error calling readFile: \.\.\/secret\.txt: there is no such file/],
	['/endless.html', 500, /more than 1000000 steps/],
	['/huge.html', 500, /the response is longer than 10485760 bytes/],
	['/many.html', 500, /more than 50 requests/],
	['/long.html', 500, /error calling markdown: a text has more than 262144 characters/],
	['/missing.html', 404, /there is no such file/],
];
for (const [target, status, message] of FAILURES) {
	errors(`${target} is a ${status}`, async () => {
		const error = await failure(target);
		assert.is(error.status, status, error.message);
		assert.match(error.message, message);
	});
}

errors('errors of a page reach the error routes, which may be templates too', async () => {
	const x = fakeExchange({ target: '/broken.html' });
	const errorRoute: Step[] = [
		RENDER,
		{ handler: 'respond', body: '{{"E"}}{http.error.status_code} {http.error.message}' },
	];
	await buildTestSite(SITE, { leases, facts, errors: [{ pipeline: errorRoute }] }).runSite(x);
	assert.is(x.response.status, 500);
	assert.match(bodyText(x), /^E500 template: \/broken\.html:2:3/);
});

errors('a page that never ends costs a bounded time', async () => {
	const startedAt = performance.now();
	await failure('/endless.html');
	assert.ok(performance.now() - startedAt < 20_000);
});

errors.after(() => rmSync(scratch, { recursive: true, force: true }));
errors.run();
