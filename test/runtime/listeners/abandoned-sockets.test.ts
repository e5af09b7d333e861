/** Listening sockets that a process gives up: no connection gets there any more, and none that is there is lost. */
import { once } from 'node:events';
import { closeSync, readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { divertFromAbandoned, whenHandshakesEnd } from '../../../runtime/listeners/abandoned-sockets.ts';
import { descriptorOf, duplicateDescriptor } from '../../../runtime/sockets/duplicate-descriptor.ts';
import { foreignFunctions } from '../../../runtime/sockets/foreign-functions.ts';
import { until } from '../../harness.ts';
import { deferHandshakes } from './defer-handshakes.ts';

const abandoned = suite('abandoned sockets');

async function listening(host: string, port: number): Promise<Server> {
	const server = createServer().listen({ host, port, reusePort: true, exclusive: true });
	await once(server, 'listening');
	return server;
}

/** A listening socket that nobody accepts from until `accept` is called. */
class UnreadSocket {
	readonly descriptor: number;
	readonly port: number;
	#server: Server | undefined;

	private constructor(descriptor: number, port: number) {
		this.descriptor = descriptor;
		this.port = port;
	}

	static async open(host: string, port = 0): Promise<UnreadSocket> {
		const server = await listening(host, port);
		const descriptor = duplicateDescriptor(descriptorOf(server));
		const { port: boundPort } = server.address() as AddressInfo;
		server.close();
		await once(server, 'close');
		return new UnreadSocket(descriptor, boundPort);
	}

	/** Answers every connection with `old`. */
	async accept(): Promise<void> {
		this.#server = createServer(socket => socket.on('error', () => {}).end('old'));
		this.#server.listen({ fd: this.descriptor });
		await once(this.#server, 'listening');
	}

	close(): void {
		if (this.#server) this.#server.close();
		else closeSync(this.descriptor);
	}
}

/** Resolves to a connected client. */
async function connected(port: number): Promise<Socket> {
	const socket = connect({ port, host: '127.0.0.1' }).on('error', () => {});
	await once(socket, 'connect');
	return socket;
}

async function textOf(socket: Socket): Promise<string> {
	let text = '';
	socket.setEncoding('latin1').on('data', chunk => {
		text += chunk;
	});
	await once(socket, 'close');
	return text;
}

/** Reports whether the port has a connection whose handshake is in progress. */
function isInHandshake(port: number): boolean {
	const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
	return new RegExp(`^ *\\d+: [0-9A-F]+:${hexPort} \\S+ 03 `, 'm').test(readFileSync('/proc/self/net/tcp', 'latin1'));
}

const MOVES: readonly [from: string, to: string][] = [
	['127.0.0.1', '::'],
	['127.0.0.1', '0.0.0.0'],
	['0.0.0.0', '::'],
	['::', '0.0.0.0'],
	['::', '127.0.0.1'],
];

for (const [from, to] of MOVES) {
	abandoned(
		`from ${from} to ${to}: new clients reach the new socket, and earlier ones are still accepted`,
		async () => {
			const old = await UnreadSocket.open(from);
			const waitingClients = await Promise.all(Array.from({ length: 20 }, () => connected(old.port)));
			const newServer = await listening(to, old.port);
			newServer.on('connection', socket => socket.on('error', () => {}).end('new'));
			try {
				divertFromAbandoned([old.descriptor]);
				for (let i = 0; i < 20; i++) assert.is(await textOf(await connected(old.port)), 'new');
				const texts = Promise.all(waitingClients.map(textOf));
				await old.accept();
				assert.equal(new Set(await texts), new Set(['old']));
				// The sockets of old connections are not restricted to the interface that does not exist.
				assert.is(await textOf(await connected(old.port)), 'new');
			} finally {
				old.close();
				newServer.close();
			}
		},
	);
}

abandoned('if nobody else listens on the port, new clients are refused', async () => {
	const old = await UnreadSocket.open('127.0.0.1');
	const waitingClient = await connected(old.port);
	try {
		divertFromAbandoned([old.descriptor]);
		const failure = await connected(old.port).catch(error => error);
		assert.is(failure.code, 'ECONNREFUSED');
		const text = textOf(waitingClient);
		await old.accept();
		assert.is(await text, 'old');
	} finally {
		old.close();
	}
});

abandoned('a socket that shares its address with another one stays in use', async () => {
	const old = await UnreadSocket.open('127.0.0.1');
	const newServer = await listening('127.0.0.1', old.port);
	newServer.on('connection', socket => socket.on('error', () => {}).end('new'));
	try {
		divertFromAbandoned([old.descriptor]);
		await old.accept();
		const texts = new Set<string>();
		// Restricted to an interface, the old socket would drop the clients that the system assigns to it.
		for (let i = 0; i < 100; i++) texts.add(await textOf(await connected(old.port)));
		assert.equal([...texts].sort(), ['new', 'old']);
	} finally {
		old.close();
		newServer.close();
	}
});

abandoned('a handshake that is in progress is completed, and awaited', async () => {
	const old = await UnreadSocket.open('127.0.0.1');
	deferHandshakes(old.descriptor);
	const client = await connected(old.port);
	const newServer = await listening('0.0.0.0', old.port);
	newServer.on('connection', socket => socket.on('error', () => {}).end('new'));
	try {
		await until('a handshake', () => isInHandshake(old.port));
		divertFromAbandoned([old.descriptor]);
		let hasEnded = false;
		const waiting = whenHandshakesEnd(new Set([old.port]), 120_000).then(() => {
			hasEnded = true;
		});
		assert.is(await textOf(await connected(old.port)), 'new');
		// Waits for a handshake on a port without one, and for the limit, each of which takes as many checks as it needs.
		await whenHandshakesEnd(new Set([1]), 120_000);
		await whenHandshakesEnd(new Set([old.port]), 200);
		assert.not.ok(hasEnded);
		client.write('x');
		await waiting;
		const text = textOf(client);
		await old.accept();
		assert.is(await text, 'old');
	} finally {
		client.destroy();
		old.close();
		newServer.close();
	}
});

if (foreignFunctions() !== undefined && process.platform === 'linux') abandoned.run();
