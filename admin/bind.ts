/** Binds the Admin API's address. */
import { chmodSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import type { AdminAddress } from './listen-address.ts';

/** The address cannot be bound; the message is `failed to bind admin API on ADDR`, `cause` the system's reason. */
export class AdminBindError extends Error {
	/** The system's code, such as `EADDRINUSE`. */
	readonly code: string;

	constructor(address: string, cause: unknown) {
		super(`failed to bind admin API on ${address}`, { cause });
		this.name = 'AdminBindError';
		this.code = (cause as NodeJS.ErrnoException | undefined)?.code ?? 'EINVAL';
	}
}

/** Listens; a socket file that nobody listens on any more is replaced. Throws AdminBindError. */
export async function bind(server: Server, address: AdminAddress): Promise<void> {
	try {
		await listen(server, address);
	} catch (error) {
		const isStale =
			address.kind === 'unix' &&
			(error as NodeJS.ErrnoException).code === 'EADDRINUSE' &&
			!(await someoneListens(address.path));
		if (!isStale) throw new AdminBindError(address.text, error);
		try {
			unlinkSync(address.path);
			await listen(server, address);
		} catch (again) {
			throw new AdminBindError(address.text, again);
		}
	}
}

/** Finds out whether an address could be bound now, and leaves it free. Throws AdminBindError. */
export async function probe(address: AdminAddress): Promise<void> {
	// A file is made by binding and would stay; whether it can be made shows when it is.
	if (address.kind === 'unix') return;
	const server = createServer();
	await bind(server, address);
	await new Promise(resolve => server.close(resolve));
}

function listen(server: Server, address: AdminAddress): Promise<void> {
	return new Promise((resolve, reject) => {
		server.once('error', reject);
		server.listen(
			address.kind === 'unix'
				? { path: address.path }
				: { port: address.port, ...(address.host === '' ? {} : { host: address.host }) },
			() => {
				server.off('error', reject);
				try {
					// Until here the umask keeps others out: connecting takes the right to write.
					if (address.kind === 'unix') chmodSync(address.path, address.mode);
					resolve();
				} catch (error) {
					server.close();
					reject(error);
				}
			},
		);
	});
}

function someoneListens(path: string): Promise<boolean> {
	return new Promise(resolve => {
		const socket = connect(path);
		socket.once('connect', () => {
			socket.destroy();
			resolve(true);
		});
		// Anything but a refusal may be a listener that we cannot see.
		socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
	});
}

/** The address that was bound, as text, with the real port. */
export function boundAddress(server: Server, address: AdminAddress): string {
	const bound = server.address();
	if (address.kind === 'unix' || bound === null || typeof bound === 'string') return address.text;
	const host = address.host.includes(':') ? `[${address.host}]` : address.host;
	return `${host}:${bound.port}`;
}
