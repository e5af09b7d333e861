/** TLS without streams: transfers under load in pieces of any size, and connections that end at any time. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, createSecureContext, type TLSSocket } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { PublishedCertificate } from '../../../runtime/certificates/certificate-feed.ts';
import { createHttp1Server } from '../../../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../../../runtime/protocols/http1/limits.ts';
import { interceptHandles } from '../../../runtime/sockets/accepted-handles.ts';
import type { HandshakeFacts } from '../../../runtime/sockets/direct-handshake.ts';
import { DirectSocket } from '../../../runtime/sockets/direct-socket.ts';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { OpensslContext } from '../../../runtime/sockets/openssl-context.ts';
import { OpensslHandle } from '../../../runtime/sockets/openssl-handle.ts';
import { findOpensslThread, opensslThread } from '../../../runtime/sockets/openssl-thread.ts';
import { findQuicLibrary } from '../../../runtime/sockets/quic/quic-library.ts';
import { waitForPoller } from '../../../runtime/sockets/quic/quic-thread.ts';
import { directTlsThread, startTls } from '../../../runtime/sockets/start-tls.ts';
import type { StreamHandle } from '../../../runtime/sockets/stream-handle.ts';
import { hasDirectTls } from '../../../runtime/sockets/tls-handle.ts';
import { useDirectTls } from '../../../runtime/sockets/tls-mode.ts';
import { ThreadTls } from '../../../runtime/tls/thread-tls.ts';
import { TlsServer } from '../../../runtime/tls/tls-server.ts';
import { TestAuthority } from '../../certificates.ts';
import { pauseFor, until } from '../../harness.ts';
import { RECORD_TYPE, sealedClient } from '../../long/sealed-client.ts';
import { bodyOf } from '../protocols/http1/wire.ts';

/** The socket option that sets the size of the buffer for sent bytes (socket(7)). */
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;

/** Captures a ClientHello as sent by Node's TLS client. */
async function clientHello(): Promise<Buffer> {
	const recorder = createServer();
	recorder.listen(0, '127.0.0.1');
	await once(recorder, 'listening');
	const { port: at } = recorder.address() as { port: number };
	const client = connectTls({ port: at, host: '127.0.0.1', servername: 'example.test' }).on('error', () => {});
	const [socket] = (await once(recorder, 'connection')) as [Socket];
	const [bytes] = (await once(socket, 'data')) as [Buffer];
	client.destroy();
	socket.destroy();
	recorder.close();
	return bytes;
}

