/** The protocols of a listener without TLS: HTTP/1.1, and HTTP/2 with prior knowledge if configured. */
import type { Socket } from 'node:net';
import type { DirectSocket } from '../../sockets/direct-socket.ts';
import { createHttp1Server } from '../http1/http1-server.ts';
import type { ConnectionPeer, ProtocolHost, ProtocolServer } from '../protocol.ts';
import { createHttp2Server, type Http2Server } from './http2-server.ts';

/**
 * Creates the server of a plaintext listener on one thread. `currentProtocols` returns the current protocols (`h1`, `h2c`). With
 * both, the first bytes of each connection decide, at no cost for HTTP/1.1. With neither, the server speaks HTTP/1.1, because the
 * other protocols need TLS. `Upgrade: h2c` is ignored (RFC 9113 §3.1).
 */
export function createCleartextServer(host: ProtocolHost, currentProtocols: () => readonly string[]): ProtocolServer {
	let http2: Http2Server | undefined;
	const getHttp2 = (): Http2Server => {
		http2 ??= createHttp2Server(host);
		return http2;
	};
	const http1 = createHttp1Server(host, (input, info, bytes) => {
		if (!currentProtocols().includes('h2c')) return false;
		getHttp2().takeOver(input, info, bytes);
		return true;
	});
	return {
		accept(socket: Socket | DirectSocket, scheme: 'http' | 'https', peer?: ConnectionPeer): void {
			const protocolNames = currentProtocols();
			const isHttp2Only = protocolNames.includes('h2c') && !protocolNames.includes('h1');
			(isHttp2Only ? getHttp2() : http1).accept(socket, scheme, peer);
		},
		drain(requestWaits): void {
			http1.drain(requestWaits);
			http2?.drain();
		},
		retire(matches): void {
			http1.retire(matches);
			http2?.retire(matches);
		},
		get connections(): number {
			return http1.connections + (http2?.connections ?? 0);
		},
		*closable() {
			yield* http1.closable();
			if (http2) yield* http2.closable();
		},
		close(): void {
			http1.close();
			http2?.close();
		},
	};
}
