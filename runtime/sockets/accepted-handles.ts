/** Access to the handles of accepted connections, before Node wraps them in streams. */
import type { Server, Socket } from 'node:net';
import { DirectSocket, isDirectHandle, type StreamHandle } from './direct-socket.ts';
import { isDirectIo } from './io-mode.ts';
import type { TcpKeepAlive } from './listening-socket.ts';

interface ListeningHandle extends Partial<Pick<StreamHandle, 'setKeepAlive' | 'setNoDelay'>> {
	onconnection?: (status: number, handle: object | undefined) => void;
}

type WithHandle<T> = T & { _handle?: ListeningHandle | null };

/**
 * Passes the handle of each accepted connection to `take` before Node creates a `net.Socket` for it. `take` returns false to leave
 * the handle to Node. If Node's handles are not as expected, `take` is never called.
 */
export function interceptHandles(server: WithHandle<Server>, take: (handle: StreamHandle) => boolean): void {
	if (!isDirectIo()) return;
	const listening = server._handle;
	const ordinary = listening?.onconnection;
	if (!listening || typeof ordinary !== 'function') return;
	let knownPrototype: unknown;
	const isUsable = (handle: object): handle is StreamHandle => {
		const prototype = Object.getPrototypeOf(handle);
		if (prototype === knownPrototype) return true;
		if (!isDirectHandle(handle)) return false;
		knownPrototype = prototype;
		return true;
	};
	listening.onconnection = (status, handle) => {
		if (status === 0 && handle !== undefined && isUsable(handle) && take(handle)) return;
		ordinary.call(listening, status, handle);
	};
}

/**
 * Sets the options that accepted connections inherit from the listening socket. Returns false if connections do not inherit
 * options; `setSocketOptions` must then be called for each of them.
 */
export function setInheritedOptions(server: WithHandle<Server>, keepAlive: TcpKeepAlive | undefined): boolean {
	if (!isDirectIo()) return false;
	const listening = server._handle;
	if (process.platform !== 'linux' || !listening?.setNoDelay || !listening.setKeepAlive) return false;
	return listening.setNoDelay(true) === 0 && setKeepAlive(listening, keepAlive) === 0;
}

/**
 * Disables Nagle's algorithm and sets TCP keep-alive on one connection, as {@link setInheritedOptions} does on a listening
 * socket.
 */
export function setSocketOptions(socket: Socket | DirectSocket, keepAlive: TcpKeepAlive | undefined): void {
	if (!(socket instanceof DirectSocket) && !isDirectIo()) {
		socket.setNoDelay(true);
		// `setKeepAlive` accepts the idle time, but neither the interval nor the number of the keep-alive probes.
		if (keepAlive) socket.setKeepAlive(true, keepAlive.idle);
		return;
	}
	const handle = (socket as WithHandle<Socket>)._handle;
	handle?.setNoDelay?.(true);
	if (keepAlive && handle) setKeepAlive(handle, keepAlive);
}

function setKeepAlive(handle: ListeningHandle, keepAlive: TcpKeepAlive | undefined): number {
	if (!keepAlive) return handle.setKeepAlive?.(false, 0, 0, undefined) ?? 0;
	const { idle, interval, count } = keepAlive;
	return handle.setKeepAlive?.(true, Math.floor(idle / 1000), Math.floor(interval / 1000), count) ?? 0;
}
