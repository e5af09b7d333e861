/**
 * `limit_rate` in a whole server: all kinds of bodies over all protocols, clients that disconnect, time-outs, the cache and
 * shutdown.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { get as secureGet } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { TestAuthority } from '../../certificates.ts';
import { concurrentCases } from '../../concurrent-cases.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder, until, WAIT_LIMIT_MS } from '../../harness.ts';
import { withServer } from '../running-server.ts';
import { onRequestHead, scriptedUpstream } from '../upstreams/scripted-upstream.ts';
import { headers, openControlStream, response } from './http3/frames.ts';
import { connect as connectQuic } from './http3/quic-client.ts';

const test = suite('limited rates');

const KIB = 1024;
/** The limited rate in bytes per second. */
const RATE_BYTES = 16 * KIB;
const BODY_BYTES = 40 * KIB;
/** Minimum number of milliseconds that a body of `BODY_BYTES` takes, if the bytes of a tenth of a second are sent at once. */
const MIN_BODY_MS = ((BODY_BYTES - RATE_BYTES / 10) / RATE_BYTES) * 1000;
/** Time limit for a response, in milliseconds. The time during which the server waits because of the rate does not count. */
const WRITE_TIMEOUT_MS = 2000;

// Random text, so that gzip at most halves its size. Each character has one byte.
const text = randomBytes(BODY_BYTES / 2).toString('hex');
const folder = temporaryFolder();
let server: ServerProcess;
let [port, tlsPort, upstreamPort] = [0, 0, 0];

/** Counts of what the upstreams have observed. */
const observations = { requests: 0, closed: 0, sent: 0 };
/** Number of requests to the upstream with each query. */
const requestCounts = new Map<string, number>();
const upstream = createServer((request, answer) => {
	observations.requests++;
	const query = request.url!.replace(/^[^?]*/, '');
	requestCounts.set(query, (requestCounts.get(query) ?? 0) + 1);
	answer.on('close', () => {
		if (!answer.writableFinished) observations.closed++;
	});
	answer.setHeader('Content-Type', 'text/plain');
	answer.setHeader('Cache-Control', 'max-age=3600');
	if (request.url!.includes('unannounced')) {
		answer.write(text.slice(0, 1000));
		answer.end(text.slice(1000));
	} else if (request.url!.includes('endless')) {
		const more = (): void => {
			do {
				if (answer.destroyed) return;
				observations.sent += 65_536;
			} while (answer.write(Buffer.alloc(65_536)));
		};
		answer.on('drain', more);
		more();
	} else if (request.url!.includes('large')) answer.end(Buffer.alloc(LARGE_BYTES, 97));
	else answer.end(text);
});
/** Size of a response in bytes that takes minutes at the limited rate. */
const LARGE_BYTES = 4 * 1024 * KIB;

function configuration(): string {
	return `{
	admin off
	threads 2
	auto_https disable_redirects
	grace_period 300ms
	cache
	servers {
		timeouts {
			write ${WRITE_TIMEOUT_MS}ms
		}
	}
}
http://localhost:${port}, https://localhost:${tlsPort} {
	bind 127.0.0.1
	tls ${folder}/c.pem ${folder}/k.pem
	log {
		output file ${folder}/access.log
	}
	limit_rate ${RATE_BYTES / KIB}KiB
	limit_rate /later ${RATE_BYTES / KIB}KiB after ${BODY_BYTES / KIB}KiB
	@fast header X-Fast yes
	limit_rate @fast off
	handle /file.txt {
		root ${folder}/site
		file_server
	}
	handle /encoded {
		encode gzip
		reverse_proxy 127.0.0.1:${upstreamPort}
	}
	handle /cached* {
		cache
		reverse_proxy 127.0.0.1:${upstreamPort}
	}
	handle /fixed {
		respond "${text}"
	}
	reverse_proxy 127.0.0.1:${upstreamPort}
}
`;
}

test.before(async () => {
	[port, tlsPort] = (await freePorts(2)) as [number, number];
	upstream.listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	upstreamPort = (upstream.address() as AddressInfo).port;
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['localhost'] });
	writeFileSync(path.join(folder, 'c.pem'), certificate);
	writeFileSync(path.join(folder, 'k.pem'), key);
	mkdirSync(path.join(folder, 'site'));
	writeFileSync(path.join(folder, 'site', 'file.txt'), text);
	writeFileSync(path.join(folder, 'Configfile'), configuration());
	server = await serve([], port, { cwd: folder });
});

