/** HTTP/2 on accepted sockets: our own engine (RFC 9113), by ALPN or by prior knowledge. */
import type { Socket } from 'node:net';
import type { DirectSocket } from '../../sockets/direct-socket.ts';
import type { SocketInfo } from '../http1/socket-info.ts';
import type { SocketInput } from '../http1/socket-input.ts';
import type { ConnectionPeer, ProtocolHost, ProtocolServer } from '../protocol.ts';
import { Http2Engine } from './http2-engine.ts';
import { Session } from './session.ts';

/** The server; it can go on with a connection whose first bytes were read as HTTP/1.1. */
export interface Http2Server extends ProtocolServer {
	/** `bytes` are the caller's again afterwards. */
	takeOver(input: SocketInput, info: SocketInfo, bytes: Buffer): void;
}

/**
 * Makes the HTTP/2 server of one listener on one thread. It holds no timer and no memory while it has no connection.
 * `host.limits` is looked at again with every connection and every stroke of its clock. A response starts with `Server: svc`
 * among its fields, for handlers to keep, replace or remove.
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
