/** TLS connections to upstreams that are taken from Node after the handshake. */
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import {
	connect as connectTls,
	createSecureContext,
	createServer,
	type SecureContext,
	type Server,
	type TLSSocket,
} from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	type TlsConnectionAddress,
	takeStartedConnection,
	watchCloseNotify,
} from '../../../runtime/sockets/close-notify.ts';
import { contextAddress } from '../../../runtime/sockets/context-address.ts';
import { DirectSocket } from '../../../runtime/sockets/direct-socket.ts';
import { foreignFunctions, loadForeignFunctions } from '../../../runtime/sockets/foreign-functions.ts';
import { opensslThread } from '../../../runtime/sockets/openssl-thread.ts';
import { threadPoller } from '../../../runtime/sockets/socket-poller.ts';
import { directTlsThread } from '../../../runtime/sockets/start-tls.ts';
import { canTakeTlsConnections, takeTlsConnection } from '../../../runtime/sockets/taken-tls.ts';
import { UpstreamSocket } from '../../../runtime/sockets/upstream-socket.ts';
import { TestAuthority } from '../../certificates.ts';
import { pauseFor, until } from '../../harness.ts';

const test = suite('TLS connections taken from Node');

let server: Server;
let port: number;
const accepted: TLSSocket[] = [];
const authority = await TestAuthority.make();

