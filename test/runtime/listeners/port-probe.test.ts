/** The check whether a port is free accepts no clients, because their connections would be reset a moment later. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ListenerAddress } from '../../../runtime/listeners/listener-address.ts';
import { ListenError, probeListener } from '../../../runtime/listeners/port-probe.ts';
import { freePorts, startServer, temporaryFolder } from '../../harness.ts';

const probe = suite('port probe');

const addressOf = (host: string, port: number, only6?: true): ListenerAddress => ({
	scheme: 'http',
	key: 'probed',
	host,
	port,
	...(only6 && { only6 }),
});

/** True if the machine has IPv6, which some containers lack. */
const hasIpv6 = Object.values(networkInterfaces()).some(list => list?.some(({ address }) => address === '::1'));

async function listenOn(host: string | undefined, port: number, reusePort = false): Promise<Server> {
	const server = createServer().listen({ ...(host && { host }), port, reusePort });
	await once(server, 'listening');
	return server;
}

async function refused(host: string, port: number): Promise<ListenError> {
	try {
		await probeListener(addressOf(host, port));
	} catch (error) {
		assert.instance(error, ListenError);
		return error as ListenError;
	}
	throw new Error('nothing was refused');
}

probe('a port in use on this address or on all addresses is refused, shared or not', async () => {
	for (const shared of [false, true]) {
		const server = await listenOn('127.0.0.1', 0, shared);
		const { port } = server.address() as { port: number };
		for (const host of ['127.0.0.1', '0.0.0.0', '']) assert.is((await refused(host, port)).code, 'EADDRINUSE', host);
		assert.is((await refused('127.0.0.1', port)).message, `Cannot listen on 127.0.0.1:${port}: the address is in use.`);
		assert.is(
			(await probeListener(addressOf('127.0.0.2', port))).port,
			port,
			'the port is free on another address of this machine',
		);
		server.close();
	}
});

probe('too few descriptors are named as the reason, with what to do', () => {
	assert.is(
		new ListenError('EMFILE', ':80').message,
		'Cannot listen on :80: too many files are open in this process. Raise the limit of open files: LimitNOFILE in the systemd unit, otherwise ulimit -n.',
	);
});

probe('an address that this machine does not have is refused', async () => {
	assert.is((await refused('203.0.113.7', 0)).code, 'EADDRNOTAVAIL');
});

probe('port 0 becomes a free port, for an address, a name, and IPv6 only', async () => {
	const six = hasIpv6 ? [addressOf('::1', 0), addressOf('', 0, true)] : [];
	for (const address of [addressOf('127.0.0.1', 0), addressOf('localhost', 0), addressOf('', 0), ...six]) {
		const found = await probeListener(address);
		assert.ok(found.port > 0);
		assert.equal(found, { ...address, port: found.port });
		(await listenOn(address.host || undefined, found.port)).close();
	}
});

probe("while the server starts, a client's connection is either refused or served", async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = temporaryFolder();
	writeFileSync(path.join(folder, 'Configfile'), `{\n\tadmin off\n}\nhttp://127.0.0.1:${port} {\n\trespond up\n}\n`);
	const server = startServer(['run'], { cwd: folder });
	try {
		for (const end = performance.now() + 30_000; performance.now() < end; ) {
			const socket = connect(port, '127.0.0.1');
			const outcome = await new Promise<string>(resolve => {
				let text = '';
				let connected = false;
				socket.once('connect', () => {
					connected = true;
					socket.write('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
				});
				socket.on('data', chunk => {
					text += chunk;
				});
				socket.once('error', () => {});
				socket.once('close', () => resolve(connected ? text : 'refused'));
			});
			if (outcome === 'refused') {
				await new Promise(resolve => setImmediate(resolve));
				continue;
			}
			assert.match(outcome, /^HTTP\/1\.1 200 OK\r\n[\s\S]*up$/, 'a client connected but was not served');
			return;
		}
		throw new Error(`no connection was accepted:\n${server.output()}`);
	} finally {
		await server.stop();
	}
});

probe.run();
