/** The poller reads and writes sockets. If the poller is unavailable, Node's handles do. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { interceptHandles } from '../../../runtime/sockets/accepted-handles.ts';
import { DirectSocket, type SocketOwner } from '../../../runtime/sockets/direct-socket.ts';
import { setIoMode } from '../../../runtime/sockets/io-mode.ts';
import { SocketOutput } from '../../../runtime/sockets/socket-output.ts';
import { SocketPoller, setPollerEnabled, threadPoller } from '../../../runtime/sockets/socket-poller.ts';
import { pauseFor, until, waitForNothing } from '../../harness.ts';

// The poller exists only in the I/O mode `direct`.
setIoMode('direct');

/** Environment variables for threads and processes that need a poller. */
const DIRECT_ENVIRONMENT = { ...process.env, SVC_IO: 'direct' };
const POLLER_URL = new URL('../../../runtime/sockets/socket-poller.ts', import.meta.url).href;

/** Size of the read buffer shared by all sockets, in bytes. */
const BUFFER_BYTES = 1024;
const MEMORY = Buffer.allocUnsafeSlow(BUFFER_BYTES);

/** Waits until `holds` returns true. The source text of `holds` describes it in a failure. */
const eventually = (holds: () => boolean): Promise<void> => until(String(holds), holds);

/** The server's side of a connection, and what has happened on it. */
class ServerConnection implements SocketOwner {
	readonly socket: DirectSocket;
	readonly output: SocketOutput;
	text = '';
	readonly events: string[] = [];
	error: Error | undefined = undefined;
	onBytes: () => void = () => {};

	constructor(socket: DirectSocket) {
		this.socket = socket;
		this.output = new SocketOutput(socket, { onOutputDrained: () => void this.events.push('relieved') });
	}

	onReceived(count: number): void {
		this.text += MEMORY.toString('latin1', 0, count);
		this.onBytes();
	}

	onPeerEnded(): void {
		this.events.push('ended');
	}

	onDrained(): void {}

	onClosed(error: Error | undefined): void {
		this.error = error;
		this.events.push('closed');
	}
}

/**
 * Runs a test with a server. `run` gets the server's connections in the order of their arrival, and a function that opens further
 * connections.
 */
async function withServer(
	run: (held: ServerConnection[], open: () => Promise<Socket>) => Promise<void>,
): Promise<void> {
	const held: ServerConnection[] = [];
	const server = createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	interceptHandles(server, handle => {
		const one = new ServerConnection(new DirectSocket(handle));
		held.push(one);
		one.socket.start(MEMORY, one);
		return true;
	});
	const clients: Socket[] = [];
	const open = async (): Promise<Socket> => {
		const before = held.length;
		const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
		clients.push(client);
		await once(client, 'connect');
		await eventually(() => held.length > before);
		return client;
	};
	try {
		await run(held, open);
	} finally {
		for (const client of clients) client.destroy();
		for (const one of held) one.socket.destroy();
		server.close();
		await once(server, 'close');
	}
}

