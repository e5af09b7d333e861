/** `cache` in a running server with several threads: sharing, coalescing, purging and reporting. */

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, pauseFor, type ServerProcess, serve, temporaryFolder, until, waitForClock } from '../../harness.ts';

interface Answer {
	readonly status: number;
	readonly body: Buffer;
	readonly headers: { readonly [name: string]: string | string[] | undefined };
	/** The value of the `Cache-Status` field. */
	readonly cacheStatus: string;
}

const AGENT = new Agent({ keepAlive: false, maxSockets: 2000 });

function ask(
	port: number,
	target: string,
	options: { method?: string; headers?: object; body?: string } = {},
): Promise<Answer> {
	return new Promise((resolve, reject) => {
		const { method = 'GET', headers = {}, body } = options;
		const sent = request(
			{ host: '127.0.0.1', port, path: target, method, headers: { ...headers }, agent: AGENT },
			response => {
				const pieces: Buffer[] = [];
				response.on('data', piece => pieces.push(piece));
				response.on('error', reject);
				response.on('end', () =>
					resolve({
						status: response.statusCode!,
						body: Buffer.concat(pieces),
						headers: response.headers,
						cacheStatus: String(response.headers['cache-status']),
					}),
				);
			},
		);
		sent.on('error', reject);
		sent.end(body);
	});
}

/** An origin server that counts requests by path. */
class Origin {
	readonly server: Server;
	readonly counts = new Map<string, number>();
	version = 1;
	/** Ends the response whose second half is held. */
	sendRest: () => void = () => {};

	constructor() {
		this.server = createServer((request, answer) => {
			const url = new URL(request.url!, 'http://origin');
			const count = (this.counts.get(url.pathname) ?? 0) + 1;
			this.counts.set(url.pathname, count);
			const size = Number(url.searchParams.get('size') ?? 100);
			answer.setHeader('Cache-Control', url.searchParams.get('cc') ?? 'max-age=600');
			answer.setHeader('Content-Type', 'text/plain');
			answer.setHeader('X-Version', this.version);
			if (url.searchParams.has('tag')) answer.setHeader('Cache-Tag', url.searchParams.get('tag')!);
			const body = Buffer.alloc(size, `${this.version}`);
			if (url.searchParams.has('held')) {
				answer.write(body.subarray(0, size >> 1));
				this.sendRest = () => answer.end(body.subarray(size >> 1));
			} else if (url.searchParams.has('drip')) {
				answer.write(body.subarray(0, size >> 1));
				setTimeout(() => answer.end(body.subarray(size >> 1)), Number(url.searchParams.get('drip')));
			} else setTimeout(() => answer.end(body), Number(url.searchParams.get('slow') ?? 0));
		});
	}

	asked(pathname: string): number {
		return this.counts.get(pathname) ?? 0;
	}
}

const running = suite('a server with a cache');
const origin = new Origin();
let server: ServerProcess;
let port = 0;
let admin = 0;

