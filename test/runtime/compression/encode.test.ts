/**
 * `encode` over real sockets: which responses are encoded, how streams and changing files are encoded, and what happens under
 * overload.
 */
import { once } from 'node:events';
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, get, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../../harness.ts';

const LONG_TEXT = 'All work and no play makes Jack a dull boy.\n'.repeat(100);
const DECODERS = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync } as const;

interface Answer {
	readonly status: number;
	readonly headers: IncomingHttpHeaders;
	readonly body: Buffer;
	/** The text of the body, decoded according to its Content-Encoding. */
	readonly text: string;
}

const folder = temporaryFolder();
const root = path.join(folder, 'site');
let port = 0;
let server: ServerProcess | undefined;
let upstream: Server | undefined;
/** Returns the text of the target `/own/LENGTH/NAME`, which has that length and is different for each name. */
function textOfTarget(target: string): string {
	return `${target},`.repeat(Number(target.split('/')[2])).slice(0, Number(target.split('/')[2]));
}

/** Breaks the connection of the unfinished response of `/cut`. */
let cutUpstream: () => void = () => {};

/** Sends the next event to every client of `/events`. */
let sendEvent: (text: string) => void = () => {};
let endEvents: () => void = () => {};

function ask(target: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
	return new Promise((resolve, reject) => {
		const request = get({ host: '127.0.0.1', port, path: target, headers, method, agent: false }, response => {
			const pieces: Buffer[] = [];
			response.on('data', (piece: Buffer) => pieces.push(piece));
			response.on('error', reject);
			response.on('end', () => {
				const body = Buffer.concat(pieces);
				const coding = response.headers['content-encoding'] as keyof typeof DECODERS | undefined;
				const text = coding && body.length > 0 ? DECODERS[coding](body).toString() : body.toString();
				resolve({ status: response.statusCode!, headers: response.headers, body, text });
			});
		});
		request.on('error', reject);
	});
}

const GZIP = { 'Accept-Encoding': 'gzip' };

const encode = suite('encode');

