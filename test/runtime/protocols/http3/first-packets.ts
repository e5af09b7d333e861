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
 * Share of a processor that this process must get for a full flood. With less, the flood is reduced: otherwise other clients would lose
 * packets because the server is not scheduled, and not because of the flood.
 */
const MIN_PROCESSOR_SHARE = 0.8;

/** Returns the share of a processor that a busy process gets at this time. */
function processorShare(): number {
	const [from, used] = [performance.now(), process.cpuUsage()];
	while (performance.now() - from < 300);
	const { user, system } = process.cpuUsage(used);
	return (user + system) / 1000 / (performance.now() - from);
}

/** Returns the datagrams per second of a flood that has the given rate on an idle machine. */
export function affordableRate(rate: number): number {
	const share = processorShare();
	return share > MIN_PROCESSOR_SHARE ? rate : Math.round((rate * share) / 4);
}

/**
 * Floods a port from many addresses until the returned function is called. That function resolves to the number of datagrams sent;
 * further calls return the same promise.
 */
export function startFlood(order: FloodOrder): () => Promise<number> {
	const worker = new Worker(new URL('./flood-worker.ts', import.meta.url), { workerData: order });
	let sentCount: Promise<number> | undefined;
	return () => {
		sentCount ??= stopWorker(worker);
		return sentCount;
	};
}

async function stopWorker(worker: Worker): Promise<number> {
	const sent = new Promise<number>((resolve, reject) => {
		worker.once('message', resolve);
		worker.once('error', reject);
	});
	worker.postMessage('stop');
	const count = await sent;
	await worker.terminate();
	return count;
}
