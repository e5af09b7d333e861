/** Takes connections out of Node streams. */
import { Socket } from 'node:net';
import { DirectSocket } from './direct-socket.ts';
import { isDirectHandle } from './stream-handle.ts';

/**
 * Takes the connection out of a stream, which becomes unusable. Returns undefined, and leaves the stream as it is, if bytes are
 * waiting in the stream to be read or written, or if its handle is not of a known kind.
 */
export function toDirectSocket(socket: Socket): DirectSocket | undefined {
	if (Object.getPrototypeOf(socket) !== Socket.prototype) return undefined;
	if (socket.destroyed || socket.readableLength > 0 || socket.writableLength > 0 || socket.readableEnded)
		return undefined;
	const socketWithHandle = socket as Socket & { _handle?: object | null };
	const handle = socketWithHandle._handle;
	if (!handle || !isDirectHandle(handle)) return undefined;
	socketWithHandle._handle = null;
	return new DirectSocket(handle);
}
