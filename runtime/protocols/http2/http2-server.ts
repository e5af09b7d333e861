/** HTTP/2 on accepted sockets, with our own engine (RFC 9113), by ALPN or prior knowledge. */
import type { Socket } from 'node:net';
import type { DirectSocket } from '../../sockets/direct-socket.ts';
import type { SocketInfo } from '../http1/socket-info.ts';
import type { SocketInput } from '../http1/socket-input.ts';
import type { ConnectionPeer, ProtocolHost, ProtocolServer } from '../protocol.ts';
import { Http2Engine } from './http2-engine.ts';
import { Session } from './session.ts';

/** The server, which can take over a connection whose first bytes were read as HTTP/1.1. */
export interface Http2Server extends ProtocolServer {
	/** `bytes` are valid only during the call. */
	takeOver(input: SocketInput, info: SocketInfo, bytes: Buffer): void;
}

/**
 * Creates the HTTP/2 server of one listener on one thread. It has no timers and no memory while it has no connections.
 * `host.limits` is read again for each connection and at each tick of its clock. Responses start with the field `Server: svc`,
 * which handlers may replace or remove.
 */
export function createHttp2Server(host: ProtocolHost): Http2Server {
	const engine = new Http2Engine(host);
	return {
		accept(socket: Socket | DirectSocket, scheme: 'http' | 'https', peer?: ConnectionPeer): void {
			if (!socket.destroyed) new Session(socket, scheme, engine, peer);
		},
		takeOver(input: SocketInput, info: SocketInfo, bytes: Buffer): void {
			new Session({ input, info }, 'http', engine).data(bytes);
		},
		retire(which): void {
			for (const session of engine.sessions) if (which(session.info.tls)) session.drain();
		},
		drain(): void {
			engine.draining = true;
			for (const session of engine.sessions) session.drain();
		},
		get connections(): number {
			return engine.sessions.size;
		},
		closable: () => engine.sessions,
		close(): void {
			for (const session of engine.sessions) session.destroy();
		},
	};
}
