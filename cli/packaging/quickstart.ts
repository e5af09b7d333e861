/**
 * `npm start`: serves fixtures/quickstart with a demo API as its upstream, and prints how to try it. Ends on Ctrl-C or with npm.
 * QUICKSTART_PORT, QUICKSTART_API_PORT and QUICKSTART_ADMIN_PORT change the ports (8080, 8081, 2019).
 */
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import type { Writable } from 'node:stream';

const repositoryFolder = path.resolve(import.meta.dirname, '../..');
const port = portFrom('QUICKSTART_PORT', 8080);
const apiPort = portFrom('QUICKSTART_API_PORT', 8081);

/** Returns a port from the environment. If the variable is not a port, prints a sentence and exits with status 1. */
function portFrom(name: string, defaultPort: number): number {
	const text = process.env[name];
	if (text === undefined || text === '') return defaultPort;
	const value = Number(text);
	if (Number.isInteger(value) && value > 0 && value < 65536) return value;
	console.error(`${name}: ${JSON.stringify(text)} is not a port.`);
	process.exit(1);
}

/** Starts the demo API, which plays the role of your backend. */
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

/** Resolves to true once the port accepts connections, or to false once `isOver` returns true. */
async function waitForPort(isOver: () => boolean): Promise<boolean> {
	while (!isOver()) {
		const isOpen = await new Promise<boolean>(resolve => {
			const socket = connect(port, '127.0.0.1', () => {
				socket.destroy();
				resolve(true);
			});
			socket.once('error', () => resolve(false));
		});
		if (isOpen) return true;
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
 * Runs the server together with a reader of the pipe on descriptor 3. The pipe closes when this process ends, however it
 * ends, and the reader then stops the server.
 */
const GUARD_SCRIPT =
	'"$@" 3<&- & server=$!; { read -r _ <&3; kill -TERM $server; } 2>/dev/null & trap "" INT HUP TERM; wait $server';

// The server gets its own session, so that Ctrl-C reaches only this process, which then stops the server.
const server = spawn(
	'/bin/sh',
	[
		'-c',
		GUARD_SCRIPT,
		'sh',
		path.join(repositoryFolder, 'cli/svc'),
		'run',
		'--watch',
		path.join(repositoryFolder, 'fixtures/quickstart/Configfile'),
	],
	{ stdio: ['inherit', 'inherit', 'inherit', 'pipe'], detached: true },
);
const guardPipe = server.stdio[3] as Writable;
// If the reader of the pipe ends first, writing fails. This error does not matter.
guardPipe.on('error', () => {});
let hasServerEnded = false;
server.on('exit', (status, signal) => {
	hasServerEnded = true;
	api.close();
	api.closeAllConnections();
	process.exit(signal ? 1 : (status ?? 1));
});

let isStopping = false;
/** Stops the server gracefully. A second call sends it another signal, which stops it at once. */
function stopServer(): void {
	if (isStopping) process.kill(-server.pid!, 'SIGTERM');
	else guardPipe.end();
	isStopping = true;
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stopServer);

// npm forwards only SIGINT and SIGTERM, and nothing if it is killed. So the parent process is watched, to stop once npm is gone.
if (process.env.npm_lifecycle_event !== undefined) {
	const { ppid } = process;
	const parentWatch = setInterval(() => {
		if (process.ppid === ppid) return;
		clearInterval(parentWatch);
		if (!isStopping) stopServer();
	}, 500).unref();
}

if (await waitForPort(() => hasServerEnded)) {
	console.log(`
The quickstart site is at  http://localhost:${port}/

  curl http://localhost:${port}/hello        a fixed response
  curl http://localhost:${port}/api/time     through the reverse proxy
  curl -i http://localhost:${port}/docs      a redirect

Edit fixtures/quickstart/Configfile while it runs: it is reloaded on every change. Ctrl-C stops it.
`);
}
