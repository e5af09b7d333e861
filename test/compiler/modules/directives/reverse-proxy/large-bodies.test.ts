/** Large bodies pass through the proxy intact in both directions at once, at any speed and in any fragmentation. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { proxiedSite } from './proxied-site.ts';

const largeBodies = suite('large bodies through the proxy');

const BODY_BYTES = 3_000_000;

/** Returns a body that is different for each seed, so that a misplaced piece or a piece of another body is detected. */
function bodyOfSeed(seed: number): Buffer {
	const words = new Uint32Array(BODY_BYTES / 4);
	for (let i = 0, word = seed; i < words.length; i++) {
		word = (Math.imul(word, 1664525) + 1013904223) >>> 0;
		words[i] = word;
	}
	return Buffer.from(words.buffer);
}

/** Reads the given number of bytes after the response head. Slow readers pause now and then. */
function readBody(socket: Socket, slow: boolean): Promise<Buffer> {
	return new Promise((resolve, reject) => {
		const pieces: Buffer[] = [];
		let receivedBytes = 0;
		let head = '';
		let since = 0;
		const take = (bytes: Buffer) => {
			let piece = bytes;
			if (!head.endsWith('\r\n\r\n')) {
				const text = head + bytes.toString('latin1');
				const end = text.indexOf('\r\n\r\n');
				if (end === -1) {
					head = text;
					return;
				}
				piece = bytes.subarray(end + 4 - head.length);
				head = text.slice(0, end + 4);
			}
			pieces.push(piece);
			receivedBytes += piece.length;
			since += piece.length;
			if (receivedBytes >= BODY_BYTES) {
				socket.off('data', take);
				resolve(Buffer.concat(pieces));
			} else if (slow && since > 400_000) {
				since = 0;
				socket.pause();
				setTimeout(() => socket.resume(), 3);
			}
		};
		socket.on('data', take);
		socket.once('error', reject);
		socket.once('close', () => reject(new Error(`closed after ${receivedBytes} bytes: ${head}`)));
	});
}

/** Echoes each request body piece by piece, and keeps the connection open. */
function echoBodies(socket: Socket): void {
	let remaining = 0;
	socket.on('error', () => {});
	socket.on('data', (bytes: Buffer) => {
		let piece = bytes;
		if (remaining === 0) {
			const end = bytes.indexOf('\r\n\r\n');
			if (!bytes.includes('\r\n\r\n')) return;
			remaining = BODY_BYTES;
			socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`);
			piece = bytes.subarray(end + 4);
		}
		remaining -= piece.length;
		if (!socket.write(piece)) socket.pause();
	});
	socket.on('drain', () => socket.resume());
}

largeBodies('concurrent uploads and downloads, slow and fast, each arrive intact', async () => {
	const server = createServer(echoBodies).listen(0, '127.0.0.1');
	await once(server, 'listening');
	const site = await proxiedSite(`reverse_proxy 127.0.0.1:${(server.address() as AddressInfo).port}`);
	try {
		await Promise.all(
			[1, 2, 3, 4, 5, 6].map(async seed => {
				for (const round of [0, 100]) {
					const socket = connect(site.port, '127.0.0.1');
					try {
						const sent = bodyOfSeed(seed + round);
						const read = readBody(socket, seed % 2 === 0);
						socket.write(`POST /${seed} HTTP/1.1\r\nHost: h\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`);
						for (let at = 0; at < BODY_BYTES; ) {
							const size = 1000 + ((seed * 7919 + at) % 200_000);
							if (!socket.write(sent.subarray(at, at + size))) await once(socket, 'drain');
							at += size;
						}
						assert.ok((await read).equals(sent), `${seed} in round ${round}`);
					} finally {
						socket.removeAllListeners('close');
						socket.destroy();
					}
				}
			}),
		);
	} finally {
		await site.close();
		server.close();
	}
});

/** Starts an upstream that runs a script on each connection. */
async function withUpstream(script: (socket: Socket) => void, use: (port: number) => Promise<void>): Promise<void> {
	const server = createServer(socket => {
		socket.on('error', () => {});
		script(socket);
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	const site = await proxiedSite(`reverse_proxy 127.0.0.1:${(server.address() as AddressInfo).port}`);
	try {
		await use(site.port);
	} finally {
		await site.close();
		server.close();
	}
}

/** Sends a request and returns everything that is received until the connection ends. */
async function readEverything(port: number, request: string): Promise<Buffer> {
	const socket = connect(port, '127.0.0.1');
	const pieces: Buffer[] = [];
	socket.on('data', piece => pieces.push(piece as Buffer));
	socket.on('error', () => {});
	socket.write(request);
	await once(socket, 'close');
	return Buffer.concat(pieces);
}

largeBodies('a truncated large response is not taken for a complete one', async () => {
	const script = (socket: Socket) =>
		socket.once('data', () => {
			socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`);
			socket.end(bodyOfSeed(1).subarray(0, 1_000_000));
		});
	await withUpstream(script, async port => {
		const got = await readEverything(port, 'GET / HTTP/1.1\r\nHost: h\r\n\r\n');
		const body = got.subarray(got.indexOf('\r\n\r\n') + 4);
		assert.match(got.toString('latin1', 0, 500), `Content-Length: ${BODY_BYTES}\r\n`);
		assert.ok(body.equals(bodyOfSeed(1).subarray(0, body.length)) && body.length <= 1_000_000, String(body.length));
	});
});

largeBodies('bytes sent by an upstream beyond its Content-Length are dropped', async () => {
	let connections = 0;
	const script = (socket: Socket) => {
		connections++;
		socket.on('data', () => {
			socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`);
			socket.write(Buffer.concat([bodyOfSeed(2), Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')]));
		});
	};
	await withUpstream(script, async port => {
		for (let i = 0; i < 2; i++) {
			const got = await readEverything(port, 'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
			assert.ok(got.subarray(got.indexOf('\r\n\r\n') + 4).equals(bodyOfSeed(2)));
		}
		assert.is(connections, 2);
	});
});

largeBodies('an upload aborted by its client does not look complete to the upstream', async () => {
	let receivedBytes = 0;
	let over: (how: string) => void;
	const ending = new Promise<string>(resolve => {
		over = resolve;
	});
	const script = (socket: Socket) => {
		socket.on('data', piece => {
			receivedBytes += piece.length;
		});
		socket.on('close', () => over('closed'));
	};
	await withUpstream(script, async port => {
		const socket = connect(port, '127.0.0.1');
		socket.on('error', () => {});
		socket.write(`POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`);
		socket.write(bodyOfSeed(3).subarray(0, 1_500_000));
		while (receivedBytes < 1_500_000) await new Promise(resolve => setTimeout(resolve, 1));
		socket.destroy();
		assert.is(await ending, 'closed');
		assert.ok(receivedBytes < BODY_BYTES);
	});
});

largeBodies.run();
