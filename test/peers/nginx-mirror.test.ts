/** `mirror` and nginx's directive of the same name send the same copies of requests. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, rawExchange, serve, temporaryFolder, until } from '../harness.ts';
import { startNginx } from './nginx-process.ts';

const peers = suite('copies of requests, beside nginx');

/** A request, without the fields that the test adds to every request. */
interface TestRequest {
	readonly line: string;
	readonly fields?: readonly string[];
	/** The body. A string is sent with a Content-Length, a list of pieces in chunks. */
	readonly body?: string | readonly string[];
}

const REQUESTS: readonly TestRequest[] = [
	{ line: 'GET /' },
	{ line: 'GET /a%20b/%C3%A9?x=1&y=%2F&z', fields: ['Cookie: a=1; b=2', 'X-One: 1', 'Accept: text/html'] },
	{ line: 'HEAD /head' },
	{ line: 'DELETE /thing/1', fields: ['Authorization: Basic eDp5'] },
	{ line: 'OPTIONS /options' },
	{ line: 'POST /form', fields: ['Content-Type: application/x-www-form-urlencoded'], body: 'a=1&b=2' },
	{ line: 'PUT /empty', body: '' },
	{
		line: 'PATCH /chunked',
		fields: ['Content-Type: text/plain'],
		body: ['one ', 'two ', 'GET /inside HTTP/1.1\r\n\r\n'],
	},
	{ line: 'POST /binary', body: Array.from({ length: 256 }, (_, at) => String.fromCharCode(at)).join('') },
	{ line: 'POST /larger', body: 'x'.repeat(200_000) },
];

/** Matches fields that a proxy adds by itself, and fields that frame the message. Their values differ between nginx and svc. */
const PROXY_FIELDS =
	/^(?:connection|content-length|transfer-encoding|via|x-forwarded-(?:for|proto|host)|x-mirrored|host|x-original-uri)$/i;

/** Starts an upstream that records the method, target, fields and body of each request. */
async function startRecorder(port: number): Promise<{ readonly arrived: string[]; readonly server: Server }> {
	const arrived: string[] = [];
	const server = createServer(async (request, response) => {
		const parts: Buffer[] = [];
		for await (const part of request) parts.push(part as Buffer);
		const fields: string[] = [];
		for (let at = 0; at < request.rawHeaders.length; at += 2) {
			const name = request.rawHeaders[at]!;
			if (!PROXY_FIELDS.test(name)) fields.push(`${name}: ${request.rawHeaders[at + 1]}`);
		}
		const body = Buffer.concat(parts).toString('latin1');
		arrived.push([`${request.method} ${request.url}`, ...fields.sort(), '', body].join('\n'));
		response.end();
	});
	server.listen(port, '127.0.0.1');
	await once(server, 'listening');
	return { arrived, server };
}

function requestText({ line, fields = [], body }: TestRequest): string {
	const head = [`${line} HTTP/1.1`, 'Host: a.example', 'Connection: close', ...fields];
	if (body === undefined) return `${head.join('\r\n')}\r\n\r\n`;
	if (typeof body === 'string') return `${[...head, `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`;
	const chunks = body.map(piece => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('');
	return `${[...head, 'Transfer-Encoding: chunked'].join('\r\n')}\r\n\r\n${chunks}0\r\n\r\n`;
}

peers('the same copies arrive, and without bodies where they are off', async () => {
	const ports = (await freePorts(6)) as [number, number, number, number, number, number];
	const [port, nginxPort, upstreamPort, withBody, withoutBody, theirWithBody] = ports;
	const [theirWithoutBody] = (await freePorts(1)) as [number];
	const folder = temporaryFolder();
	writeFileSync(
		path.join(folder, 'Configfile'),
		`http://a.example:${port} {
	bind 127.0.0.1
	when path /bare/* {
		mirror 127.0.0.1:${withoutBody} {
			body off
		}
	} else {
		mirror 127.0.0.1:${withBody}
	}
	reverse_proxy 127.0.0.1:${upstreamPort}
}
`,
	);
	const upstream = await startRecorder(upstreamPort);
	const ours = [await startRecorder(withBody), await startRecorder(withoutBody)];
	const theirs = [await startRecorder(theirWithBody), await startRecorder(theirWithoutBody)];
	const nginx = await startNginx(
		folder,
		nginxPort,
		`access_log off;
	proxy_http_version 1.1;
	server {
		listen 127.0.0.1:${nginxPort};
		location / {
			mirror /copy;
			proxy_pass http://127.0.0.1:${upstreamPort};
		}
		location /bare/ {
			mirror /bare-copy;
			mirror_request_body off;
			proxy_pass http://127.0.0.1:${upstreamPort};
		}
		location = /copy {
			internal;
			proxy_pass http://127.0.0.1:${theirWithBody}$request_uri;
		}
		location = /bare-copy {
			internal;
			proxy_pass_request_body off;
			proxy_set_header Content-Length "";
			proxy_pass http://127.0.0.1:${theirWithoutBody}$request_uri;
		}
	}`,
	);
	const server = await serve(['-c', 'Configfile'], port, { cwd: folder });
	try {
		const bare = REQUESTS.filter(({ body }) => body !== undefined).map(sent => ({
			...sent,
			line: sent.line.replace(' /', ' /bare/'),
		}));
		for (const sent of [...REQUESTS, ...bare]) {
			for (const at of [port, nginxPort]) {
				const bytes = Buffer.from(requestText(sent), 'latin1');
				assert.match(
					await rawExchange(at, bytes),
					/^HTTP\/1\.1 200 /,
					`${sent.line} at ${at === port ? 'svc' : 'nginx'}`,
				);
			}
		}
		const counts = [REQUESTS.length, bare.length];
		for (const [index, count] of counts.entries()) {
			const [mine, peer] = [ours[index]!.arrived, theirs[index]!.arrived];
			await until(`${count} copies have arrived`, () => mine.length >= count && peer.length >= count);
			assert.equal([...mine].sort(), [...peer].sort());
		}
		// The upstream has received each request twice, once through each server.
		assert.is(upstream.arrived.length, 2 * (REQUESTS.length + bare.length));
		assert.ok(ours[1]!.arrived.every(text => text.endsWith('\n\n')));
		assert.ok(ours[0]!.arrived.some(text => text.startsWith('PATCH /chunked\n') && text.includes('GET /inside')));
	} finally {
		await server.stop();
		for (const one of [upstream, ...ours, ...theirs]) {
			one.server.closeAllConnections();
			one.server.close();
		}
		await nginx.stop();
	}
});

peers.run();
