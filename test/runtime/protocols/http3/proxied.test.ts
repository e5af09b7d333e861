/** HTTP/3 in front of a proxied application: early hints, trailers, WebSockets, and cancellation by either side. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { H3_ERROR } from '../../../../runtime/protocols/http3/http3-codes.ts';
import { TestAuthority } from '../../../certificates.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder, until } from '../../../harness.ts';
import { data, framesOf, headers, openControlStream, REQUEST, response } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { type ClientStream, connect, type QuicClient } from './quic-client.ts';

const test = http3Suite('HTTP/3 before an application');
const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
let server: ServerProcess;
let client: QuicClient;
let port = 0;
let admin = 0;

/** Counts and trailers that the application has observed. */
const observations: { trailers: NodeJS.Dict<string>; aborted: number; closed: number; received: number } = {
	trailers: {},
	aborted: 0,
	closed: 0,
	received: 0,
};
const sockets = new Set<Socket>();
const application = createServer((request, answer) => {
	void handle(request, answer);
});

async function handle(request: IncomingMessage, answer: ServerResponse): Promise<void> {
	answer.on('close', () => {
		if (!answer.writableFinished) observations.closed++;
	});
	request.on('aborted', () => void observations.aborted++);
	switch (request.url) {
		case '/hints':
			answer.writeEarlyHints({ link: '</style.css>; rel=preload' });
			answer.end('hinted');
			return;
		case '/trailers':
			for await (const _ of request);
			observations.trailers = request.trailers;
			answer.setHeader('Trailer', 'X-Sum');
			answer.write('body');
			answer.addTrailers({ 'X-Sum': '42' });
			answer.end();
			return;
		case '/endless': {
			const more = (): void => {
				while (!answer.destroyed && answer.write(Buffer.alloc(16_384, 97)));
			};
			answer.on('drain', more);
			more();
			return;
		}
		case '/upload':
			request.on('data', (piece: Buffer) => {
				observations.received += piece.length;
			});
			return;
		case '/breaks':
			answer.writeHead(200, { 'content-length': '1000' });
			answer.write('some');
			setImmediate(() => request.socket.destroy());
			return;
		default:
			answer.end('fine');
	}
}

application.on('upgrade', (request, socket: Socket) => {
	const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${WEBSOCKET_GUID}`).digest('base64');
	socket.write(
		`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
	);
	sockets.add(socket);
	socket.on('close', () => sockets.delete(socket));
	socket.on('error', () => {});
	socket.on('data', bytes => {
		if (bytes.includes('break')) socket.resetAndDestroy();
		else socket.write(bytes);
	});
	socket.on('end', () => socket.end());
});

