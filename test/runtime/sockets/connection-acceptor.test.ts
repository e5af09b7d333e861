/** Connections that a thread accepts with system calls, without Node's socket handles. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, renameSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { connectionCalls } from '../../../runtime/sockets/connection-calls.ts';
import { DescriptorHandle } from '../../../runtime/sockets/descriptor-handle.ts';
import { DirectListeningSocket } from '../../../runtime/sockets/direct-listening-socket.ts';
import { type AcceptedSocket, DirectSocket } from '../../../runtime/sockets/direct-socket.ts';
import { descriptorOf } from '../../../runtime/sockets/duplicate-descriptor.ts';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { OwnedDescriptors, threadDescriptors } from '../../../runtime/sockets/owned-descriptors.ts';
import { threadPoller } from '../../../runtime/sockets/socket-poller.ts';
import { temporaryFolder, until } from '../../harness.ts';

const acceptor = suite('connections accepted by the thread itself');

acceptor.before(async () => {
	if (!isDirectIo()) return;
	threadPoller();
	await until('the poller works', () => threadPoller() !== undefined);
});

/** A connection that was accepted, and what has happened on it. */
interface AcceptedConnection {
	readonly socket: DirectSocket;
	/** The text received so far. */
	text: string;
	ended: boolean;
	closed: boolean;
}

class Listener {
	needsStream = false;
	readonly all: AcceptedConnection[] = [];
	readonly streams: Socket[] = [];
	readonly failures: string[] = [];
	readonly listening = new DirectListeningSocket(this);
	readonly #memory = Buffer.allocUnsafeSlow(65_536);
	readonly #answer: (one: AcceptedConnection) => void;

	constructor(answer: (one: AcceptedConnection) => void) {
		this.#answer = answer;
	}

	async listen(at: { readonly port: number } | string): Promise<void> {
		if (typeof at === 'string') {
			const server = createServer().listen(`${at}-`);
			await once(server, 'listening');
			await this.listening.listen({ descriptor: descriptorOf(server) });
			// A server removes its socket file when it closes, so the file was kept under another name.
			renameSync(`${at}-`, at);
			server.close();
		} else await this.listening.listen({ ...at, host: '127.0.0.1', reusePort: false });
		await until('connections are accepted without Node', () => this.listening.acceptsItself);
	}

	onAccepted(socket: AcceptedSocket): void {
		if (!(socket instanceof DirectSocket)) {
			this.streams.push(socket);
			socket.on('error', () => {}).on('data', bytes => socket.end(bytes));
			return;
		}
		const one: AcceptedConnection = { socket, text: '', ended: false, closed: false };
		this.all.push(one);
		socket.start(this.#memory, {
			onReceived: count => {
				one.text += this.#memory.toString('latin1', 0, count);
				this.#answer(one);
			},
			onPeerEnded: () => {
				one.ended = true;
				socket.end();
			},
			onDrained: () => {},
			onClosed: () => {
				one.closed = true;
			},
		});
	}

	onAcceptFailed(error: NodeJS.ErrnoException): void {
		this.failures.push(error.code ?? '');
	}
}

function isOwn(socket: DirectSocket): boolean {
	return socket._handle instanceof DescriptorHandle;
}

async function received(socket: Socket): Promise<string> {
	let text = '';
	socket.setEncoding('latin1').on('data', (piece: string) => {
		text += piece;
	});
	await new Promise(resolve => socket.on('close', resolve));
	return text;
}

const descriptors = (): number => readdirSync('/proc/self/fd').length;

