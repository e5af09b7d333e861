/**
 * Preconditions with `encode`: entity tags are compared with the tag of the representation that the client would get
 * (RFC 9110 §13.1), for files, sidecars, proxied servers, and caches before and after `encode`.
 */
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, request as open, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../../harness.ts';

const LONG_TEXT = 'All work and no play makes Jack a dull boy.\n'.repeat(100);

interface Answer {
	readonly status: number;
	readonly headers: IncomingHttpHeaders;
	readonly length: number;
}

let port = 0;
let server: ServerProcess | undefined;
let upstream: Server | undefined;
/** Headers of the requests that reached the upstream. */
let upstreamRequests: IncomingHttpHeaders[] = [];
let bodiesSent = 0;

function ask(target: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
	return new Promise((resolve, reject) => {
		const request = open({ host: '127.0.0.1', port, path: target, headers, method, agent: false }, response => {
			let length = 0;
			response.on('data', (piece: Buffer) => {
				length += piece.length;
			});
			response.on('error', reject);
			response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, length }));
		});
		request.on('error', reject);
		request.end();
	});
}

const GZIP = { 'Accept-Encoding': 'gzip' };

/** The upstream's resources, by path. */
const RESOURCES: { readonly [path: string]: { type: string; tag: string; body: string; encodes?: true } } = {
	'/page': { type: 'application/json', tag: '"page"', body: LONG_TEXT },
	'/short': { type: 'application/json', tag: '"short"', body: '{}' },
	'/image': { type: 'image/png', tag: '"image"', body: LONG_TEXT },
	'/weak': { type: 'text/plain', tag: 'W/"weak"', body: LONG_TEXT },
	'/encoded': { type: 'text/plain', tag: '"own-gzip"', body: LONG_TEXT, encodes: true },
};

