/** Sockets that are read and written past Node's handles, and the same sockets by Node's handles where that cannot be. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { acceptHandles } from '../../../runtime/sockets/accepted-handles.ts';
import { DirectSocket, type SocketOwner } from '../../../runtime/sockets/direct-socket.ts';
import { useIoMode } from '../../../runtime/sockets/io-mode.ts';
import { SocketOutput } from '../../../runtime/sockets/socket-output.ts';
import { SocketPoller, threadPoller, usePoller } from '../../../runtime/sockets/socket-poller.ts';
import { pace, quiet, until } from '../../harness.ts';

// What is tested here exists in this mode only.
useIoMode('direct');

/** The environment of threads and processes that have a poller. */
const DIRECT = { ...process.env, SVC_IO: 'direct' };
const POLLER = new URL('../../../runtime/sockets/socket-poller.ts', import.meta.url).href;

/** Bytes of the memory that all of them are read into. */
const ROOM = 1024;
const MEMORY = Buffer.allocUnsafeSlow(ROOM);

/** Waits until something holds, which says by itself what it is. */
const eventually = (holds: () => boolean): Promise<void> => until(String(holds), holds);

/** A connection of a server, and what has come of it. */
class Held implements SocketOwner {
	readonly socket: DirectSocket;
	readonly output: SocketOutput;
	text = '';
	readonly events: string[] = [];
	error: Error | undefined = undefined;
	onBytes: () => void = () => {};

	constructor(socket: DirectSocket) {
		this.socket = socket;
		this.output = new SocketOutput(socket, { outputDrained: () => void this.events.push('relieved') });
	}

	received(count: number): void {
		this.text += MEMORY.toString('latin1', 0, count);
		this.onBytes();
	}

	ended(): void {
		this.events.push('ended');
	}

	drained(): void {}

	closed(error: Error | undefined): void {
		this.error = error;
		this.events.push('closed');
	}
}

