/** Binds the Admin API's address. */
import { chmodSync, fstatSync, lstatSync, unlinkSync } from 'node:fs';
import type { ListenOptions, Server } from 'node:net';
import { someoneListens } from '../runtime/listeners/someone-listens.ts';
import type { AdminAddress, AdminEndpointAddress } from './listen-address.ts';

/** The address cannot be bound. The message is `failed to bind admin API on ADDR`, `cause` the system's error. */
export class AdminBindError extends Error {
	/** The system's error code, such as `EADDRINUSE`. */
	readonly code: string;

	constructor(address: string, cause: unknown) {
		super(`failed to bind admin API on ${address}`, { cause });
		this.name = 'AdminBindError';
		this.code = (cause as NodeJS.ErrnoException | undefined)?.code ?? 'EINVAL';
	}
}

/**
 * Listens, replacing a socket file on which nobody listens any more. Returns the address with its real port; for an inherited
 * socket, the address that it turned out to have. Throws AdminBindError.
 */
export async function bind(server: Server, address: AdminAddress): Promise<AdminEndpointAddress> {
	try {
		if (address.kind === 'fd' && !fstatSync(address.descriptor).isSocket()) throw systemError('ENOTSOCK');
		await listen(server, address).catch(async error => {
			if (address.kind !== 'unix' || !(await isStale(address.path, error))) throw error;
			unlinkSync(address.path);
			await listen(server, address);
		});
		return bound(server, address);
	} catch (error) {
		throw new AdminBindError(address.text, error);
	}
}

async function isStale(path: string, error: NodeJS.ErrnoException): Promise<boolean> {
	// A file that is not a socket refuses connections too, but is not ours to remove.
	return error.code === 'EADDRINUSE' && lstatSync(path).isSocket() && !(await someoneListens(path));
}

function listen(server: Server, address: AdminAddress): Promise<void> {
	return new Promise((resolve, reject) => {
		server.once('error', reject);
		server.listen(listenOptions(address), () => {
			server.off('error', reject);
			try {
				// Until here, the umask keeps others out, because connecting requires write permission.
				if (address.kind === 'unix') chmodSync(address.path, address.mode);
				resolve();
			} catch (error) {
				server.close();
				reject(error);
			}
		});
	});
}

function listenOptions(address: AdminAddress): ListenOptions & { fd?: number } {
	if (address.kind === 'unix') return { path: address.path };
	if (address.kind === 'fd') return { fd: address.descriptor };
	return { port: address.port, ...(address.host === '' ? {} : { host: address.host }) };
}

function bound(server: Server, address: AdminAddress): AdminEndpointAddress {
	const found = server.address();
	if (address.kind === 'unix') return address;
	if (found === null || typeof found === 'string') return { kind: 'unix', path: '', mode: 0, text: address.text };
	const { port } = found;
	const host = address.kind === 'fd' ? found.address : address.host;
	return { kind: 'tcp', host, port, text: `${host.includes(':') ? `[${host}]` : host}:${port}` };
}

function systemError(code: string): Error {
	return Object.assign(new Error(code), { code });
}
