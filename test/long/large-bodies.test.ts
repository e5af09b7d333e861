/**
 * Large bodies pass through the proxy in both directions with slow readers, without memory growing. GIGABYTES sets the
 * body size.
 */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../harness.ts';

const large = suite('large bodies');

const BODY_BYTES = Number(process.env.GIGABYTES ?? 1) * 1_000_000_000;
const PIECE = Buffer.alloc(65_536, 'x');
const MAX_GROWTH_BYTES = 32 * 1024 * 1024;

/** Returns the resident memory of a process in bytes. */
function residentBytes(pid: number): number {
	return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
}

/** Writes the given number of bytes as fast as the socket accepts them. */
async function writeBytes(socket: Socket, bytes: number): Promise<void> {
	let remaining = bytes;
	while (remaining > 0 && !socket.destroyed) {
		const piece = remaining < PIECE.length ? PIECE.subarray(0, remaining) : PIECE;
		remaining -= piece.length;
		if (!socket.write(piece)) await once(socket, 'drain');
	}
}

/** Reads the given number of bytes, pausing repeatedly so that the writer has to wait. */
async function readSlowly(socket: Socket, bytes: number): Promise<void> {
	let receivedBytes = 0;
	let since = 0;
	await new Promise<void>((resolve, reject) => {
		socket.on('error', reject);
		socket.on('close', () =>
			receivedBytes >= bytes ? resolve() : reject(new Error(`closed after ${receivedBytes} bytes`)),
		);
		socket.on('data', piece => {
			receivedBytes += piece.length;
			since += piece.length;
			if (receivedBytes >= bytes) resolve();
			if (since < 8_000_000) return;
			since = 0;
			socket.pause();
			setTimeout(() => socket.resume(), 2);
		});
	});
}

/** Returns by how many bytes the server's memory rises above its initial value while `what` runs. */
async function memoryGrowth(pid: number, what: () => Promise<void>): Promise<number> {
	const before = residentBytes(pid);
	let most = before;
	const timer = setInterval(() => {
		most = Math.max(most, residentBytes(pid));
	}, 20);
	await what();
	clearInterval(timer);
	return most - before;
}

let server: ServerProcess;
let port = 0;
const upstream = createServer(socket => {
	socket.on('error', () => {});
	let head = '';
	const onHead = (bytes: Buffer): void => {
		head += bytes.toString('latin1');
		const end = head.indexOf('\r\n\r\n');
		if (end === -1) return;
		socket.off('data', onHead);
		const size = Number(/\/(\d+)/.exec(head)![1]);
		if (head.startsWith('GET')) {
			socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${size}\r\n\r\n`);
			void writeBytes(socket, size).then(() => socket.end());
			return;
		}
		void readSlowly(socket, size - (head.length - end - 4)).then(() => {
			socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok');
		});
	};
	socket.on('data', onHead);
}).listen(0, '127.0.0.1');

large.before(async () => {
	[port] = (await freePorts(1)) as [number];
	const file = path.join(temporaryFolder(), 'Configfile');
	const { port: behind } = upstream.address() as AddressInfo;
	writeFileSync(file, `{\n\tadmin off\n\tthreads 1\n}\nhttp://:${port} {\n\treverse_proxy 127.0.0.1:${behind}\n}\n`);
	server = await serve([file], port);
	// Warms up, so that memory which grows only with the first bodies does not count.
	for (let i = 0; i < 3; i++) {
		await download(100_000_000);
		await upload(100_000_000);
	}
});

large.after(async () => {
	await server.stop();
	upstream.close();
});

async function download(size: number): Promise<void> {
	const client = connect(port, '127.0.0.1');
	client.write(`GET /${size} HTTP/1.1\r\nHost: a\r\n\r\n`);
	await readSlowly(client, size);
	client.destroy();
}

async function upload(size: number): Promise<void> {
	const client = connect(port, '127.0.0.1');
	client.write(`POST /${size} HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`);
	const answer = once(client, 'data');
	await writeBytes(client, size);
	assert.match(String((await answer)[0]), 'HTTP/1.1 200 ');
	client.destroy();
}

for (const [name, move] of [
	['download', download],
	['upload', upload],
] as const) {
	large(
		`resident memory grows by less than 32 MB during a ${BODY_BYTES / 1e9} GB ${name} with a slow reader`,
		async () => {
			const startedAt = performance.now();
			const grown = await memoryGrowth(server.child.pid!, () => move(BODY_BYTES));
			const seconds = (performance.now() - startedAt) / 1000;
			const said = `${BODY_BYTES / 1e9} GB ${name}: ${(grown / 1e6).toFixed(1)} MB growth, ${seconds.toFixed(1)} s`;
			console.log(said);
			assert.ok(grown < MAX_GROWTH_BYTES, said);
		},
	);
}

large.run();
