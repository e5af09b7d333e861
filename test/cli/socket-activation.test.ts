/** Socket activation as by systemd: sites and the Admin API listen on inherited sockets, addressed as `fd/N`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { linkSync, renameSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { takePassedSockets } from '../../runtime/listeners/passed-sockets.ts';
import { listenError } from '../../runtime/listeners/port-probe.ts';
import { rawExchange, runCommand, SVC, startServer, temporaryFolder } from '../harness.ts';

const activation = suite('socket activation');
const folder = temporaryFolder();

async function listenOn(at: string | number, host = '127.0.0.1'): Promise<{ server: Server; descriptor: number }> {
	const server = typeof at === 'string' ? createServer().listen(at) : createServer().listen(at, host);
	await once(server, 'listening');
	return { server, descriptor: (server as unknown as { _handle: { fd: number } })._handle.fd };
}

activation('sites and the Admin API can listen on inherited sockets', async () => {
	const site = await listenOn(0);
	const admin = await listenOn(0);
	const port = (server: Server): number => (server.address() as { port: number }).port;
	const file = path.join(folder, 'Configfile');
	const text = (body: string): string =>
		`{\n\tadmin fd/4\n\tthreads 2\n}\nhttp:// {\n\tbind fd/{env.SITE_SOCKET}\n\trespond "${body}"\n}\n`;
	writeFileSync(file, text('one'));
	const child = spawn(SVC, ['run', '--config', file], {
		env: { ...process.env, SITE_SOCKET: '3', XDG_STATE_HOME: folder },
		stdio: ['ignore', 'pipe', 'pipe', site.descriptor, admin.descriptor],
	});
	let output = '';
	child.stdout!.setEncoding('utf8').on('data', chunk => {
		output += chunk;
	});
	child.stderr!.setEncoding('utf8').on('data', chunk => {
		output += chunk;
	});
	try {
		const at = port(site.server);
		const api = port(admin.server);
		// A connection made before the server starts waits in the socket's queue.
		const earlyResponse = fetch(`http://127.0.0.1:${at}/`);
		site.server.close();
		admin.server.close();
		assert.is(await (await earlyResponse).text(), 'one', output);
		const loaded = await fetch(`http://127.0.0.1:${api}/load`, {
			method: 'POST',
			headers: { 'content-type': 'text/configfile' },
			body: text('two'),
		});
		assert.is(loaded.status, 200, await loaded.text());
		assert.is(await (await fetch(`http://127.0.0.1:${at}/`)).text(), 'two');
		const upgraded = await fetch(`http://127.0.0.1:${api}/upgrade`, { method: 'POST' });
		assert.is(upgraded.status, 200, await upgraded.text());
		assert.match(await rawExchange(at, 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n'), 'two');
		// On a TCP socket, the access rules refuse requests for an unknown host name, as in a DNS rebinding attack.
		assert.match(
			await rawExchange(api, 'GET /live HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n'),
			/ 403 /,
		);
		assert.match(output, /"listeners":\["fd\/{env.SITE_SOCKET}"\]/);
		assert.match(output, new RegExp(`the admin API listens","address":"127.0.0.1:${api}"`));
	} finally {
		child.kill('SIGTERM');
		await once(child, 'close');
	}
});

activation('inherited sockets can be named by number or name, and are not passed to children', async () => {
	const sockets = await Promise.all([listenOn(0), listenOn(0), listenOn(0)]);
	const ports = sockets.map(({ server }) => (server.address() as { port: number }).port);
	const file = path.join(folder, 'Passed');
	const site = (name: string): string => `http:// {\n\tbind fd/${name}\n\trespond "${name} {env.LISTEN_FDS}"\n}\n`;
	const start = async (sites: string, check: (child: ChildProcess, output: () => string) => Promise<void>) => {
		writeFileSync(file, `{\n\tadmin off\n\tthreads 2\n}\n${sites}`);
		// LISTEN_PID must be the ID of the server process, so the shell that becomes the server sets it. systemd also sets it in
		// the new process.
		const launch = 'LISTEN_PID=$$ LISTEN_FDS=3 LISTEN_FDNAMES=web:more:more exec "$0" "$@"';
		const child = spawn('/bin/sh', ['-c', launch, SVC, 'run', '--config', file, '--adapter', 'configfile'], {
			stdio: ['ignore', 'pipe', 'pipe', ...sockets.map(({ descriptor }) => descriptor)],
		});
		let output = '';
		for (const stream of [child.stdout!, child.stderr!]) {
			stream.setEncoding('utf8').on('data', chunk => {
				output += chunk;
			});
		}
		const whenClosed = once(child, 'close');
		try {
			await check(child, () => output);
		} finally {
			child.kill('SIGTERM');
			await whenClosed;
		}
	};
	await start(`${site('web')}${site('5')}`, async (_, output) => {
		// This process closes its own copies of the sockets, so that it does not accept the connections itself.
		for (const { server } of sockets) server.close();
		const early = [ports[0], ports[2]].map(port => fetch(`http://127.0.0.1:${port}/`));
		const texts = await Promise.all(early.map(async answer => (await answer).text()));
		assert.equal(texts, ['web ', '5 '], output());
	});
	const failures = [
		['6', 'the service manager did not pass this descriptor, but fd/3 (web), fd/4 (more), fd/5 (more)'],
		['other', 'the service manager did not pass a socket with this name, but fd/3 (web), fd/4 (more), fd/5 (more)'],
		['more', '2 sockets were passed with this name: write fd/4 and fd/5'],
	] as const;
	for (const [name, reason] of failures) {
		assert.is(resolveInherited(name), `Cannot listen on fd/${name}: ${reason}.`);
	}
});

activation('inherited sockets serve the sites at their addresses, before and after a handover', async () => {
	const tcp = await listenOn(0);
	const port = (tcp.server.address() as { port: number }).port;
	const socket = path.join(folder, 'site.sock');
	const unix = await listenOn(socket);
	const file = path.join(folder, 'Matched');
	const api = path.join(folder, 'matched-api.sock');
	writeFileSync(
		file,
		`{\n\tadmin unix/${api}\n\tthreads 2\n}\nhttp://127.0.0.1:${port} {\n\tbind 127.0.0.1\n\trespond "by address"\n}\nhttp://site.test {\n\tbind unix/${socket}\n\trespond "by path"\n}\n`,
	);
	const launch = 'LISTEN_PID=$$ LISTEN_FDS=2 exec "$0" "$@"';
	const child = spawn('/bin/sh', ['-c', launch, SVC, 'run', '--config', file, '--adapter', 'configfile'], {
		stdio: ['ignore', 'pipe', 'pipe', tcp.descriptor, unix.descriptor],
	});
	let output = '';
	for (const stream of [child.stdout!, child.stderr!]) {
		stream.setEncoding('utf8').on('data', chunk => {
			output += chunk;
		});
	}
	const whenClosed = once(child, 'close');
	const ask = async (): Promise<string[]> => [
		await (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })).text(),
		await new Promise<string>((resolve, reject) => {
			const clientRequest = request({ socketPath: socket, agent: false, headers: { host: 'site.test' } }, answer => {
				let body = '';
				answer.setEncoding('utf8').on('data', chunk => {
					body += chunk;
				});
				answer.on('end', () => resolve(body));
			});
			clientRequest.on('error', reject).end();
		}),
	];
	try {
		// Connections made before the server starts wait in the sockets' queues.
		const early = ask();
		tcp.server.close();
		// Closing the server deletes the name of its socket.
		linkSync(socket, `${socket}~`);
		unix.server.close();
		renameSync(`${socket}~`, socket);
		assert.equal(await early, ['by address', 'by path'], output);
		const { status, stderr } = await runCommand(['restart', '--address', `unix/${api}`]);
		assert.is(status, 0, stderr);
		assert.equal(await ask(), ['by address', 'by path'], output);
	} finally {
		child.kill('SIGTERM');
		await whenClosed;
	}
});

activation('a socket at an address that no site is bound to is named in the error', async () => {
	const tcp = await listenOn(0);
	const { port } = tcp.server.address() as { port: number };
	const file = path.join(folder, 'Elsewhere');
	writeFileSync(file, `http://site.test:${port} {\n\trespond "x"\n}\n`);
	const launch = 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"';
	const child = spawn('/bin/sh', ['-c', launch, SVC, 'run', '--config', file, '--adapter', 'configfile'], {
		stdio: ['ignore', 'ignore', 'pipe', tcp.descriptor],
	});
	const [said] = await Promise.all([text(child.stderr!), once(child, 'close')]);
	tcp.server.close();
	assert.is(child.exitCode, 1);
	assert.is(
		said,
		`error: Cannot listen on :${port}: the service manager passed a socket at 127.0.0.1:${port}, which serves only sites with \`bind 127.0.0.1\`.\n`,
	);
});

activation('a socket for all addresses of IPv4 serves a port, where there is no IPv6', async () => {
	const tcp = await listenOn(0, '0.0.0.0');
	const { port } = tcp.server.address() as { port: number };
	const file = path.join(folder, 'Four');
	writeFileSync(file, `http://:${port} {\n\trespond "four"\n}\n`);
	const launch = 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"';
	const child = spawn('/bin/sh', ['-c', launch, SVC, 'run', '--config', file, '--adapter', 'configfile'], {
		stdio: ['ignore', 'ignore', 'inherit', tcp.descriptor],
	});
	const whenClosed = once(child, 'close');
	try {
		const earlyResponse = fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
		tcp.server.close();
		assert.is(await (await earlyResponse).text(), 'four');
	} finally {
		child.kill('SIGTERM');
		await whenClosed;
	}
});

/** Resolves an address as if three sockets had been passed. Returns the descriptor or the error. */
function resolveInherited(name: string): string {
	const environment = { LISTEN_PID: '7', LISTEN_FDS: '3', LISTEN_FDNAMES: 'web:more:more', OTHER: 'x' };
	const passed = takePassedSockets(environment, 7);
	assert.equal(environment, { OTHER: 'x' });
	const address = { key: `fd/${name}`, host: `fd/${name}`, port: 0, scheme: 'http' } as const;
	try {
		return String(passed.descriptorOf(name));
	} catch (error) {
		return listenError(error as NodeJS.ErrnoException, address).message;
	}
}

activation('variables meant for another process are ignored, but still removed', () => {
	const environment: { [name: string]: string } = { LISTEN_PID: '8', LISTEN_FDS: '1' };
	const passed = takePassedSockets(environment, 7);
	assert.equal(environment, {});
	assert.is(passed.descriptorOf('9'), 9);
	assert.throws(() => passed.descriptorOf('web'), /no service manager has passed any sockets/);
	assert.is(takePassedSockets({ LISTEN_PID: '7', LISTEN_FDS: '1' }, 7).descriptorOf('unknown'), 3);
});

activation('an invalid descriptor is reported in one sentence', async () => {
	const file = path.join(folder, 'Nothing');
	writeFileSync(file, 'http://a.test {\n\tbind fd/77\n\trespond x\n}\n');
	const server = startServer(['run', '--config', file, '--adapter', 'configfile']);
	await once(server.child, 'close');
	assert.is(server.child.exitCode, 1);
	assert.match(server.output(), /Cannot listen on fd\/77: the process was not started with this descriptor\./);
});

activation.run();
