/** The HTTP/1.1 and HTTP/1.0 server, with our own engine on accepted sockets (RFC 9110, RFC 9112). */
import type { Socket } from 'node:net';
import type { DirectSocket } from '../../sockets/direct-socket.ts';
import { type ConnectionPeer, NO_WAIT, type ProtocolHost, type ProtocolServer } from '../protocol.ts';
import { Http1Connection } from './connection.ts';
import { Http1Engine, type Http2TakeOver } from './engine.ts';

/**
 * Creates the HTTP/1.1 server of one listener on one thread. `takeOver` receives connections that turn out to be HTTP/2. While
 * there are no connections, the server has no timers. `host.limits` is read again for each connection and once per tick.
 * Responses start with the field `Server: svc`, which handlers may replace or remove.
 */
export function createHttp1Server(host: ProtocolHost, takeOver?: Http2TakeOver): ProtocolServer {
	const engine = new Http1Engine(host, takeOver);
	return {
		accept(socket: Socket | DirectSocket, scheme: 'http' | 'https', peer?: ConnectionPeer): void {
			if (socket.destroyed) return;
			engine.refreshLimits();
			new Http1Connection(socket, scheme, engine, peer);
		},
		drain(requestWaits = NO_WAIT): void {
			engine.draining = true;
			engine.drainWaits = requestWaits;
			for (const connection of engine.connections) connection.drain();
		},
		retire(matches): void {
			for (const connection of engine.connections) if (matches(connection.info.tls)) connection.drain(true);
		},
		get connections(): number {
			return engine.connections.size;
		},
		closable: () => engine.connections,
		close(): void {
			for (const connection of engine.connections) connection.destroy();
		},
	};
}
