/** HTTP/3 by default: which listeners serve it, and what a server does if HTTP/3 is unavailable. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { request as secureRequest } from 'node:https';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { TestAuthority } from '../../certificates.ts';
import {
	freePorts,
	runCommand,
	type ServerProcess,
	serve,
	startServer,
	temporaryFolder,
	until,
} from '../../harness.ts';

const test = suite('HTTP/3 by default');
const folder = temporaryFolder();
const direct = isDirectIo();

test.before(async () => {
	const authority = await TestAuthority.make();
	const { certificate, key } = await authority.issue({ names: ['localhost'] });
	writeFileSync(path.join(folder, 'c.pem'), certificate);
	writeFileSync(path.join(folder, 'k.pem'), key);
});

test.after(() => rmSync(folder, { recursive: true, force: true }));

interface Terms {
	readonly port: number;
	readonly admin: number;
	readonly plain: number;
	readonly body?: string;
	readonly servers?: string;
	readonly host?: string;
}

function write(file: string, { port, admin, plain, body = 'one', servers = '', host = '127.0.0.1' }: Terms): void {
	const text = `{
	admin 127.0.0.1:${admin}
	threads 2
	auto_https disable_redirects
	${servers}
}
https://localhost:${port} {
	bind ${host}
	tls ${folder}/c.pem ${folder}/k.pem
	respond "${body} {http.request.proto}"
}
http://localhost:${plain} {
	bind 127.0.0.1
	respond "plain"
}
`;
	writeFileSync(file, text);
}

async function ports(): Promise<Terms> {
	const [port, admin, plain] = (await freePorts(3)) as [number, number, number];
	return { port, admin, plain };
}

/** Sends a request over TCP. Returns `Alt-Svc` and the body of the response. */
function requestOverTcp(port: number, host = '127.0.0.1'): Promise<{ altSvc: string | undefined; body: string }> {
	return new Promise((resolve, reject) => {
		const options = { host, port, servername: 'localhost', rejectUnauthorized: false, agent: false };
		const sent = secureRequest({ ...options, headers: { host: `localhost:${port}` } }, answer => {
			let body = '';
			answer.on('data', piece => (body += piece));
			answer.on('end', () => resolve({ altSvc: answer.headers['alt-svc'] as string | undefined, body }));
		});
		sent.on('error', reject).end();
	});
}

/** Reports whether a UDP port can be bound. */
async function isFree(port: number): Promise<boolean> {
	const socket = createSocket('udp4');
	try {
		socket.bind({ port, address: '127.0.0.1', exclusive: true });
		await once(socket, 'listening');
		return true;
	} catch {
		return false;
	} finally {
		socket.close();
	}
}

async function taken(port: number): Promise<Socket> {
	const socket = createSocket('udp4');
	socket.bind({ port, address: '127.0.0.1', exclusive: true });
	await once(socket, 'listening');
	return socket;
}

async function reload(file: string, admin: number): Promise<{ status: number | null; stderr: string }> {
	return await runCommand(['reload', '-c', file, '--address', `127.0.0.1:${admin}`], {});
}

function count(server: ServerProcess, text: string): number {
	return server.output().split(text).length - 1;
}