test.after(async () => {
	upstream.closeAllConnections();
	upstream.close();
	await server.stop();
});

type Fields = { readonly [name: string]: string };
const FAST: Fields = { 'x-fast': 'yes' };

/** Requests a path. Resolves to the body and to the milliseconds until its end. */
type Client = (path: string, fields?: Fields) => Promise<{ readonly body: Buffer; readonly took: number }>;

async function readAll(pieces: AsyncIterable<Buffer>, begun: number): Promise<{ body: Buffer; took: number }> {
	const all: Buffer[] = [];
	for await (const piece of pieces) all.push(piece);
	return { body: Buffer.concat(all), took: performance.now() - begun };
}

function over(module: typeof get, origin: () => string): Client {
	return async (where, fields = {}) => {
		const startedAt = performance.now();
		const asked = module(origin() + where, { agent: false, headers: fields, rejectUnauthorized: false } as object);
		const [answer] = (await once(asked, 'response')) as [IncomingMessage];
		return readAll(answer, startedAt);
	};
}

const overHttp1 = over(get, () => `http://localhost:${port}`);

const CLIENTS: { [name: string]: Client } = {
	'HTTP/1.1': overHttp1,
	'HTTP/1.1 over TLS': over(secureGet as typeof get, () => `https://localhost:${tlsPort}`),
	'HTTP/2': async (where, fields = {}) => {
		// The flow-control window is smaller than the body, so that the response must also wait for its client.
		const session = connectHttp2(`https://localhost:${tlsPort}`, {
			rejectUnauthorized: false,
			settings: { initialWindowSize: 9000 },
		});
		try {
			const startedAt = performance.now();
			return await readAll(session.request({ ':path': where, ...fields }), startedAt);
		} finally {
			session.destroy();
		}
	},
};
if (isDirectIo()) {
	CLIENTS['HTTP/3'] = async (where, more = {}) => {
		const client = await connectQuic(tlsPort);
		try {
			openControlStream(client);
			const fields: [string, string][] = [
				[':method', 'GET'],
				[':scheme', 'https'],
				[':authority', `localhost:${tlsPort}`],
				[':path', where],
				...Object.entries(more),
			];
			const startedAt = performance.now();
			const stream = client.open().write(headers(fields), true);
			await client.until('the end', () => stream.ended || stream.resetCode !== undefined);
			const elapsedMs = performance.now() - startedAt;
			const { body } = await response(client, stream);
			return { body: Buffer.from(body, 'latin1'), took: elapsedMs };
		} finally {
			client.destroy();
		}
	};
}

const protocolTest = concurrentCases(test);
for (const [index, [protocol, client]] of Object.entries(CLIENTS).entries()) {
	protocolTest(`every kind of body is sent at its rate and complete over ${protocol}`, async () => {
		// The query identifies the requests of this protocol.
		const query = `?${index}`;
		// Stores the response, so that the request for it below is a cache hit.
		assert.is((await client(`/cached${query}`, FAST)).body.toString(), text);
		assert.is(requestCounts.get(query), 1);
		const bodies = ['/file.txt', '/fixed', '/proxied', '/unannounced', '/cached'];
		const answers = await Promise.all(bodies.map(where => client(where + query)));
		for (const [index, { body, took }] of answers.entries()) {
			assert.ok(body.toString() === text, `${bodies[index]}: ${body.length} other bytes`);
			assert.ok(took >= MIN_BODY_MS, `${bodies[index]}: ${took} ms`);
		}
		assert.is(requestCounts.get(query), 3, 'the cached response was requested again');
	});
}

test('compressed bytes count, not those before compression', async () => {
	const { body, took } = await overHttp1('/encoded', { 'accept-encoding': 'gzip' });
	assert.is(gunzipSync(body).toString(), text);
	const least = ((body.length - RATE_BYTES / 10) / RATE_BYTES) * 1000;
	assert.ok(took >= least, `${took} ms for ${body.length} bytes`);
	// The compressed body is shorter than the text, and takes at least as long as its own bytes need at the limited rate.
	assert.ok(body.length < 0.7 * BODY_BYTES);
});

