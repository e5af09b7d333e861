/** The handles of connections that a server accepts, before Node makes streams of them. */
import type { Server, Socket } from 'node:net';
import { DirectSocket, isDirect, type StreamHandle } from './direct-socket.ts';
import { isDirectIo } from './io-mode.ts';
import type { TcpKeepAlive } from './listening-socket.ts';

interface ListeningHandle extends Partial<Pick<StreamHandle, 'setKeepAlive' | 'setNoDelay'>> {
	onconnection?: (status: number, handle: object | undefined) => void;
}

type WithHandle<T> = T & { _handle?: ListeningHandle | null };

/**
 * Shows `take` the handle of each connection before a `net.Socket` is made of it; false declines it. Without such handles
 * the server goes on as it does.
 */
export function acceptHandles(server: WithHandle<Server>, take: (handle: StreamHandle) => boolean): void {
	if (!isDirectIo()) return;
	const listening = server._handle;
	const ordinary = listening?.onconnection;
	if (!listening || typeof ordinary !== 'function') return;
	let known: unknown;
	const fits = (handle: object): handle is StreamHandle => {
		const prototype = Object.getPrototypeOf(handle);
		if (prototype === known) return true;
		if (!isDirect(handle)) return false;
		known = prototype;
		return true;
	};
	listening.onconnection = (status, handle) => {
		if (status === 0 && handle !== undefined && fits(handle) && take(handle)) return;
		ordinary.call(listening, status, handle);
	};
}

/** Sets what connections take over from the listening socket; false where they do not, and each has to be told. */
export function inheritOptions(server: WithHandle<Server>, keepAlive: TcpKeepAlive | undefined): boolean {
	if (!isDirectIo()) return false;
	const listening = server._handle;
	if (process.platform !== 'linux' || !listening?.setNoDelay || !listening.setKeepAlive) return false;
	return listening.setNoDelay(true) === 0 && setKeepAlive(listening, keepAlive) === 0;
}

/** Sets the same for one connection. */
export function setOptions(socket: Socket | DirectSocket, keepAlive: TcpKeepAlive | undefined): void {
	if (!(socket instanceof DirectSocket) && !isDirectIo()) {
		socket.setNoDelay(true);
		// Node takes no interval and no number of probes.
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
