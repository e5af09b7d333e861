/** TLS without streams: transfers under load in pieces of any size, and connections that end at any moment. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type TLSSocket } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createHttp1Server } from '../../../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../../../runtime/protocols/http1/limits.ts';
import { interceptHandles } from '../../../runtime/sockets/accepted-handles.ts';
import { DirectSocket, type StreamHandle } from '../../../runtime/sockets/direct-socket.ts';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { DIRECT_TLS, type HandshakeFacts, startTls } from '../../../runtime/sockets/tls-handle.ts';
import { ThreadTls } from '../../../runtime/tls/thread-tls.ts';
import { TlsServer } from '../../../runtime/tls/tls-server.ts';
import { TestAuthority } from '../../certificates.ts';
import { pace, until } from '../../harness.ts';
import { bodyOf } from '../protocols/http1/wire.ts';

const direct = suite('TLS without streams');

let listener: Server;
let server: TlsServer;
let port: number;
let opened = 0;
let closed = 0;
const failures: string[] = [];
const completed: string[] = [];

direct.before(async () => {
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['example.test'] });
	const http1 = createHttp1Server({
		async handle(x) {
			x.response.status = 200;
			switch (x.request.path) {
				case '/slow':
					await pace(30);
					break;
				case '/gone':
					await new Promise<void>(resolve => x.onGone(resolve));
					break;
				case '/echo':
					x.upgraded = stream => void stream.pipe(stream);
					x.response.status = 101;
					x.response.headers.set('upgrade', 'echo');
					x.response.headers.set('connection', 'upgrade');
					return;
			}
			const body = Buffer.from(await bodyOf(x), 'latin1');
			x.response.body = x.request.path === '/digest' ? createHash('sha256').update(body).digest('hex') : body;
		},
		finished: () => {},
		refused: () => {},
		opened: () => void opened++,
		closed: () => void closed++,
		limits: DEFAULT_LIMITS,
		draining: false,
	});
	const tls = new ThreadTls(() => {});
	const published = { id: 'one', names: ['example.test'], chain: certificate, key };
	tls.take({ kind: 'certificates', set: [published], dropped: [] });
	server = new TlsServer({
		tls,
		port: 0,
		protocols: () => ['h1'],
		http1,
		http2: undefined,
		obtain: async () => false,
		completed: version => void completed.push(version),
		failed: reason => void failures.push(reason),
		ended: () => {},
	});
	server.configure(JSON.stringify({ policies: [{}], names: {}, other: 0, strict_sni_host: false }));
	listener = createServer({ allowHalfOpen: true }, socket => server.accept(socket, 'https'));
	listener.listen(0, '127.0.0.1');
	await once(listener, 'listening');
	interceptHandles(listener, handle => {
		const socket = new DirectSocket(handle);
		// The listener, too, reads the address when accepting, so that it is known even after a reset.
		assert.ok(socket.remoteAddress);
		server.accept(socket, 'https');
		return true;
	});
	port = (listener.address() as { port: number }).port;
});

direct.after(() => {
	listener.close();
	server.close();
});

async function open(options: object = {}): Promise<TLSSocket> {
	const socket = connectTls({
		host: '127.0.0.1',
		port,
		servername: 'example.test',
		rejectUnauthorized: false,
		...options,
	});
	socket.on('error', () => {});
	await once(socket, 'secureConnect');
	return socket;
}

/** Reads until the connection ends. */
async function rest(socket: Socket): Promise<Buffer> {
	const chunks: Buffer[] = [];
	for await (const chunk of socket) chunks.push(chunk);
	return Buffer.concat(chunks);
}

async function allClosed(): Promise<void> {
	await until('all connections are closed', () => server.connections === 0);
	assert.is(closed, opened);
}

const post = (path: string, length: number, more = 'Connection: close\r\n'): string =>
	`POST ${path} HTTP/1.1\r\nHost: example.test\r\nContent-Length: ${length}\r\n${more}\r\n`;

direct('direct TLS is available on this release of Node', () => {
	assert.ok(DIRECT_TLS);
});

