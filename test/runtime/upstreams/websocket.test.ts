/**
 * WebSockets behave the same with and without the server in between. The cases follow the categories of the common conformance
 * suite: framing, pings, reserved bits and opcodes, fragmentation, UTF-8, closing, and limits.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket, WebSocketServer } from 'ws';
import { proxiedSite } from '../../compiler/modules/directives/reverse-proxy/proxied-site.ts';
import { freePorts, pauseFor, serve, temporaryFolder, until } from '../../harness.ts';

const test = suite('WebSockets');

let backend: Server;
let directPort = 0;
let proxied = 0;
const closing: (() => unknown)[] = [];

test.before(async () => {
	backend = createServer((_request, response) => response.writeHead(426).end('upgrade'));
	const sockets = new WebSocketServer({ server: backend, maxPayload: 4_000_000, perMessageDeflate: true });
	sockets.on('connection', (socket, request) => {
		socket.on('error', () => {});
		if (request.url === '/hello') socket.send('hello before you ask');
		if (request.url === '/leave') socket.close(4001, 'enough');
		if (request.url === '/cut') setTimeout(() => socket.terminate(), 20);
		socket.on('message', (data, binary) => socket.send(data, { binary }));
	});
	await new Promise<void>(resolve => backend.listen(0, '127.0.0.1', resolve));
	directPort = (backend.address() as AddressInfo).port;
	const site = await proxiedSite(`reverse_proxy 127.0.0.1:${directPort}`);
	proxied = site.port;
	closing.push(
		() => site.close(),
		() => {
			backend.closeAllConnections();
			for (const client of sockets.clients) client.terminate();
			return new Promise(resolve => backend.close(resolve));
		},
	);
});

test.after(async () => {
	for (const close of closing) await close();
});

/** Returns a frame as a client sends it (RFC 6455 §5.2). `first` is its first byte. */
function frame(first: number, payload: Uint8Array | string, masked = true): Buffer {
	const bytes = Buffer.from(payload as string);
	const mask = randomBytes(4);
	const size = bytes.length < 126 ? [bytes.length] : [126, bytes.length >> 8, bytes.length & 255];
	size[0]! |= masked ? 0x80 : 0;
	const body = masked ? Buffer.from(bytes.map((byte, at) => byte ^ mask[at & 3]!)) : bytes;
	return Buffer.concat([Buffer.from([first, ...size]), masked ? mask : Buffer.alloc(0), body]);
}

/** Sends bytes. Returns the server's reply once the server is silent, ends the connection, or has sent the expected bytes. */
async function exchangeFrames(port: number, pieces: readonly Buffer[], expected?: string): Promise<string> {
	const socket: Socket = connect(port, '127.0.0.1');
	const key = randomBytes(16).toString('base64');
	socket.write(
		`GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
	);
	let bytes = Buffer.alloc(0);
	let isEnded = false;
	socket.on('data', piece => {
		bytes = Buffer.concat([bytes, piece as Buffer]);
	});
	socket.on('error', () => {});
	socket.on('end', () => {
		isEnded = true;
	});
	const within = async (condition: () => boolean, most: number): Promise<void> => {
		for (let waited = 0; waited < most && !condition(); waited += 5)
			await new Promise(resolve => setTimeout(resolve, 5));
	};
	await within(() => bytes.includes('\r\n\r\n'), 1000);
	const head = bytes.toString('latin1', 0, bytes.indexOf('\r\n\r\n'));
	const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
	assert.ok(head.includes(accept), head);
	bytes = bytes.subarray(bytes.indexOf('\r\n\r\n') + 4);
	for (const piece of pieces) {
		socket.write(piece);
		await pauseFor(2);
	}
	const now = (): string => `${bytes.toString('hex')} ${isEnded ? 'ended' : 'open'}`;
	let same = 0;
	let last = '';
	await within(
		() => {
			same = now() === last ? same + 1 : 0;
			last = now();
			return expected === undefined ? isEnded || (same >= 20 && bytes.length > 0) : last === expected;
		},
		expected === undefined ? 400 : 1500,
	);
	const outcome = now();
	socket.destroy();
	return outcome;
}

const split = (bytes: Buffer): Buffer[] => Array.from(bytes, byte => Buffer.from([byte]));
const text = 0x81;
const CASES: { readonly [name: string]: readonly Buffer[] } = {
	'an empty text': [frame(text, '')],
	'a text of 125 bytes': [frame(text, 'x'.repeat(125))],
	'a text of 126 bytes': [frame(text, 'x'.repeat(126))],
	'a text of 65000 bytes': [frame(text, 'x'.repeat(65_000))],
	'an empty binary': [frame(0x82, '')],
	'binary bytes': [frame(0x82, Buffer.from([0, 255, 254, 1]))],
	'a text byte by byte': split(frame(text, 'slowly')),
	'a ping': [frame(0x89, 'ping')],
	'an empty ping': [frame(0x89, '')],
	'a ping of 126 bytes': [frame(0x89, 'x'.repeat(126))],
	'an unsolicited pong': [frame(0x8a, 'pong'), frame(text, 'after')],
	'ten pings at once': [Buffer.concat(Array.from({ length: 10 }, (_, i) => frame(0x89, `p${i}`)))],
	'a reserved bit': [frame(0xc1, 'x')],
	'all reserved bits': [frame(0xf1, 'x')],
	'a reserved opcode': [frame(0x83, 'x')],
	'a reserved control opcode': [frame(0x8b, 'x')],
	'a fragmented text': [frame(0x01, 'frag'), frame(0x80, 'ments')],
	'fragments with a ping between': [frame(0x01, 'frag'), frame(0x89, 'p'), frame(0x80, 'ments')],
	'a fragmented ping': [frame(0x09, 'p'), frame(0x80, 'q')],
	'a continuation without a first frame': [frame(0x80, 'x')],
	'a text inside a fragmented one': [frame(0x01, 'a'), frame(text, 'b')],
	'text in UTF-8': [frame(text, 'κόσμε €')],
	'text in UTF-8, split within a character': [frame(0x01, Buffer.from([0xce])), frame(0x80, Buffer.from([0xba]))],
	'invalid UTF-8 in a text': [frame(text, Buffer.from([0xce, 0xba, 0xed, 0xa0, 0x80]))],
	'a frame without a mask': [frame(text, 'x', false)],
	'a close': [frame(0x88, '')],
	'a close with a code and a reason': [frame(0x88, Buffer.concat([Buffer.from([3, 232]), Buffer.from('bye')]))],
	'a close with one byte': [frame(0x88, Buffer.from([3]))],
	'a close with an undefined code': [frame(0x88, Buffer.from([3, 237]))],
	'invalid UTF-8 in a close reason': [frame(0x88, Buffer.from([3, 232, 0xce]))],
	'a text after a close': [frame(0x88, Buffer.from([3, 232])), frame(text, 'late')],
};

test('every kind of frame gets the same reply as without the server', async () => {
	const outcomes = await Promise.all(
		Object.entries(CASES).map(async ([name, pieces]) => {
			let one = await exchangeFrames(directPort, pieces);
			let two = await exchangeFrames(proxied, pieces, one);
			// On a busy machine, a reply may come too late, so the comparison is repeated. A wrong reply would be wrong each
			// time.
			for (let i = 0; i < 2 && one !== two; i++) {
				one = await exchangeFrames(directPort, pieces);
				two = await exchangeFrames(proxied, pieces, one);
			}
			return { name, one, two };
		}),
	);
	for (const { name, one, two } of outcomes) assert.is(two, one, name);
	assert.ok(outcomes.some(({ one }) => one.endsWith('ended')));
});

test('large and compressed messages arrive in order, and the server may send first', async () => {
	const socket = new WebSocket(`ws://127.0.0.1:${proxied}/hello`, { perMessageDeflate: true });
	const [first] = await once(socket, 'message');
	assert.is(String(first), 'hello before you ask');
	assert.is(socket.extensions, 'permessage-deflate');
	const large = randomBytes(3_000_000);
	socket.send(large);
	const [back] = (await once(socket, 'message')) as [Buffer];
	assert.ok(large.equals(back));
	const received: string[] = [];
	socket.on('message', data => received.push(String(data)));
	for (let i = 0; i < 1000; i++) socket.send(`message ${i} ${'x'.repeat(i % 200)}`);
	while (received.length < 1000) await once(socket, 'message');
	assert.ok(received.every((message, i) => message.startsWith(`message ${i} `)));
	socket.close(1000, 'done');
	const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
	assert.equal([code, String(reason)], [1000, 'done']);
});

