/** A server with few file descriptors and many clients: it turns them away, stays in reach, and recovers. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { connectionRoom } from '../../../runtime/listeners/descriptor-limit.ts';
import { freePorts, SVC, temporaryFolder, waitForPort } from '../../harness.ts';
import { open, statusOf } from '../protocols/http1/wire.ts';
import { eventually } from '../running-server.ts';

const descriptors = suite('file descriptors');

descriptors('clients get what is left when the rest of the process has its own', () => {
	assert.is(connectionRoom(1024, 2), 416);
	assert.is(connectionRoom(100_000, 4), 22_500);
	assert.is(connectionRoom(40, 2), 16);
	assert.is(connectionRoom(undefined, 2), Infinity);
});

descriptors('a flood of connections is turned away, and the Admin API stays in reach', async () => {
	const [port, adminPort] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{\n\tadmin 127.0.0.1:${adminPort}\n\tmetrics\n\tthreads 1\n}\n:${port} {\n\trespond hi\n}\n`,
	);
	const server = spawn('sh', ['-c', `ulimit -n 400; exec ${SVC} run Configfile`], { cwd: folder, stdio: 'ignore' });
	const ended = once(server, 'close');
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
		await eventually('some are turned away', async () =>
			/svc_overload_rejected_total\{limit="descriptors"\} [1-9]/.test(await metrics().catch(() => '')),
		);
		const late = await open(port);
		assert.is(statusOf(await late.whole()), 503);
		for (const client of clients) client.destroy();
		await eventually('there is room again', async () => {
			const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
			return response.status === 200;
		});
	} finally {
		for (const client of clients) client.destroy();
		server.kill('SIGTERM');
		await ended;
	}
});

descriptors.run();
