/**
 * Gets a second descriptor of a listening socket using only Node's public modules: a child process inherits the descriptor and
 * sends the socket back, which takes about 50 milliseconds. Used where Node cannot call `dup`.
 */
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { isSea } from 'node:sea';

/** The only argument of the child process. */
export const PASS_SOCKET_ARGUMENT = '--pass-socket';

/** The descriptor of the socket in the child process: the first after the standard streams. */
const INHERITED_DESCRIPTOR = 3;

/**
 * Runs in the child process: sends the inherited socket to the parent and exits within one iteration of the event loop, because
 * in the next iteration, this process would begin to accept connections.
 */
export function passSocket(): void {
	const server = createServer();
	server.on('error', (error: NodeJS.ErrnoException) => {
		process.send?.({ code: error.code ?? 'EIO' });
		process.exit(1);
	});
	server.listen({ fd: INHERITED_DESCRIPTOR });
	if (!server.listening) return;
	process.send?.('socket', server);
	process.exit(0);
}

/** Resolves to a server that listens on the socket with a descriptor of its own. Rejects with an error with the system's code. */
export function receiveServer(descriptor: number): Promise<Server> {
	return new Promise((resolve, reject) => {
		const child = spawn(process.execPath, childArguments(), {
			stdio: ['ignore', 'ignore', 'inherit', descriptor, 'ipc'],
		});
		let code = 'EIO';
		child.once('message', (message: unknown, receivedServer) => {
			if (receivedServer !== undefined) resolve(receivedServer as Server);
			else code = (message as { readonly code?: string }).code ?? code;
		});
		child.once('error', (error: NodeJS.ErrnoException) => {
			code = error.code ?? code;
		});
		// The child has ended, and every message that it sent has been delivered. If the server has been received, `reject` has no
		// effect.
		child.once('close', () => reject(Object.assign(new Error(code), { code })));
	});
}

function childArguments(): string[] {
	if (isSea()) return [PASS_SOCKET_ARGUMENT];
	const script = `import { passSocket } from ${JSON.stringify(import.meta.url)}; passSocket();`;
	return ['--input-type=module', '--eval', script];
}
