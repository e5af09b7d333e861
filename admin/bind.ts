/** Binds the Admin API's address. */
import { chmodSync, fstatSync, lstatSync, renameSync, unlinkSync } from 'node:fs';
import type { ListenOptions, Server } from 'node:net';
import path from 'node:path';
import { someoneListens } from '../runtime/listeners/someone-listens.ts';
import type { AdminAddress, AdminEndpointAddress } from './listen-address.ts';

/** Thrown if the address cannot be bound. The message is `failed to bind admin API on ADDR`; `cause` is the system's error. */
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
 * Listens on the address. Replaces the file of a Unix socket on which no process listens any longer. Returns the address with its
 * real port; for an inherited socket, the socket's actual address. Throws AdminBindError.
 */
export async function bindAdmin(server: Server, address: AdminAddress): Promise<AdminEndpointAddress> {
	try {
		if (address.kind === 'fd' && !fstatSync(address.descriptor).isSocket()) throw systemError('ENOTSOCK');
		if (address.kind === 'unix') await listenOnUnix(server, address);
		else await listen(server, listenOptions(address));
		return boundAddress(server, address);
	} catch (error) {
		throw new AdminBindError(address.text, error);
	}
}

/** The Admin API's listening socket, inherited from the predecessor in a handover. */
export interface InheritedAdmin {
	readonly descriptor: number;
	/** The address on which the socket listens. */
	readonly bound: AdminEndpointAddress;
}

/** Like {@link bindAdmin}, on a socket that another process has bound and still uses. */
export async function bindInheritedAdmin(
	server: Server,
	{ descriptor, bound }: InheritedAdmin,
): Promise<AdminEndpointAddress> {
	try {
		await listen(server, { fd: descriptor });
		return bound;
	} catch (error) {
		throw new AdminBindError(bound.text, error);
	}
}

/**
 * Binds the socket under a temporary name and renames it. Node would otherwise remove the file when the server closes, even if
 * another process has inherited the socket.
 */
async function listenOnUnix(server: Server, { path: file, mode }: AdminAddress & { kind: 'unix' }): Promise<void> {
	const existingFile = lstatSync(file, { throwIfNoEntry: false });
	// A file that is not a socket refuses connections too, but is not ours to replace.
	if (existingFile && (!existingFile.isSocket() || (await someoneListens(file)))) throw systemError('EADDRINUSE');
	const temporaryPath = path.join(path.dirname(file), `.${process.pid.toString(36)}-admin~`);
	if (lstatSync(temporaryPath, { throwIfNoEntry: false })?.isSocket()) unlinkSync(temporaryPath);
	await listen(server, { path: temporaryPath });
	try {
		// Until this point, the umask keeps other users out, because connecting requires write permission.
		chmodSync(temporaryPath, mode);
		renameSync(temporaryPath, file);
	} catch (error) {
		server.close();
		throw error;
	}
}

function listen(server: Server, options: ListenOptions & { fd?: number }): Promise<void> {
	return new Promise((resolve, reject) => {
		server.once('error', reject);
		server.listen(options, () => {
			server.off('error', reject);
			resolve();
		});
	});
}

function listenOptions(address: Exclude<AdminAddress, { kind: 'unix' }>): ListenOptions & { fd?: number } {
	if (address.kind === 'fd') return { fd: address.descriptor };
	return { port: address.port, ...(address.host === '' ? {} : { host: address.host }) };
}

function boundAddress(server: Server, address: AdminAddress): AdminEndpointAddress {
	const socketAddress = server.address();
	if (address.kind === 'unix') return address;
	if (socketAddress === null || typeof socketAddress === 'string')
		return { kind: 'unix', path: '', mode: 0, text: address.text };
	const { port } = socketAddress;
	const host = address.kind === 'fd' ? socketAddress.address : address.host;
	return { kind: 'tcp', host, port, text: `${host.includes(':') ? `[${host}]` : host}:${port}` };
}

function systemError(code: string): Error {
	return Object.assign(new Error(code), { code });
}
