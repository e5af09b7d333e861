/** HTTP/2 on accepted sockets: our own engine (RFC 9113), by ALPN or by prior knowledge. */
import type { Socket } from 'node:net';
import type { ProtocolHost, ProtocolServer } from '../protocol.ts';
import { Http2Engine } from './http2-engine.ts';
import { Session } from './session.ts';

/**
 * Makes the HTTP/2 server of one listener on one thread. It holds no timer and no memory while it has no connection.
 * `host.limits` is read once. A response starts with `Server: svc` among its fields, for handlers to keep, replace or remove.
 */
export function createHttp2Server(host: ProtocolHost): ProtocolServer {
	const engine = new Http2Engine(host);
	return {
		accept(socket: Socket, scheme: 'http' | 'https'): void {
			if (!socket.destroyed) new Session(socket, scheme, engine);
		},
		drain(): void {
			engine.draining = true;
			for (const session of engine.sessions) session.drain();
		},
		get connections(): number {
			return engine.sessions.size;
		},
		close(): void {
			for (const session of engine.sessions) session.destroy();
		},
	};
}