test.before(async () => {
	threadPoller();
	await until('the poller works', () => threadPoller() !== undefined);
	const { certificate, key } = await authority.issue({ names: ['localhost'] });
	server = createServer({ cert: certificate, key, allowHalfOpen: true }, socket => {
		socket.on('error', () => {});
		accepted.push(socket);
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	({ port } = server.address() as AddressInfo);
});

test.after.each(() => {
	for (const socket of accepted.splice(0)) socket.destroy();
});

test.after(() => void server.close());

/** What a connection has received, and how it ended. */
interface Taken {
	readonly upstream: UpstreamSocket;
	readonly socket: DirectSocket;
	readonly sessions: Buffer[];
	readonly peer: TLSSocket;
	readonly received: Buffer[];
	readonly events: string[];
}

/** Connects, and takes the connection from its stream after the handshake, as connections of pools do. */
async function take(options: object = {}): Promise<Taken> {
	const acceptedBefore = accepted.length;
	const received: Buffer[] = [];
	const events: string[] = [];
	const upstream = new UpstreamSocket({
		onReceived(bytes, count) {
			received.push(Buffer.from(bytes.subarray(0, count)));
			return true;
		},
		onPeerEnded: () => void events.push('end'),
		onClosed: error => void events.push(error === undefined ? 'closed' : `closed: ${error.message}`),
	});
	const memory = Buffer.allocUnsafeSlow(65_536);
	const sessions: Buffer[] = [];
	const secureContext = createSecureContext({ ca: authority.pem, ...options });
	assert.ok(watchCloseNotify(secureContext));
	const stream = connectTls({
		host: '127.0.0.1',
		port,
		servername: 'localhost',
		secureContext,
		allowHalfOpen: true,
		onread: upstream.readOptions(memory),
		...options,
	} as object);
	upstream.attach(stream, false);
	stream.on('connect', () => {
		upstream.tlsConnection = takeStartedConnection()!;
	});
	upstream.takeTls = () => takeTlsConnection(stream, upstream.tlsConnection!, session => sessions.push(session));
	const socket = await new Promise<unknown>(resolve => {
		stream.once('secureConnect', () => setImmediate(() => resolve(upstream.withoutStream())));
	});
	assert.instance(socket, DirectSocket);
	assert.is((socket as DirectSocket).poller, undefined);
	await until('the connection', () => accepted.length > acceptedBefore);
	return { upstream, socket: socket as DirectSocket, sessions, peer: accepted.at(-1)!, received, events };
}

const receivedBytes = ({ received }: Taken): number => received.reduce((sum, bytes) => sum + bytes.length, 0);

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
	test(`requests and responses pass in both directions, and the next connection resumes the session (${version})`, async () => {
		const taken = await take({ maxVersion: version });
		for (let i = 0; i < 20; i++) {
			taken.socket.write(`request ${i}`, 'latin1');
			const [request] = (await once(taken.peer, 'data')) as [Buffer];
			assert.is(request.toString(), `request ${i}`);
			taken.peer.write(`response ${i}`);
			await until('the response', () => Buffer.concat(taken.received).toString().endsWith(`response ${i}`));
		}
		assert.is(taken.sessions.length, 1);
		const next = await take({ maxVersion: version, session: taken.sessions[0]! });
		assert.ok(next.peer.isSessionReused());
		taken.socket.destroy();
		await until('the end', () => taken.events.includes('closed'));
		// Closing the connection twice, or using it afterwards, has no effect.
		taken.socket.destroy();
		taken.socket.write('late', 'latin1');
	});
}

test('many bytes pass in both directions at the same time', async () => {
	const taken = await take();
	const bytes = randomBytes(3_000_000);
	const chunks: Uint8Array[] = [];
	taken.peer.on('data', (chunk: Buffer) => void chunks.push(chunk));
	let writtenCount = 0;
	for (let at = 0; at < bytes.length; at += 100_000)
		taken.socket.write(bytes.subarray(at, at + 100_000), error => void (error ? assert.unreachable() : writtenCount++));
	taken.peer.write(bytes);
	await until('all bytes', () => receivedBytes(taken) >= bytes.length);
	await until('all bytes at the peer', () => chunks.reduce((sum, chunk) => sum + chunk.length, 0) >= bytes.length);
	assert.ok(Buffer.concat(taken.received).equals(bytes));
	assert.ok(Buffer.concat(chunks).equals(bytes));
	assert.is(writtenCount, 30);
});

test('a paused connection receives nothing until it is resumed', async () => {
	const taken = await take();
	taken.socket.pause();
	taken.peer.write('later');
	await new Promise(resolve => setImmediate(resolve));
	assert.is(receivedBytes(taken), 0);
	taken.socket.resume();
	await until('the bytes', () => Buffer.concat(taken.received).toString() === 'later');
});

test('if data and the end of the TCP connection arrive during a pause, both are reported after it', async () => {
	const taken = await take();
	taken.peer.write('now');
	await until('the first bytes', () => Buffer.concat(taken.received).toString() === 'now');
	taken.socket.pause();
	await new Promise<void>(resolve => void taken.peer.write(', later', () => resolve()));
	tcpHandleOf(taken.peer).shutdown(new ShutdownWrap());
	await pauseFor(50);
	taken.socket.resume();
	await until('the end', () => taken.events.includes('end'));
	assert.is(Buffer.concat(taken.received).toString(), 'now, later');
	taken.socket.destroy();
});

test('each side may end first', async () => {
	const first = await take();
	first.peer.resume();
	first.socket.write('question', 'latin1');
	first.socket.end();
	await once(first.peer, 'end');
	first.peer.end('answer');
	await until('the end', () => first.events.includes('closed'));
	assert.is(Buffer.concat(first.received).toString(), 'answer');
	const second = await take();
	second.peer.resume();
	second.peer.end('bye');
	await until('the end', () => second.events.includes('end'));
	assert.is(Buffer.concat(second.received).toString(), 'bye');
	assert.not(second.upstream.isTruncated);
	second.socket.end();
	await until('the close', () => second.events.includes('closed'));
});

const { binding } = process as unknown as { binding(name: string): { readonly ShutdownWrap: new () => object } };
const { ShutdownWrap } = binding.call(process, 'stream_wrap');

interface TcpHandle {
	reset(done: () => void): unknown;
	writeLatin1String(request: null, text: string): unknown;
	shutdown(request: object): unknown;
}

/** Returns Node's handle of the TCP connection below a TLS connection. */
function tcpHandleOf(socket: TLSSocket): TcpHandle {
	return (socket as unknown as { _handle: { _parent: TcpHandle } })._handle._parent;
}

test('a reset, and bytes that are not TLS, close the connection with an error', async () => {
	const reset = await take();
	tcpHandleOf(reset.peer).reset(() => {});
	await until('the reset', () => reset.events.some(event => event.startsWith('closed: ')));
	const broken = await take();
	tcpHandleOf(broken.peer).writeLatin1String(null, 'this is not a TLS record, but a line of text');
	await until('the error', () => broken.events.some(event => event.startsWith('closed: ')));
});

test('the end of a connection is recognized as truncated if no close_notify has arrived', async () => {
	const taken = await take();
	let wasTruncated: boolean | undefined;
	const { upstream } = taken;
	upstream.holder = {
		onReceived: () => true,
		onPeerEnded: () => {
			wasTruncated = upstream.isTruncated;
		},
		onClosed: () => {},
	};
	tcpHandleOf(taken.peer).shutdown(new ShutdownWrap());
	await until('the end', () => wasTruncated !== undefined);
	assert.is(wasTruncated, true);
	taken.socket.destroy();
	// The SSL object has been freed, and is not asked.
	assert.is(upstream.isTruncated, false);
});

test('records that arrive in pieces, before and after the connection is taken, are complete', async () => {
	for (const pieceBytes of [1, 3, 50, 400]) {
		const relay = createTcpServer(socket => {
			const upstream = connect(port, '127.0.0.1').on('error', () => {});
			socket.pipe(upstream);
			socket.on('error', () => {});
			let waiting = Buffer.alloc(0);
			upstream.on('data', (bytes: Buffer) => {
				if (waiting.length === 0) setImmediate(sendPiece);
				waiting = Buffer.concat([waiting, bytes]);
			});
			const sendPiece = (): void => {
				socket.write(waiting.subarray(0, pieceBytes));
				waiting = waiting.subarray(pieceBytes);
				if (waiting.length > 0) setImmediate(sendPiece);
			};
		}).listen(0, '127.0.0.1');
		await once(relay, 'listening');
		try {
			const taken = await take({ port: (relay.address() as AddressInfo).port });
			const bytes = randomBytes(pieceBytes * 500);
			taken.peer.write(bytes);
			await until('the bytes', () => receivedBytes(taken) >= bytes.length);
			assert.ok(Buffer.concat(taken.received).equals(bytes));
			taken.socket.destroy();
		} finally {
			relay.close();
		}
	}
});

test('hostile records end the connection, and everything is freed', async () => {
	const thread = opensslThread()!;
	const countBefore = thread.connectionCount;
	for (let turn = 0; turn < 200; turn++) {
		const taken = await take({ maxVersion: turn % 2 === 0 ? 'TLSv1.2' : 'TLSv1.3' });
		const type = turn % 3 === 0 ? randomInt(256) : randomInt(20, 24);
		const record = Buffer.concat([Buffer.from([type, 3, 3, 0, 0]), randomBytes(randomInt(0, 600))]);
		record.writeUInt16BE(turn % 5 === 0 ? randomInt(65_536) : record.length - 5, 3);
		const tcpHandle = tcpHandleOf(taken.peer);
		tcpHandle.writeLatin1String(null, record.toString('latin1'));
		tcpHandle.shutdown(new ShutdownWrap());
		await until('the end', () => taken.events.length > 0);
		taken.socket.destroy();
		taken.peer.destroy();
	}
	await until('all are freed', () => thread.connectionCount === countBefore);
});

/** Sets the number of tickets that servers with a context send after a handshake. */
function setTicketCount(context: SecureContext, count: bigint): void {
	const functions = loadForeignFunctions(foreignFunctions()!, {
		SSL_CTX_set_num_tickets: { return: 'int32', arguments: ['pointer', 'uint64'] },
	});
	assert.is(functions.SSL_CTX_set_num_tickets(contextAddress(context), count), 1);
}

test('hundreds of tickets are read, and one session is kept', async () => {
	const { certificate, key } = await authority.issue({ names: ['localhost'] });
	const context = createSecureContext({ cert: certificate, key });
	setTicketCount(context, 300n);
	const ticketServer = createServer(
		{ allowHalfOpen: true, SNICallback: (_name, done) => done(null, context) },
		socket => {
			socket.on('error', () => {});
			accepted.push(socket);
		},
	).listen(0, '127.0.0.1');
	await once(ticketServer, 'listening');
	try {
		const taken = await take({ port: (ticketServer.address() as AddressInfo).port });
		taken.peer.write('answer');
		await until('the answer', () => Buffer.concat(taken.received).toString() === 'answer');
		assert.is(taken.sessions.length, 1);
		taken.socket.destroy();
	} finally {
		ticketServer.close();
	}
});

/** An address that is not used, because the stream is refused before. */
const NO_CONNECTION = 0n as TlsConnectionAddress;

test('streams that hold bytes, have ended, or are built on other streams stay streams', async () => {
	const options = { host: '127.0.0.1', port, servername: 'localhost', ca: authority.pem };
	const inner = connect(port, '127.0.0.1');
	await once(inner, 'connect');
	const outer = connectTls({ ...options, socket: inner });
	await once(outer, 'secureConnect');
	assert.is(
		takeTlsConnection(outer, NO_CONNECTION, () => {}),
		undefined,
	);
	await until('the connection', () => accepted.length > 0);
	outer.destroy();
	const buffering = connectTls(options);
	await once(buffering, 'secureConnect');
	await until('the connection', () => accepted.length > 1);
	accepted.at(-1)!.write('bytes');
	await once(buffering, 'readable');
	assert.is(
		takeTlsConnection(buffering, NO_CONNECTION, () => {}),
		undefined,
	);
	buffering.destroy();
	await once(buffering as Socket, 'close');
	assert.is(
		takeTlsConnection(buffering, NO_CONNECTION, () => {}),
		undefined,
	);
});

const withoutOpenssl = suite('TLS by Node');

withoutOpenssl('no connection is taken', () => {
	assert.not(canTakeTlsConnections());
});

(directTlsThread() === undefined ? withoutOpenssl : test).run();
