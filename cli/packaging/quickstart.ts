/**
 * `npm start`: serves fixtures/quickstart with a demo API behind it, says how to try it, and ends with Ctrl-C.
 * QUICKSTART_PORT, QUICKSTART_API_PORT and QUICKSTART_ADMIN_PORT move the ports (8080, 8081, 2019).
 */
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';

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

const server = spawn(
	path.join(root, 'cli/svc'),
	['run', '--watch', path.join(root, 'fixtures/quickstart/Configfile')],
	{
		stdio: 'inherit',
	},
);
let over = false;
server.on('exit', (status, signal) => {
	over = true;
	api.close();
	api.closeAllConnections();
	process.exitCode = signal ? 1 : (status ?? 1);
});
// Ctrl-C reaches the server too, as it is in the same process group: here it only must not end us before it.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => server.kill('SIGTERM'));

if (await listening(() => over)) {
	console.log(`
The quickstart site is at  http://localhost:${port}/

  curl http://localhost:${port}/hello        a fixed response
  curl http://localhost:${port}/api/time     through the reverse proxy
  curl -i http://localhost:${port}/docs      a redirect

Edit fixtures/quickstart/Configfile while it runs: it is reloaded on every change. Ctrl-C stops it.
`);
}
