/** The HTTP/3 server on QUIC connections, with our own frames and QPACK (RFC 9114, RFC 9204). */
import type { TlsInfo } from '../../../compiler/exchange/exchange.ts';
import type { QuicConnection } from '../../sockets/quic/quic-connection.ts';
import type { ProtocolHost, ProtocolServer } from '../protocol.ts';
import { Http3Connection } from './http3-connection.ts';
import { Http3Engine } from './http3-engine.ts';

/** The HTTP/3 server. It is like the servers of other protocols, but accepts QUIC connections instead of sockets. */
export interface Http3Server extends Omit<ProtocolServer, 'accept'> {
	/** Takes over a QUIC connection whose handshake is complete. */
	accept(connection: QuicConnection, tls: TlsInfo): void;
}

/** Creates the HTTP/3 server of one listener on one thread. While it has no connections, it needs no timers and no memory. */
export function createHttp3Server(host: ProtocolHost): Http3Server {
	const engine = new Http3Engine(host);
	return {
		accept(connection, tls): void {
			new Http3Connection(connection, tls, engine);
		},
		retire(matches): void {
			for (const connection of engine.connections) if (matches(connection.info.tls)) connection.drain();
		},
		drain(): void {
			engine.draining = true;
			for (const connection of engine.connections) connection.drain();
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