running.before(async () => {
	origin.server.listen(0, '127.0.0.1');
	await once(origin.server, 'listening');
	const upstream = (origin.server.address() as { port: number }).port;
	[port, admin] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{
	admin 127.0.0.1:${admin}
	metrics
	threads 2
	cache {
		ceiling 16MiB
	}
}
http://127.0.0.1:${port} {
	log
	cache {
		ttl 404 1m
	}
	reverse_proxy 127.0.0.1:${upstream}
}
http://keys.test:${port} {
	log
	cache {
		key "{http.request.header.X-A}|{http.request.header.X-B}"
		stale while_revalidate 1h
	}
	reverse_proxy 127.0.0.1:${upstream}
}
`,
	);
	server = await serve(['--config', file], port);
});

running.after(async () => {
	await server.stop();
	origin.server.closeAllConnections();
	origin.server.close();
	AGENT.destroy();
});

const events = async (): Promise<{ [name: string]: number }> =>
	JSON.parse((await ask(admin, '/cache')).body.toString());
const purge = async (selection: object): Promise<number> => {
	const body = JSON.stringify(selection);
	const answer = await ask(admin, '/cache/purge', {
		method: 'POST',
		body,
		headers: { 'Content-Type': 'application/json' },
	});
	assert.is(answer.status, 200, answer.body.toString());
	return JSON.parse(answer.body.toString()).purged;
};

running('a thousand concurrent requests for one slow URL cause one request to the origin', async () => {
	const answers = await Promise.all(Array.from({ length: 1000 }, () => ask(port, '/slow?slow=500&size=10000')));
	assert.is(origin.asked('/slow'), 1);
	for (const { status, body } of answers) {
		assert.is(status, 200);
		assert.is(body.length, 10_000);
	}
});

running('all threads serve hits, and the first client does not wait for the end of the body', async () => {
	await ask(port, '/shared');
	for (let i = 0; i < 30; i++) {
		const { cacheStatus } = await ask(port, '/shared');
		assert.match(cacheStatus, /svc; hit; ttl=/);
	}
	assert.is(origin.asked('/shared'), 1);
	let length = 0;
	const sent = request({ host: '127.0.0.1', port, path: '/half?held&size=200000', agent: AGENT }).end();
	const [response] = (await once(sent, 'response')) as [IncomingMessage];
	response.on('data', (bytes: Buffer) => {
		length += bytes.length;
	});
	await until('the first half', () => length > 0);
	origin.sendRest();
	await once(response, 'end');
	assert.is(length, 200_000);
});

running('a response whose origin pauses for longer than a slow client may is complete', async () => {
	const [first, second] = await Promise.all([1, 2].map(() => ask(port, '/pausing?drip=800&size=3000')));
	assert.equal([first!.body.length, second!.body.length], [3000, 3000]);
	assert.is(origin.asked('/pausing'), 1);
	assert.match((await ask(port, '/pausing?drip=800&size=3000')).cacheStatus, 'hit');
});

running('a slow client does not delay the others', async () => {
	const slow = connect(port, '127.0.0.1');
	slow.on('error', () => {});
	slow.pause();
	slow.write(`GET /stalled?size=1900000 HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
	await until('the origin received the request', () => origin.asked('/stalled') > 0);
	const startedAt = performance.now();
	const answers = await Promise.all(Array.from({ length: 6 }, () => ask(port, '/stalled?size=1900000')));
	assert.ok(performance.now() - startedAt < 5000);
	for (const { body } of answers) assert.is(body.length, 1_900_000);
	assert.is(origin.asked('/stalled'), 1);
	// The slow client receives the whole response, too.
	let slowBytes = 0;
	slow.on('data', data => {
		slowBytes += data.length;
	});
	slow.resume();
	await until('the slow client received everything', () => slowBytes > 1_900_000);
	slow.destroy();
});

running('a cached long body is served whole and in ranges', async () => {
	const whole = (await ask(port, '/long?size=1500000')).body;
	const again = await ask(port, '/long?size=1500000');
	assert.match(again.cacheStatus, /hit/);
	assert.ok(again.body.equals(whole));
	const part = await ask(port, '/long?size=1500000', { headers: { Range: 'bytes=1000000-1000099' } });
	assert.is(part.status, 206);
	assert.is(part.body.length, 100);
	const head = await ask(port, '/long?size=1500000', { method: 'HEAD' });
	assert.is(head.headers['content-length'], '1500000');
	assert.is(origin.asked('/long'), 1);
});