test('the last `limit_rate` applies, `off` lifts the limit, and the first bytes are not limited with `after`', async () => {
	assert.ok((await overHttp1('/proxied', FAST)).took < MIN_BODY_MS);
	assert.ok((await overHttp1('/later')).took < MIN_BODY_MS);
});

test('a client that leaves releases its upstream at once, and the upstream is read no faster than the rate', async () => {
	for (const [module, origin] of [
		[get, `http://localhost:${port}`],
		[secureGet, `https://localhost:${tlsPort}`],
	] as const) {
		const closed = observations.closed;
		observations.sent = 0;
		const asked = module(`${origin}/endless`, { agent: false, rejectUnauthorized: false });
		const [answer] = (await once(asked, 'response')) as [IncomingMessage];
		let received = 0;
		answer.on('data', piece => {
			received += piece.length;
		});
		answer.on('error', () => {});
		await until('some parts', () => received > 4 * KIB);
		// The sockets and the server hold a few megabytes at most, whatever the rate is.
		assert.ok(observations.sent < 32 * 1024 * KIB, `${observations.sent} bytes were read ahead`);
		asked.destroy();
		await until('the end of the upstream response', () => observations.closed === closed + 1);
	}
});

test('the connection to an upstream can be used again after a limited response', async () => {
	// With these sizes and this rate, the kernel moves the last bytes of a body while the server does not read from the upstream.
	const sizes = [132_000, 138_000, 144_000, 150_000];
	const upstream = await scriptedUpstream(socket =>
		onRequestHead(socket, head => {
			const size = Number(/^GET \/(\d+)/.exec(head)![1]);
			socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n${'a'.repeat(size)}`);
		}),
	);
	const site = `http://:0 {\nbind 127.0.0.1\nlimit_rate 1MiB\nreverse_proxy ${upstream.address}\n}`;
	const input = { format: 'configfile' as const, text: `{\nadmin off\n}\n${site}\n`, name: 'Configfile' };
	try {
		await withServer(undefined, { input, threads: 1 }, async ({ port: sitePort }) => {
			for (const size of sizes) {
				const response = await fetch(`http://127.0.0.1:${sitePort}/${size}`, { signal: AbortSignal.timeout(20_000) });
				assert.is((await response.arrayBuffer()).byteLength, size);
			}
			assert.is(upstream.accepted, 1);
		});
	} finally {
		await upstream.close();
	}
});

test('a response that is slow because of its rate is stored at once', async () => {
	const clientRequest = get(`http://localhost:${port}/cached/large`, { agent: false });
	const [answer] = (await once(clientRequest, 'response')) as [IncomingMessage];
	let received = 0;
	answer.on('data', piece => {
		received += piece.length;
	});
	answer.on('error', () => {});
	await until('some parts', () => received > KIB);
	const before = observations.requests;
	// This request waits for the response that is being stored, and gets all of it.
	const { body } = await overHttp1('/cached/large', FAST);
	assert.is(body.length, LARGE_BYTES);
	assert.is(observations.requests, before);
	assert.ok(received < LARGE_BYTES / 2, 'the first client had its response meanwhile');
	clientRequest.destroy();
});

test('access logs have the bytes and the time of a limited response', async () => {
	const log = (): { [field: string]: unknown }[] =>
		readFileSync(path.join(folder, 'access.log'), 'utf8')
			.split('\n')
			.filter(line => line !== '')
			.map(line => JSON.parse(line));
	await overHttp1('/fixed?logged');
	const entry = (): { [field: string]: unknown } | undefined =>
		log().find(({ request }) => (request as { uri: string }).uri === '/fixed?logged');
	await until('the entry', () => entry() !== undefined);
	assert.is(entry()!.size, BODY_BYTES);
	assert.ok((entry()!.duration as number) >= MIN_BODY_MS / 1000);
});

test('the end of the grace period ends a limited response', async () => {
	const clientRequest = get(`http://localhost:${port}/cached/large`, { agent: false });
	const [answer] = (await once(clientRequest, 'response')) as [IncomingMessage];
	answer.resume();
	const cut = once(answer, 'error');
	assert.is(await server.stop(WAIT_LIMIT_MS), 0);
	await cut;
	assert.not.ok(answer.complete);
});

test.run();