encode.before(async () => {
	mkdirSync(root);
	writeFileSync(path.join(root, 'page.html'), LONG_TEXT);
	writeFileSync(path.join(root, 'big.txt'), LONG_TEXT.repeat(200));
	writeFileSync(path.join(root, 'picture.png'), LONG_TEXT);
	writeFileSync(path.join(root, 'short.txt'), 'short');
	upstream = createServer((request, response) => {
		if (request.url === '/events') {
			response.writeHead(200, { 'Content-Type': 'text/event-stream' });
			response.flushHeaders();
			sendEvent = text => response.write(`data: ${text}\n\n`);
			endEvents = () => response.end();
		} else if (request.url!.startsWith('/own/')) {
			const text = textOfTarget(request.url!);
			const type = request.url!.endsWith('.png') ? 'image/png' : 'text/plain';
			response.writeHead(200, { 'Content-Type': type, 'Content-Length': text.length });
			response.end(text);
		} else if (request.url === '/encoded') {
			response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Encoding': 'gzip' });
			response.end('not really');
		} else if (request.url === '/no-transform') {
			response.writeHead(200, { 'Content-Type': 'text/plain', 'Cache-Control': 'public, no-transform' });
			response.end(LONG_TEXT);
		} else if (request.url === '/cut') {
			response.writeHead(200, { 'Content-Type': 'text/plain' });
			response.write(LONG_TEXT);
			cutUpstream = () => response.destroy();
		} else if (request.url === '/chunk') {
			response.writeHead(200, { 'Content-Type': 'text/plain' });
			response.write('tiny');
			response.end();
		} else {
			response.writeHead(200, { 'Content-Type': 'application/json', Etag: '"abc"', Vary: 'Cookie' });
			response.end(JSON.stringify({ seen: request.headers['if-none-match'] ?? null, filler: LONG_TEXT }));
		}
	}).listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	[port] = (await freePorts(1)) as [number];
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{\n\tthreads 1\n}\nhttp://127.0.0.1:${port} {
	encode /only-br br
	@own path /up/own/*
	encode @own {
		br 5
		zstd
		gzip
	}
	@rest not path /only-br /up/own/*
	encode @rest {
		zstd
		gzip 6
	}
	handle /files/* {
		uri strip_prefix /files
		root ${root}
		file_server
	}
	handle /up/* {
		uri strip_prefix /up
		reverse_proxy 127.0.0.1:${(upstream.address() as AddressInfo).port}
	}
	handle /error {
		error "${'no '.repeat(300)}" 404
	}
	handle /empty {
		respond 204
	}
	handle {
		header Content-Type text/plain
		respond "${LONG_TEXT.replaceAll('\n', ' ')}"
	}
}
`,
	);
	server = await serve([file], port);
});
encode.after(async () => {
	await server?.stop();
	upstream?.closeAllConnections();
	upstream?.close();
});

encode('a constant response is encoded as the client prefers', async () => {
	const plain = await ask('/');
	assert.is(plain.headers['content-encoding'], undefined);
	assert.is(plain.headers.vary, 'Accept-Encoding');
	for (const [field, coding] of [
		['gzip', 'gzip'],
		['gzip, zstd', 'zstd'],
		['br', undefined],
	] as const) {
		const answer = await ask('/', { 'Accept-Encoding': field });
		assert.is(answer.headers['content-encoding'], coding);
		assert.is(answer.text, plain.text);
		assert.is(Number(answer.headers['content-length']), answer.body.length);
		if (coding) assert.ok(answer.body.length < plain.body.length / 5);
	}
	assert.is((await ask('/only-br', { 'Accept-Encoding': 'gzip, br' })).headers['content-encoding'], 'br');
});

encode('files are encoded, and cached encodings follow changes to the file', async () => {
	const first = await ask('/files/page.html', GZIP);
	assert.is(first.headers['content-encoding'], 'gzip');
	assert.match(first.headers.etag!, /^"[0-9a-z]+-[0-9a-z]+-gzip"$/);
	assert.is(first.headers['accept-ranges'], undefined);
	assert.is(first.text, LONG_TEXT);
	const again = await ask('/files/page.html', GZIP);
	assert.equal(again.body, first.body);
	const changed = LONG_TEXT.toUpperCase();
	writeFileSync(path.join(root, 'page.html'), changed);
	utimesSync(path.join(root, 'page.html'), 1_000_000, 1_000_000);
	const after = await ask('/files/page.html', GZIP);
	assert.is(after.text, changed);
	assert.is.not(after.headers.etag, first.headers.etag);
	const big = await ask('/files/big.txt', { 'Accept-Encoding': 'zstd' });
	assert.is(big.text, LONG_TEXT.repeat(200));
	assert.equal((await ask('/files/big.txt', { 'Accept-Encoding': 'zstd' })).text, big.text);
});

encode('a conditional request with the tag of an encoded response gets 304 with that tag', async () => {
	const { headers } = await ask('/files/page.html', GZIP);
	const same = await ask('/files/page.html', { ...GZIP, 'If-None-Match': headers.etag! });
	assert.is(same.status, 304);
	assert.is(same.headers.etag, headers.etag);
	assert.is(same.headers.vary, 'Accept-Encoding');
	const proxied = await ask('/up/json', { ...GZIP, 'If-None-Match': '"abc-gzip"' });
	assert.is(JSON.parse(proxied.text).seen, '"abc"', 'the upstream receives its own tag');
	assert.is(proxied.headers.etag, '"abc-gzip"');
	assert.is(proxied.headers.vary, 'Cookie, Accept-Encoding');
});

encode('short, partial, image, already encoded, no-transform, empty and error responses are not encoded', async () => {
	for (const [target, headers] of [
		['/files/short.txt', GZIP],
		['/files/page.html', { ...GZIP, Range: 'bytes=0-9' }],
		['/files/picture.png', GZIP],
		['/up/no-transform', GZIP],
		['/', { ...GZIP, 'Cache-Control': 'no-transform' }],
		['/empty', GZIP],
		['/error', GZIP],
		['/up/chunk', GZIP],
	] as const) {
		const answer = await ask(target, headers);
		assert.is(answer.headers['content-encoding'], undefined, target);
	}
	const encoded = get({ host: '127.0.0.1', port, path: '/up/encoded', headers: GZIP, agent: false });
	const [response] = await once(encoded, 'response');
	assert.is(response.headers['content-encoding'], 'gzip');
	let text = '';
	for await (const piece of response) text += piece;
	assert.is(text, 'not really', 'the body was encoded twice');
});

encode(
	'concurrent proxied bodies are not mixed up, whether encoded at once, by the thread pool or not at all',
	async () => {
		// All proxied bodies use the same read buffer, which the next response overwrites.
		const requests: Promise<void>[] = [];
		for (let turn = 0; turn < 4; turn++) {
			for (const length of [90, 600, 10_240, 20_000, 31_000, 60_000]) {
				for (const coding of ['gzip', 'br', 'zstd', 'png']) {
					const target = `/own/${length}/${turn}.${coding}`;
					const one = ask(`/up${target}`, { 'Accept-Encoding': coding }).then(({ text, headers }) => {
						assert.is(headers['content-encoding'], coding === 'png' || length === 90 ? undefined : coding, target);
						assert.ok(text === textOfTarget(target), target);
					});
					requests.push(one);
				}
			}
		}
		await Promise.all(requests);
	},
);

encode('HEAD has the same fields as GET', async () => {
	const head = await ask('/files/page.html', GZIP, 'HEAD');
	assert.is(head.headers['content-encoding'], 'gzip');
	assert.is(head.body.length, 0);
	assert.is((await ask('/files/short.txt', GZIP, 'HEAD')).headers['content-length'], '5');
});

encode('each server-sent event is delivered at once', async () => {
	const request = get({ host: '127.0.0.1', port, path: '/up/events', headers: GZIP, agent: false });
	const [response] = await once(request, 'response');
	assert.is(response.headers['content-encoding'], 'gzip');
	const decoder = (await import('node:zlib')).createGunzip();
	response.pipe(decoder);
	for (const text of ['one', 'two', 'three']) {
		sendEvent(text);
		const [piece] = await once(decoder, 'data');
		assert.is(piece.toString(), `data: ${text}\n\n`);
	}
	endEvents();
	await once(decoder, 'end');
});

encode('a truncated body is not ended as if it were complete', async () => {
	const request = get({ host: '127.0.0.1', port, path: '/up/cut', headers: GZIP, agent: false });
	const [response] = (await once(request, 'response')) as [IncomingMessage];
	assert.is(response.statusCode, 200);
	cutUpstream();
	const error = await new Promise<Error | undefined>(resolve => {
		response
			.resume()
			.on('error', resolve)
			.on('end', () => resolve(undefined));
	});
	assert.match(error?.message ?? 'the response is complete', 'aborted');
});

encode('after many clients disconnect during a response, encoding still works', async () => {
	for (let round = 0; round < 5; round++) {
		await Promise.all(
			Array.from({ length: 40 }, async () => {
				const request = get({
					host: '127.0.0.1',
					port,
					path: '/files/big.txt',
					headers: { 'Accept-Encoding': 'zstd, gzip' },
					agent: false,
				});
				request.on('error', () => {});
				await once(request, 'response').catch(() => {});
				request.destroy();
			}),
		);
	}
	const after = await Promise.all(Array.from({ length: 80 }, () => ask('/files/big.txt', GZIP)));
	for (const { text } of after) assert.is(text.length, LONG_TEXT.length * 200);
	assert.ok(after.some(({ headers }) => headers['content-encoding'] === 'gzip'));
});

encode.run();
