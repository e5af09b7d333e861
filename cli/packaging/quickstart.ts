/**
 * `npm start`: serves fixtures/quickstart with a demo API behind it, says how to try it, and ends with Ctrl-C, or with npm.
 * QUICKSTART_PORT, QUICKSTART_API_PORT and QUICKSTART_ADMIN_PORT move the ports (8080, 8081, 2019).
 */
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import type { Writable } from 'node:stream';

const root = path.resolve(import.meta.dirname, '../..');
const port = portFrom('QUICKSTART_PORT', 8080);
const apiPort = portFrom('QUICKSTART_API_PORT', 8081);

/** A port from the environment; one sentence and exit 1 when it is not one. */
function portFrom(name: string, fallback: number): number {
	const text = process.env[name];
	if (text === undefined || text === '') return fallback;
	const value = Number(text);
	if (Number.isInteger(value) && value > 0 && value < 65536) return value;
	console.error(`${name}: ${JSON.stringify(text)} is not a port.`);
	process.exit(1);
}

/** The demo API: what a backend of yours would be. */
function startDemoApi(): Promise<Server> {
	const api = createServer((request, response) => {
		const answer =
			request.url === '/time'
				? {
						time: new Date().toISOString(),
						served_by: request.headers['x-served-by'],
						for: request.headers['x-forwarded-for'],
					}
				: undefined;
		response.writeHead(answer ? 200 : 404, { 'Content-Type': 'application/json' });
		response.end(`${JSON.stringify(answer ?? { error: 'The demo API knows /time only.' })}\n`);
	});
	return new Promise((resolve, reject) => {
		api.once('error', reject);
		api.listen(apiPort, '127.0.0.1', () => resolve(api));
	});
}

/** Resolves once the port accepts connections, or when the server has ended. */
async function listening(isOver: () => boolean): Promise<boolean> {
	while (!isOver()) {
		const open = await new Promise<boolean>(resolve => {
			const socket = connect(port, '127.0.0.1', () => {
				socket.destroy();
				resolve(true);
			});
			socket.once('error', () => resolve(false));
		});
		if (open) return true;
		await new Promise(resolve => setTimeout(resolve, 100));
	}
	return false;
}

const api = await startDemoApi().catch((error: NodeJS.ErrnoException) => {
	console.error(
		`The demo API cannot listen on 127.0.0.1:${apiPort} (${error.code}). Set QUICKSTART_API_PORT to a free port.`,
	);
	process.exit(1);
});

/**
 * The server, and beside it a reader of the pipe on descriptor 3. The pipe ends when this process does, whatever has ended
 * it, and the reader then stops the server.
 */
const GUARDED =
	'"$@" 3<&- & server=$!; { read -r _ <&3; kill -TERM $server; } 2>/dev/null & trap "" INT HUP TERM; wait $server';

// In a session of its own: Ctrl-C reaches this process alone, or the server would take what follows for a second one.
const server = spawn(
	'/bin/sh',
	[
		'-c',
		GUARDED,
		'sh',
		path.join(root, 'cli/svc'),
		'run',
		'--watch',
		path.join(root, 'fixtures/quickstart/Configfile'),
	],
	{ stdio: ['inherit', 'inherit', 'inherit', 'pipe'], detached: true },
);
const guard = server.stdio[3] as Writable;
// The reader may have ended before the pipe does.
guard.on('error', () => {});
let over = false;
server.on('exit', (status, signal) => {
	over = true;
	api.close();
	api.closeAllConnections();
	process.exit(signal ? 1 : (status ?? 1));
});

let stopping = false;
/** The first time gracefully; whoever asks again gets the server's answer to a second signal, which is to stop at once. */
function stop(): void {
	if (stopping) process.kill(-server.pid!, 'SIGTERM');
	else guard.end();
	stopping = true;
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);

// npm passes on SIGINT and SIGTERM alone, and nothing when it is killed: what it has started notices that it is gone.
if (process.env.npm_lifecycle_event !== undefined) {
	const { ppid } = process;
	const watch = setInterval(() => {
		if (process.ppid === ppid) return;
		clearInterval(watch);
		if (!stopping) stop();
	}, 500).unref();
}

if (await listening(() => over)) {
	console.log(`
The quickstart site is at  http://localhost:${port}/

  curl http://localhost:${port}/hello        a fixed response
  curl http://localhost:${port}/api/time     through the reverse proxy
  curl -i http://localhost:${port}/docs      a redirect

Edit fixtures/quickstart/Configfile while it runs: it is reloaded on every change. Ctrl-C stops it.
`);
}