if (direct) {
	test('an HTTPS site is served over UDP at its port, and a plain one is not', async () => {
		const { connect } = await import('../protocols/http3/quic-client.ts');
		const { openControlStream, headers, response } = await import('../protocols/http3/frames.ts');
		const terms = await ports();
		const file = path.join(folder, 'default');
		write(file, terms);
		const server = await serve(['-c', file], terms.port, { cwd: folder });
		try {
			const client = await connect(terms.port);
			openControlStream(client);
			const { body } = await response(client, client.open().write(headers(), true));
			assert.is(body, 'one HTTP/3.0');
			client.close();
			assert.is((await requestOverTcp(terms.port)).altSvc, `h3=":${terms.port}"; ma=2592000`);
			assert.ok(await isFree(terms.plain), 'a listener without TLS binds no UDP');
			assert.not.match(server.output(), /HTTP\/3/);
		} finally {
			await server.stop();
		}
	});

	test('`protocols h1 h2` binds no UDP, and a load adds HTTP/3 to the running process', async () => {
		const terms = await ports();
		const file = path.join(folder, 'off');
		write(file, { ...terms, servers: 'servers {\n\t\tprotocols h1 h2\n\t}' });
		const server = await serve(['-c', file], terms.port, { cwd: folder });
		try {
			assert.is((await requestOverTcp(terms.port)).altSvc, undefined);
			assert.ok(await isFree(terms.port));
			write(file, terms);
			assert.is((await reload(file, terms.admin)).status, 0);
			assert.is((await requestOverTcp(terms.port)).altSvc, `h3=":${terms.port}"; ma=2592000`);
			assert.not.ok(await isFree(terms.port));
		} finally {
			await server.stop();
		}
	});

	test('a listener with `proxy_protocol` serves HTTP/3 only if `h3` is written, also after a load', async () => {
		const terms = await ports();
		const file = path.join(folder, 'proxy');
		const wrappers = 'listener_wrappers {\n\t\t\tproxy_protocol\n\t\t}';
		write(file, { ...terms, servers: `servers {\n\t\t${wrappers}\n\t}` });
		const server = await serve(['-c', file], terms.port, { cwd: folder });
		try {
			assert.is((await requestOverTcp(terms.port)).altSvc, undefined);
			assert.ok(await isFree(terms.port));
			write(file, { ...terms, servers: `servers {\n\t\t${wrappers}\n\t\tprotocols h1 h2 h3\n\t}` });
			assert.is((await reload(file, terms.admin)).status, 0);
			assert.is((await requestOverTcp(terms.port)).altSvc, `h3=":${terms.port}"; ma=2592000`);
			write(file, { ...terms, servers: `servers {\n\t\t${wrappers}\n\t}` });
			assert.is((await reload(file, terms.admin)).status, 0);
			assert.is((await requestOverTcp(terms.port)).altSvc, undefined);
			await until('the UDP port is free', () => isFree(terms.port));
		} finally {
			await server.stop();
		}
	});

	test('another program has the UDP port: served without HTTP/3, logged once, until a load finds the port free', async () => {
		const terms = await ports();
		const other = await taken(terms.port);
		const file = path.join(folder, 'taken');
		write(file, terms);
		const server = await serve(['-c', file], terms.port, { cwd: folder });
		try {
			assert.equal(await requestOverTcp(terms.port), { altSvc: undefined, body: 'one HTTP/1.1' });
			write(file, { ...terms, body: 'two' });
			assert.is((await reload(file, terms.admin)).status, 0);
			assert.equal(await requestOverTcp(terms.port), { altSvc: undefined, body: 'two HTTP/1.1' });
			assert.is(count(server, 'serving without HTTP/3'), 1);
			assert.match(server.output(), /another program has the UDP port/);

			write(file, { ...terms, body: 'three', servers: 'servers {\n\t\tprotocols h1 h2 h3\n\t}' });
			const { status, stderr } = await reload(file, terms.admin);
			assert.is.not(status, 0);
			assert.match(stderr, /HTTP\/3 \(`h3`\) is unavailable, because another program has the UDP port/);
			assert.is((await requestOverTcp(terms.port)).body, 'two HTTP/1.1');

			other.close();
			await once(other, 'close');
			write(file, { ...terms, body: 'four' });
			assert.is((await reload(file, terms.admin)).status, 0);
			assert.is((await requestOverTcp(terms.port)).altSvc, `h3=":${terms.port}"; ma=2592000`);
		} finally {
			await server.stop();
		}
	});

	test('another program has the UDP port, and `h3` is written: the start is refused', async () => {
		const terms = await ports();
		const other = await taken(terms.port);
		const file = path.join(folder, 'refused');
		write(file, { ...terms, servers: 'servers {\n\t\tprotocols h1 h2 h3\n\t}' });
		const server = startServer(['run', '-c', file], { cwd: folder });
		await until('the refusal', () => server.child.exitCode !== null);
		assert.is.not(server.child.exitCode, 0);
		assert.match(server.output(), /HTTP\/3 \(`h3`\) is unavailable, because another program has the UDP port/);
		await server.stop();
		other.close();
	});
}

test('without direct I/O the server starts without HTTP/3 and says so once', async () => {
	const terms = await ports();
	const file = path.join(folder, 'node');
	write(file, terms);
	const server = await serve(['-c', file], terms.port, { cwd: folder, env: { SVC_IO: 'node' } });
	try {
		assert.equal(await requestOverTcp(terms.port), { altSvc: undefined, body: 'one HTTP/1.1' });
		write(file, { ...terms, body: 'two' });
		assert.is((await reload(file, terms.admin)).status, 0);
		assert.equal(await requestOverTcp(terms.port), { altSvc: undefined, body: 'two HTTP/1.1' });
		assert.is(count(server, 'HTTP/3 is unavailable'), 1);
		assert.ok(await isFree(terms.port));
	} finally {
		await server.stop();
	}
});

test('a Unix socket has no HTTP/3, and nothing is logged about it', async () => {
	const terms = await ports();
	const file = path.join(folder, 'unix');
	for (const servers of ['', 'servers {\n\t\tprotocols h1 h2 h3\n\t}']) {
		if (servers !== '' && !direct) continue;
		write(file, { ...terms, servers, host: `unix/${folder}/s.sock` });
		const server = await serve(['-c', file], terms.plain, { cwd: folder });
		assert.not.match(server.output(), /HTTP\/3/);
		await server.stop();
	}
});

test.run();
