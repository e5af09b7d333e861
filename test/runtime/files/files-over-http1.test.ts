/** Files as clients receive them: the handler and the reader over the HTTP/1.1 engine. */
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import type { CompileContext } from '../../../compiler/modules/contract/compile-context.ts';
import { compileFilesStep } from '../../../compiler/modules/directives/file-server/files-handler.ts';
import { createFileReader } from '../../../runtime/files/file-reader.ts';
import { createHttp1Server } from '../../../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../../../runtime/protocols/http1/limits.ts';
import { until } from '../../harness.ts';

const FILE_BYTES = 8 * 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), 'svc-files-http1-'));
const big = Buffer.alloc(FILE_BYTES);
for (let i = 0; i < FILE_BYTES; i += 4) big.writeUInt32LE(i, i);
mkdirSync(join(folder, 'www'));
writeFileSync(join(folder, 'www/big.bin'), big);
writeFileSync(join(folder, 'www/small.txt'), 'small');

const handler = compileFilesStep(
	{ handler: 'files', root: join(folder, 'www') },
	{
		lease: () => createFileReader(),
		template: (text: string) => ({ constant: text, render: () => text }),
	} as unknown as CompileContext,
	() => {},
);
const protocol = createHttp1Server({
	handle(x) {
		try {
			return handler(x);
		} catch (error) {
			x.response.status = error instanceof HttpError ? error.status : 500;
		}
	},
	onExchangeFinished() {},
	countRefusal() {},
	onConnectionOpened() {},
	onConnectionClosed() {},
	limits: DEFAULT_LIMITS,
	draining: false,
});
const server = createServer(socket => protocol.accept(socket, 'http'));
let port = 0;

/** Returns the number of descriptors of files below the folder that are open. */
function countOpenFiles(): number {
	let count = 0;
	for (const name of readdirSync('/proc/self/fd')) {
		try {
			if (readlinkSync(`/proc/self/fd/${name}`).startsWith(folder)) count += 1;
		} catch {}
	}
	return count;
}

async function allClosed(): Promise<void> {
	await until('all files are closed', () => countOpenFiles() === 0);
}

function ask(text: string, onHead?: () => void): Promise<{ head: string; body: Buffer }> {
	return new Promise((resolve, reject) => {
		const socket = connect(port, '127.0.0.1', () => socket.write(`${text}\r\nHost: a\r\nConnection: close\r\n\r\n`));
		const chunks: Buffer[] = [];
		socket.on('data', (chunk: Buffer) => {
			if (chunks.length === 0) onHead?.();
			chunks.push(chunk);
		});
		socket.on('error', (error: NodeJS.ErrnoException) => {
			if (error.code !== 'ECONNRESET') reject(error);
		});
		socket.on('close', () => {
			const all = Buffer.concat(chunks);
			const end = all.indexOf('\r\n\r\n');
			resolve({ head: all.toString('latin1', 0, end), body: all.subarray(end + 4) });
		});
	});
}

const wire = suite('files over HTTP/1.1');
wire.before(async () => {
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	port = (server.address() as AddressInfo).port;
});

wire('a large file arrives byte for byte', async () => {
	const { head, body } = await ask('GET /big.bin HTTP/1.1');
	assert.match(head, /^HTTP\/1\.1 200 /);
	assert.match(head, `Content-Length: ${FILE_BYTES}`);
	assert.ok(body.equals(big));
	await allClosed();
});

wire('HEAD returns the length and leaves no file open', async () => {
	for (const [path, size] of [
		['big.bin', FILE_BYTES],
		['small.txt', 5],
	]) {
		const { head, body } = await ask(`HEAD /${path} HTTP/1.1`);
		assert.match(head, `Content-Length: ${size}`);
		assert.is(body.length, 0);
	}
	await allClosed();
});

wire('single and multiple ranges are answered', async () => {
	const one = await ask('GET /big.bin HTTP/1.1\r\nRange: bytes=1000000-1999999');
	assert.match(one.head, /^HTTP\/1\.1 206 /);
	assert.match(one.head, `Content-Range: bytes 1000000-1999999/${FILE_BYTES}`);
	assert.ok(one.body.equals(big.subarray(1_000_000, 2_000_000)));
	const several = await ask('GET /big.bin HTTP/1.1\r\nRange: bytes=0-99,1000000-1499999,-100');
	assert.match(several.head, 'Content-Type: multipart/byteranges; boundary=');
	assert.match(several.head, `Content-Length: ${several.body.length}`);
	assert.ok(several.body.includes(big.subarray(1_000_000, 1_500_000)));
	await allClosed();
});

wire('304 and 416 carry no body', async () => {
	const etag = /Etag: (.*)/.exec((await ask('GET /small.txt HTTP/1.1')).head)![1]!;
	const same = await ask(`GET /small.txt HTTP/1.1\r\nIf-None-Match: ${etag.trim()}`);
	assert.match(same.head, /^HTTP\/1\.1 304 /);
	assert.is(same.body.length, 0);
	const beyond = await ask('GET /small.txt HTTP/1.1\r\nRange: bytes=5-');
	assert.match(beyond.head, /^HTTP\/1\.1 416 /);
	assert.match(beyond.head, 'Content-Range: bytes */5');
	await allClosed();
});

wire('a client that disconnects during a download leaves no descriptor open', async () => {
	await Promise.all(
		Array.from(
			{ length: 10 },
			() =>
				new Promise<void>(resolve => {
					const socket = connect(port, '127.0.0.1', () => socket.write('GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n'));
					socket.once('data', () => socket.destroy());
					socket.once('close', () => resolve());
				}),
		),
	);
	await allClosed();
});

wire('slow clients get every byte', async () => {
	await Promise.all(
		Array.from(
			{ length: 4 },
			(_, client) =>
				new Promise<void>((resolve, reject) => {
					const socket = connect(port, '127.0.0.1', () =>
						socket.write('GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
					);
					const chunks: Buffer[] = [];
					let received = 0;
					let pauses = 0;
					socket.on('data', (chunk: Buffer) => {
						chunks.push(chunk);
						received += chunk.length;
						if (received < (pauses + 1) * 1_000_000) return;
						pauses += 1;
						socket.pause();
						setTimeout(() => socket.resume(), 10 + client);
					});
					socket.on('error', reject);
					socket.on('end', () => {
						const all = Buffer.concat(chunks);
						if (all.subarray(all.indexOf('\r\n\r\n') + 4).equals(big)) resolve();
						else reject(new Error('other bytes'));
					});
				}),
		),
	);
	await allClosed();
});

wire('a file that shrinks while it is sent aborts the connection', async () => {
	writeFileSync(join(folder, 'www/shrinks.bin'), big);
	const { head, body } = await ask('GET /shrinks.bin HTTP/1.1', () => truncateSync(join(folder, 'www/shrinks.bin'), 0));
	assert.match(head, `Content-Length: ${FILE_BYTES}`);
	assert.ok(body.length < FILE_BYTES);
	await allClosed();
});

wire.after(async () => {
	protocol.close();
	await new Promise(resolve => server.close(resolve));
	rmSync(folder, { recursive: true, force: true });
});
wire.run();
