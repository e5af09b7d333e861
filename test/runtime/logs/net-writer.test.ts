/** Log collectors on the network: order of lines, reconnecting, and collectors that do not answer. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseCollectorAddress } from '../../../compiler/modules/providers/log-writers/net-output.ts';
import { LogOutputError, LogSinks } from '../../../runtime/logs/log-sinks.ts';
import { pauseFor, until } from '../../harness.ts';
import { recordingLog } from '../running-server.ts';

/** A collector that records what it receives. */
class Collector {
	text = '';
	readonly sockets = new Set<Socket>();
	readonly #server: Server;
	readonly #at: { port: number; host: string } | { path: string };

	constructor(at: { port: number; host: string } | { path: string }) {
		this.#at = at;
		this.#server = createServer(socket => {
			this.sockets.add(socket);
			socket.setEncoding('utf8').on('data', chunk => {
				this.text += chunk;
			});
			socket.on('error', () => {});
			socket.on('close', () => this.sockets.delete(socket));
		});
	}

	async start(): Promise<number> {
		this.#server.listen(this.#at as never);
		await once(this.#server, 'listening');
		const address = this.#server.address();
		return typeof address === 'object' ? address!.port : 0;
	}

	async stop(): Promise<void> {
		for (const socket of this.sockets) socket.destroy();
		await new Promise(resolve => this.#server.close(resolve));
	}
}

/** Waits until `holds` returns true. The source text of `holds` describes it in a failure. */
const eventually = (holds: () => boolean): Promise<void> => until(String(holds), holds);

const net = suite('log collectors');

net('lines arrive in order over TCP, also after a reconnect', async () => {
	const first = new Collector({ port: 0, host: '127.0.0.1' });
	const port = await first.start();
	const sinks = new LogSinks({}, '/');
	const writer = sinks.acquire({ writer: 'net', address: `tcp/127.0.0.1:${port}` });
	await sinks.whenAllOpened();
	writer.write('1\n2\n');
	await eventually(() => first.text === '1\n2\n');
	await first.stop();
	await pauseFor(50);
	assert.ok(writer.write('3\n'), 'the line is queued');
	const second = new Collector({ port, host: '127.0.0.1' });
	await second.start();
	await eventually(() => second.text === '3\n');
	writer.write('4\n');
	await writer.close();
	await eventually(() => second.text === '3\n4\n');
	await second.stop();
});

net('lines are sent over a Unix socket', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'svc-log-'));
	const path = join(folder, 'log.sock');
	const collector = new Collector({ path });
	await collector.start();
	const sinks = new LogSinks({}, '/');
	const writer = sinks.acquire({ writer: 'net', address: `unix/${path}` });
	await sinks.whenAllOpened();
	writer.write('hello\n');
	await writer.close();
	await eventually(() => collector.text === 'hello\n');
	await collector.stop();
	rmSync(folder, { recursive: true });
});

net('each line is a datagram over UDP', async () => {
	const socket = createSocket('udp4');
	const got: string[] = [];
	socket.on('message', bytes => got.push(bytes.toString()));
	socket.bind(0, '127.0.0.1');
	await once(socket, 'listening');
	const sinks = new LogSinks({}, '/');
	const writer = sinks.acquire({ writer: 'net', address: `udp/127.0.0.1:${socket.address().port}` });
	writer.write(`1\n${'x'.repeat(70_000)}\n2\n`, 'access');
	await writer.close();
	await eventually(() => got.length === 2);
	assert.equal(got, ['1', '2']);
	// A line too long for a datagram is dropped, not split.
	assert.is(sinks.lostLines('access'), 1);
	socket.close();
});

net('a collector that does not answer is a startup error, unless soft start is on', async () => {
	const gone = new Collector({ port: 0, host: '127.0.0.1' });
	const port = await gone.start();
	await gone.stop();
	const output = { writer: 'net', address: `127.0.0.1:${port}` } as const;
	const strict = new LogSinks({}, '/');
	const refused = strict.acquire(output);
	let error: unknown;
	await strict.whenAllOpened().catch(reason => {
		error = reason;
	});
	assert.instance(error, LogOutputError);
	assert.match((error as Error).message, /cannot be reached: ECONNREFUSED/);
	await refused.close();
	const stderr = recordingLog();
	const soft = new LogSinks({ stderr }, '/');
	const writer = soft.acquire({ ...output, soft_start: true });
	await soft.whenAllOpened();
	writer.write('meanwhile\n');
	assert.is(stderr.text(), 'meanwhile\n');
	const late = new Collector({ port, host: '127.0.0.1' });
	await late.start();
	await eventually(() => late.sockets.size === 1);
	writer.write('at last\n');
	await writer.close();
	await eventually(() => late.text === 'at last\n');
	await late.stop();
});

net('a collector that stops reading blocks nothing: lines are dropped and reported', async () => {
	const held: Socket[] = [];
	const slow = createServer(socket => {
		held.push(socket.pause());
	});
	slow.listen(0, '127.0.0.1');
	await once(slow, 'listening');
	const sinks = new LogSinks({}, '/');
	const { port } = slow.address() as { port: number };
	const writer = sinks.acquire({ writer: 'net', address: `tcp/127.0.0.1:${port}` });
	await sinks.whenAllOpened();
	const megabyte = `${'x'.repeat(1024 * 1024)}\n`;
	let taken = 0;
	while (taken < 200 && writer.write(megabyte)) {
		taken++;
		await new Promise(resolve => setImmediate(resolve));
	}
	assert.ok(taken >= 7 && taken < 200, String(taken));
	await writer.close();
	for (const socket of held) socket.destroy();
	await new Promise(resolve => slow.close(resolve));
});

net('collector addresses are parsed', () => {
	assert.equal(parseCollectorAddress('tcp/[::1]:514'), { network: 'tcp', host: '::1', port: 514 });
	assert.equal(parseCollectorAddress('logs.example:514'), { network: 'tcp', host: 'logs.example', port: 514 });
	assert.equal(parseCollectorAddress('udp/10.0.0.1:514'), { network: 'udp', host: '10.0.0.1', port: 514 });
	assert.equal(parseCollectorAddress('unix//run/log.sock'), { network: 'unix', path: '/run/log.sock' });
	for (const text of ['', 'logs', 'logs:0', 'logs:99999', 'unixgram//x', 'tcp/::1:5', 'quic/a:1', 'a b:1']) {
		assert.is(parseCollectorAddress(text), undefined, text);
	}
});

net.run();
