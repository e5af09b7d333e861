/** Passing Unix sockets and inherited sockets to threads when Node cannot duplicate descriptors. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect, createServer, type Server } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PASS_SOCKET_ARGUMENT, receiveServer } from '../../../runtime/sockets/pass-socket.ts';
import { THREAD_CODE_VARIABLE } from '../../../runtime/threads/thread-source.ts';
import { ROOT, SVC, temporaryFolder } from '../../harness.ts';

const passing = suite('sockets without node:ffi');

async function startListening(): Promise<{ server: Server; descriptor: number; port: number }> {
	const server = createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { fd } = (server as unknown as { _handle: { fd: number } })._handle;
	return { server, descriptor: fd, port: (server.address() as { port: number }).port };
}

function ask(at: { socketPath: string } | { port: number }): Promise<string> {
	return new Promise((resolve, reject) => {
		const sent = request({ host: '127.0.0.1', headers: { host: 'a.test' }, agent: false, ...at }, response => {
			let body = '';
			response.setEncoding('utf8').on('data', piece => {
				body += piece;
			});
			response.on('end', () => resolve(body));
		});
		sent.on('error', reject).end();
	});
}

passing('two threads serve a Unix socket and an inherited socket, also after a reload', async () => {
	const folder = temporaryFolder();
	const socketPath = path.join(folder, 'site.sock');
	const file = path.join(folder, 'Configfile');
	const inherited = await startListening();
	const admin = `unix/${folder}/admin.sock`;
	const text = (name: string): string =>
		`{\n\tadmin ${admin}\n\tthreads 2\n}\nhttp://a.test {\n\tbind unix/${socketPath}|0600\n\trespond "${name} by the path"\n}\nhttp:// {\n\tbind fd/3\n\trespond "${name} by the descriptor"\n}\n`;
	writeFileSync(file, text('one'));
	const child = spawn(
		process.execPath,
		['--no-experimental-ffi', path.join(ROOT, 'cli/main.ts'), 'run', '--config', file],
		{
			// Without node:ffi, a second process passes the socket. It imports a source file, so threads must not run from a bundle.
			env: { ...process.env, [THREAD_CODE_VARIABLE]: undefined, XDG_STATE_HOME: folder },
			stdio: ['ignore', 'pipe', 'pipe', inherited.descriptor],
		},
	);
	const exited = once(child, 'exit');
	let output = '';
	const serving = new Promise<void>((resolve, reject) => {
		for (const stream of [child.stdout!, child.stderr!]) {
			stream.setEncoding('utf8').on('data', piece => {
				output += piece;
				if (/"msg":"serving"|\bserving\b/.test(output)) resolve();
			});
		}
		child.once('exit', () => reject(new Error(output)));
	});
	try {
		await serving;
		inherited.server.close();
		const askAll = async (name: string): Promise<void> => {
			const answers = await Promise.all(
				Array.from({ length: 20 }, () => [ask({ socketPath }), ask({ port: inherited.port })]).flat(),
			);
			assert.equal([...new Set(answers)].sort(), [`${name} by the path`, `${name} by the descriptor`].sort());
		};
		await askAll('one');
		writeFileSync(file, text('two'));
		const reload = spawn(SVC, ['reload', '--config', file, '--address', admin], { stdio: 'ignore' });
		assert.equal(await once(reload, 'exit'), [0, null], output);
		await askAll('two');
	} finally {
		child.kill('SIGTERM');
		assert.equal(await exited, [0, null], output);
	}
	assert.not(existsSync(socketPath));
	assert.not.match(output, /"level":"error"/);
});

passing('a thread receives the socket on a descriptor of its own', async () => {
	const { server, descriptor, port } = await startListening();
	const received = await receiveServer(descriptor);
	server.close();
	const accepted = once(received, 'connection');
	const client = connect(port, '127.0.0.1');
	const [socket] = (await accepted) as [{ end(text: string): void }];
	socket.end('hello');
	assert.equal(String((await once(client, 'data'))[0]), 'hello');
	received.close();
});

passing('the program itself can be the child that passes the socket', async () => {
	const { server, descriptor, port } = await startListening();
	const child = spawn(SVC, [PASS_SOCKET_ARGUMENT], { stdio: ['ignore', 'ignore', 'inherit', descriptor, 'ipc'] });
	const [, received] = (await once(child, 'message')) as [unknown, Server];
	server.close();
	assert.equal((received.address() as { port: number }).port, port);
	received.close();
});

passing.run();
