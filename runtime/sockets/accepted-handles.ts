/** Access to the handles of accepted connections, before Node wraps them in streams. */
import type { Server, Socket } from 'node:net';
import { DirectSocket } from './direct-socket.ts';
import { isDirectIo } from './io-mode.ts';
import type { TcpKeepAlive } from './listening-socket.ts';
import { isDirectHandle, type StreamHandle } from './stream-handle.ts';

interface ListeningHandle extends Partial<Pick<StreamHandle, 'setKeepAlive' | 'setNoDelay'>> {
	onconnection?: (status: number, handle: object | undefined) => void;
}

type WithHandle<T> = T & { _handle?: ListeningHandle | null };

/**
 * Passes the handle of each accepted connection to `takeHandle` before Node creates a `net.Socket` for it. `takeHandle` returns
 * false to leave the handle to Node. If Node's handles are not as expected, `takeHandle` is never called.
 */
export function interceptHandles(server: WithHandle<Server>, takeHandle: (handle: StreamHandle) => boolean): void {
	if (!isDirectIo()) return;
	const listeningHandle = server._handle;
	const nodeCallback = listeningHandle?.onconnection;
	if (!listeningHandle || typeof nodeCallback !== 'function') return;
	let usablePrototype: unknown;
	const isUsable = (handle: object): handle is StreamHandle => {
		const prototype = Object.getPrototypeOf(handle);
		if (prototype === usablePrototype) return true;
		if (!isDirectHandle(handle)) return false;
		usablePrototype = prototype;
		return true;
	};
	listeningHandle.onconnection = (status, handle) => {
		if (status === 0 && handle !== undefined && isUsable(handle) && takeHandle(handle)) return;
		nodeCallback.call(listeningHandle, status, handle);
	};
}

/**
 * Sets the options that accepted connections inherit from the listening socket. Returns false if connections do not inherit
 * options; `setSocketOptions` must then be called for each of them.
 */
export function setInheritedOptions(server: WithHandle<Server>, keepAlive: TcpKeepAlive | undefined): boolean {
	if (!isDirectIo()) return false;
	const listeningHandle = server._handle;
	if (process.platform !== 'linux' || !listeningHandle?.setNoDelay || !listeningHandle.setKeepAlive) return false;
	return listeningHandle.setNoDelay(true) === 0 && setKeepAlive(listeningHandle, keepAlive) === 0;
}

/**
 * Disables Nagle's algorithm and sets TCP keep-alive on one connection, as {@link setInheritedOptions} does on a listening
 * socket.
 */
export function setSocketOptions(socket: Socket | DirectSocket, keepAlive: TcpKeepAlive | undefined): void {
	if (!(socket instanceof DirectSocket) && !isDirectIo()) {
		socket.setNoDelay(true);
		// `setKeepAlive` accepts the idle time, but neither the interval nor the number of the keep-alive probes.
		if (keepAlive) socket.setKeepAlive(true, keepAlive.idleMs);
		return;
	}
	const handle = (socket as WithHandle<Socket>)._handle;
	handle?.setNoDelay?.(true);
	if (keepAlive && handle) setKeepAlive(handle, keepAlive);
}

function setKeepAlive(handle: ListeningHandle, keepAlive: TcpKeepAlive | undefined): number {
	if (!keepAlive) return handle.setKeepAlive?.(false, 0, 0, undefined) ?? 0;
	const { idleMs, intervalMs, count } = keepAlive;
	return handle.setKeepAlive?.(true, Math.floor(idleMs / 1000), Math.floor(intervalMs / 1000), count) ?? 0;
}
