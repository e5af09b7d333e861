/** Which trailer fields pass through a proxy: requests and responses, HTTP/1.1 and HTTP/2 on either side. */
import { once } from 'node:events';
import { connect, createServer, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { rawExchange } from '../../harness.ts';
import { withServer } from '../running-server.ts';
import { scriptedUpstream } from './scripted-upstream.ts';

const test = suite('trailers through a proxy');

/**
 * Fields that are not allowed in trailers (RFC 9110 §6.5.1, §7.6.1). The last `ONLY_HTTP1` of them are tested only over HTTP/1.1.
 */
const FORBIDDEN_FIELDS = [
	...['Authorization', 'WWW-Authenticate', 'Proxy-Authorization', 'Proxy-Authentication-Info', 'Cookie', 'Set-Cookie'],
	...['X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'Forwarded', 'X-Real-IP', 'True-Client-IP'],
	...['Content-Type', 'Content-Encoding', 'Content-Range', 'Content-Location', 'Content-Security-Policy'],
	...['Range', 'If-Match', 'If-None-Match', 'If-Range', 'Cache-Control', 'Pragma', 'Expires', 'Vary', 'Age', 'Date'],
	...['Via', 'Max-Forwards', 'Expect', 'Origin', 'Sec-WebSocket-Key', 'Accept', 'Accept-Encoding', 'Location'],
	...['Retry-After', 'Trailer', 'X-HTTP-Method-Override', 'X-Accel-Redirect', 'X-Original-URL'],
	...['TE', 'Host', 'Upgrade', 'Keep-Alive', 'Proxy-Connection'],
];
const ONLY_HTTP1 = 5;
/** Fields that are not allowed in the trailers of requests. They include fields by which applications identify users. */
const FORBIDDEN_REQUEST_FIELDS = ['Remote-User', 'X-Remote-User', 'X-Auth-Request-Email', ...FORBIDDEN_FIELDS];

const ALLOWED_FIELDS = [
	...['grpc-status', 'grpc-message', 'grpc-status-details-bin', 'x-custom-metadata', 'x-checksum'],
	...['content-digest', 'repr-digest', 'etag', 'server-timing', 'accept-ranges'],
];

const lines = (names: readonly string[]) => names.map(name => `${name}: v\r\n`).join('');
const fields = (names: readonly string[]): OutgoingHttpHeaders => Object.fromEntries(names.map(name => [name, 'v']));

/** Returns the names in the trailer section after the last chunk. */
const namesOf = (message: string) =>
	message
		.slice(message.lastIndexOf('\r\n0\r\n') + 5)
		.split('\r\n')
		.filter(line => line !== '')
		.map(line => line.slice(0, line.indexOf(':')).toLowerCase());

interface Peer {
	readonly address: string;
	/** Returns the trailer names that the last request had upstream. */
	receivedNames(): readonly string[];
	close(): Promise<unknown>;
}

async function http1Upstream(): Promise<Peer> {
	let got: readonly string[] = [];
	const upstream = await scriptedUpstream(socket => {
		let text = '';
		socket.on('data', bytes => {
			text += bytes.toString('latin1');
			if (!text.includes('\r\n0\r\n') || !text.endsWith('\r\n\r\n')) return;
			got = namesOf(text);
			text = '';
			const trailers = lines(['x-hop', ...FORBIDDEN_FIELDS, ...ALLOWED_FIELDS]);
			socket.write(
				`HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${trailers}\r\n`,
			);
		});
	});
	return { address: upstream.address, receivedNames: () => got, close: upstream.close };
}

async function http2Upstream(): Promise<Peer> {
	let got: readonly string[] = [];
	const server = createServer();
	server.on('stream', (stream: ServerHttp2Stream) => {
		stream.on('trailers', trailers => {
			got = Object.keys(trailers);
		});
		stream.resume().on('end', () => {
			stream.respond({ ':status': 200 }, { waitForTrailers: true });
			stream.on('wantTrailers', () =>
				stream.sendTrailers(fields([...FORBIDDEN_FIELDS.slice(0, -ONLY_HTTP1), ...ALLOWED_FIELDS])),
			);
			stream.end('ok');
		});
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address() as AddressInfo;
	return {
		address: `h2c://127.0.0.1:${port}`,
		receivedNames: () => got,
		close: () => new Promise(resolve => server.close(resolve)),
	};
}

async function askHttp1(port: number, path: string): Promise<readonly string[]> {
	const trailers = lines(['X-Hop', ...FORBIDDEN_REQUEST_FIELDS, ...ALLOWED_FIELDS]);
	const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close, X-Hop\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n`;
	return namesOf(await rawExchange(port, Buffer.from(`${head}2\r\nhi\r\n0\r\n${trailers}\r\n`, 'latin1')));
}

async function askHttp2(port: number, path: string): Promise<readonly string[]> {
	const client = connect(`http://127.0.0.1:${port}`);
	const stream = client.request({ ':path': path, ':method': 'POST', te: 'trailers' }, { waitForTrailers: true });
	stream.on('wantTrailers', () =>
		stream.sendTrailers(fields([...FORBIDDEN_REQUEST_FIELDS.slice(0, -ONLY_HTTP1), ...ALLOWED_FIELDS])),
	);
	stream.end('hi');
	stream.resume();
	const [trailers] = await once(stream, 'trailers');
	client.destroy();
	return Object.keys(trailers);
}

const VARIANTS = { plain: '', encoded: 'encode gzip', cached: 'cache' };

test('allowed trailers pass and forbidden ones are dropped between every pair of protocols', async () => {
	const upstreams = { http1: await http1Upstream(), http2: await http2Upstream() };
	const routes = Object.entries(upstreams).flatMap(([name, { address }]) =>
		Object.entries(VARIANTS).map(
			([variant, directive]) => `handle /${name}/${variant} {\n${directive}\nreverse_proxy ${address}\n}\n`,
		),
	);
	const options = '{\nadmin off\nservers {\nprotocols h1 h2c\n}\n}\n';
	const text = `${options}http://:0 {\nbind 127.0.0.1\n${routes.join('')}}\n`;
	const input = { format: 'configfile' as const, text, name: 'Configfile' };
	const allowed = [...ALLOWED_FIELDS].sort();
	try {
		await withServer(undefined, { input, threads: 1 }, async ({ port }) => {
			for (const ask of [askHttp1, askHttp2]) {
				for (const [name, { receivedNames: got }] of Object.entries(upstreams)) {
					for (const variant of Object.keys(VARIANTS)) {
						const pair = `${ask.name} ${name} ${variant}`;
						assert.equal([...(await ask(port, `/${name}/${variant}`))].sort(), allowed, `${pair}: of the response`);
						assert.equal([...got()].sort(), allowed, `${pair}: of the request`);
					}
				}
			}
		});
	} finally {
		for (const { close } of Object.values(upstreams)) await close();
	}
});

test.run();
