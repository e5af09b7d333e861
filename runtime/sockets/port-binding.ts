/** Binds a TCP port without listening on it, to find out whether it is free. */
import net from 'node:net';
import { getSystemErrorName } from 'node:util';

/** Node's internal function with which `net` binds a socket. */
type CreateHandle = (
	host: string | null,
	port: number,
	family: 4 | 6,
	descriptor: -1,
	flags: number,
) => number | BoundHandle;

interface BoundHandle {
	/** Stores the bound port in `into`. Returns a negative error code if this call or the binding has failed. */
	getsockname(into: { port?: number }): number;
	close(): void;
}

/** `UV_TCP_IPV6ONLY` of libuv: bind to IPv6 only. */
const IPV6_ONLY = 1;

/**
 * Binds a port exclusively, and releases it again. Returns the port, or the name of the system's error. The socket is bound but
 * does not listen, so that clients are refused rather than accepted and then reset. Returns undefined for a host name, and where
 * Node does not have the internal function.
 */
export function tryBindPort(
	host: string,
	port: number,
	only6: boolean,
): { readonly port: number } | string | undefined {
	const createHandle = (net as typeof net & { _createServerHandle?: CreateHandle })._createServerHandle;
	if (typeof createHandle !== 'function' || (host !== '' && net.isIP(host) === 0)) return undefined;
	const handle = createHandle(host || null, port, net.isIPv4(host) ? 4 : 6, -1, only6 ? IPV6_ONLY : 0);
	if (typeof handle === 'number') return getSystemErrorName(handle);
	if (typeof handle.getsockname !== 'function') return undefined;
	const boundName: { port?: number } = {};
	const errorStatus = handle.getsockname(boundName);
	handle.close();
	return errorStatus
		? getSystemErrorName(errorStatus)
		: boundName.port === undefined
			? undefined
			: { port: boundName.port };
}