direct('calls on a connection that is closed or gone return an error and do not end the process', async () => {
	// In `node` mode connections are not accepted as handles.
	if (!isDirectIo()) return;
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['example.test'] });
	const context = createSecureContext({ cert: certificate, key });
	const terms = { context, protocols: Buffer.from('\x08http/1.1', 'latin1'), stapled: undefined };
	const memory = Buffer.allocUnsafeSlow(65_536);
	let gone = (): void => {};
	const ended = new Promise<void>(resolve => {
		gone = resolve;
	});
	let handle: StreamHandle | undefined;
	let secured: DirectSocket | undefined;
	/** Makes every call that a socket makes, and returns the calls that do not report an error. */
	const callAll = (): string[] => {
		const tls = handle!;
		tls.useUserBuffer(memory);
		const results: { [name: string]: unknown } = {
			readStart: tls.readStart(),
			readStop: tls.readStop(),
			writeLatin1String: tls.writeLatin1String(null, 'text'),
			writeBuffer: tls.writeBuffer(null, Buffer.from('bytes')),
			writev: (tls as StreamHandle & { writev(...values: unknown[]): unknown }).writev(null, ['text', 'latin1'], false),
			shutdown: tls.shutdown({}),
		};
		tls.close();
		return Object.keys(results).filter(name => !(Number(results[name]) < 0));
	};
	const tlsListener = createServer({ allowHalfOpen: true });
	tlsListener.listen(0, '127.0.0.1');
	await once(tlsListener, 'listening');
	const end = {
		secured: (socket: DirectSocket) => {
			secured = socket;
			handle = socket._handle!;
			assert.is((handle as unknown as { facts: HandshakeFacts }).facts.getProtocol(), 'TLSv1.3');
			socket.destroy();
			assert.equal(callAll(), []);
		},
		failed: (error: Error) => assert.unreachable(error.message),
	};
	interceptHandles(tlsListener, accepted => {
		const socket = new DirectSocket(accepted);
		const nothing = (): void => {};
		const owner = { received: nothing, ended: nothing, drained: nothing, closed: () => gone() };
		socket.peek(memory, {
			...owner,
			peeked: count => startTls(socket, Buffer.from(memory.subarray(0, count)), terms, end),
		});
		return true;
	});
	const client = connectTls({
		host: '127.0.0.1',
		port: (tlsListener.address() as { port: number }).port,
		rejectUnauthorized: false,
	});
	client.on('error', () => {});
	try {
		await ended;
		assert.equal(callAll(), []);
		const { facts } = handle as unknown as { facts: HandshakeFacts };
		assert.equal(
			[facts.getProtocol(), facts.getCipher(), facts.getALPNNegotiatedProtocol(), facts.isSessionReused()],
			[null, undefined, false, false],
		);
		assert.ok(secured!.destroyed);
	} finally {
		client.destroy();
		tlsListener.close();
	}
});

for (const maxVersion of ['TLSv1.2', 'TLSv1.3']) {
	direct(`bodies of any size arrive complete in both directions (${maxVersion})`, async () => {
		const sizes = [0, 1, 4095, 16_384, 16_385, 70_000, 300_000, 3_000_000];
		await Promise.all(
			sizes.map(async (size, index) => {
				const body = randomBytes(size);
				const socket = await open({ maxVersion });
				socket.write(post(index % 2 ? '/slow' : '/', size));
				for (let at = 0; at < size; at += 50_000) {
					socket.write(body.subarray(at, at + 50_000));
					if (index % 3 === 0) await pace(1);
				}
				const answer = await rest(socket);
				assert.ok(answer.subarray(answer.indexOf('\r\n\r\n') + 4).equals(body), `${size} bytes`);
			}),
		);
		await allClosed();
	});
}

direct('a slow reader gets exactly the whole response', async () => {
	const body = randomBytes(4_000_000);
	const socket = await open();
	socket.write(post('/', body.length));
	socket.write(body);
	await pace(100);
	const chunks: Buffer[] = [];
	for await (const chunk of socket) {
		chunks.push(chunk as Buffer);
		if (chunks.length % 20 === 0) await pace(2);
	}
	const answer = Buffer.concat(chunks);
	assert.ok(answer.subarray(answer.indexOf('\r\n\r\n') + 4).equals(body));
	await allClosed();
});

direct('requests sent at once are answered in order, however long the first takes', async () => {
	const socket = await open();
	const count = 300;
	let text = `${post('/slow', 3, '')}000`;
	for (let i = 1; i < count; i++) text += `${post(i % 50 === 0 ? '/slow' : '/', 5000, '')}${`${i}.`.padEnd(5000, 'x')}`;
	text += `${post('/', 4)}last`;
	socket.write(text);
	const answer = (await rest(socket)).toString('latin1');
	const bodies = answer.split(/HTTP\/1\.1 200 OK\r\n/).slice(1);
	assert.is(bodies.length, count + 1);
	for (let i = 1; i < count; i++) assert.ok(bodies[i]!.includes(`\r\n\r\n${i}.xx`), `${i}`);
	assert.ok(bodies[count]!.endsWith('last'));
	await allClosed();
});

