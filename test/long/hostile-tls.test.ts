/**
 * Clients violate TLS before, during and after the handshake. Each client loses its own connection, and nothing else is affected.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import path from 'node:path';
import { connect as connectTls } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../certificates.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder, WAIT_LIMIT_MS } from '../harness.ts';
import { CLOSE_NOTIFY, RECORD_TYPE, type SealedClient, sealedClient } from './sealed-client.ts';

const hostile = suite('hostile TLS clients');

const NAME = 'example.test';
const FILE_CONTENT = randomBytes(2_000_000);
const wait = (milliseconds: number): Promise<void> => new Promise(resolve => setTimeout(resolve, milliseconds));
const get = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`;

let upstream: Server;
let server: ServerProcess;
let port: number;
let hello: Buffer;

hostile.before(async () => {
	upstream = createServer((request, response) => {
		request.on('error', () => {});
		if (request.url === '/endless') response.write(Buffer.alloc(1_000_000));
		else request.resume().on('end', () => response.end('whole'));
	});
	upstream.listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	const { port: upstreamPort } = upstream.address() as { port: number };
	const [httpsPort, httpPort] = (await freePorts(2)) as [number, number];
	port = httpsPort;
	const folder = temporaryFolder();
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: [NAME] });
	writeFileSync(path.join(folder, 'site.pem'), certificate);
	writeFileSync(path.join(folder, 'site.key'), key);
	writeFileSync(path.join(folder, 'file.bin'), FILE_CONTENT);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin off
	http_port ${httpPort}
	https_port ${httpsPort}
	threads 1
}
${NAME} {
	tls site.pem site.key
	when path /up/* {
		uri strip_prefix /up
		reverse_proxy 127.0.0.1:${upstreamPort}
	}
	when path /hello {
		respond "hello"
	}
	root .
	file_server
}
`,
	);
	server = await serve([], port, { cwd: folder });
	hello = await clientHello();
});

hostile.after(async () => {
	await server?.stop();
	upstream.closeAllConnections();
	upstream.close();
});

/** Captures a ClientHello as sent by Node's TLS client. */
async function clientHello(): Promise<Buffer> {
	const listener = createTcpServer();
	listener.listen(0, '127.0.0.1');
	await once(listener, 'listening');
	const { port: at } = listener.address() as { port: number };
	const client = connectTls({ port: at, host: '127.0.0.1', servername: NAME }).on('error', () => {});
	const [socket] = await once(listener, 'connection');
	const [bytes] = (await once(socket, 'data')) as [Buffer];
	client.destroy();
	socket.destroy();
	listener.close();
	return bytes;
}

async function until(holds: () => boolean, milliseconds: number): Promise<boolean> {
	for (const end = performance.now() + milliseconds; !holds(); await wait(5)) {
		if (performance.now() > end) return false;
	}
	return true;
}

/** Returns the number of sockets the server has open, or 0 where that cannot be determined. */
function countSockets(): number {
	const folder = `/proc/${server.child.pid}/fd`;
	try {
		return readdirSync(folder).filter(name => {
			try {
				return readlinkSync(`${folder}/${name}`).startsWith('socket:');
			} catch {
				return false;
			}
		}).length;
	} catch {
		return 0;
	}
}

async function stillServes(): Promise<void> {
	const client = await sealedClient(port, NAME);
	client.raw.write(client.seal(RECORD_TYPE.data, get('/hello')));
	assert.ok(await until(() => client.received().includes('\r\n\r\nhello'), 5000), server.output());
	client.raw.destroy();
}

/** Waits until the server has no more open sockets than before, apart from pooled upstream connections. */
async function whenSocketsReleased(before: number): Promise<void> {
	assert.ok(await until(() => countSockets() <= before + 8, 5000), `${countSockets()} sockets, ${before} before`);
}

for (const [how, end] of Object.entries({
	close_notify: (client: SealedClient, request: Buffer) =>
		client.raw.write(Buffer.concat([request, client.seal(RECORD_TYPE.alert, CLOSE_NOTIFY)])),
	'close_notify and FIN': (client: SealedClient, request: Buffer) =>
		client.raw.end(Buffer.concat([request, client.seal(RECORD_TYPE.alert, CLOSE_NOTIFY)])),
	'FIN without close_notify': (client: SealedClient, request: Buffer) => client.raw.end(request),
})) {
	hostile(`a request followed at once by ${how} gets its complete response`, async () => {
		for (const target of ['/hello', '/file.bin']) {
			const client = await sealedClient(port, NAME);
			end(client, client.seal(RECORD_TYPE.data, get(target)));
			assert.ok(await until(() => client.ended, 5000));
			const answer = client.received();
			const body = answer.subarray(answer.indexOf('\r\n\r\n') + 4);
			assert.ok(
				target === '/hello' ? String(body) === 'hello' : body.equals(FILE_CONTENT),
				`${target}: ${body.length}`,
			);
			client.raw.destroy();
		}
	});
}

hostile('data after close_notify is not answered', async () => {
	const client = await sealedClient(port, NAME);
	const closeNotify = client.seal(RECORD_TYPE.alert, CLOSE_NOTIFY);
	client.raw.write(Buffer.concat([closeNotify, client.seal(RECORD_TYPE.data, get('/hello'))]));
	await until(() => client.ended, 2000);
	client.raw.write(client.seal(RECORD_TYPE.data, get('/hello')));
	await wait(50);
	assert.is(client.received().length, 0);
	client.raw.destroy();
});

