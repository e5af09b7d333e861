/** Sockets that the process was started with, as systemd's socket activation does: `fd/N` for sites and the Admin API. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { rawExchange, SVC, startServer, temporaryFolder } from '../harness.ts';

const activation = suite('socket activation');
const folder = temporaryFolder();

async function listening(at: string | number): Promise<{ server: Server; descriptor: number }> {
	const server = typeof at === 'string' ? createServer().listen(at) : createServer().listen(at, '127.0.0.1');
	await once(server, 'listening');
	return { server, descriptor: (server as unknown as { _handle: { fd: number } })._handle.fd };
}

activation('sites and the Admin API are served on sockets that the process was given', async () => {
	const site = await listening(0);
	const admin = await listening(0);
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
		// A connection that comes before the server is there waits in the socket.
		const early = fetch(`http://127.0.0.1:${at}/`);
		site.server.close();
		admin.server.close();
		assert.is(await (await early).text(), 'one', output);
		const loaded = await fetch(`http://127.0.0.1:${api}/load`, {
			method: 'POST',
			headers: { 'content-type': 'text/configfile' },
			body: text('two'),
		});
		assert.is(loaded.status, 200, await loaded.text());
		assert.is(await (await fetch(`http://127.0.0.1:${at}/`)).text(), 'two');
		// Which socket it is decides who is admitted: here not a page whose name was rebound to it.
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

activation('a descriptor that is none is told in a sentence', async () => {
	const file = path.join(folder, 'Nothing');
	writeFileSync(file, 'http://a.test {\n\tbind fd/77\n\trespond x\n}\n');
	const server = startServer(['run', '--config', file, '--adapter', 'configfile']);
	await once(server.child, 'close');
	assert.is(server.child.exitCode, 1);
	assert.match(server.output(), /Cannot listen on fd\/77: the process was not started with this descriptor\./);
});

activation.run();
