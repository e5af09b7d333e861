/** `replace` in a running server: with compression, the cache, ranges, streams, failures and large bodies. */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder, until } from '../../../../harness.ts';

const responses = suite('responses with replaced texts');

const [port, upstreamPort] = (await freePorts(2)) as [number, number];
const LARGE_BYTES = 100 * 1024 * 1024;
/** Paths and `Accept-Encoding` of the requests that reached the upstream. */
const upstreamRequests: string[] = [];
/** Responses that the upstream has begun but not ended, by path. */
const openResponses = new Map<string, ServerResponse>();
let server: ServerProcess;

const upstream = createServer(async (request, response) => {
	const target = request.url!;
	upstreamRequests.push(`${target} ${request.headers['accept-encoding']}`);
	response.setHeader('Content-Type', 'text/html');
	const [place] = target.split('?') as [string];
	if (place === '/stream' || place === '/broken') {
		openResponses.set(place, response);
		response.write('first old, then ol');
	} else if (target === '/failed') {
		request.socket.destroy();
	} else if (target === '/large') {
		const piece = Buffer.alloc(1024 * 1024, 'o');
		for (let sent = 0; sent < LARGE_BYTES; sent += piece.length)
			if (!response.write(piece)) await once(response, 'drain');
		response.end();
	} else if (target.startsWith('/v1/v1/')) {
		response.end('rewritten twice');
	} else if (target === '/v1/part' && request.headers.range) {
		assert.is(request.headers['x-added'], '1');
		assert.match(request.headers.host!, /^again\.(?!again)/);
		assert.is(request.headers['x-host'], 'again.a.example');
		response.writeHead(206, { 'Content-Range': 'bytes 0-2/8' }).end('an ');
	} else if (target === '/v1/part') {
		assert.is(request.headers['x-added'], '1');
		assert.match(request.headers.host!, /^again\.(?!again)/);
		assert.is(request.headers['x-host'], 'again.a.example');
		response.end('an old one');
	} else {
		response.setHeader('Cache-Control', 'max-age=60');
		response.end(`old for {host} ${'page '.repeat(300)}`);
	}
});

/** Returns a response once its head has arrived. */
async function requestHead(target: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
	const request = get({ port, path: target, agent: false, headers: { Host: 'a.example', ...headers } });
	const [response] = (await once(request, 'response')) as [IncomingMessage];
	return response;
}

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
	const parts: Buffer[] = [];
	for await (const part of response) parts.push(part as Buffer);
	return Buffer.concat(parts);
}

responses.before(async () => {
	upstream.listen(upstreamPort, '127.0.0.1');
	await once(upstream, 'listening');
	const folder = temporaryFolder();
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin off
	cache
}
http://a.example:${port} {
	bind 127.0.0.1
	encode gzip
	handle /outer* {
		cache
		replace old "{query.n}"
		reverse_proxy 127.0.0.1:${upstreamPort}
	}
	handle /part {
		replace old new
		handle /part {
			request_header +X-Added 1
			request_header Host again.{host}
			request_header X-Host {host}
			header X-Handled yes
			rewrite * /v1{path}
			reverse_proxy 127.0.0.1:${upstreamPort}
		}
		respond "no handle was left" 500
	}
	replace old "{query.n}"
	cache {
		key {path}
	}
	reverse_proxy 127.0.0.1:${upstreamPort}
	handle_errors {
		encode gzip {
			minimum_length 1
		}
		header Content-Type text/plain
		respond "{err.status_code}, old"
	}
}
`,
	);
	server = await serve(['-c', 'Configfile'], port, { cwd: folder });
});

responses.after(async () => {
	await server.stop();
	upstream.closeAllConnections();
	upstream.close();
});

responses('are compressed by an `encode` outside, and requested uncompressed', async () => {
	const response = await requestHead('/page?n=1', { 'Accept-Encoding': 'gzip' });
	assert.is(response.headers['content-encoding'], 'gzip');
	assert.match(gunzipSync(await bodyOf(response)).toString(), /^1 for \{host\} page/);
	assert.ok(upstreamRequests.includes('/page?n=1 identity'), String(upstreamRequests));
});

responses('come from one stored response of a `cache` inside, each with its own replacement', async () => {
	assert.match((await bodyOf(await requestHead('/same?n=1'))).toString(), /^1 for/);
	assert.match((await bodyOf(await requestHead('/same?n=2'))).toString(), /^2 for/);
	assert.is(upstreamRequests.filter(one => one.startsWith('/same')).length, 1);
});

responses('are stored with their replacements by a `cache` outside', async () => {
	assert.match((await bodyOf(await requestHead('/outer?n=1'))).toString(), /^1 for/);
	assert.match((await bodyOf(await requestHead('/outer?n=1'))).toString(), /^1 for/);
	assert.is(upstreamRequests.filter(one => one.startsWith('/outer')).length, 1);
	assert.match((await bodyOf(await requestHead('/outer?n=2'))).toString(), /^2 for/);
});

responses('to a request for a part are whole, and later directives change the request once', async () => {
	const response = await requestHead('/part', { Range: 'bytes=0-2' });
	assert.is((await bodyOf(response)).toString(), 'an new one');
	assert.is(response.statusCode, 200);
	assert.is(response.headers['x-handled'], 'yes');
	assert.is(response.headers['content-range'], undefined);
});

responses('of unknown length are passed on as they arrive', async () => {
	const response = await requestHead('/stream?n=new');
	let text = '';
	response.setEncoding('utf8').on('data', part => {
		text += part;
	});
	await until('the first piece', () => text === 'first new, then ');
	openResponses.get('/stream')!.end();
	await once(response, 'end');
	assert.is(text, 'first new, then ol');
});

responses('that an upstream breaks off are incomplete for the client, too', async () => {
	const response = await requestHead('/broken');
	const failure = bodyOf(response).then(
		() => 'complete',
		() => 'broken off',
	);
	openResponses.get('/broken')!.destroy();
	assert.is(await failure, 'broken off');
});

responses('of error routes are compressed as the client asked, and not searched', async () => {
	const response = await requestHead('/failed', { 'Accept-Encoding': 'gzip' });
	assert.is(response.statusCode, 502);
	assert.is(response.headers['content-encoding'], 'gzip');
	assert.is(gunzipSync(await bodyOf(response)).toString(), '502, old');
});

responses('of 100 MB without a newline take little memory, with a client that reads slowly', async () => {
	const resident = (): number => {
		if (process.platform !== 'linux') return 0;
		const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
		return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024;
	};
	const before = resident();
	const response = await requestHead('/large');
	let received = 0;
	let most = 0;
	for await (const part of response) {
		received += (part as Buffer).length;
		most = Math.max(most, resident());
	}
	assert.is(received, LARGE_BYTES);
	assert.ok(most - before < 80 * 1024 * 1024, `${(most - before) >> 20} MiB more`);
});

responses.run();