/**
 * Messages that misuse TLS, by name. The server must end the connection after each of them, except after key updates, which TLS
 * permits.
 */
const VIOLATIONS: { readonly [name: string]: (client: SealedClient) => void } = {
	'an unencrypted record': ({ raw }) => raw.write(Buffer.concat([Buffer.of(23, 3, 3, 0, 40), randomBytes(40)])),
	'an oversized record': ({ raw }) => raw.write(Buffer.concat([Buffer.of(23, 3, 3, 255, 255), randomBytes(65_535)])),
	'plain HTTP': ({ raw }) => raw.write(get('/hello')),
	'a second ClientHello': ({ raw }) => raw.write(hello),
	'a fatal alert': ({ raw, seal }) => raw.write(seal(RECORD_TYPE.alert, Uint8Array.of(2, 80))),
	'a second Finished': ({ raw, seal }) =>
		raw.write(seal(RECORD_TYPE.handshake, Buffer.concat([Buffer.of(20, 0, 0, 32), Buffer.alloc(32)]))),
	'a handshake message that never ends': ({ raw, seal }) => {
		raw.write(seal(RECORD_TYPE.handshake, Buffer.concat([Buffer.of(11, 255, 255, 255), Buffer.alloc(16_000)])));
		for (let i = 0; i < 100; i++) raw.write(seal(RECORD_TYPE.handshake, Buffer.alloc(16_000)));
	},
	'empty records': ({ raw, seal }) => {
		for (let i = 0; i < 100; i++) raw.write(seal(RECORD_TYPE.data, ''));
	},
	'a reset': ({ raw }) => raw.resetAndDestroy(),
	'two thousand key updates': ({ raw, keyUpdate }) => {
		raw.write(Buffer.concat(Array.from({ length: 2000 }, (_, i) => keyUpdate(i % 2 === 0))));
	},
};

for (const [what, breach] of Object.entries(VIOLATIONS)) {
	hostile(`${what} during an idle connection, an upload, a download or a proxied response does no harm`, async () => {
		const before = countSockets();
		for (const request of [
			'',
			`POST /up/ HTTP/1.1\r\nHost: ${NAME}\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(1000)}`,
			get('/file.bin'),
			get('/up/endless'),
		]) {
			const client = await sealedClient(port, NAME);
			if (request !== '') client.raw.write(client.seal(RECORD_TYPE.data, request));
			await wait(10);
			breach(client);
			if (what.includes('key updates')) {
				await wait(100);
				client.raw.destroy();
			} else assert.ok(await until(() => client.ended || client.raw.destroyed, 5000), request.slice(0, 20));
			client.raw.destroy();
		}
		await stillServes();
		await whenSocketsReleased(before);
	});
}

hostile('invalid and incomplete handshakes leak no sockets', async () => {
	const before = countSockets();
	const first = (...parts: readonly (string | Uint8Array)[]): Buffer =>
		Buffer.concat(parts.map(part => (typeof part === 'string' ? Buffer.from(part, 'hex') : part)));
	const starts: readonly Buffer[] = [
		first(Buffer.from(get('/'))),
		first('802e0100020015000000100100800200800600400700c0030080', new Uint8Array(20)),
		first(randomBytes(500)),
		first('16030140000100ffff0303', Buffer.alloc(80_000, 1)),
		first(Buffer.concat(Array(2000).fill(Buffer.of(22, 3, 1, 0, 0)))),
		first('140303000101'),
		first(hello, randomBytes(200)),
		first(hello, hello),
		first(hello, Buffer.from(get('/'))),
		first(hello, '15030300020228'),
		first(hello, Buffer.concat(Array(1000).fill(Buffer.of(21, 3, 3, 0, 2, 1, 90)))),
	];
	for (const start of starts) {
		const socket = connect(port, '127.0.0.1').on('error', () => {});
		let isClosed = false;
		socket
			.on('data', () => {})
			.on('close', () => {
				isClosed = true;
			});
		socket.write(start);
		assert.ok(await until(() => isClosed, 5000), start.toString('hex', 0, 12));
	}
	for (let i = 0; i < 600; i++) {
		const socket = connect(port, '127.0.0.1').on('error', () => {});
		await once(socket, 'connect');
		if (i % 3 > 0) socket.write(i % 3 === 1 ? hello : hello.subarray(0, 200));
		if (i % 2) setImmediate(() => socket.resetAndDestroy());
		else if (i % 4) socket.once('data', () => socket.resetAndDestroy()).setTimeout(20, () => socket.destroy());
		else socket.destroy();
	}
	await stillServes();
	await whenSocketsReleased(before);
});

hostile('a graceful stop does not wait for connections that were reset during a response', async () => {
	await Promise.all(
		Array.from({ length: 40 }, async () => {
			const raw = connect(port, '127.0.0.1').on('error', () => {});
			const socket = connectTls({ socket: raw, servername: NAME, rejectUnauthorized: false }).on('error', () => {});
			socket.once('secureConnect', () => {
				socket.write(get('/up/endless'));
				setImmediate(() => raw.resetAndDestroy());
			});
			await once(raw, 'close');
		}),
	);
	// The grace period has no limit, so a server that waited for one of these connections would not end.
	assert.is(await server.stop(WAIT_LIMIT_MS), 0);
});

hostile.run();