for (const kind of ['TCP', 'Unix'] as const) {
	const withListener = async (
		answer: (one: AcceptedConnection) => void,
		run: (listener: Listener, open: () => Socket) => Promise<void>,
	): Promise<void> => {
		if (!isDirectIo()) return;
		const listener = new Listener(answer);
		const file = path.join(temporaryFolder(), 'socket');
		await listener.listen(kind === 'Unix' ? file : { port: 0 });
		const before = descriptors();
		const open = (): Socket => {
			const at = kind === 'Unix' ? { path: file } : { port: listener.listening.address!.port, host: '127.0.0.1' };
			const socket = connect({ ...at, allowHalfOpen: true }).on('error', () => {});
			return socket.on('end', () => void socket.end());
		};
		try {
			await run(listener, open);
			await until('every connection is closed', () => listener.all.every(({ closed }) => closed));
			await until('no descriptor is left', () => descriptors() <= before);
		} finally {
			listener.listening.close();
		}
	};

	acceptor(`${kind}: a connection with one request needs no Node handle`, async () => {
		const answer = (one: AcceptedConnection): void => {
			assert.ok(isOwn(one.socket));
			if (kind === 'TCP') {
				assert.is(one.socket.remoteAddress, '127.0.0.1');
				assert.is(one.socket.localAddress, '127.0.0.1');
			} else assert.is(one.socket.remoteAddress, undefined);
			one.socket.write('served', 'latin1');
			one.socket.destroyFast();
		};
		await withListener(answer, async (listener, open) => {
			for (let i = 0; i < 50; i++) {
				const client = open();
				client.write('request');
				assert.is(await received(client), 'served');
			}
			assert.is(listener.all.length, 50);
			assert.ok(listener.all.every(({ text }) => text === 'request'));
			if (kind === 'TCP') assert.ok(listener.all.every(({ socket }) => (socket.remotePort ?? 0) > 0));
		});
	});

	acceptor(`${kind}: many requests on a connection, both halves closed in either order`, async () => {
		const answer = (one: AcceptedConnection): void => {
			one.socket.write(Buffer.from(one.text.slice(-1)));
			if (one.text.endsWith('q')) one.socket.end();
		};
		await withListener(answer, async (listener, open) => {
			for (const last of ['x', 'q']) {
				const client = open();
				const whenClosed = once(client, 'close');
				let text = '';
				client.setEncoding('latin1').on('data', (piece: string) => {
					text += piece;
				});
				for (let i = 0; i < 20; i++) {
					client.write(i === 19 ? last : 'x');
					await until('an answer', () => text.length === i + 1);
				}
				assert.ok(last === 'q' || isOwn(listener.all.at(-1)!.socket));
				client.end();
				await whenClosed;
				assert.is(text, `${'x'.repeat(19)}${last}`);
			}
		});
	});

	acceptor(`${kind}: what a slow reader has not received yet is kept by a Node handle`, async () => {
		const body = Buffer.alloc(12_000_000, 'abcdefg');
		const answer = (one: AcceptedConnection): void => {
			one.socket.write('head', 'latin1');
			const { writev } = one.socket._handle as unknown as DescriptorHandle;
			assert.is(writev.call(one.socket._handle, null, ['er', 'latin1', Buffer.from(':'), ''], false), 0);
			one.socket.write(body);
			one.socket.write('tail', 'latin1');
			one.socket.end();
		};
		await withListener(answer, async (listener, open) => {
			const client = open().pause();
			client.write('request');
			await until('the request has arrived', () => (listener.all[0]?.text ?? '') !== '');
			assert.ok(listener.all[0]!.socket.writableLength > 0);
			const text = received(client);
			client.resume();
			client.end();
			assert.ok((await text) === `header:${body.toString('latin1')}tail`);
		});
	});

	acceptor(`${kind}: connections become streams where those are needed`, async () => {
		await withListener(
			() => {},
			async (listener, open) => {
				listener.needsStream = true;
				const client = open();
				client.write('request');
				const text = received(client);
				client.end();
				assert.is(await text, 'request');
				assert.is(listener.all.length, 0);
				assert.is(listener.streams.length, 1);
			},
		);
	});

	acceptor(`${kind}: a client that connects and sends later, resets or says nothing`, async () => {
		await withListener(
			one => one.socket.write(one.text, 'latin1'),
			async (listener, open) => {
				const late = open();
				await until('accepted', () => listener.all.length === 1);
				late.write('late');
				await once(late, 'data');
				if (kind === 'TCP') late.resetAndDestroy();
				else late.destroy();
				const silent = open();
				silent.end();
				await once(silent.resume(), 'close');
				const gone = open();
				await once(gone, 'connect');
				if (kind === 'TCP') gone.resetAndDestroy();
				else gone.destroy();
				await until('three connections', () => listener.all.length === 3);
			},
		);
	});
}