direct('an upgraded connection echoes while both sides pause reading now and then', async () => {
	const socket = await open();
	socket.write('GET /echo HTTP/1.1\r\nHost: example.test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n');
	await once(socket, 'data');
	const sent = createHash('sha256');
	const got = createHash('sha256');
	let received = 0;
	socket.on('data', (bytes: Buffer) => {
		received += bytes.length;
		got.update(bytes);
		if (received % 7 !== 0) return;
		socket.pause();
		setTimeout(() => socket.resume(), 1);
	});
	let total = 0;
	for (let i = 0; i < 60; i++) {
		const bytes = randomBytes(1 + ((i * 7919) % 90_000));
		total += bytes.length;
		sent.update(bytes);
		if (!socket.write(bytes)) await once(socket, 'drain');
	}
	await until('all bytes have been echoed', () => received >= total);
	assert.is(received, total);
	assert.is(got.digest('hex'), sent.digest('hex'));
	socket.end();
	await once(socket, 'close');
	await allClosed();
});

direct('a connection that breaks at any moment affects no other', async () => {
	for (let turn = 0; turn < 60; turn++) {
		const raw = connect(port, '127.0.0.1');
		raw.on('error', () => {});
		const socket = connectTls({ socket: raw, servername: 'example.test', rejectUnauthorized: false });
		socket.on('error', () => {});
		const cut = (): void => void (turn % 2 ? raw.resetAndDestroy() : raw.destroy());
		if (turn < 20) setTimeout(cut, turn / 4);
		else {
			socket.once('secureConnect', () => {
				socket.write(post('/', 1_000_000));
				socket.write(Buffer.alloc(turn < 40 ? 500_000 : 1_000_000));
				if (turn % 3 === 0) cut();
				else setTimeout(cut, turn % 7);
			});
		}
		await once(raw, 'close');
	}
	await allClosed();
	assert.ok(
		failures.every(reason => reason === 'closed'),
		failures.join(),
	);
});

direct('a client that resets before it has received its session tickets is released at once', async () => {
	for (let turn = 0; turn < 10; turn++) {
		const raw = connect(port, '127.0.0.1');
		raw.on('error', () => {});
		const socket = connectTls({ socket: raw, servername: 'example.test', rejectUnauthorized: false });
		socket.on('error', () => {});
		socket.once('secureConnect', () => {
			socket.write(post('/gone', 0));
			setImmediate(() => raw.resetAndDestroy());
		});
		await once(raw, 'close');
	}
	await allClosed();
});

direct('invalid TLS records after the handshake end the connection', async () => {
	const raw = connect(port, '127.0.0.1');
	raw.on('error', () => {});
	const socket = connectTls({ socket: raw, servername: 'example.test', rejectUnauthorized: false });
	socket.on('error', () => {});
	await once(socket, 'secureConnect');
	socket.write(post('/digest', 100));
	await pace(10);
	// An unencrypted record.
	raw.write(Buffer.from([23, 3, 3, 0, 32, ...randomBytes(32)]));
	await once(raw, 'close', { signal: AbortSignal.timeout(10_000) });
	await allClosed();
});

direct('a ClientHello may arrive byte by byte', async () => {
	const first: Buffer[] = [];
	const recorder = createServer(socket =>
		socket.once('data', (bytes: Buffer) => first.push(bytes) && socket.destroy()),
	);
	recorder.listen(0, '127.0.0.1');
	await once(recorder, 'listening');
	const client = connectTls({
		port: (recorder.address() as { port: number }).port,
		host: '127.0.0.1',
		servername: 'example.test',
	});
	client.on('error', () => {});
	await new Promise(resolve => client.once('close', resolve));
	recorder.close();
	const raw = connect(port, '127.0.0.1');
	raw.setNoDelay(true);
	for (const byte of first[0]!.subarray(0, 300)) {
		raw.write(Buffer.of(byte));
		await new Promise(resolve => setImmediate(resolve));
	}
	raw.write(first[0]!.subarray(300));
	const [answer] = (await once(raw, 'data')) as [Buffer];
	// The response is a handshake record, which contains a ServerHello.
	assert.is(answer[0], 22);
	assert.is(answer[5], 2);
	raw.destroy();
	await allClosed();
});

direct.run();
