/** Makes handshakes that violate TLS in any way, with a listener of this process that performs TLS by direct calls of OpenSSL. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import * as assert from 'uvu/assert';
import { interceptHandles } from '../../../runtime/sockets/accepted-handles.ts';
import { DirectSocket } from '../../../runtime/sockets/direct-socket.ts';
import { opensslThread } from '../../../runtime/sockets/openssl-thread.ts';
import { useDirectTls } from '../../../runtime/sockets/tls-mode.ts';
import { ThreadTls } from '../../../runtime/tls/thread-tls.ts';
import { TlsServer } from '../../../runtime/tls/tls-server.ts';
import { TestAuthority } from '../../certificates.ts';
import { until } from '../../harness.ts';

const NAME = 'example.test';
/** Number of connections that are open at the same time. */
const CONCURRENT_CONNECTIONS = 48;

export interface HostileOutcome {
	/** Numbers of failed handshakes, by reason. */
	readonly failures: ReadonlyMap<string, number>;
	/** Growth of the process's memory after the first tenth of the connections, in bytes. */
	readonly growthBytes: number;
}

/** Opens `count` connections that violate TLS, and checks that each of them ends and leaves nothing behind. */
export async function hostileHandshakes(count: number): Promise<HostileOutcome> {
	useDirectTls(true);
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: [NAME] });
	const tls = new ThreadTls(() => {});
	tls.applyUpdate({ kind: 'certificates', set: [{ id: 'one', names: [NAME], chain: certificate, key }], dropped: [] });
	const failures = new Map<string, number>();
	const http1 = {
		accept: (socket: Socket | DirectSocket) => void socket.destroy(),
		...{ drain: () => {}, retire: () => {}, closable: () => [], close: () => {}, connections: 0 },
	};
	const server = new TlsServer({
		...{ tls, port: 0, protocols: () => ['h1'], http1, http2: undefined, obtain: async () => false },
		countHandshake: () => {},
		countFailure: reason => void failures.set(reason, (failures.get(reason) ?? 0) + 1),
		onConnectionEnded: () => {},
	});
	server.configure(JSON.stringify({ policies: [{}], names: {}, other: 0, strict_sni_host: false }));
	const listener = createServer();
	listener.listen(0, '127.0.0.1');
	await once(listener, 'listening');
	interceptHandles(listener, handle => {
		server.accept(new DirectSocket(handle), 'https');
		return true;
	});
	const { port } = listener.address() as { port: number };
	try {
		const flights = [await recordHandshake(port, 'TLSv1.3'), await recordHandshake(port, 'TLSv1.2')];
		const random = randomNumbers(20_261_123);
		let begun = 0;
		const one = async (): Promise<void> => {
			while (begun < count) {
				begun++;
				await violate(port, mutateFlight(flights[random(2)]!, random), random(4));
			}
		};
		let early = 0;
		const watch = until('a tenth of the connections', () => begun >= count / 10).then(() => {
			early = process.memoryUsage.rss();
		});
		await Promise.all(Array.from({ length: CONCURRENT_CONNECTIONS }, one));
		await watch;
		await until('all connections are closed', () => server.connections === 0);
		assert.is(opensslThread()?.connectionCount, 0);
		return { failures, growthBytes: process.memoryUsage.rss() - early };
	} finally {
		listener.close();
		server.close();
		useDirectTls(false);
	}
}

/** Records the bytes that a client sends in a handshake, with one buffer for each write. */
async function recordHandshake(port: number, version: 'TLSv1.2' | 'TLSv1.3'): Promise<Buffer[]> {
	const pieces: Buffer[] = [];
	const raw = connect(port, '127.0.0.1').on('error', () => {});
	const { write } = raw;
	raw.write = ((bytes: Buffer, ...rest: never[]) => {
		pieces.push(Buffer.from(bytes));
		return write.call(raw, bytes, ...rest);
	}) as typeof raw.write;
	const relay = createServer(inner => {
		inner.on('error', () => {}).on('data', (bytes: Buffer) => raw.write(bytes));
		raw.on('data', (bytes: Buffer) => void inner.write(bytes));
	});
	relay.listen(0, '127.0.0.1');
	await once(relay, 'listening');
	const { port: at } = relay.address() as { port: number };
	const options = { host: '127.0.0.1', port: at, servername: NAME, rejectUnauthorized: false };
	const client = connectTls({ ...options, minVersion: version, maxVersion: version }).on('error', () => {});
	await once(client, 'secureConnect');
	await until('the second flight', () => pieces.length > 1);
	client.destroy();
	raw.destroy();
	relay.close();
	return pieces;
}

type Random = (below: number) => number;

/** Returns a seeded generator of random integers from 0 to `below` − 1. */
function randomNumbers(seed: number): Random {
	let state = seed;
	return below => {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		return Math.floor((state / 2 ** 32) * below);
	};
}

/** Returns the bytes of a client with violations of TLS: bytes are changed, removed, repeated, added or reordered. */
function mutateFlight(flight: readonly Buffer[], random: Random): Buffer[] {
	const pieces = flight.map(piece => Buffer.from(piece));
	const [hello, ...rest] = pieces as [Buffer, ...Buffer[]];
	const noise = Buffer.from(Array.from({ length: 1 + random(200) }, () => random(256)));
	const recordOf = (type: number, length: number, body: Buffer): Buffer =>
		Buffer.concat([Buffer.of(type, 3, 3, length >> 8, length & 255), body]);
	switch (random(10)) {
		case 0:
			// Flips bits only after the headers of the record and of the message.
			for (let flips = 1 + random(4); flips > 0; flips--) hello[9 + random(hello.length - 9)]! ^= 1 << random(8);
			return pieces;
		case 1:
			for (const piece of rest) piece[random(piece.length)]! ^= 1 << random(8);
			return pieces;
		case 2:
			return [hello, ...rest.map(piece => piece.subarray(0, random(piece.length)))];
		case 3:
			return [hello, ...rest.reverse(), ...rest];
		case 4:
			return [hello, recordOf(22, 65_535, noise), ...rest];
		case 5:
			return [hello, recordOf(20 + random(5), noise.length, noise), ...rest];
		case 6:
			return [hello, hello, ...rest];
		case 7:
			return [hello.subarray(0, random(hello.length))];
		case 8:
			return [
				Buffer.concat([hello, ...Array.from({ length: 1 + random(50) }, () => recordOf(23, 0, Buffer.alloc(0)))]),
			];
		default:
			return [Buffer.concat([hello, recordOf(21, 2, Buffer.of(1 + random(2), random(120)))]), ...rest];
	}
}

/** Sends pieces and ends the connection in one of four ways. Resolves when the connection is closed. */
function violate(port: number, pieces: readonly Buffer[], how: number): Promise<void> {
	return new Promise(resolve => {
		const socket = connect(port, '127.0.0.1', () => {
			if (how === 0) {
				socket.end(Buffer.concat(pieces));
				return;
			}
			let at = 0;
			const next = (): void => {
				const piece = pieces[at++];
				if (piece === undefined) {
					if (how === 1) socket.resetAndDestroy();
					else socket.end();
					return;
				}
				socket.write(piece);
				if (how === 2) setImmediate(next);
				else socket.once('data', next);
			};
			next();
			// If the server sends nothing, it waits for further bytes, so the client gives up.
			socket.setTimeout(200, () => void socket.destroy());
		});
		socket.on('error', () => {});
		socket.on('data', () => {});
		socket.on('close', () => resolve());
	});
}
