/**
 * The HTTP/2 server, with our own engine on accepted sockets (RFC 9113). Clients choose HTTP/2 by ALPN or with prior knowledge.
 */
import type { Socket } from 'node:net';
import type { DirectSocket } from '../../sockets/direct-socket.ts';
import type { SocketInfo } from '../http1/socket-info.ts';
import type { SocketInput } from '../http1/socket-input.ts';
import type { ConnectionPeer, ProtocolHost, ProtocolServer } from '../protocol.ts';
import { Http2Engine } from './http2-engine.ts';
import { Http2Session } from './session.ts';

/** The HTTP/2 server. It can take over a connection whose first bytes were read as HTTP/1.1. */
export interface Http2Server extends ProtocolServer {
	/** Takes over a connection. `bytes` are the first bytes received, valid only during the call. */
	takeOver(input: SocketInput, info: SocketInfo, bytes: Buffer): void;
}

/**
 * Creates the HTTP/2 server of one listener on one thread. While it has no connections, it needs no timers and no memory.
 * `host.limits` is read again for each connection and at each tick of the clock. Responses start with the field `Server: svc`,
 * which handlers may replace or remove.
 */
export function createHttp2Server(host: ProtocolHost): Http2Server {
	const engine = new Http2Engine(host);
	return {
		accept(socket: Socket | DirectSocket, scheme: 'http' | 'https', peer?: ConnectionPeer): void {
			if (!socket.destroyed) new Http2Session(socket, scheme, engine, peer);
		},
		takeOver(input: SocketInput, info: SocketInfo, bytes: Buffer): void {
			new Http2Session({ input, info }, 'http', engine).onData(bytes);
		},
		retire(matches): void {
			for (const session of engine.sessions) if (matches(session.info.tls)) session.drain();
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
