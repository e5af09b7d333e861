/** Checks that a listener's protocol answers on this thread, before the thread accepts anybody's connections. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { ProtocolServer } from '../protocols/protocol.ts';

/** Without a `Host` field: every protocol answers it with 400 itself, in the clear, also where it expects TLS. */
const MALFORMED = 'GET /handover-check HTTP/1.1\r\nConnection: close\r\n\r\n';

/** Milliseconds for the answer. */
const LIMIT = 10_000;

/** Makes the protocol serve a connection of our own. Rejects if no answer comes. */
export function checkProtocol(protocol: ProtocolServer, scheme: 'http' | 'https'): Promise<void> {
	return new Promise((resolve, reject) => {
		let client: Socket | undefined;
		const server = createServer({ allowHalfOpen: true }, socket => protocol.accept(socket, scheme));
		const finish = (problem?: string): void => {
			clearTimeout(timer);
			server.close();
			client?.destroy();
			if (problem === undefined) resolve();
			else reject(new Error(problem));
		};
		const timer = setTimeout(() => finish('it did not answer in time'), LIMIT);
		server.on('error', error => finish(error.message));
		server.listen({ port: 0, host: '127.0.0.1', exclusive: true }, () => {
			client = connect((server.address() as AddressInfo).port, '127.0.0.1');
			client.on('error', error => finish(error.message));
			client.on('close', () => finish('it closed the connection without an answer'));
			client.once('data', () => finish());
			client.write(MALFORMED);
		});
	});
}