for (const way of ['by the poller', 'by the handle'] as const) {
	const test = suite(`sockets ${way}`);

	test.before(async () => {
		threadPoller();
		await turn();
		await turn();
		setPollerEnabled(way === 'by the poller');
		assert.is(threadPoller() !== undefined, way === 'by the poller' && process.platform === 'linux');
	});

	test.after(() => setPollerEnabled(true));

	test('more data than the read buffer holds arrives complete and in order, with pauses in between', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			const one = held[0]!;
			let reads = 0;
			one.onBytes = () => {
				if (++reads % 7 !== 0) return;
				one.socket.pause();
				setTimeout(() => one.socket.resume(), 1);
			};
			const text = Array.from({ length: 20_000 }, (_, i) => `${i},`).join('');
			client.end(text);
			await eventually(() => one.events.includes('ended'));
			assert.is(one.text, text);
		});
	});

	test('bytes and the end that arrive while paused are delivered after resuming', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			const one = held[0]!;
			one.socket.pause();
			client.end('x'.repeat(BUFFER_BYTES * 40));
			await waitForNothing(30);
			assert.equal([one.text, one.events], ['', []]);
			one.socket.resume();
			await eventually(() => one.events.includes('ended'));
			assert.is(one.text.length, BUFFER_BYTES * 40);
		});
	});

	test('an end that arrives with the last bytes is reported after them, and the server can still send', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			client.setEncoding('latin1');
			let back = '';
			client.on('data', (piece: string) => {
				back += piece;
			});
			client.end('the last');
			const one = held[0]!;
			await eventually(() => one.events.includes('ended'));
			assert.is(one.text, 'the last');
			assert.ok(one.output.writeText('good'));
			assert.ok(one.output.writeBytes(Buffer.from('bye')));
			one.socket.end();
			await once(client, 'close');
			assert.is(back, 'goodbye');
			await eventually(() => one.events.includes('closed'));
			assert.is(one.error, undefined);
		});
	});

	test('bytes after urgent data are delivered, although a read stops at the urgent mark', async () => {
		const ffi = process.getBuiltinModule('node:ffi');
		if (process.platform !== 'linux' || ffi === undefined) return;
		const { functions } = ffi.dlopen(null, {
			send: { return: 'int32', arguments: ['int32', 'pointer', 'int32', 'int32'] },
		});
		await withServer(async (held, open) => {
			const client = await open();
			const one = held[0]!;
			one.socket.pause();
			const descriptor = (client as Socket & { readonly _handle: { readonly fd: number } })._handle.fd;
			const bytes = Buffer.from('before!behind');
			const start = ffi.getRawPointer(bytes);
			const urgent = 1;
			assert.is(functions.send(descriptor, start, 6, 0), 6);
			assert.is(functions.send(descriptor, start + 6n, 1, urgent), 1);
			assert.is(functions.send(descriptor, start + 7n, 6, 0), 6);
			await pauseFor(20);
			one.socket.resume();
			await eventually(() => one.text === 'beforebehind');
		});
	});

	test('the end is reported in a later turn than the last bytes, after the microtasks that these caused', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			const one = held[0]!;
			one.socket.pause();
			client.end('last');
			await pauseFor(20);
			const order: string[] = [];
			one.onBytes = () => {
				void (async () => {
					for (let i = 0; i < 5; i++) await null;
					order.push(`${one.events.length} events`);
				})();
			};
			one.socket.resume();
			await eventually(() => one.events.includes('ended'));
			assert.equal([one.text, order], ['last', ['0 events']]);
		});
	});

	test('a reset is reported as ECONNRESET', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			client.resetAndDestroy();
			const one = held[0]!;
			await eventually(() => one.events.includes('closed'));
			assert.is((one.error as NodeJS.ErrnoException).code, 'ECONNRESET');
			assert.equal(one.events, ['closed']);
		});
	});

	test('queued writes of text and bytes arrive in order, and `relieved` is reported', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			client.pause();
			const one = held[0]!;
			let sent = '';
			let pending = 0;
			for (let i = 0; i < 400; i++) {
				const piece = `${i} `.repeat(4000);
				sent += piece;
				const isOut = i % 3 === 0 ? one.output.writeBytes(Buffer.from(piece)) : one.output.writeText(piece);
				if (!isOut) pending++;
				if (i % 50 === 0) {
					sent += 'head body tail';
					one.output.writeFramed('head ', Buffer.from('body '), 'tail');
				}
			}
			assert.ok(pending > 0);
			assert.ok(one.output.hasPending);
			// A write through `net.Socket` must not overtake pending output, either.
			one.socket.write('last', 'latin1');
			sent += 'last';
			let back = '';
			client.setEncoding('latin1').on('data', (piece: string) => {
				back += piece;
			});
			client.resume();
			await eventually(() => back.length >= sent.length);
			assert.ok(back === sent);
			assert.not(one.output.hasPending);
			assert.ok(one.events.includes('relieved'));
			assert.ok(one.output.writeText('more'));
		});
	});

	test('writing to a disconnected peer ends the connection', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			const one = held[0]!;
			one.socket.pause();
			client.resetAndDestroy();
			await pauseFor(10);
			for (let i = 0; i < 3; i++) one.output.writeText('hello');
			await eventually(() => one.events.includes('closed'));
			assert.match((one.error as NodeJS.ErrnoException).code ?? '', /^(EPIPE|ECONNRESET)$/);
		});
	});

	test('if connections close while events are being delivered, reused descriptors do not get the old events', async () => {
		await withServer(async (held, open) => {
			for (let round = 0; round < 5; round++) {
				const from = held.length;
				const clients: Socket[] = [];
				for (let i = 0; i < 30; i++) clients.push(await open());
				const fresh: Promise<Socket>[] = [];
				let first = true;
				for (const one of held.slice(from)) {
					one.onBytes = () => {
						if (!first) return;
						first = false;
						for (const other of held.slice(from)) if (other !== one) other.socket.destroy();
						for (let i = 0; i < 10; i++) fresh.push(open());
					};
				}
				for (const client of clients) client.write('hello');
				await eventually(() => fresh.length === 10);
				const made = await Promise.all(fresh);
				await eventually(() => held.length === from + 40);
				assert.is(held.slice(from, from + 30).filter(one => one.text === 'hello').length, 1);
				const news = held.slice(from + 30);
				assert.equal(new Set(news.map(one => one.text)), new Set(['']));
				for (const [i, client] of made.entries()) client.write(`new ${i}`);
				await eventually(() => news.every(one => one.text.startsWith('new ')));
				assert.is(new Set(news.map(one => one.text)).size, 10);
			}
		});
	});

	test.run();
}

