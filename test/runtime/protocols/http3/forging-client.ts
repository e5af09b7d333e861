/** A client that completes a handshake, and then sends packets with frames that no client library would send. */
import { createSocket, type Socket } from 'node:dgram';
import { type PacketKeys, packetKeys, seal } from './initial-packet.ts';
import { QuicClient, type QuicClientOptions } from './quic-client.ts';

/** The first packet number of forged packets. All packet numbers of the real client are lower. */
const FIRST_FORGED = 0x10_0000;

/** A real client, and a relay between it and the server that also sends forged packets. */
export class ForgingClient {
	readonly client: QuicClient;
	/** Numbers of bytes and of datagrams that the server has sent. */
	received = { bytes: 0, datagrams: 0 };
	readonly #clientSocket: Socket;
	readonly #serverSocket: Socket;
	readonly #port: number;
	readonly #keys: PacketKeys;
	readonly #destination: Buffer;
	#packetNumber = FIRST_FORGED;

	private constructor(front: Socket, back: Socket, port: number, client: QuicClient, keys: PacketKeys, id: Buffer) {
		this.#clientSocket = front;
		this.#serverSocket = back;
		this.#port = port;
		this.client = client;
		this.#keys = keys;
		this.#destination = id;
		// Stops relaying, because the real client would object to acknowledgments of packets that it has not sent.
		front.removeAllListeners('message');
		back.removeAllListeners('message');
		back.on('message', bytes => {
			this.received.bytes += bytes.length;
			this.received.datagrams++;
		});
	}

	/** Completes a handshake and calls `before` with the real client. After that, only forged packets are sent. */
	static async connect(
		port: number,
		before: (client: QuicClient) => Promise<void> = async () => {},
		options: QuicClientOptions = {},
	): Promise<ForgingClient> {
		const front = createSocket('udp4');
		const back = createSocket('udp4');
		await Promise.all([front, back].map(socket => new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))));
		let from = 0;
		let id: Buffer | undefined;
		front.on('message', (bytes, remote) => {
			from = remote.port;
			if ((bytes[0]! & 0x80) === 0) id = Buffer.from(bytes.subarray(1, 9));
			back.send(bytes, port, '127.0.0.1');
		});
		back.on('message', bytes => front.send(bytes, from, '127.0.0.1'));
		let secret: Buffer | undefined;
		const keyLog = (line: string): void => {
			const [label, , hex] = line.split(' ');
			if (label === 'CLIENT_TRAFFIC_SECRET_0') secret = Buffer.from(hex!, 'hex');
		};
		const client = new QuicClient(front.address().port, { ...options, keyLog });
		await client.until('the handshake', () => client.connected);
		await before(client);
		await client.until('a packet of the connection', () => id !== undefined && secret !== undefined);
		return new ForgingClient(front, back, port, client, packetKeys(secret!), id!);
	}

	/** Sends a packet with these frames. Resolves once the system has accepted it. */
	send(frames: Buffer): Promise<void> {
		const number = Buffer.alloc(4);
		number.writeUInt32BE(++this.#packetNumber);
		const header = Buffer.concat([Buffer.of(0x43), this.#destination, number]);
		return this.raw(seal(header, this.#packetNumber, frames, this.#keys));
	}

	/** Sends a datagram from the client's address. */
	raw(datagram: Buffer): Promise<void> {
		return new Promise(resolve => this.#serverSocket.send(datagram, this.#port, '127.0.0.1', () => resolve()));
	}

	/** The connection ID that the server has chosen. */
	get serverId(): Buffer {
		return this.#destination;
	}

	close(): void {
		this.client.destroy();
		this.#clientSocket.close();
		this.#serverSocket.close();
	}
}