/** Runs with a server that has its connections as `Held`, in the order in which they come, and a way to make more. */
async function withServer(run: (held: Held[], open: () => Promise<Socket>) => Promise<void>): Promise<void> {
	const held: Held[] = [];
	const server = createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	acceptHandles(server, handle => {
		const one = new Held(new DirectSocket(handle));
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

for (const way of ['past the handle', 'by the handle'] as const) {
	const test = suite(`sockets ${way}`);

	test.before(async () => {
		threadPoller();
		await turn();
		await turn();
		usePoller(way === 'past the handle');
		assert.is(threadPoller() !== undefined, way === 'past the handle' && process.platform === 'linux');
	});

	test.after(() => usePoller(true));

	test('more than the memory holds arrives whole and in order, with stops in between', async () => {
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

	test('what came while nobody read is told when somebody does: bytes, and the end behind them', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			const one = held[0]!;
			one.socket.pause();
			client.end('x'.repeat(ROOM * 40));
			await quiet(30);
			assert.equal([one.text, one.events], ['', []]);
			one.socket.resume();
			await eventually(() => one.events.includes('ended'));
			assert.is(one.text.length, ROOM * 40);
		});
	});

	test('the end that comes with the last bytes is told behind them, and our half still goes out', async () => {
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
			assert.ok(one.output.text('good'));
			assert.ok(one.output.bytes(Buffer.from('bye')));
			one.socket.end();
			await once(client, 'close');
			assert.is(back, 'goodbye');
			await eventually(() => one.events.includes('closed'));
			assert.is(one.error, undefined);
		});
	});

	test('bytes behind the mark of urgent ones are told, though a read stops there', async () => {
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
			await pace(20);
			one.socket.resume();
			await eventually(() => one.text === 'beforebehind');
		});
	});

	test('the end is told in a turn after the last bytes: what these set going comes first', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			const one = held[0]!;
			one.socket.pause();
			client.end('last');
			await pace(20);
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

	test('a reset is told as what it is', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			client.resetAndDestroy();
			const one = held[0]!;
			await eventually(() => one.events.includes('closed'));
			assert.is((one.error as NodeJS.ErrnoException).code, 'ECONNRESET');
			assert.equal(one.events, ['closed']);
		});
	});

	test('what the system does not take at once arrives in order, text and bytes, and relief is told', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			client.pause();
			const one = held[0]!;
			let sent = '';
			let pending = 0;
			for (let i = 0; i < 400; i++) {
				const piece = `${i} `.repeat(4000);
				sent += piece;
				const isOut = i % 3 === 0 ? one.output.bytes(Buffer.from(piece)) : one.output.text(piece);
				if (!isOut) pending++;
				if (i % 50 === 0) {
					sent += 'head body tail';
					one.output.framed('head ', Buffer.from('body '), 'tail');
				}
			}
			assert.ok(pending > 0);
			assert.ok(one.output.pending);
			// Somebody else's write does not overtake them either.
			one.socket.write('last', 'latin1');
			sent += 'last';
			let back = '';
			client.setEncoding('latin1').on('data', (piece: string) => {
				back += piece;
			});
			client.resume();
			await eventually(() => back.length >= sent.length);
			assert.ok(back === sent);
			assert.not(one.output.pending);
			assert.ok(one.events.includes('relieved'));
			assert.ok(one.output.text('more'));
		});
	});

	test('writing to a peer that has gone ends the connection', async () => {
		await withServer(async (held, open) => {
			const client = await open();
			const one = held[0]!;
			one.socket.pause();
			client.resetAndDestroy();
			await pace(10);
			for (let i = 0; i < 3; i++) one.output.text('hello');
			await eventually(() => one.events.includes('closed'));
			assert.match((one.error as NodeJS.ErrnoException).code ?? '', /^(EPIPE|ECONNRESET)$/);
		});
	});

	test('connections that end while others are told of theirs: their numbers come again, their events do not', async () => {
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

poller('an error of one socket keeps no other from its bytes', async () => {
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

poller('it proves itself, refuses numbers that are none, and is gone with its thread', async () => {
	if (threadPoller() === undefined) return;
	const one = SocketPoller.open()!;
	assert.not(one.proven);
	for (let turns = 0; turns < 100 && !one.proven; turns++) await turn();
	assert.ok(one.proven);
	for (const number of [-1, 1 << 20, 999_999]) assert.not(one.add(number, { readable() {}, pollTurn: 0 }));
	assert.ok(one.read(-1, one.addressOf(MEMORY), 1) < 0);
	assert.is(one.write(-1, Buffer.from('x')), -1);
	assert.is(one.writeText(-1, 'x'), -1);
	assert.is(one.writeText(1, 'x'.repeat(70_000)), -1);
	one.close();
	await turn();
	const descriptors = (): number => readdirSync('/proc/self/fd').length;
	const before = descriptors();
	for (const end of ['process.exit()', 'setInterval(() => {}, 1000)', '']) {
		const code = `import(${JSON.stringify(POLLER)}).then(({ SocketPoller }) => {
			const one = SocketPoller.open();
			setTimeout(() => { require('node:worker_threads').parentPort.postMessage(one.proven); ${end} }, 20);
		})`;
		const worker = new Worker(code, { eval: true, env: DIRECT });
		const ended = once(worker, 'exit');
		const [isProven] = await once(worker, 'message');
		assert.ok(isProven);
		await worker.terminate();
		await ended;
	}
	await eventually(() => descriptors() <= before);
});

poller('a process that only has one ends, and takes no time while nothing comes', async () => {
	if (threadPoller() === undefined) return;
	const code = `import { SocketPoller } from ${JSON.stringify(POLLER)};
		const one = SocketPoller.open();
		setTimeout(() => {
			const before = process.cpuUsage();
			setTimeout(() => {
				const { user, system } = process.cpuUsage(before);
				console.log(one.proven, user + system < 100_000);
			}, 300);
		}, 100);`;
	const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', code], {
		stdio: ['ignore', 'pipe', 'inherit'],
		env: DIRECT,
	});
	let said = '';
	child.stdout!.on('data', piece => {
		said += piece;
	});
	const [status] = await once(child, 'close');
	assert.equal([status, said.trim()], [0, 'true true']);
});

poller.run();