test('a close or a disconnect on either side reaches the other side', async () => {
	const left = new WebSocket(`ws://127.0.0.1:${proxied}/leave`);
	const [code, reason] = (await once(left, 'close')) as [number, Buffer];
	assert.equal([code, String(reason)], [4001, 'enough']);
	const cut = new WebSocket(`ws://127.0.0.1:${proxied}/cut`);
	cut.on('error', () => {});
	assert.is(((await once(cut, 'close')) as [number])[0], 1006);
	const gone = new WebSocket(`ws://127.0.0.1:${proxied}/`);
	await once(gone, 'open');
	const connections = (): Promise<number> =>
		new Promise((resolve, reject) =>
			backend.getConnections((error, count) => (error ? reject(error) : resolve(count))),
		);
	const before = await connections();
	gone.terminate();
	await until('the upstream sees the disconnect', async () => (await connections()) < before);
	assert.is(await connections(), before - 1);
});

test('a refused upgrade is forwarded as an ordinary response', async () => {
	const response = await fetch(`http://127.0.0.1:${proxied}/`, { headers: { 'X-A': 'b' } });
	assert.equal([response.status, await response.text()], [426, 'upgrade']);
});

test('extended CONNECT (RFC 8441) works to HTTP/2 upstreams and from HTTP/2 clients', async () => {
	const [front, back] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	const lines = [
		...['{', 'admin off', 'threads 1', 'servers {', 'protocols h1 h2c', '}', '}'],
		...[
			`http://127.0.0.1:${front} {`,
			`reverse_proxy h2c://127.0.0.1:${back} {`,
			`header_up Host 127.0.0.1:${back}`,
			'}',
			'}',
		],
		...[`http://127.0.0.1:${back} {`, `reverse_proxy 127.0.0.1:${directPort}`, '}'],
	];
	writeFileSync(path.join(folder, 'Configfile'), `${lines.join('\n')}\n`);
	const server = await serve(['Configfile'], front, { cwd: folder });
	try {
		const socket = new WebSocket(`ws://127.0.0.1:${front}/hello`);
		const [first] = await once(socket, 'message');
		assert.is(String(first), 'hello before you ask');
		const large = randomBytes(1_000_000);
		socket.send(large);
		const [back] = (await once(socket, 'message')) as [Buffer];
		assert.ok(large.equals(back));
		socket.close(1000, 'done');
		const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
		assert.equal([code, String(reason)], [1000, 'done']);
	} finally {
		await server.stop();
	}
});

test.run();
