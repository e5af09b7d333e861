/** An upstream for tests of `shed`, the configuration of a server in front of it, and what that server reports. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startAdmin } from '../../../admin/server.ts';
import type { Document } from '../../../compiler/document/document.ts';
import type { TestServer } from '../running-server.ts';

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Runs an upstream on a free port until `use` has ended. */
export async function withUpstream(answer: Answer, use: (address: string) => Promise<void>): Promise<void> {
	const server: Server = createServer(answer);
	server.on('upgrade', (_request, socket) => {
		socket.on('error', () => {});
		socket.on('end', () => socket.end());
		socket.resume();
		socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	try {
		await use(`127.0.0.1:${(server.address() as AddressInfo).port}`);
	} finally {
		server.closeAllConnections();
		server.close();
	}
}

/** Returns the configuration of a server that forwards all requests to these upstreams, with more options of their pool. */
export function proxying(to: readonly string[], pool: object): Document {
	return {
		settings: { metrics: {}, grace_period: 0 },
		upstreams: { app: { to, ...pool } },
		sites: [{ addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline: [{ handler: 'proxy', pool: 'app' }] }],
	} as unknown as Document;
}

/** Returns what the Admin API says about the upstreams. */
export async function upstreamEntries({ runtime }: TestServer): Promise<{ readonly [name: string]: unknown }[]> {
	const deps = { settings: { listen: '127.0.0.1:0' }, log: () => {}, onStop: () => {} };
	const admin = await startAdmin(runtime, deps);
	try {
		return (await (await fetch(`http://${admin.address}/reverse_proxy/upstreams`)).json()) as {
			[name: string]: unknown;
		}[];
	} finally {
		await admin.close();
	}
}

/** Returns the messages about shedding in the server's log. */
export const messagesOf = ({ log }: TestServer): unknown[] =>
	log.entries.filter(({ logger }) => logger === 'http.reverse_proxy.shed').map(({ msg }) => msg);
