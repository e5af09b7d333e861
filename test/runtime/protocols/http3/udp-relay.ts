/** A network path between a QUIC client and a server that delays and drops datagrams. */
import { createSocket, type Socket } from 'node:dgram';
import { freePorts } from '../../../harness.ts';

/** How a relay treats datagrams. */
export interface RelayOptions {
	/** Milliseconds by which each datagram is delayed; the default is 0. A function is called for each datagram. */
	readonly delay?: number | (() => number);
	/** Called for each datagram. Returns true to drop it. */
	loses(toClient: boolean, bytes: Buffer): boolean;
	/** Called for each datagram that is not dropped. Returns true to send it twice. */
	repeats?(): boolean;
}

/** A running relay to one port. */
export interface UdpRelay {
	readonly port: number;
	close(): void;
}

/** Starts a relay on its own port between clients and the server at `port`. */
export async function udpRelay(port: number, { delay = 0, loses, repeats }: RelayOptions): Promise<UdpRelay> {
	const [relayPort] = (await freePorts(1)) as [number];
	const front = createSocket('udp4');
	const backs = new Map<number, Socket>();
	let open = true;
	const pass = (toClient: boolean, bytes: Buffer, send: () => void): void => {
		if (loses(toClient, bytes)) return;
		for (let left = repeats?.() ? 2 : 1; left > 0; left--) {
			setTimeout(
				() => {
					if (open) send();
				},
				typeof delay === 'number' ? delay : delay(),
			);
		}
	};
	front.on('message', (bytes, { port: client }) => {
		let back = backs.get(client);
		if (back === undefined) {
			back = createSocket('udp4');
			backs.set(client, back);
			back.on('message', answer => pass(true, answer, () => front.send(answer, client, '127.0.0.1')));
		}
		const to = back;
		pass(false, bytes, () => to.send(bytes, port, '127.0.0.1'));
	});
	await new Promise<void>(resolve => front.bind(relayPort, '127.0.0.1', resolve));
	return {
		port: relayPort,
		close(): void {
			open = false;
			front.close();
			for (const back of backs.values()) back.close();
		},
	};
}
