/** Makes the first packets of clients that never continue their handshake, for floods. */
import { createSocket } from 'node:dgram';
import { Worker } from 'node:worker_threads';
import { until } from '../../../harness.ts';
import type { FloodOrder } from './flood-worker.ts';
import { pollerReady } from './frames.ts';
import { QuicClient, type QuicClientOptions } from './quic-client.ts';

/** Records the first datagram of each of `count` clients: a valid Initial packet that a server answers. */
export async function firstPackets(count: number, options: QuicClientOptions = {}): Promise<Buffer[]> {
	await pollerReady();
	const socket = createSocket('udp4');
	await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve));
	const found: Buffer[] = [];
	const seen = new Set<string>();
	socket.on('message', bytes => {
		// Keeps one packet per client. The client's connection ID of 8 bytes, which follows the version and the length,
		// identifies it.
		const id = bytes.toString('latin1', 6, 14);
		if (bytes.length < 1200 || seen.has(id)) return;
		seen.add(id);
		found.push(bytes);
	});
	for (let made = 0; made < count; made += 20) {
		const clients = Array.from({ length: 20 }, () => new QuicClient(socket.address().port, options));
		await until('first packets', () => found.length >= made + 20);
		for (const client of clients) client.destroy();
	}
	socket.close();
	return found;
}

/** Sends each packet once from the given address. */
export async function sendFrom(packets: readonly Buffer[], port: number, from: string): Promise<void> {
	const socket = createSocket('udp4');
	await new Promise<void>(resolve => socket.bind(0, from, resolve));
	for (const packet of packets) await new Promise(resolve => socket.send(packet, port, '127.0.0.1', resolve));
	socket.close();
}

/**
 * Floods a port from many addresses until the returned function is called. That function resolves to the number of datagrams
 * sent.
 */
export function startFlood(order: FloodOrder): () => Promise<number> {
	const worker = new Worker(new URL('./flood-worker.ts', import.meta.url), { workerData: order });
	return async () => {
		const sent = new Promise<number>((resolve, reject) => {
			worker.once('message', resolve);
			worker.once('error', reject);
		});
		worker.postMessage('stop');
		const count = await sent;
		await worker.terminate();
		return count;
	};
}