for (const by of ['Node', 'OpenSSL'] as const) {
	const direct = suite(`TLS without streams, by ${by}`);

	let listener: Server;
	let server: TlsServer;
	let tls: ThreadTls;
	let published: PublishedCertificate;
	let port: number;
	/** The handle of the connection that was accepted last. */
	let lastHandle: StreamHandle;
	let opened = 0;
	let closedCount = 0;
	const failures: string[] = [];
	const completed: string[] = [];

	direct.before(async () => {
		useDirectTls(by === 'OpenSSL');
		const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['example.test'] });
		const http1 = createHttp1Server({
			async handle(x) {
				x.response.status = 200;
				switch (x.request.path) {
					case '/slow':
						await pauseFor(30);
						break;
					case '/gone':
						await new Promise<void>(resolve => x.onGone(resolve));
						break;
					case '/echo':
						x.upgradeCallback = stream => void stream.pipe(stream);
						x.response.status = 101;
						x.response.headers.set('upgrade', 'echo');
						x.response.headers.set('connection', 'upgrade');
						return;
				}
				const body = Buffer.from(await bodyOf(x), 'latin1');
				x.response.body = x.request.path === '/digest' ? createHash('sha256').update(body).digest('hex') : body;
			},
			onExchangeFinished: () => {},
			countRefusal: () => {},
			onConnectionOpened: () => void opened++,
			onConnectionClosed: () => void closedCount++,
			limits: DEFAULT_LIMITS,
			draining: false,
		});
		tls = new ThreadTls(() => {});
		published = { id: 'one', names: ['example.test'], chain: certificate, key };
		tls.applyUpdate({ kind: 'certificates', set: [published], dropped: [] });
		server = new TlsServer({
			tls,
			port: 0,
			protocols: () => ['h1'],
			http1,
			http2: undefined,
			obtain: async () => false,
			countHandshake: version => void completed.push(version),
			countFailure: reason => void failures.push(reason),
			onConnectionEnded: () => {},
		});
		server.configure(JSON.stringify({ policies: [{}], names: {}, other: 0, strict_sni_host: false }));
		listener = createServer({ allowHalfOpen: true }, socket => server.accept(socket, 'https'));
		listener.listen(0, '127.0.0.1');
		await once(listener, 'listening');
		interceptHandles(listener, handle => {
			lastHandle = handle as StreamHandle;
			const socket = new DirectSocket(handle);
			// Like the real listener, reads the address when a connection is accepted, so that the address is known even after a
			// reset.
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
	async function readToEnd(socket: Socket): Promise<Buffer> {
		const chunks: Buffer[] = [];
		for await (const chunk of socket) chunks.push(chunk);
		return Buffer.concat(chunks);
	}

	async function allClosed(): Promise<void> {
		await until('all connections are closed', () => server.connections === 0);
		assert.is(closedCount, opened);
		assert.is(opensslThread()?.connectionCount ?? 0, 0);
	}

	const post = (path: string, length: number, more = 'Connection: close\r\n'): string =>
		`POST ${path} HTTP/1.1\r\nHost: example.test\r\nContent-Length: ${length}\r\n${more}\r\n`;

	direct('direct TLS is available on this release of Node', () => {
		assert.ok(hasDirectTls());
	});

	direct('OpenSSL is left to Node where a function is missing or its version is another', () => {
		assert.is(findOpensslThread({ missing: 'SSL_read' }), undefined);
		assert.is(findOpensslThread({ openssl: '3.0.16' }), undefined);
		assert.is(findOpensslThread() !== undefined, isDirectIo());
	});

	direct('calls on a connection that is closed or gone return an error and do not end the process', async () => {
		// In `node` mode, connections are not accepted as raw handles.
		if (!isDirectIo()) return;
		const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['example.test'] });
		const context = createSecureContext({ cert: certificate, key });
		const protocols = Buffer.from('\x08http/1.1', 'latin1');
		const thread = directTlsThread();
		const openssl = thread && new OpensslContext(thread, context, protocols, {});
		assert.is(openssl !== undefined, by === 'OpenSSL');
		const terms = { context, protocols, ocspResponse: undefined, openssl };
		const memory = Buffer.allocUnsafeSlow(65_536);
		let gone = (): void => {};
		const whenEnded = new Promise<void>(resolve => {
			gone = resolve;
		});
		let handle: StreamHandle | undefined;
		let secured: DirectSocket | undefined;
		/** Makes every call that a socket makes. Returns the names of the calls that do not report an error. */
		const callAll = (): string[] => {
			const tls = handle!;
			tls.useUserBuffer(memory);
			const results: { [name: string]: unknown } = {
				readStart: tls.readStart(),
				readStop: tls.readStop(),
				writeLatin1String: tls.writeLatin1String(null, 'text'),
				writeBuffer: tls.writeBuffer(null, Buffer.from('bytes')),
				writev: (tls as StreamHandle & { writev(...values: unknown[]): unknown }).writev(
					null,
					['text', 'latin1'],
					false,
				),
				shutdown: tls.shutdown({}),
			};
			tls.close();
			return Object.keys(results).filter(name => !(Number(results[name]) < 0));
		};
		const tlsListener = createServer({ allowHalfOpen: true });
		tlsListener.listen(0, '127.0.0.1');
		await once(tlsListener, 'listening');
		const end = {
			onSecured: (socket: DirectSocket) => {
				secured = socket;
				handle = socket._handle!;
				assert.is(handle instanceof OpensslHandle, by === 'OpenSSL');
				assert.is((handle as unknown as { facts: HandshakeFacts }).facts.getProtocol(), 'TLSv1.3');
				socket.destroy();
				assert.equal(callAll(), []);
			},
			onError: (error: Error) => assert.unreachable(error.message),
		};
		interceptHandles(tlsListener, accepted => {
			const socket = new DirectSocket(accepted);
			const nothing = (): void => {};
			const owner = { onReceived: nothing, onPeerEnded: nothing, onDrained: nothing, onClosed: () => gone() };
			const peeked = (count: number): void => {
				startTls(socket, Buffer.from(memory.subarray(0, count)), terms, end);
			};
			socket.peek(memory, { ...owner, onPeeked: peeked }, by === 'OpenSSL');
			return true;
		});
		const client = connectTls({
			host: '127.0.0.1',
			port: (tlsListener.address() as { port: number }).port,
			rejectUnauthorized: false,
		});
		client.on('error', () => {});
		try {
			await whenEnded;
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
						if (index % 3 === 0) await pauseFor(1);
					}
					const answer = await readToEnd(socket);
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
		await pauseFor(100);
		const chunks: Buffer[] = [];
		for await (const chunk of socket) {
			chunks.push(chunk as Buffer);
			if (chunks.length % 20 === 0) await pauseFor(2);
		}
		const answer = Buffer.concat(chunks);
		assert.ok(answer.subarray(answer.indexOf('\r\n\r\n') + 4).equals(body));
		await allClosed();
	});

	direct('requests sent at once are answered in order, however long the first takes', async () => {
		const socket = await open();
		const count = 300;
		let text = `${post('/slow', 3, '')}000`;
		for (let i = 1; i < count; i++)
			text += `${post(i % 50 === 0 ? '/slow' : '/', 5000, '')}${`${i}.`.padEnd(5000, 'x')}`;
		text += `${post('/', 4)}last`;
		socket.write(text);
		const answer = (await readToEnd(socket)).toString('latin1');
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

	direct('tickets for a client that has reset the connection after its handshake are not written twice', async () => {
		if (by !== 'OpenSSL' || opensslThread() === undefined) return;
		const completedBefore = completed.length;
		const stream = connect(port, '127.0.0.1').on('error', () => {});
		await once(stream, 'connect');
		let handle: StreamHandle | undefined;
		let hasServerWritten = false;
		const carrier = new Duplex({
			read: () => {},
			write: (bytes, _encoding, callback) => {
				stream.write(bytes);
				if (hasServerWritten) {
					// The server is on this thread, so it has not read the end of the handshake yet.
					stream.resetAndDestroy();
					handle = lastHandle;
					handle.writeBuffer = () => {
						throw new Error('The tickets are written by Node.');
					};
				}
				callback();
			},
		});
		stream.on('data', bytes => {
			hasServerWritten = true;
			carrier.push(bytes);
		});
		connectTls({ socket: carrier, servername: 'example.test', rejectUnauthorized: false }).on('error', () => {});
		await until('the handshake is complete', () => completed.length > completedBefore);
		await allClosed();
		assert.ok(handle);
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

	direct('small responses to a client that does not read yet arrive complete and in order', async () => {
		const socket = await open();
		socket.pause();
		const count = 3000;
		for (let i = 0; i < count; i++) socket.write(`${post('/', 4000, '')}${`${i}.`.padEnd(4000, 'x')}`);
		socket.write(`${post('/', 4)}last`);
		await pauseFor(50);
		const answer = (await readToEnd(socket)).toString('latin1');
		const bodies = answer.split(/HTTP\/1\.1 200 OK\r\n/).slice(1);
		assert.is(bodies.length, count + 1);
		for (let i = 0; i < count; i++) assert.ok(bodies[i]!.includes(`\r\n\r\n${i}.xx`), `${i}`);
		assert.ok(bodies[count]!.endsWith('last'));
		await allClosed();
	});

	direct('records may be split and joined in any way, and keys may change in between', async () => {
		const client = await sealedClient(port, 'example.test');
		let sent = 0;
		const next = (): Buffer => client.seal(RECORD_TYPE.data, `${post('/', 6, '')}${String(++sent).padStart(6, '0')}`);
		const answered = (): Promise<void> =>
			until(
				`answer ${sent}`,
				() => client.received().subarray(-6).toString('latin1') === String(sent).padStart(6, '0'),
			);
		for (let at = 1; at < 130; at += 3) {
			const allBytes = Buffer.concat([next(), client.keyUpdate(at % 2 === 0), next(), next()]);
			const cut = allBytes.length - at;
			client.raw.write(allBytes.subarray(0, cut));
			await pauseFor(at % 5);
			client.raw.write(allBytes.subarray(cut));
			if (at % 2) await answered();
		}
		await answered();
		// The client sends in a single write more than the server reads at a time.
		const manyRequests = Array.from({ length: 1000 }, next);
		client.raw.write(Buffer.concat(manyRequests));
		await answered();
		client.raw.destroy();
		await allClosed();
	});

	direct('a request may arrive with the end of the handshake, cut at any place', async () => {
		let flightBytes = Infinity;
		for (let cut = 2; cut < flightBytes; cut += 9) {
			const raw = connect(port, '127.0.0.1').setNoDelay(true);
			raw.on('error', () => {});
			// The client's bytes after its ClientHello. They are held back until they include the request.
			let flight: Buffer[] | undefined;
			const transport = new Duplex({
				read: () => {},
				write(bytes: Buffer, _encoding, onWritten) {
					if (flight === undefined) raw.write(bytes);
					else flight.push(bytes);
					onWritten();
				},
			});
			raw.once('data', () => {
				flight = [];
			});
			raw.on('data', bytes => transport.push(bytes));
			raw.on('close', () => transport.push(null));
			const client = connectTls({
				...{ socket: transport, servername: 'example.test', rejectUnauthorized: false, minVersion: 'TLSv1.3' },
			});
			const whenRead = readToEnd(client);
			await once(client, 'secureConnect');
			await new Promise(resolve => client.write(`${post('/', 4)}done`, resolve));
			const allBytes = Buffer.concat(flight!);
			flightBytes = allBytes.length;
			raw.write(allBytes.subarray(0, cut));
			await pauseFor(2);
			raw.write(allBytes.subarray(cut));
			assert.match((await whenRead).toString('latin1'), /\r\n\r\ndone$/, `cut at ${cut}`);
			raw.destroy();
		}
		await allClosed();
	});

	direct('what a failed handshake leaves unread does not reach another connection', async () => {
		const hello = await clientHello();
		const raw = connect(port, '127.0.0.1').setNoDelay(true);
		raw.on('error', () => {});
		const whenEnded = new Promise(resolve => raw.once('close', resolve));
		raw.write(hello);
		await once(raw, 'data');
		raw.resume();
		// OpenSSL reads the rest of this record, which it cannot decrypt, and nothing after it.
		raw.write(Buffer.of(23, 3, 3, 0, 40, ...randomBytes(10)));
		await pauseFor(5);
		raw.write(Buffer.concat([randomBytes(30), hello]));
		await whenEnded;
		const next = await open();
		next.end(`${post('/', 4)}next`);
		assert.match((await readToEnd(next)).toString('latin1'), /\r\n\r\nnext$/);
		await allClosed();
		assert.is(failures.pop(), 'protocol');
	});

	direct('a client that requests key updates without end and reads none of them is disconnected', async () => {
		// Node's handles queue the answers without a limit, so this test does not apply to them.
		if (by === 'Node' || !isDirectIo()) return;
		await waitForPoller();
		const client = await sealedClient(port, 'example.test');
		const { raw } = client;
		// With a small buffer, the system soon accepts no more.
		const { library } = findQuicLibrary();
		const bytes = Buffer.allocUnsafeSlow(4);
		bytes.writeInt32LE(4096);
		assert.is(library!.functions.setsockopt(lastHandle.fd!, SOL_SOCKET, SO_SNDBUF, library!.addressOf(bytes), 4), 0);
		(raw as Socket & { readonly _handle: StreamHandle })._handle.readStop();
		for (let sentCount = 0; !raw.destroyed; sentCount += 1000) {
			assert.ok(sentCount < 100_000, 'still connected after 2.7 MB of key updates');
			const records = Buffer.concat(Array.from({ length: 1000 }, () => client.keyUpdate(true)));
			await new Promise<void>(resolve => raw.write(records, () => setImmediate(resolve)));
		}
		const next = await open();
		next.end(`${post('/', 4)}next`);
		assert.match((await readToEnd(next)).toString('latin1'), /\r\n\r\nnext$/);
		await allClosed();
	});

	direct('a client that renegotiates is refused', async () => {
		const socket = await open({ maxVersion: 'TLSv1.2' });
		const whenEnded = new Promise(resolve => socket.once('close', resolve));
		let renegotiated = false;
		socket.renegotiate({ rejectUnauthorized: false }, error => {
			renegotiated = error === null;
		});
		await whenEnded;
		assert.not.ok(renegotiated);
		await allClosed();
	});

	direct('failed handshakes are counted by their reasons', async () => {
		const refused = async (options: object): Promise<void> => {
			const socket = connectTls({
				host: '127.0.0.1',
				port,
				servername: 'example.test',
				rejectUnauthorized: false,
				...options,
			});
			socket.on('error', () => {});
			await new Promise(resolve => socket.once('close', resolve));
		};
		const hello = await clientHello();
		const sends = async (...parts: readonly Uint8Array[]): Promise<void> => {
			const socket = connect(port, '127.0.0.1').on('error', () => {});
			const whenEnded = new Promise(resolve => socket.once('close', resolve));
			socket.on('data', () => {});
			for (const part of parts) {
				socket.write(part);
				await pauseFor(5);
			}
			await whenEnded;
		};
		const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
		failures.length = 0;
		await refused({ minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
		await refused({ maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA' });
		await refused({ ALPNProtocols: ['unknown'] });
		await sends(hello, Buffer.of(21, 3, 3, 0, 2, 2, 40));
		await sends(hello, Buffer.of(23, 3, 3, 0, 40, ...randomBytes(40)));
		await sends(Buffer.concat([hello, hello]));
		await sends(bytes('GET / HTTP/1.1\r\nHost: example.test\r\n\r\n'));
		await sends(randomBytes(20).fill(1, 0, 1));
		const gone = connect(port, '127.0.0.1').on('error', () => {});
		gone.write(hello);
		await once(gone, 'data');
		gone.destroy();
		await allClosed();
		assert.equal(failures, [
			...['version', 'no_shared_cipher', 'no_application_protocol', 'alert', 'protocol', 'protocol'],
			...['plain_http', 'not_tls', 'closed'],
		]);
		failures.length = 0;
	});

	direct('sessions are resumed, also after a rotation of their keys and by the other implementation', async () => {
		const keys = [randomBytes(48), randomBytes(48), randomBytes(48)];
		const reused = async (session: Buffer | undefined): Promise<[boolean, Buffer]> => {
			const socket = connectTls({
				host: '127.0.0.1',
				port,
				servername: 'example.test',
				rejectUnauthorized: false,
				session,
			});
			let ticket = session;
			socket.on('session', (next: Buffer) => {
				ticket = next;
			});
			await once(socket, 'secureConnect');
			const resumed = socket.isSessionReused();
			// Tickets arrive after the handshake, and the client gets them only if it reads.
			socket.write(post('/', 0));
			await readToEnd(socket);
			return [resumed, ticket!];
		};
		const use = (...which: readonly number[]): void =>
			tls.applyUpdate({ kind: 'tickets', keys: which.map(at => keys[at]!) });
		use(0);
		const first = await reused(undefined);
		const second = await reused(first[1]);
		useDirectTls(by === 'Node');
		const third = await reused(second[1]);
		useDirectTls(by === 'OpenSSL');
		use(1, 0);
		const fourth = await reused(third[1]);
		use(2, 1);
		const fifth = await reused(fourth[1]);
		const tooOld = await reused(second[1]);
		assert.equal(
			[first, second, third, fourth, fifth, tooOld].map(([resumed]) => resumed),
			[false, true, true, true, true, false],
		);
		tls.applyUpdate({ kind: 'tickets', keys: [] });
		await allClosed();
	});

	direct('a response of the authority is stapled for clients that ask', async () => {
		const ocsp = randomBytes(700);
		tls.applyUpdate({ kind: 'certificates', set: [{ ...published, ocsp }], dropped: [] });
		const socket = connectTls({
			host: '127.0.0.1',
			port,
			servername: 'example.test',
			rejectUnauthorized: false,
			requestOCSP: true,
		});
		const [response] = (await once(socket, 'OCSPResponse')) as [Buffer];
		assert.ok(response.equals(ocsp));
		socket.destroy();
		tls.applyUpdate({ kind: 'certificates', set: [published], dropped: [] });
		(await open()).destroy();
		await allClosed();
	});

	direct('invalid TLS records after the handshake end the connection', async () => {
		const raw = connect(port, '127.0.0.1');
		raw.on('error', () => {});
		const socket = connectTls({ socket: raw, servername: 'example.test', rejectUnauthorized: false });
		socket.on('error', () => {});
		await once(socket, 'secureConnect');
		socket.write(post('/digest', 100));
		await pauseFor(10);
		// Sends an unencrypted record.
		raw.write(Buffer.from([23, 3, 3, 0, 32, ...randomBytes(32)]));
		await once(raw, 'close', { signal: AbortSignal.timeout(10_000) });
		await allClosed();
	});

	direct('a ClientHello may arrive byte by byte', async () => {
		const hello = await clientHello();
		const raw = connect(port, '127.0.0.1');
		raw.setNoDelay(true);
		for (const byte of hello.subarray(0, 300)) {
			raw.write(Buffer.of(byte));
			await new Promise(resolve => setImmediate(resolve));
		}
		raw.write(hello.subarray(300));
		const [answer] = (await once(raw, 'data')) as [Buffer];
		// The response is a handshake record that contains a ServerHello.
		assert.is(answer[0], 22);
		assert.is(answer[5], 2);
		raw.destroy();
		await allClosed();
	});

	direct.run();
}