const poller = suite('the poller');

poller('an exception for one socket does not keep others from their bytes', async () => {
	if (threadPoller() === undefined) return;
	const errors: unknown[] = [];
	const others = process.listeners('uncaughtException');
	process.removeAllListeners('uncaughtException');
	process.on('uncaughtException', error => errors.push(error));
	try {
		await withServer(async (held, open) => {
			const clients = [await open(), await open(), await open()];
			held[1]!.onBytes = () => {
				throw new Error('not mine');
			};
			for (const client of clients) client.write('hello');
			await eventually(() => held.every(one => one.text === 'hello') && errors.length === 1);
		});
		assert.is((errors[0] as Error).message, 'not mine');
	} finally {
		process.removeAllListeners('uncaughtException');
		for (const listener of others) process.on('uncaughtException', listener);
	}
});

poller('the poller proves itself, refuses invalid descriptors, and is closed with its thread', async () => {
	if (threadPoller() === undefined) return;
	const one = SocketPoller.open()!;
	assert.not(one.isProven);
	for (let turns = 0; turns < 100 && !one.isProven; turns++) await turn();
	assert.ok(one.isProven);
	for (const number of [-1, 1 << 20, 999_999]) assert.not(one.add(number, { onReadable() {}, registrationNumber: 0 }));
	assert.ok(one.read(-1, one.addressOf(MEMORY), 1) < 0);
	assert.is(one.write(-1, Buffer.from('x')), -1);
	assert.is(one.writeText(-1, 'x'), -1);
	assert.is(one.writeText(1, 'x'.repeat(70_000)), -1);
	one.close();
	await turn();
	const descriptors = (): number => readdirSync('/proc/self/fd').length;
	const before = descriptors();
	for (const end of ['process.exit()', 'setInterval(() => {}, 1000)', '']) {
		const code = `import(${JSON.stringify(POLLER_URL)}).then(({ SocketPoller }) => {
			const one = SocketPoller.open();
			setTimeout(() => { require('node:worker_threads').parentPort.postMessage(one.isProven); ${end} }, 20);
		})`;
		const worker = new Worker(code, { eval: true, env: DIRECT_ENVIRONMENT });
		const whenEnded = once(worker, 'exit');
		const [isProven] = await once(worker, 'message');
		assert.ok(isProven);
		await worker.terminate();
		await whenEnded;
	}
	await eventually(() => descriptors() <= before);
});

poller('a poller does not keep a process alive, and uses no processor time while idle', async () => {
	if (threadPoller() === undefined) return;
	const code = `import { SocketPoller } from ${JSON.stringify(POLLER_URL)};
		const one = SocketPoller.open();
		setTimeout(() => {
			const before = process.cpuUsage();
			setTimeout(() => {
				const { user, system } = process.cpuUsage(before);
				console.log(one.isProven, user + system < 100_000);
			}, 300);
		}, 100);`;
	const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', code], {
		stdio: ['ignore', 'pipe', 'inherit'],
		env: DIRECT_ENVIRONMENT,
	});
	let said = '';
	child.stdout!.on('data', piece => {
		said += piece;
	});
	const [status] = await once(child, 'close');
	assert.equal([status, said.trim()], [0, 'true true']);
});

poller.run();
