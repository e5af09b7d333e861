/**
 * Upstreams in a child process: `node upstream-process.ts <port>:<behavior>…`. Prints `ready` when all ports listen. Before it
 * responds to a request, appends a line for the request to the file that the environment variable RECORD names.
 *
 * Behaviors: `well`, `slow=<milliseconds>`, `reset` (during the body), `garbage`, `early` (413 before the body was read),
 * `closing` (closes idle connections when the next request may be on its way), `status=<code>`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

/** Starts the child process. Resolves when all its ports listen. */
export async function startUpstreams(
	upstreams: readonly string[],
	record?: string,
): Promise<ChildProcess & { readonly stop: () => Promise<void> }> {
	const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...upstreams], {
		stdio: ['pipe', 'pipe', 'ignore'],
		env: { ...process.env, ...(record === undefined ? {} : { RECORD: record }) },
	});
	const exited = once(child, 'exit');
	await Promise.race([
		once(child.stdout!, 'data'),
		exited.then(() => {
			throw new Error('the upstream process ended');
		}),
	]);
	const stop = async () => {
		child.kill('SIGKILL');
		// A stopped process must be continued before it can exit.
		child.kill('SIGCONT');
		await exited;
	};
	return Object.assign(child, { stop });
}

function serve(socket: Socket, manner: string, value: string, port: string): void {
	let text = '';
	let answeredCount = 0;
	socket.setNoDelay(true);
	socket.on('error', () => {});
	socket.on('data', bytes => {
		text += bytes.toString('latin1');
		for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
			const head = text.slice(0, end);
			const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
			if (manner === 'early') {
				text = '';
				socket.end('HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly');
				return;
			}
			if (text.length < end + 4 + length) return;
			text = text.slice(end + 4 + length);
			answeredCount++;
			const id = /\r\nx-id: *(\S+)/i.exec(head)?.[1] ?? '';
			if (process.env.RECORD !== undefined) {
				appendFileSync(process.env.RECORD, `${port} ${head.slice(0, head.indexOf(' '))} ${id}\n`);
			}
			answer(socket, manner, value, port, answeredCount);
		}
	});
	socket.on('end', () => socket.end());
}

function answer(socket: Socket, manner: string, value: string, port: string, answered: number): void {
	const whole = (status: string) => `HTTP/1.1 ${status} X\r\nX-Port: ${port}\r\nContent-Length: 2\r\n\r\nok`;
	switch (manner) {
		case 'slow':
			setTimeout(() => socket.write(whole('200')), Number(value));
			return;
		case 'status':
			socket.write(whole(value));
			return;
		case 'reset':
			socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nbegun');
			setTimeout(() => socket.resetAndDestroy(), 5);
			return;
		case 'garbage':
			socket.write('\0\x01SSH-2.0-none\r\n\r\n');
			return;
		case 'closing':
			socket.write(whole('200'));
			// Sometimes closes the connection at once, and sometimes just after the proxy has reused it.
			if (answered >= 3) setTimeout(() => socket.destroy(), Math.random() * 3);
			return;
		default:
			socket.write(whole('200'));
	}
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const listening = process.argv.slice(2).map(async upstream => {
		const [port, way = 'well'] = upstream.split(':') as [string, string?];
		const [manner, value = ''] = way.split('=') as [string, string?];
		const server = createServer({ allowHalfOpen: true }, socket => serve(socket, manner, value, port));
		server.listen(Number(port), '127.0.0.1');
		await once(server, 'listening');
	});
	await Promise.all(listening);
	process.stdout.write('ready\n');
	// Exits when the parent process has ended.
	process.stdin.on('end', () => process.exit()).resume();
}
