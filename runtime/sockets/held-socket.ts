/** Unix sockets that the main thread binds and keeps open, so that worker threads can listen on them. */
import { closeSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { Worker } from 'node:worker_threads';
import { canDuplicateDescriptors, descriptorOf, duplicateDescriptor } from './duplicate-descriptor.ts';

/** A listening socket that does not accept connections itself. */
export interface HeldSocket {
	readonly descriptor: number;
	/** Closes the descriptor. The socket's file remains. */
	close(): void;
}

/**
 * Binds a Unix socket at a path that does not exist yet, then calls `publish`, which moves the file to its final name. If
 * `publish` throws, closes the socket. Rejects with an error that has the system's code.
 */
export function holdUnixSocket(path: string, backlog: number, publish: () => void): Promise<HeldSocket> {
	return canDuplicateDescriptors() ? holdDuplicate(path, backlog, publish) : holdInThread(path, backlog, publish);
}

/**
 * Binds the socket with a `net.Server`, keeps a duplicate of its descriptor, and closes the server before it can accept
 * connections.
 */
async function holdDuplicate(path: string, backlog: number, publish: () => void): Promise<HeldSocket> {
	const server = await new Promise<Server>((resolve, reject) => {
		const newServer = createServer();
		newServer.once('error', reject);
		newServer.listen({ path, backlog }, () => resolve(newServer));
	});
	let descriptor: number | undefined;
	try {
		descriptor = duplicateDescriptor(descriptorOf(server));
		publish();
	} catch (error) {
		if (descriptor !== undefined) closeSync(descriptor);
		throw error;
	} finally {
		// The server is closed in the same task in which it started to listen, so that connections wait for a worker thread.
		// Closing it removes the file, unless `publish` has renamed it.
		server.close();
	}
	const heldDescriptor = descriptor;
	return { descriptor: heldDescriptor, close: () => closeSync(heldDescriptor) };
}

/**
 * The code of the thread of {@link holdInThread}. It binds the socket, then blocks the thread, because a server accepts
 * connections while the event loop runs.
 */
const HOLDER_SCRIPT = `
const { createServer } = require('node:net');
const { parentPort, workerData: { path, backlog, state } } = require('node:worker_threads');
const server = createServer();
server.on('error', ({ code }) => parentPort.postMessage({ code }));
server.listen({ path, backlog });
if (server.listening) {
	parentPort.postMessage({ descriptor: server._handle?.fd });
	Atomics.wait(state, 0, 0);
	server.close();
}
`;

/**
 * Lets a thread bind the socket and then block until the socket is closed. With only Node's public modules, a listening socket
 * accepts connections whenever its event loop runs.
 */
function holdInThread(path: string, backlog: number, publish: () => void): Promise<HeldSocket> {
	const state = new Int32Array(new SharedArrayBuffer(4));
	const options = { eval: true, workerData: { path, backlog, state }, name: 'svc-socket' };
	const thread = new Worker(HOLDER_SCRIPT, { ...options, resourceLimits: { maxYoungGenerationSizeMb: 1 } });
	thread.unref();
	const close = (): void => {
		Atomics.store(state, 0, 1);
		Atomics.notify(state, 0);
	};
	return new Promise((resolve, reject) => {
		const fail = (code: string): void => {
			close();
			reject(Object.assign(new Error(code), { code }));
		};
		thread.once('message', ({ descriptor, code }: { readonly descriptor?: number; readonly code?: string }) => {
			if (descriptor === undefined) {
				fail(code ?? 'ENOSYS');
				return;
			}
			try {
				publish();
				resolve({ descriptor, close });
			} catch (error) {
				close();
				reject(error);
			}
		});
		thread.once('error', error => {
			close();
			reject(error);
		});
	});
}