acceptor('after it has been closed, a socket accepts nothing, and another can listen on its port', async () => {
	if (!isDirectIo()) return;
	const listener = new Listener(() => {});
	await listener.listen({ port: 0 });
	const { port } = listener.listening.address!;
	listener.listening.close();
	const next = createServer().listen(port, '127.0.0.1');
	await once(next, 'listening');
	const client = connect(port, '127.0.0.1').on('error', () => {});
	const [socket] = (await once(next, 'connection')) as [Socket];
	assert.is(listener.all.length, 0);
	socket.destroy();
	client.destroy();
	next.close();
});

acceptor('the descriptors of a thread that has ended are closed', async () => {
	if (!isDirectIo()) return;
	const listener = new Listener(() => {});
	await listener.listen({ port: 0 });
	const client = connect(listener.listening.address!.port, '127.0.0.1').on('error', () => {});
	await until('accepted', () => listener.all.length === 1);
	const { socket } = listener.all[0]!;
	assert.ok(threadDescriptors().has(socket.descriptor));
	// Closes the descriptors as the main thread does once a thread has ended.
	assert.is(new OwnedDescriptors(threadDescriptors().memory).closeAll(), 1);
	await once(client.resume(), 'close');
	assert.not(threadDescriptors().has(socket.descriptor));
	assert.ok(connectionCalls());
	listener.listening.close();
});

acceptor('without a free descriptor, a client is turned away at once, and others are served later', async () => {
	if (!isDirectIo()) return;
	const program = path.join(import.meta.dirname, 'scarce-descriptors.ts');
	const child = spawn('sh', ['-c', 'ulimit -n 100; exec "$0" "$1"', process.execPath, program], {
		stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
	});
	const heard: { port?: number; failed?: string; done?: string }[] = [];
	child.on('message', message => void heard.push(message as object));
	try {
		await until('the program listens', () => heard.some(({ port }) => port !== undefined));
		const port = heard.find(message => message.port !== undefined)!.port!;
		const visit = (): Promise<string> => {
			const client = connect(port, '127.0.0.1').on('error', () => {});
			client.write('request');
			return received(client);
		};
		assert.is(await visit(), 'served');
		child.send('use up');
		await until('no descriptor is free', () => heard.some(({ done }) => done === 'use up'));
		for (let i = 0; i < 5; i++) assert.is(await visit(), '');
		const failures = (): number => heard.filter(({ failed }) => failed === 'EMFILE').length;
		// The client may see the end of its connection before the message that reports the failure arrives.
		await until('every failure is reported', () => failures() >= 5);
		assert.is(failures(), 5);
		child.send('free');
		await until('descriptors are free', () => heard.some(({ done }) => done === 'free'));
		assert.is(await visit(), 'served');
	} finally {
		child.send('free');
		child.send('end');
		await once(child, 'close');
	}
});

acceptor('whether a connection is waiting is known before it is accepted', async () => {
	if (!isDirectIo()) return;
	const calls = connectionCalls()!;
	const server = createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const descriptor = descriptorOf(server);
	await until('Node no longer accepts', () => calls.poller.takeFromLoop(descriptor));
	const clients: Socket[] = [];
	try {
		assert.not(calls.hasWaitingConnection(descriptor));
		for (let count = 0; count < 2; count++) {
			const client = connect((server.address() as { port: number }).port, '127.0.0.1').on('error', () => {});
			clients.push(client);
			await once(client, 'connect');
		}
		for (const isAnotherWaiting of [true, false]) {
			assert.ok(calls.hasWaitingConnection(descriptor));
			calls.close(calls.accept(descriptor));
			assert.is(calls.hasWaitingConnection(descriptor), isAnotherWaiting);
		}
	} finally {
		for (const client of clients) client.destroy();
		calls.poller.returnToLoop(descriptor);
		server.close();
	}
});

acceptor('all connections of a burst are served, and those that follow one by one', async () => {
	if (!isDirectIo()) return;
	const listener = new Listener(one => one.socket.write('served', 'latin1', () => one.socket.end()));
	await listener.listen({ port: 0 });
	const { port } = listener.listening.address!;
	const visit = (): Promise<string> => {
		const client = connect(port, '127.0.0.1');
		client.write('request');
		return received(client);
	};
	try {
		for (const count of [1, 40, 1, 7, 8, 16, 1, 1]) {
			const answers = await Promise.all(Array.from({ length: count }, visit));
			assert.equal(answers, new Array(count).fill('served'));
		}
	} finally {
		listener.listening.close();
	}
});

acceptor.run();
