/** TLS connections to upstreams that are taken out of Node's streams after the handshake. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connect as connectTls, createServer, type Server, type TLSSocket } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DirectSocket } from '../../../runtime/sockets/direct-socket.ts';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { toDirectTlsSocket } from '../../../runtime/sockets/tls-handle.ts';
import { UpstreamSocket } from '../../../runtime/sockets/upstream-socket.ts';
import { TestAuthority } from '../../certificates.ts';
import { until } from '../../harness.ts';

const test = suite('TLS connections taken out of streams');

let server: Server;
let port: number;
const accepted: TLSSocket[] = [];
const authority = await TestAuthority.make();

test.before(async () => {
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
	readonly stream: TLSSocket;
	readonly peer: TLSSocket;
	readonly received: Buffer[];
	readonly events: string[];
}

/** Connects, and takes the connection out of its stream in the callback for the end of the handshake, as connections of pools do. */
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
	const stream = connectTls({
		host: '127.0.0.1',
		port,
		servername: 'localhost',
		ca: authority.pem,
		allowHalfOpen: true,
		onread: upstream.readOptions(memory),
		...options,
	} as object);
	upstream.attach(stream, false);
	stream.on('session', () => events.push('session'));
	const socket = await new Promise<unknown>(resolve => {
		stream.once('secureConnect', () => resolve(upstream.withoutStream()));
	});
	assert.instance(socket, DirectSocket);
	await until('the connection', () => accepted.length > acceptedBefore);
	return { upstream, socket: socket as DirectSocket, stream, peer: accepted.at(-1)!, received, events };
}

const receivedBytes = ({ received }: Taken): number => received.reduce((sum, bytes) => sum + bytes.length, 0);

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
	test(`requests and responses pass in both directions, and sessions are still reported (${version})`, async () => {
		const taken = await take({ maxVersion: version });
		for (let i = 0; i < 20; i++) {
			taken.socket.write(`request ${i}`, 'latin1');
			const [request] = (await once(taken.peer, 'data')) as [Buffer];
			assert.is(request.toString(), `request ${i}`);
			taken.peer.write(`response ${i}`);
			await until('the response', () => Buffer.concat(taken.received).toString().endsWith(`response ${i}`));
		}
		// In TLS 1.3, tickets arrive after the handshake.
		await until('a session', () => taken.events.includes('session'));
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
	second.socket.end();
	await until('the close', () => second.events.includes('closed'));
});

/** Returns Node's handle of the TCP connection below a TLS connection. */
function tcpHandleOf(socket: TLSSocket) {
	type TcpHandle = { reset(done: () => void): unknown; writeLatin1String(request: null, text: string): unknown };
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

test('streams that hold bytes, have ended, or are built on other streams stay streams', async () => {
	const options = { host: '127.0.0.1', port, servername: 'localhost', ca: authority.pem };
	const inner = connect(port, '127.0.0.1');
	await once(inner, 'connect');
	const outer = connectTls({ ...options, socket: inner });
	await once(outer, 'secureConnect');
	assert.is(toDirectTlsSocket(outer), undefined);
	await until('the connection', () => accepted.length > 0);
	outer.destroy();
	const buffering = connectTls(options);
	await once(buffering, 'secureConnect');
	await until('the connection', () => accepted.length > 1);
	accepted.at(-1)!.write('bytes');
	await once(buffering, 'readable');
	assert.is(toDirectTlsSocket(buffering), undefined);
	buffering.destroy();
	await once(buffering as Socket, 'close');
	assert.is(toDirectTlsSocket(buffering), undefined);
});

// With `node` I/O, connections keep their streams.
if (isDirectIo()) test.run();
