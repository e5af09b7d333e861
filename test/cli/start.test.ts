/** The startup of `svc run`: what the Admin API reports during the startup, and the cleanup after a failed or aborted start. */
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openFileStore } from '../../runtime/storage/file-store.ts';
import type { StoreLock } from '../../runtime/storage/store.ts';
import { freePorts, type ServerProcess, startServer, temporaryFolder, until, untilOutput } from '../harness.ts';

const folders = temporaryFolder();

interface StartingServer {
	readonly server: ServerProcess;
	readonly folder: string;
	readonly port: number;
	/** Lets the startup continue. */
	release(): Promise<void>;
	/** Returns the status and body of an Admin API response; the status is 0 while the API does not listen. */
	ask(line: string, body?: string): Promise<{ status: number; body: string }>;
}

/** Starts a server whose startup waits: it needs an internal authority whose keys are locked by another process. */
async function withStartingServer(test: (start: StartingServer) => Promise<void>): Promise<void> {
	const folder = mkdtempSync(path.join(folders, 'start-'));
	const [port] = (await freePorts(1)) as [number];
	const socketPath = path.join(folder, 'admin.sock');
	const options = `\tadmin unix/${socketPath}\n\tthreads 1\n\tskip_install_trust\n\tauto_https disable_redirects\n\tstorage file_system ${folder}/store\n`;
	const own = `unix/${folder}/site.sock`;
	const sites = `https://localhost:${port} {\n\ttls internal\n\trespond one\n}\nhttp://:1 {\n\tbind ${own}\n\trespond two\n}\n`;
	writeFileSync(path.join(folder, 'Configfile'), `{\n${options}}\n${sites}`);
	const lock: StoreLock = await openFileStore(path.join(folder, 'store')).lock('pki-local');
	const server = startServer(['run'], { cwd: folder });
	const ask: StartingServer['ask'] = (line, body) =>
		new Promise((resolve, reject) => {
			if (server.child.exitCode !== null) reject(new Error(`the server has ended: ${server.output()}`));
			const [method, target] = line.split(' ') as [string, string];
			const headers = { host: 'svc', connection: 'close', 'content-type': 'application/json' };
			const clientRequest = request({ socketPath, method, path: target, headers }, response => {
				let text = '';
				response.setEncoding('utf8').on('data', chunk => {
					text += chunk;
				});
				response.on('end', () => resolve({ status: response.statusCode!, body: text }));
			});
			clientRequest.on('error', () => resolve({ status: 0, body: '' }));
			clientRequest.end(body);
		});
	try {
		await test({ server, folder, port, release: () => lock.release(), ask });
	} finally {
		await lock.release();
		await server.stop();
	}
}

const start = suite('start');

start('before the listeners are bound, the Admin API reports live but not ready, and a load waits', () =>
	withStartingServer(async ({ server, folder, release, ask }) => {
		await until('the Admin API', async () => (await ask('GET /live')).status === 200);
		const ready = await ask('GET /ready');
		assert.is(ready.status, 503);
		assert.is(JSON.parse(ready.body).error.code, 'not_ready');
		assert.not.ok(existsSync(path.join(folder, 'site.sock')) && server.output().includes('"serving"'));
		const reading = ask('GET /config/sites/1/pipeline/0/body');
		const loading = ask('POST /config/sites/1/pipeline/0/body', '"three"');
		await release();
		await until('readiness', async () => (await ask('GET /ready')).status === 200);
		assert.is((await loading).status, 200, (await loading).body);
		assert.match((await loading).body, '"generation":2');
		assert.match((await reading).body, /"(?:two|three)"/);
		await untilOutput(server, 'the admin API listens');
		await untilOutput(server, /"from":1,"to":2/);
	}),
);

for (const [how, stop] of [
	['POST /stop', async ({ ask }: StartingServer) => assert.is((await ask('POST /stop')).status, 200)],
	['SIGTERM', async ({ server }: StartingServer) => assert.ok(server.child.kill('SIGTERM'))],
] as const) {
	start(`${how} during startup ends it with status 0 and removes the socket`, () =>
		withStartingServer(async started => {
			const { server, folder, ask } = started;
			await until('the Admin API', async () => (await ask('GET /live')).status === 200);
			const exit = once(server.child, 'exit');
			await stop(started);
			assert.equal(await exit, [0, null], server.output());
			assert.equal(
				readdirSync(folder).filter(name => name.endsWith('.sock')),
				[],
			);
			assert.not.match(server.output(), 'error');
		}),
	);
}

start('a start that fails after the Admin API listens removes its socket', async () => {
	const folder = mkdtempSync(path.join(folders, 'failed-'));
	const occupyingServer = createServer().listen(0, '127.0.0.1');
	await once(occupyingServer, 'listening');
	const { port } = occupyingServer.address() as { port: number };
	const sites = `http://:1 {\n\tbind unix/${folder}/site.sock\n}\nhttp://:${port} {\n\tbind 127.0.0.1\n}\n`;
	writeFileSync(path.join(folder, 'Configfile'), `{\n\tadmin unix/${folder}/admin.sock\n\tthreads 1\n}\n${sites}`);
	const server = startServer(['run'], { cwd: folder });
	const [status] = await once(server.child, 'close');
	occupyingServer.close();
	assert.is(status, 1);
	assert.match(server.output(), `error: Cannot listen on 127.0.0.1:${port}: the address is in use. If`);
	assert.equal(readdirSync(folder), ['Configfile']);
});

start('if the Admin API cannot listen, the start fails before any site listens', async () => {
	const folder = mkdtempSync(path.join(folders, 'failed-'));
	writeFileSync(path.join(folder, 'taken'), 'mine');
	const text = `{\n\tadmin unix/${folder}/taken\n\tthreads 1\n}\nhttp://:1 {\n\tbind unix/${folder}/site.sock\n}\n`;
	writeFileSync(path.join(folder, 'Configfile'), text);
	const server = startServer(['run'], { cwd: folder });
	const [status] = await once(server.child, 'close');
	assert.is(status, 1);
	assert.match(server.output(), `failed to bind admin API on unix/${folder}/taken`);
	assert.equal(readdirSync(folder).sort(), ['Configfile', 'taken']);
});

start.run();
