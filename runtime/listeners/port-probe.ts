/**
 * Checks on the main thread that an address is free. The worker threads share the port, so their own binding would succeed even
 * if another process used it.
 */
import net, { type AddressInfo } from 'node:net';
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import { tryBindPort } from '../sockets/port-binding.ts';
import { OPEN_FILES_HINT } from './descriptor-shortage.ts';
import type { ListenerAddress } from './listener-address.ts';
import { SocketNotPassed } from './passed-sockets.ts';

/** The error for an address that cannot be listened on. `code` is the system's: `EADDRINUSE`, `EACCES`, `EADDRNOTAVAIL`. */
export class ListenError extends Error {
	readonly code: string;
	/** The address as it is configured, such as `127.0.0.1:8080` or `:8080`. */
	readonly address: string;

	constructor(code: string, address: string, reason: string = REASONS_BY_CODE[code] ?? code) {
		super(`Cannot listen on ${address}: ${reason}.`);
		this.name = 'ListenError';
		this.code = code;
		this.address = address;
	}
}

/** Converts an error of `listen` to a ListenError. */
export function listenError(error: NodeJS.ErrnoException, address: ListenerAddress): ListenError {
	const reason = error instanceof SocketNotPassed ? error.message : undefined;
	return new ListenError(error.code ?? 'EIO', socketText(address), reason);
}

/** Returns the options of `net.Server.listen` for a TCP address, besides its port. */
export function bindOptions({ host, only6 }: ListenerAddress): { readonly host?: string; readonly ipv6Only?: true } {
	return { ...(host === '' ? {} : { host }), ...(only6 ? { ipv6Only: true } : {}) };
}

const REASONS_BY_CODE: { readonly [code: string]: string } = {
	EADDRINUSE: 'the address is in use',
	EACCES:
		'permission denied; ports below 1024 need root or CAP_NET_BIND_SERVICE, and the options `http_port` and `https_port` select others',
	EADDRNOTAVAIL: 'no network interface of this machine has the address',
	ENOTFOUND: 'the host name cannot be resolved',
	ENOENT: 'the folder of the socket does not exist',
	ENOTDIR: 'the folder of the socket does not exist',
	ENAMETOOLONG: 'the path of the socket is too long for this system',
	EBADF: 'the process was not started with this descriptor',
	ENOTSOCK: 'it is not a socket',
	EINVAL: 'it is not a socket on which clients can connect',
	EMFILE: `too many files are open in this process. ${OPEN_FILES_HINT.slice(0, -1)}`,
	ENFILE: 'too many files are open on this machine; raise fs.file-max',
	EEXIST: 'a file with this name exists that is not a socket',
	ENOSYS: 'threads cannot share it with this release of Node',
};

/**
 * Binds the address exclusively, so that a socket of another process causes an error, and closes the socket again. Resolves to
 * the address, with a port chosen if it was 0. Rejects with ListenError.
 */
export async function probeListener(address: ListenerAddress): Promise<ListenerAddress> {
	const { host, port, only6 = false } = address;
	const bindResult = tryBindPort(host, port, only6);
	if (bindResult === undefined) return await probeListening(address);
	if (typeof bindResult === 'string') throw new ListenError(bindResult, socketText(address));
	return { ...address, port: bindResult.port };
}

function probeListening(address: ListenerAddress): Promise<ListenerAddress> {
	return new Promise((resolve, reject) => {
		const server = net.createServer();
		server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, address)));
		server.listen({ port: address.port, exclusive: true, ...bindOptions(address) }, () => {
			const { port } = server.address() as AddressInfo;
			server.close(() => resolve({ ...address, port }));
		});
	});
}
