/**
 * Responses that are cached, limited in their rate and encoded, from an upstream that pauses, to clients that pause: each of them
 * arrives whole, and none stops.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { get as secureGet } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, pauseFor, serve, temporaryFolder } from '../harness.ts';

const mixed = suite('mixed responses');

const CLIENT_COUNT = 30;
const REQUESTS_PER_CLIENT = 25;
/** Milliseconds after which a response counts as stopped. The slowest one takes about ten seconds. */
const RESPONSE_LIMIT_MS = 60_000;

const SITE = (upstream: number) => `
	@slow path /slow/* /both/*
	limit_rate @slow 300KiB after 50KiB
	@fast path /fast/*
	limit_rate @fast 2MiB
	@encoded path /both/* /encoded/*
	encode @encoded gzip
	@cached path /both/* /fast/* /cached/*
	cache @cached
	reverse_proxy 127.0.0.1:${upstream}
`;

function pick<T>(choices: readonly T[]): T {
	return choices[Math.floor(Math.random() * choices.length)]!;
}

/** Answers with `n` times the letter `letter`, in pieces of random size, with pauses. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
	const { searchParams } = new URL(request.url!, 'http://upstream');
	const body = Buffer.alloc(Number(searchParams.get('n')), searchParams.get('letter')!);
	response.setHeader('Cache-Control', 'max-age=1');
	response.setHeader('Content-Type', 'text/plain');
	if (searchParams.has('length')) response.setHeader('Content-Length', body.length);
	for (let at = 0; at < body.length; ) {
		const size = pick([1, 500, 4096, 20_000, 140_000, 400_000]);
		if (!response.write(body.subarray(at, at + size))) await once(response, 'drain');
		at += size;
		if (Math.random() < 0.1) await pauseFor(300 + Math.random() * 900);
	}
	response.end();
}

/** Reads a body, with pauses if the client is slow. */
async function readBody(body: IncomingMessage | ClientHttp2Stream, isSlow: boolean): Promise<Buffer> {
	const pieces: Buffer[] = [];
	for await (const piece of body) {
		pieces.push(piece as Buffer);
		if (isSlow && Math.random() < 0.3) await pauseFor(Math.random() * 700);
	}
	return Buffer.concat(pieces);
}

mixed('every response arrives whole, whatever pauses', async () => {
	const upstream = createServer((request, response) => {
		answer(request, response).catch(() => response.destroy());
	}).listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	const [port = 0, securePort = 0, redirectPort = 0] = await freePorts(3);
	const folder = temporaryFolder();
	const site = SITE((upstream.address() as AddressInfo).port);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin off
	threads 2
	http_port ${redirectPort}
	https_port ${securePort}
	storage file_system ${folder}/store
}
http://127.0.0.1:${port} {${site}}
https://a.localhost:${securePort} {
	tls internal
${site}}
`,
	);
	const server = await serve([], port, { cwd: folder });
	const sessions = Array.from(
		{ length: 3 },
		(): ClientHttp2Session =>
			connect(`https://127.0.0.1:${securePort}`, { servername: 'a.localhost', rejectUnauthorized: false }),
	);
	const ask = async (target: string, accepted: string, isSlow: boolean): Promise<Buffer> => {
		const headers = { 'accept-encoding': accepted };
		const protocol = pick(['http', 'https', 'h2']);
		if (protocol === 'h2') {
			const stream = pick(sessions).request({ ':path': target, ':authority': 'a.localhost', ...headers });
			const [fields] = (await once(stream, 'response')) as [{ 'content-encoding'?: string }];
			const body = await readBody(stream, isSlow);
			return fields['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
		}
		const options = { host: '127.0.0.1', path: target, headers: { ...headers, host: 'a.localhost' } };
		const request =
			protocol === 'http'
				? get({ ...options, port, headers: { ...headers, host: '127.0.0.1' } })
				: secureGet({ ...options, port: securePort, servername: 'a.localhost', rejectUnauthorized: false });
		const [response] = (await once(request, 'response')) as [IncomingMessage];
		const body = await readBody(response, isSlow);
		return response.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
	};
	const runClient = async (): Promise<void> => {
		for (let number = 0; number < REQUESTS_PER_CLIENT; number++) {
			const length = pick([10, 5000, 70_000, 133_000, 150_000, 500_000, 1_200_000]);
			const letter = pick(['a', 'b', 'c', 'd']);
			const target = `/${pick(['slow', 'fast', 'both', 'encoded', 'cached'])}/x?n=${length}&letter=${letter}${pick(['', '&length'])}`;
			let timer: NodeJS.Timeout | undefined;
			const stopped = new Promise<never>((_, reject) => {
				timer = setTimeout(() => reject(new Error(`stopped: ${target}`)), RESPONSE_LIMIT_MS);
			});
			const body = await Promise.race([ask(target, pick(['gzip', 'identity']), Math.random() < 0.25), stopped]);
			clearTimeout(timer);
			assert.ok(body.equals(Buffer.alloc(length, letter)), `${target}: ${body.length} bytes`);
		}
	};
	try {
		await Promise.all(Array.from({ length: CLIENT_COUNT }, runClient));
	} finally {
		for (const session of sessions) session.destroy();
		await server.stop();
		upstream.closeAllConnections();
		upstream.close();
	}
});

mixed.run();
