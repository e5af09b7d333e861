/** Readers of logs that stop reading (kill -STOP): no request waits for them, and dropped lines are counted. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, SVC, temporaryFolder, WAIT_LIMIT_MS, waitForPort } from '../../harness.ts';
import { eventually } from '../running-server.ts';

/** Number of requests. Their log lines together are larger than all queues. */
const REQUEST_COUNT = 2400;
/** The value of the field that makes each request large. */
const LONG_VALUE = 'x'.repeat(12_000);

const stopped = suite('stopped readers of logs');

/** Starts a reader that counts lines until it is stopped. */
function startReader(): ReturnType<typeof spawn> & { lines(): number } {
	let lines = 0;
	const child = spawn('cat', { stdio: ['pipe', 'pipe', 'inherit'] });
	child.stdout!.on('data', (chunk: Buffer) => {
		for (const byte of chunk) if (byte === 10) lines++;
	});
	return Object.assign(child, { lines: () => lines });
}

stopped(
	'with a stopped pipe, named pipe and collector, every request is answered, and every line is written or counted',
	async () => {
		const folder = temporaryFolder();
		const [port, admin] = (await freePorts(2)) as [number, number];
		const fifo = path.join(folder, 'fifo');
		execFileSync('mkfifo', [fifo]);
		let collected = 0;
		const sockets: Socket[] = [];
		const collector = createServer(socket => {
			sockets.push(socket.pause());
			socket.on('data', chunk => {
				for (const byte of chunk) if (byte === 10) collected++;
			});
			socket.pause();
		}).listen(0, '127.0.0.1');
		await once(collector, 'listening');
		const to = (output: string): string => `\tlog {\n\t\toutput ${output}\n\t\tformat json\n\t}\n`;
		const outputs = ['stdout', `file ${fifo}`, `net 127.0.0.1:${(collector.address() as { port: number }).port}`];
		writeFileSync(
			path.join(folder, 'Configfile'),
			`{\n\tadmin 127.0.0.1:${admin}\n\tthreads 1\n\tmetrics\n\tservers {\n\t\tmax_header_size 32KiB\n\t}\n}\nhttp://127.0.0.1:${port} {\n${outputs.map(to).join('')}\trespond "x"\n}\n`,
		);
		const [piped, named] = [startReader(), startReader()];
		// The pipe is opened for reading and writing, so that opening does not block.
		const feed = spawn('sh', ['-c', `exec cat <>"${fifo}"`], { stdio: ['ignore', named.stdin!, 'inherit'] });
		const server = spawn(SVC, ['run', path.join(folder, 'Configfile')], {
			stdio: ['ignore', piped.stdin!, 'ignore'],
			env: { ...process.env, XDG_STATE_HOME: folder },
		});
		piped.stdin!.destroy();
		try {
			await waitForPort(port, 30_000);
			const halted = [piped, named, feed];
			for (const child of halted) child.kill('SIGSTOP');
			await sendRequests(port);
			const dropped = async (): Promise<number> => {
				const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
				return Number(/^svc_access_log_dropped_total (\d+)$/m.exec(text)![1]);
			};
			assert.ok((await dropped()) > 0);
			for (const child of halted) child.kill('SIGCONT');
			for (const socket of sockets) socket.resume();
			const sum = async (): Promise<number> => piped.lines() + named.lines() + collected + (await dropped());
			await eventually('every line is written or counted', async () => (await sum()) >= 3 * REQUEST_COUNT);
			assert.is(await sum(), 3 * REQUEST_COUNT);
			// The stop of the server does not wait for a stopped reader, either.
			for (const child of halted) child.kill('SIGSTOP');
			await sendRequests(port);
			server.kill('SIGTERM');
			const timer = setTimeout(() => server.kill('SIGKILL'), WAIT_LIMIT_MS);
			const [status, signal] = await once(server, 'exit');
			clearTimeout(timer);
			assert.is(`${status} ${signal}`, '0 null');
		} finally {
			for (const child of [piped, named, feed, server]) child.kill('SIGKILL');
			for (const socket of sockets) socket.destroy();
			collector.close();
		}
	},
);

/** Sends all requests one after the other on one connection. Rejects if one waits for a reader, which never reads. */
async function sendRequests(port: number): Promise<void> {
	const request = `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ${LONG_VALUE}\r\n\r\n`;
	const socket = connect(port, '127.0.0.1').setNoDelay();
	socket.setEncoding('latin1');
	socket.setTimeout(WAIT_LIMIT_MS, () => socket.destroy(new Error('a request waits for a reader')));
	for (let count = 0; count < REQUEST_COUNT; count++) {
		socket.write(request);
		await once(socket, 'data');
	}
	socket.destroy();
}

stopped.run();
