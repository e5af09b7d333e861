/** Learns on the main thread that an address is free, before the workers bind it in a way that would not tell. */
import net, { type AddressInfo } from 'node:net';
import { socketText } from '../../compiler/codegen/planned-socket.ts';
import { bindBriefly } from '../sockets/port-binding.ts';
import type { ListenerAddress } from '../threads/messages.ts';
import { NotPassed } from './passed-sockets.ts';

/** An address that cannot be listened on. `code` is the system's: `EADDRINUSE`, `EACCES`, `EADDRNOTAVAIL`. */
export class ListenError extends Error {
	readonly code: string;
	/** `127.0.0.1:8080`, `:8080`. */
	readonly address: string;

	constructor(code: string, address: string, reason: string = REASONS[code] ?? code) {
		super(`Cannot listen on ${address}: ${reason}.`);
		this.name = 'ListenError';
		this.code = code;
		this.address = address;
	}
}

/** The error of listening, in our words. */
export function listenError(error: NodeJS.ErrnoException, address: ListenerAddress): ListenError {
	const reason = error instanceof NotPassed ? error.message : undefined;
	return new ListenError(error.code ?? 'EIO', socketText(address), reason);
}

/** What a TCP address is to `net.Server.listen`, beside its port. */
export function bindOptions({ host, only6 }: ListenerAddress): { readonly host?: string; readonly ipv6Only?: true } {
	return { ...(host === '' ? {} : { host }), ...(only6 ? { ipv6Only: true } : {}) };
}

const REASONS: { readonly [code: string]: string } = {
	EADDRINUSE: 'the address is in use',
	EACCES:
		'this user may not; ports below 1024 want root or CAP_NET_BIND_SERVICE, and `http_port` and `https_port` name others',
	EADDRNOTAVAIL: 'no interface of this machine has the address',
	ENOTFOUND: 'the host name is not known',
	ENOENT: 'the folder of the socket does not exist',
	ENOTDIR: 'the folder of the socket does not exist',
	ENAMETOOLONG: 'the path of the socket is too long for this system',
	EBADF: 'the process was not started with this descriptor',
	ENOTSOCK: 'it is not a socket',
	EINVAL: 'it is not a socket on which clients can connect',
	EEXIST: 'there is a file with this name that is not a socket',
	ENOSYS: 'threads cannot share it on this release of Node',
};

/**
 * Binds the address without sharing, so that another process's socket is an error, and lets it go again. Resolves with
 * the address, its port chosen if it was 0. Rejects with ListenError.
 */
export async function probeListener(address: ListenerAddress): Promise<ListenerAddress> {
	const { host, port, only6 = false } = address;
	const bound = bindBriefly(host, port, only6);
	if (bound === undefined) return await probeListening(address);
	if (typeof bound === 'string') throw new ListenError(bound, socketText(address));
	return { ...address, port: bound.port };
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