running(
	'a slow client receives a long body intact even if the body is purged and its memory reused meanwhile',
	async () => {
		const size = 1_900_000;
		const target = `/filed?size=${size}`;
		const body = Buffer.alloc(size, '1');
		for (let i = 0; i < 12; i++) assert.ok((await ask(port, target)).body.equals(body));
		assert.is(origin.asked('/filed'), 1);
		assert.ok(
			(await ask(port, target, { headers: { Range: 'bytes=1000000-1000099' } })).body.equals(body.subarray(0, 100)),
		);
		const slow = Array.from({ length: 6 }, () => connect(port, '127.0.0.1'));
		const read = await Promise.all(
			slow.map(async socket => {
				await once(socket, 'connect');
				socket.write(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`);
				const [first] = (await once(socket, 'data')) as [Buffer<ArrayBufferLike>];
				socket.pause();
				return first;
			}),
		);
		const purge = JSON.stringify({ host: '127.0.0.1', prefix: '/filed' });
		assert.is((await ask(admin, '/cache/purge', { method: 'POST', body: purge })).status, 200);
		origin.version = 2;
		for (let i = 0; i < 24; i++) await ask(port, `/room${i}?size=1500000`);
		origin.version = 1;
		for (const [i, socket] of slow.entries()) {
			const pieces = [read[i]!];
			socket.on('data', (piece: Buffer) => pieces.push(piece));
			const whenClosed = once(socket, 'close');
			socket.resume();
			await whenClosed;
			const all = Buffer.concat(pieces);
			assert.ok(all.subarray(all.indexOf('\r\n\r\n') + 4).equals(body));
		}
	},
);

running('a purge takes effect on every thread before its response', async () => {
	for (let round = 0; round < 10; round++) {
		origin.version = (origin.version % 9) + 1;
		await purge({ host: '127.0.0.1', path: '/purged' });
		const answers = await Promise.all(Array.from({ length: 12 }, () => ask(port, '/purged')));
		for (const { body } of answers) assert.is(body.toString('latin1', 0, 1), String(origin.version));
	}
	await ask(port, '/t1?tag=a,b');
	await ask(port, '/t2?tag=b');
	assert.is(await purge({ tag: 'b' }), 2);
	await ask(port, '/p/1');
	await ask(port, '/p/2');
	assert.is(await purge({ host: `127.0.0.1:${port}`, prefix: '/p/' }), 2);
});

running('no request sent after a purge gets older content, whatever is in progress on all threads', async () => {
	let least = 0;
	let isOver = false;
	let receivedBytes = 0;
	const client = async (slow: number): Promise<void> => {
		while (!isOver) {
			const wanted = least;
			const { headers } = await ask(port, `/hot?slow=${slow}`);
			receivedBytes++;
			assert.ok(Number(headers['x-version']) >= wanted, `${headers['x-version']} after ${wanted}`);
		}
	};
	// Some fetches take longer than a purge. Their responses must not be stored, either.
	const clients = [0, 0, 0, 0, 0, 0, 15, 15, 15, 40, 40, 40].map(client);
	try {
		for (let round = 0; round < 25; round++) {
			origin.version++;
			const version = origin.version;
			await purge({ host: '127.0.0.1', path: '/hot' });
			least = version;
			await pauseFor(15);
		}
	} finally {
		isOver = true;
	}
	await Promise.all(clients);
	assert.ok(receivedBytes > 200, String(receivedBytes));
	origin.version = 1;
});

running('invalid purges are refused', async () => {
	const refusals: readonly [body: string, type: string | undefined, status: number][] = [
		['{', 'application/json', 400],
		['[]', 'application/json', 400],
		['{"host":"a"}', 'application/json', 400],
		['{"path":"/a"}', 'application/json', 400],
		['{"host":"a","path":"a"}', 'application/json', 400],
		['{"host":"a","path":"/a","tag":"t"}', 'application/json', 400],
		['{"host":1,"path":"/a"}', 'application/json', 400],
		['{"hots":"a","path":"/a"}', 'application/json', 400],
		['{"host":"a","path":"/a"}', 'text/plain', 415],
		[`{"host":"a","path":"/${'a'.repeat(70_000)}"}`, 'application/json', 413],
	];
	for (const [body, type, status] of refusals) {
		const answer = await ask(admin, '/cache/purge', {
			method: 'POST',
			body,
			headers: type ? { 'Content-Type': type } : {},
		});
		assert.is(answer.status, status, body.slice(0, 40));
	}
});

running('purges require permission, and cross-site requests are refused', async () => {
	await ask(port, '/guarded');
	const body = JSON.stringify({ host: '127.0.0.1', path: '/guarded' });
	for (const headers of [{ Host: 'evil.test' }, { Origin: 'http://evil.test' }, { 'Sec-Fetch-Site': 'cross-site' }]) {
		const type = { 'Content-Type': 'application/json' };
		const answer = await ask(admin, '/cache/purge', { method: 'POST', body, headers: { ...type, ...headers } });
		assert.is(answer.status, 403, JSON.stringify(headers));
	}
	assert.is(
		(await ask(port, '/cache/purge', { method: 'POST', body })).status,
		200,
		"on the site's port, the path belongs to the origin",
	);
	assert.match((await ask(port, '/guarded')).cacheStatus, /hit/);
	assert.is(origin.asked('/guarded'), 1);
});

running("cache keys do not collide when a value contains the key template's separator", async () => {
	const of = async (a: string, b: string): Promise<Answer> =>
		ask(port, '/keys', { headers: { Host: 'keys.test', 'X-A': a, 'X-B': b } });
	await of('a', 'b|c');
	assert.match((await of('a|b', 'c')).cacheStatus, /fwd=uri-miss/);
	assert.match((await of('a', 'b|c')).cacheStatus, /hit/);
	assert.match((await of('a|b', 'c')).cacheStatus, /hit/);
	assert.match((await of('a|b|c', '')).cacheStatus, /fwd=uri-miss/);
	assert.is(origin.asked('/keys'), 3);
});

running('cache activity is reported by GET /cache, metrics and the access log', async () => {
	const { ceiling, bytes, entries, hits, collapsed } = await events();
	assert.is(ceiling, 16 * 1024 * 1024);
	assert.ok(bytes! > 1_500_000 && bytes! <= ceiling!);
	assert.ok(entries! > 3 && hits! > 1000 && collapsed! > 900);
	const metrics = (await ask(admin, '/metrics')).body.toString();
	assert.match(metrics, /^svc_cache_requests_total\{status="hit"\} \d{4}/m);
	assert.match(metrics, /^svc_cache_ceiling_bytes 16777216$/m);
	await ask(port, '/logged');
	await ask(port, '/logged', { method: 'POST' });
	await ask(port, '/aged?cc=max-age=1', { headers: { Host: 'keys.test', 'X-A': 'aged' } });
	await waitForClock(1200);
	await ask(port, '/aged?cc=max-age=1', { headers: { Host: 'keys.test', 'X-A': 'aged' } });
	const of = (text: string): string[] => {
		const lines = server.output().split('\n');
		return lines.filter(line => line.includes(text) && line.includes('"cache":'));
	};
	await until('all requests are logged', () => of('"/logged"').length >= 2 && of('"/aged?cc=max-age=1"').length >= 2);
	const logged = of('"/logged"');
	assert.is(logged.length, 2);
	for (const line of logged) assert.match(line, line.includes('"GET"') ? '"cache":"miss"' : '"cache":"bypass"');
	assert.match(of('"/shared"').at(-1)!, '"cache":"hit"');
	assert.match(of('"/aged?cc=max-age=1"').at(-1)!, '"cache":"stale"');
});

running('stored responses survive a configuration load that keeps the cache', async () => {
	await ask(port, '/stays');
	const config = JSON.parse((await ask(admin, '/config/')).body.toString());
	config.sites.push({ addresses: [`http://other.test:${port}`], pipeline: [{ handler: 'respond', body: 'x' }] });
	const body = JSON.stringify(config);
	const loaded = await ask(admin, '/load', { method: 'POST', body, headers: { 'Content-Type': 'application/json' } });
	assert.is(loaded.status, 200, loaded.body.toString());
	assert.match((await ask(port, '/stays')).cacheStatus, /hit/);
	assert.is(origin.asked('/stays'), 1);
});

running.run();