/** Reports whether a list contains a tag, by weak comparison. */
function containsTag(list: string, tag: string): boolean {
	const opaque = (text: string): string => text.replace(/^W\//, '');
	return list === '*' || list.split(/ *, */).map(opaque).includes(opaque(tag));
}

const suites = suite('encode and preconditions');

suites.before(async () => {
	upstream = createServer((request, response) => {
		upstreamRequests.push(request.headers);
		const url = request.url!.replace(/^\/(?:cached-encoded|encoded-cached)/, '').replace(/\?.*/, '');
		const resource = RESOURCES[url]!;
		const { type, tag, encodes } = resource;
		const list = request.headers['if-none-match'];
		response.setHeader('ETag', tag);
		response.setHeader('Last-Modified', 'Thu, 01 Jan 2026 00:00:00 GMT');
		if (request.url!.startsWith('/cached') || request.url!.startsWith('/encoded-')) {
			response.setHeader('Cache-Control', 'max-age=60');
		}
		if (list === undefined ? request.headers['if-modified-since'] : containsTag(list, tag)) {
			response.writeHead(304).end();
			return;
		}
		const { 'if-match': match } = request.headers;
		if (match !== undefined && match !== '*' && !match.split(/ *, */).includes(tag)) {
			response.writeHead(412).end();
			return;
		}
		const body = encodes ? gzipSync(resource.body) : resource.body;
		if (encodes) response.setHeader('Content-Encoding', 'gzip');
		if (request.method === 'GET') bodiesSent++;
		response.writeHead(200, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) });
		response.end(body);
	}).listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	[port] = (await freePorts(1)) as [number];
	const folder = temporaryFolder();
	const root = path.join(folder, 'site');
	mkdirSync(root);
	writeFileSync(path.join(root, 'page.html'), LONG_TEXT);
	writeFileSync(path.join(root, 'short.html'), 'short');
	writeFileSync(path.join(root, 'picture.png'), LONG_TEXT);
	writeFileSync(path.join(root, 'side.txt'), LONG_TEXT);
	writeFileSync(path.join(root, 'side.txt.gz'), gzipSync(LONG_TEXT));
	const proxy = `reverse_proxy 127.0.0.1:${(upstream.address() as AddressInfo).port}`;
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{
	threads 1
}
http://127.0.0.1:${port} {
	handle /files/* {
		encode gzip
		uri strip_prefix /files
		root ${root}
		file_server {
			precompressed gzip
		}
	}
	handle /up/* {
		encode gzip
		uri strip_prefix /up
		request_header Host origin.test
		${proxy}
	}
	handle /cached-encoded/* {
		cache
		encode gzip
		${proxy}
	}
	handle /encoded-cached/* {
		encode gzip
		cache
		${proxy}
	}
}
`,
	);
	server = await serve([file], port);
});
suites.after(async () => {
	await server?.stop();
	upstream?.closeAllConnections();
	upstream?.close();
});
suites.before.each(() => {
	upstreamRequests = [];
	bodiesSent = 0;
});

/** Targets whose bodies are encoded for clients that accept it. */
const ENCODED_TARGETS = [
	'/files/page.html',
	'/files/side.txt',
	'/up/page',
	'/cached-encoded/page',
	'/encoded-cached/page',
];

for (const target of ENCODED_TARGETS) {
	for (const method of ['GET', 'HEAD']) {
		suites(
			`${method} ${target}: each encoding has its own tag, and If-None-Match is compared with that tag only`,
			async () => {
				const plain = await ask(target, {}, method);
				const gzip = await ask(target, GZIP, method);
				assert.is(plain.status, 200);
				assert.is(plain.headers['content-encoding'], undefined);
				assert.is(gzip.headers['content-encoding'], 'gzip');
				const [identityTag, gzipTag] = [plain.headers.etag!, gzip.headers.etag!];
				assert.is.not(identityTag, gzipTag);
				for (const [accepts, own, other] of [
					[{}, identityTag, gzipTag],
					[GZIP, gzipTag, identityTag],
				] as const) {
					for (const [list, status] of [
						[own, 304],
						[other, 200],
						[`${other}, ${own}`, 304],
						[`"else", W/${own}`, 304],
						['"else"', 200],
					] as const) {
						const since = { 'If-Modified-Since': new Date().toUTCString() };
						for (const more of [{}, since]) {
							const answer = await ask(target, { ...accepts, ...more, 'If-None-Match': list }, method);
							const what = `${method} ${target} ${JSON.stringify(accepts)} ${list}`;
							assert.is(answer.status, status, what);
							assert.is(answer.headers.etag, own, what);
							assert.is(answer.headers.vary, 'Accept-Encoding', what);
							if (status === 200) assert.is(answer.headers['content-encoding'], accepts === GZIP ? 'gzip' : undefined);
							else
								for (const name of ['content-type', 'content-encoding'])
									assert.is(answer.headers[name], undefined, what);
						}
					}
				}
			},
		);
	}
}

for (const target of ['/files/page.html', '/up/page']) {
	suites(`GET ${target}: If-Match is compared with the tag of the encoding that the client would get`, async () => {
		const identityTag = (await ask(target)).headers.etag!;
		const gzipTag = (await ask(target, GZIP)).headers.etag!;
		for (const [accepts, own, other] of [
			[{}, identityTag, gzipTag],
			[GZIP, gzipTag, identityTag],
		] as const) {
			assert.is((await ask(target, { ...accepts, 'If-Match': own })).status, 200, `${own}`);
			assert.is((await ask(target, { ...accepts, 'If-Match': `"else", ${own}` })).status, 200);
			assert.is((await ask(target, { ...accepts, 'If-Match': '*' })).status, 200);
			const failed = await ask(target, { ...accepts, 'If-Match': other });
			assert.is(failed.status, 412, `${JSON.stringify(accepts)} ${other}`);
			assert.is(failed.length, 0);
		}
	});
}

suites('a range applies to the unencoded representation', async () => {
	const target = '/files/page.html';
	const identityTag = (await ask(target)).headers.etag!;
	const gzipTag = (await ask(target, GZIP)).headers.etag!;
	const part = { ...GZIP, Range: 'bytes=0-9' };
	for (const [condition, status, coding] of [
		[{}, 206, undefined],
		[{ 'If-Range': identityTag }, 206, undefined],
		[{ 'If-Range': gzipTag }, 200, 'gzip'],
		[{ 'If-Match': identityTag }, 206, undefined],
		[{ 'If-None-Match': identityTag }, 304, undefined],
		[{ 'If-None-Match': gzipTag }, 206, undefined],
	] as const) {
		const answer = await ask(target, { ...part, ...condition });
		assert.is(answer.status, status, JSON.stringify(condition));
		assert.is(answer.headers['content-encoding'], coding, JSON.stringify(condition));
		assert.is(answer.headers.etag, coding === 'gzip' ? gzipTag : identityTag);
	}
	const whole = await ask(target, { ...GZIP, 'If-None-Match': identityTag });
	assert.is(whole.status, 200, 'the tag used for ranges does not match the encoded response');
});

suites('a response that is never encoded keeps its tag, and repeated conditional requests send no body', async () => {
	for (const target of [
		'/files/short.html',
		'/files/picture.png',
		'/up/short',
		'/up/image',
		'/up/encoded',
		'/up/weak',
	]) {
		const tag = (await ask(target, GZIP)).headers.etag!;
		if (target === '/up/encoded') assert.is(tag, '"own-gzip"');
		for (let turn = 0; turn < 3; turn++) {
			bodiesSent = 0;
			const answer = await ask(target, { ...GZIP, 'If-None-Match': `"else", ${tag}` });
			assert.is(answer.status, 304, target);
			assert.is(answer.headers.etag, tag, target);
			assert.is(answer.headers['content-length'], undefined, target);
			if (turn > 0) assert.is(bodiesSent, 0, `${target} is sent again`);
		}
	}
});

suites("conditional requests to the upstream carry the upstream's own tags", async () => {
	await ask('/up/page?1', { ...GZIP, 'If-None-Match': '"page-gzip"' });
	assert.is(upstreamRequests.at(-1)!['if-none-match'], '"page"');
	assert.is(bodiesSent, 0);
	await ask('/up/page?2', { 'If-None-Match': '"page-gzip"' });
	assert.is(
		upstreamRequests.at(-1)!['if-none-match'],
		'"page-gzip"',
		'without Accept-Encoding the tag is passed on unchanged',
	);
	await ask('/up/page?3', { ...GZIP, 'If-None-Match': '*' });
	assert.is(upstreamRequests.at(-1)!['if-none-match'], '*');
	for (const accepts of [{}, GZIP]) {
		await ask('/up/page?4', { ...accepts, 'If-Match': '"page-gzip"' }, 'PUT');
		assert.is(
			upstreamRequests.at(-1)!['if-match'],
			'"page-gzip", "page"',
			'a change applies to the resource in any encoding',
		);
	}
});

suites('HEAD of a proxied response has the same fields as for GET', async () => {
	const head = await ask('/up/page', GZIP, 'HEAD');
	assert.is(head.headers.etag, '"page-gzip"');
	assert.is(head.headers['content-length'], undefined);
	assert.is((await ask('/up/short', GZIP, 'HEAD')).headers['content-length'], '2');
});

suites.run();
