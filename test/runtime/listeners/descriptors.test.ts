/** A server with few file descriptors and many clients: it turns clients away, its Admin API stays reachable, and it recovers. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { connect as connectTls } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { maxConnectionsPerThread } from '../../../runtime/listeners/descriptor-limit.ts';
import { DescriptorShortage } from '../../../runtime/listeners/descriptor-shortage.ts';
import { PlaceMaker } from '../../../runtime/listeners/place-maker.ts';
import type { ProtocolServer } from '../../../runtime/protocols/protocol.ts';
import { TestAuthority } from '../../certificates.ts';
import { freePorts, SVC, temporaryFolder, waitForPort } from '../../harness.ts';
import { openWire, statusOf } from '../protocols/http1/wire.ts';
import { request as requestFrame, settings } from '../protocols/http2/frames.ts';
import { eventually, respondingSite, withServer } from '../running-server.ts';

const descriptors = suite('file descriptors');

descriptors('client connections may use the descriptors that the rest of the process does not need', () => {
	assert.is(maxConnectionsPerThread(1024, 2), 416);
	assert.is(maxConnectionsPerThread(100_000, 4), 22_500);
	assert.is(maxConnectionsPerThread(40, 2), 16);
	assert.is(maxConnectionsPerThread(undefined, 2), Infinity);
});

descriptors('a flood of connections is turned away, and the Admin API stays reachable', async () => {
	const [port, adminPort] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{\n\tadmin 127.0.0.1:${adminPort}\n\tmetrics\n\tthreads 1\n}\n:${port} {\n\trespond hi\n}\n`,
	);
	const server = spawn('sh', ['-c', `ulimit -n 400; exec ${SVC} run Configfile`], {
		cwd: folder,
		stdio: ['ignore', 'ignore', 'pipe'],
	});
	let log = '';
	server.stderr!.on('data', text => (log += text));
	const whenEnded = once(server, 'close');
	const clients: Socket[] = [];
	try {
		await waitForPort(port);
		await waitForPort(adminPort);
		const metrics = async (): Promise<string> => {
			const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`, { headers: { connection: 'close' } });
			return response.text();
		};
		await metrics();
		for (let i = 0; i < 600; i++) {
			const client = connect(port, '127.0.0.1');
			client.on('error', () => {});
			clients.push(client);
		}
		await eventually('some connections are turned away', async () =>
			/svc_overload_rejected_total\{limit="descriptors"\} [1-9]/.test(await metrics().catch(() => '')),
		);
		const late = await openWire(port);
		assert.is(statusOf(await late.whole()), 503);
		await eventually('the log says so', () => log.includes('connections are refused: too many are open'));
		assert.is(log.split('connections are refused').length, 2, 'once');
		assert.match(log, /"connections_per_thread":\d+,"refused":1,"hint":"Raise the limit of open files: LimitNOFILE/);
		for (const client of clients) client.destroy();
		await eventually('connections are accepted again', async () => {
			const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
			return response.status === 200;
		});
	} finally {
		for (const client of clients) client.destroy();
		server.kill('SIGTERM');
		await whenEnded;
	}
});

descriptors('connections that cannot be accepted are logged with the reason, at most once per minute', () => {
	const logged: unknown[] = [];
	const shortage = new DescriptorShortage(({ message, fields }) => logged.push([message, fields]));
	const fail = (code: string, now: number): void =>
		shortage.onAcceptFailure(':80', Object.assign(new Error(code), { code }), now);
	for (let now = 0; now < 60_000; now += 1000) fail('EMFILE', now);
	fail('ENFILE', 60_000);
	assert.equal(logged, [
		[
			'a connection could not be accepted',
			{
				address: ':80',
				cause: 'too many files are open in this process (EMFILE)',
				failures: 1,
				hint: 'Raise the limit of open files: LimitNOFILE in the systemd unit, otherwise ulimit -n.',
			},
		],
		[
			'a connection could not be accepted',
			{ address: ':80', cause: 'too many files are open on this machine (ENFILE)', failures: 60 },
		],
	]);
});

/** Runs a test with a server that has few descriptors. */
async function withFewDescriptors(
	limit: number,
	configuration: (port: number, folder: string) => string,
	test: (port: number, metrics: () => Promise<string>) => Promise<void>,
): Promise<void> {
	const [port, adminPort] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	const options = `{\n\tadmin 127.0.0.1:${adminPort}\n\tmetrics\n\tthreads 2\n\tauto_https disable_redirects\n\tservers {\n\t\tprotocols h1 h2 h2c\n\t}\n}\n`;
	writeFileSync(path.join(folder, 'Configfile'), options + configuration(port, folder));
	const server = spawn('sh', ['-c', `ulimit -n ${limit}; exec ${SVC} run Configfile`], {
		cwd: folder,
		stdio: 'ignore',
	});
	const whenEnded = once(server, 'close');
	try {
		await waitForPort(port);
		await waitForPort(adminPort);
		await test(port, async () => {
			const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`, { headers: { connection: 'close' } });
			return response.text();
		});
	} finally {
		server.kill('SIGTERM');
		await whenEnded;
	}
}

/** Opens a connection, waits for one response, and leaves the connection open. `request` is sent once the event `ready` occurs. */
async function idleClient(socket: Socket, request: string | Buffer, ready = 'connect'): Promise<Socket> {
	socket.on('error', () => {});
	await once(socket, ready);
	socket.write(request);
	await once(socket, 'data');
	return socket.resume();
}

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';
/** The first bytes of an HTTP/2 client: the preface, SETTINGS, and a request on stream 1. */
const HTTP2_REQUEST = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings(), requestFrame(1)]);

for (const [what, secure, client] of [
	['HTTP/1.1', false, (port: number) => idleClient(connect(port, '127.0.0.1'), REQUEST)],
	['HTTP/2', false, (port: number) => idleClient(connect(port, '127.0.0.1'), HTTP2_REQUEST)],
	[
		'TLS',
		true,
		(port: number) =>
			idleClient(
				connectTls({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false }),
				REQUEST,
				'secureConnect',
			),
	],
	[
		'HTTP/2 over TLS',
		true,
		(port: number) =>
			idleClient(
				connectTls({
					...{ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false },
					ALPNProtocols: ['h2'],
				}),
				HTTP2_REQUEST,
				'secureConnect',
			),
	],
] as const) {
	descriptors(`when descriptors run out, idle connections of ${what} are closed, the longest idle first`, async () => {
		const authority = await TestAuthority.make();
		const configuration = (port: number, folder: string): string => {
			if (!secure) return `http://127.0.0.1:${port}, http://localhost:${port} {\n\trespond hi\n}\n`;
			writeFileSync(path.join(folder, 'cert.pem'), certificate.certificate);
			writeFileSync(path.join(folder, 'key.pem'), certificate.key);
			return `https://localhost:${port} {\n\ttls cert.pem key.pem\n\trespond hi\n}\n`;
		};
		const certificate = await authority.issue({ names: ['localhost'] });
		await withFewDescriptors(256, configuration, async (port, metrics) => {
			const openSockets: Socket[] = [];
			try {
				// With 256 descriptors there is room for 64 connections.
				for (let i = 0; i < 150; i++) openSockets.push(await client(port));
				const text = await metrics();
				assert.match(text, /^svc_overload_idle_closed_total [1-9]\d*$/m);
				assert.match(text, /^svc_overload_rejected_total\{limit="descriptors"\} 0$/m);
				await eventually('the first connections are closed', () =>
					openSockets.slice(0, 20).every(socket => socket.closed || socket.readableEnded),
				);
				const last = openSockets.at(-1)!;
				assert.not.ok(last.closed || last.readableEnded);
			} finally {
				for (const socket of openSockets) socket.destroy();
			}
		});
	});
}

