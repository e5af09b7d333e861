/** A TLS listener on one thread without a runtime, for tests of handshakes. */
import { createServer, type Socket } from 'node:net';
import type { ListenerTls } from '../../../compiler/codegen/plan/site-tls.ts';
import type { PublishedCertificate } from '../../../runtime/certificates/certificate-feed.ts';
import { DirectSocket, type SocketOwner } from '../../../runtime/sockets/direct-socket.ts';
import { ThreadTls } from '../../../runtime/tls/thread-tls.ts';
import { TlsServer } from '../../../runtime/tls/tls-server.ts';

/** A running listener and its counters. */
export interface TestTlsListener {
	readonly tls: ThreadTls;
	readonly server: TlsServer;
	readonly port: number;
	readonly failures: string[];
	close(): void;
}

/** Ignores the events of a connection that is not a stream. The connection closes once both sides have ended. */
const IGNORING_OWNER: SocketOwner = {
	onReceived: () => {},
	onPeerEnded: () => {},
	onDrained: () => {},
	onClosed: () => {},
};

/** Starts a listener that answers every connection with one response after the handshake, and then closes it. */
export async function startTlsListener(
	settings: Partial<ListenerTls>,
	certificates: readonly PublishedCertificate[],
): Promise<TestTlsListener> {
	const tls = new ThreadTls(() => {});
	tls.applyUpdate({ kind: 'certificates', set: certificates, dropped: [] });
	const failures: string[] = [];
	const memory = Buffer.allocUnsafeSlow(4096);
	const http1 = {
		accept: (socket: Socket | DirectSocket) => {
			// The end of the connection would not be noticed if nothing read from it.
			if (socket instanceof DirectSocket) socket.start(memory, IGNORING_OWNER);
			else socket.on('error', () => {}).resume();
			socket.write(Buffer.from('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'));
			socket.end();
		},
		drain: () => {},
		retire: () => {},
		closable: () => [],
		close: () => {},
		connections: 0,
	};
	const server = new TlsServer({
		tls,
		port: 0,
		protocols: () => ['h1'],
		http1,
		http2: undefined,
		obtain: async () => false,
		countHandshake: () => {},
		countFailure: reason => void failures.push(reason),
		onConnectionEnded: () => {},
	});
	server.configure(JSON.stringify({ policies: [{}], names: {}, other: 0, strict_sni_host: false, ...settings }));
	const listener = createServer({ allowHalfOpen: true }, socket => server.accept(socket, 'https'));
	await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve));
	const { port } = listener.address() as { port: number };
	const close = (): void => {
		listener.close();
		server.close();
	};
	return { tls, server, port, failures, close };
}