test.before(async () => {
	const folder = temporaryFolder();
	await new Promise<void>(resolve => application.listen(0, '127.0.0.1', resolve));
	[port, admin] = (await freePorts(2)) as [number, number];
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['localhost'] });
	writeFileSync(path.join(folder, 'c.pem'), certificate);
	writeFileSync(path.join(folder, 'k.pem'), key);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin 127.0.0.1:${admin}
	metrics
	auto_https disable_redirects
}
https://localhost:${port} {
	bind 127.0.0.1
	tls ${folder}/c.pem ${folder}/k.pem
	reverse_proxy 127.0.0.1:${(application.address() as AddressInfo).port}
}
`,
	);
	server = await serve([], port, { cwd: folder });
	client = await connect(port);
	openControlStream(client);
});

test.after(async () => {
	client.close();
	application.closeAllConnections();
	application.close();
	await server.stop();
});

const to = (where: string, method = 'GET') =>
	headers([[':method', method], ...REQUEST.slice(1, 2), [':authority', `localhost:${port}`], [':path', where]]);
const webSocket = () =>
	headers([
		...([
			[':method', 'CONNECT'],
			[':protocol', 'websocket'],
			[':scheme', 'https'],
		] as const),
		...([
			[':authority', `localhost:${port}`],
			[':path', '/'],
			['sec-websocket-version', '13'],
		] as const),
	]);

function content(stream: ClientStream): string {
	return Buffer.concat(framesOf(stream.bytes).flatMap(({ type, payload }) => (type === 0 ? [payload] : []))).toString();
}

/** Waits until no request is in progress. */
async function whenAllReleased(): Promise<void> {
	await until('the release of all requests', async () => {
		const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
		const inFlight = [...text.matchAll(/^(?:std|svc)_http_requests_in_flight\{?[^\n]* (\d+)$/gm)];
		return inFlight.length > 0 && inFlight.every(([, count]) => count === '0');
	});
	assert.is((await response(client, client.open().write(to('/'), true))).body, 'fine');
}

test('early hints of the application precede its response', async () => {
	const { heads, body } = await response(client, client.open().write(to('/hints'), true));
	assert.equal(
		heads.map(head => head[':status']),
		['103', '200'],
	);
	assert.is(heads[0]!.link, '</style.css>; rel=preload');
	assert.is(body, 'hinted');
});

test('trailers pass in both directions', async () => {
	const sent = Buffer.concat([to('/trailers', 'POST'), data('abc'), headers([['x-checked', 'yes']])]);
	const { heads, body } = await response(client, client.open().write(sent, true));
	assert.is(observations.trailers['x-checked'], 'yes');
	assert.is(body, 'body');
	assert.equal(heads.at(-1), { 'x-sum': '42' });
});

test('a client that cancels its download or upload releases the application', async () => {
	const download = client.open();
	download.write(to('/endless'), true);
	await client.until('the download', () => download.bytes.length > 100_000);
	download.stop();
	await until('the end of the download', () => observations.closed === 1);
	const upload = client.open().write(Buffer.concat([to('/upload', 'POST'), data('x'.repeat(5000))]));
	await until('the upload', () => observations.received === 5000);
	upload.reset(H3_ERROR.cancel);
	await until('the end of the upload', () => observations.aborted === 1);
	await whenAllReleased();
});

test('an application that breaks off its response resets that stream only', async () => {
	const other = client.open().write(Buffer.concat([to('/upload', 'POST'), data('y')]));
	const broken = client.open().write(to('/breaks'), true);
	await client.until('the reset', () => broken.resetCode !== undefined);
	assert.is(broken.resetCode, H3_ERROR.internal);
	assert.is(other.resetCode, undefined);
	other.reset(H3_ERROR.cancel);
	await whenAllReleased();
});

test('a WebSocket is tunneled, and its end on either side is passed on', async () => {
	const first = client.open().write(Buffer.concat([webSocket(), data('hello')]));
	await client.until('the echo', () => content(first) === 'hello');
	assert.is(framesOf(first.bytes)[0]!.fields![':status'], '200');
	first.write(data(' again'), true);
	assert.is((await response(client, first)).body, 'hello again');
	const second = client.open().write(Buffer.concat([webSocket(), data('open')]));
	await client.until('the echo', () => content(second) === 'open');
	second.reset(H3_ERROR.cancel);
	await until('the end of the sockets', () => sockets.size === 0);
	const third = client.open().write(Buffer.concat([webSocket(), data('open')]));
	await client.until('the echo', () => content(third) === 'open');
	third.write(data('break'));
	await client.until('the end of the stream', () => third.ended || third.resetCode !== undefined);
	if (third.resetCode !== undefined) assert.is(third.resetCode, H3_ERROR.cancel);
	await whenAllReleased();
});

test('a connection that ends releases every request and tunnel on it', async () => {
	const closed = observations.closed;
	const gone = await connect(port);
	openControlStream(gone);
	const download = gone.open().write(to('/endless'), true);
	const tunnel = gone.open().write(Buffer.concat([webSocket(), data('open')]));
	await gone.until('both', () => download.bytes.length > 100_000 && content(tunnel) === 'open');
	gone.close();
	await until('the end of both', () => observations.closed === closed + 1 && sockets.size === 0);
	await whenAllReleased();
});

test.run();
