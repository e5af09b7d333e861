/** `errors_page`: which content type a client gets, in which order pages apply, and what a running server logs and caches. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { preferredType } from '../../../../compiler/modules/representations/accept.ts';
import { freePorts, serve, temporaryFolder, until } from '../../../harness.ts';
import { DryRunServer } from '../../compatfile/page.ts';

const accept = suite('Accept');

for (const [field, expected] of [
	[undefined, undefined],
	['', undefined],
	['*/*', undefined],
	['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', 'text/html'],
	['application/json, text/plain, */*', 'application/json'],
	['text/html;q=0.2, application/json ; q=0.7', 'application/json'],
	['text/html;q=0, application/json;q=0.001', 'application/json'],
	['text/html;q=0', undefined],
	['text/*', 'text/html'],
	['text/*;q=0.5, text/html;q=0', 'text/plain'],
	['TEXT/HTML;charset=utf-8;q=1', 'text/html'],
	['application/json;q=2', 'application/json'],
	['text/html text/plain, , ;q=1, application/json', 'application/json'],
	['image/png', undefined],
] as const) {
	accept(`${field}: ${expected}`, () => {
		assert.is(preferredType(field, ['text/html', 'application/json', 'text/plain']), expected);
	});
}

accept('a long field takes linear time', () => {
	const field = `${' \t'.repeat(50_000)}text/html${' '.repeat(100_000)};${';q='.repeat(50_000)}`;
	const startedAt = performance.now();
	preferredType(field, ['text/html']);
	assert.ok(performance.now() - startedAt < 1000);
});

accept.run();

const pages = suite('error pages');

/** Returns the answer to a request that accepts HTML. */
async function requestPage(site: string, target = '/'): Promise<{ status: number; body: string; handler: string }> {
	const server = new DryRunServer(`:8080 {\n${site}\n}\n`, { format: 'configfile' });
	const { status, body, seen } = await server.ask(`http://a:8080${target}`, { headers: { Accept: 'text/html' } });
	return { status, body, handler: seen.exchange.answeredBy };
}

pages('the page that ran last applies, and only to requests that reached it', async () => {
	const site = `when path /a/* {
errors_page {
title First
}
}
handle /a/b/* {
errors_page {
title Second
}
error 500
}
error 404`;
	assert.match((await requestPage(site, '/a/x')).body, '<h1>First</h1>');
	assert.match((await requestPage(site, '/a/b/x')).body, '<h1>Second</h1>');
	assert.is((await requestPage(site, '/x')).body, '', 'without a page, the body is empty');
	assert.is((await requestPage(site, '/x')).status, 404);
});

pages('the handler that failed is the one that is recorded', async () => {
	assert.is((await requestPage('errors_page\nerror 404')).handler, 'fail');
	assert.is((await requestPage('errors_page\nerror 404\nhandle_errors 5xx {\nrespond x\n}')).handler, 'fail');
	assert.is((await requestPage('errors_page\nerror 404\nhandle_errors {\nrespond x\n}')).handler, 'respond');
});

pages('a page in a named route applies to the route', async () => {
	const server = new DryRunServer('&(r) {\nerrors_page\nerror 404\n}\n:8080 {\ninvoke r\n}\n:8081 {\ninvoke r\n}\n', {
		format: 'configfile',
	});
	for (const port of [8080, 8081]) {
		const { body } = await server.ask(`http://a:${port}/`, { headers: { Accept: 'text/html' } });
		assert.match(body, '<h1>Not Found</h1>');
	}
});

pages('an error route that fails leaves the error without a page', async () => {
	const { status, body } = await requestPage('errors_page\nerror 404\nhandle_errors {\nerror 500\n}');
	assert.is(status, 404);
	assert.is(body, '');
});

pages('files that cannot be read are skipped', async () => {
	const folder = temporaryFolder();
	mkdirSync(path.join(folder, '404.html'));
	writeFileSync(path.join(folder, '4xx.html'), 'class');
	assert.is((await requestPage(`errors_page * ${folder}\nerror 404`)).body, 'class');
});

pages('the ID in the page is that of the log', async () => {
	const site = `errors_page\nvars id {uuid}\nheader X-Id {uuid}\nerror 500`;
	const server = new DryRunServer(`:8080 {\n${site}\n}\n`, { format: 'configfile' });
	const { body, header } = await server.ask('http://a:8080/', {
		headers: { Accept: 'application/json', 'X-Request-Id': 'of-the-client' },
	});
	assert.is(JSON.parse(body).request_id, header('x-id'));
	assert.match(header('x-id')!, /^[0-9a-f-]{36}$/);
});

pages('responses that switch protocols or are aborted are not intercepted', async () => {
	assert.is((await requestPage('errors_page {\nintercept\n}\nabort')).status, 0);
});

pages('a running server: failures are logged and not cached, and pages are not compressed twice', async () => {
	const [port, upstreamPort] = (await freePorts(2)) as [number, number];
	let status = 500;
	const upstream = createServer((_request, response) => {
		const coding = status === 500 ? { 'Content-Encoding': 'br', Etag: '"a"' } : {};
		response.writeHead(status, { 'Cache-Control': 'max-age=60', ...coding }).end('not brotli');
	});
	await new Promise<void>(resolve => upstream.listen(upstreamPort, '127.0.0.1', resolve));
	const folder = temporaryFolder();
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin off
	threads 1
}
http://:${port} {
	cache
	encode {
		gzip
		minimum_length 1
	}
	errors_page {
		intercept 500 404
	}
	handle /down {
		reverse_proxy 127.0.0.1:1
	}
	reverse_proxy 127.0.0.1:${upstreamPort}
}
`,
	);
	const server = await serve(['-c', 'Configfile'], port, { cwd: folder });
	try {
		const ask = (target: string) =>
			fetch(`http://127.0.0.1:${port}${target}`, { headers: { Accept: 'text/html', 'Accept-Encoding': 'gzip' } });
		const failed = await ask('/a');
		assert.is(failed.status, 500);
		assert.match(await failed.text(), '<h1>Internal Server Error</h1>');
		assert.is(failed.headers.get('etag'), null);
		assert.is(failed.headers.get('cache-control'), 'no-store');
		status = 200;
		assert.is((await ask('/a')).status, 200, 'the page was not stored');
		const down = await ask('/down');
		assert.is(down.status, 502);
		const body = await down.text();
		assert.match(body, '<h1>Bad Gateway</h1>');
		assert.not.match(body, '127.0.0.1');
		await until('the failure is logged', () => server.output().includes('Upstream 127.0.0.1:1'));
		const line = server
			.output()
			.split('\n')
			.find(text => text.includes('Upstream 127.0.0.1:1'))!;
		assert.is(JSON.parse(line).level, 'error', 'a page must not hide a failure');
	} finally {
		await server.stop();
		upstream.closeAllConnections();
		upstream.close();
	}
});

pages.run();