descriptors('a listener with a limit closes idle connections before it turns clients away', async () => {
	const servers = [{ limits: { connections: 4 } }];
	await withServer(
		{ settings: { metrics: {}, servers }, sites: [respondingSite('hi')] },
		// A thread closes only its own connections, and the kernel may give all of these to one of several threads.
		{ threads: 1 },
		async ({ port, get, runtime }) => {
			const openSockets: Socket[] = [];
			for (let i = 0; i < 12; i++) openSockets.push(await idleClient(connect(port, '127.0.0.1'), REQUEST));
			assert.is((await get()).status, 200);
			assert.match(await runtime.metrics(), /^svc_overload_idle_closed_total [1-9]\d*$/m);
			for (const socket of openSockets) socket.destroy();
		},
	);
});

descriptors('a busy connection is not closed to make room', () => {
	const now = performance.now();
	const given: string[] = [];
	const connection = (name: string, idleSince: number) => ({ idleSince, giveWay: () => void given.push(name) });
	const connections = [
		connection('busy', Infinity),
		connection('new', now + 5000),
		...Array.from({ length: 24 }, (_, i) => connection(`idle ${i}`, now - i)),
	];
	let closedCount = 0;
	const places = new PlaceMaker(
		() => [{ closable: () => connections } as unknown as ProtocolServer],
		count => {
			closedCount += count;
		},
	);
	assert.ok(places.makeRoom());
	assert.equal(given, ['idle 23', 'idle 22', 'idle 21']);
	assert.ok(places.makeRoom() && places.makeRoom());
	assert.is(closedCount, 3, 'places already made are used first');
	connections.splice(2);
	assert.not.ok(places.makeRoom());
	assert.is(given.length, 3);
});

descriptors.run();
