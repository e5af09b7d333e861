/** A NAT between one QUIC client and a server, which changes the client's port whenever a test asks for it. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

/** A running NAT. */
export class Nat {
	/** The port to which the client sends. */
	port = 0;
	/** Number of datagrams that the server has sent to former ports, and which are therefore lost. */
	lostCount = 0;
	/** Number of datagrams that the server has sent to the current port. */
	receivedCount = 0;
	/** Number of datagrams of the client that were sent to the server. */
	sentCount = 0;
	/** The last datagrams of the client, oldest first. */
	readonly recent: Buffer[] = [];
	/** Called for each datagram of the client. If it returns true, the datagram is not sent. */
	intercepts: (bytes: Buffer) => boolean = () => false;
	readonly #front = createSocket('udp4');
	readonly #serverPort: number;
	readonly #sockets: Socket[] = [];
	#current: Socket | undefined;
	#clientPort = 0;

	private constructor(serverPort: number) {
		this.#serverPort = serverPort;
		this.#front.on('message', (bytes, { port }) => {
			this.#clientPort = port;
			this.recent.push(bytes);
			if (this.recent.length > 64) this.recent.shift();
			if (this.intercepts(bytes)) return;
			this.sentCount++;
			this.#current?.send(bytes, serverPort, '127.0.0.1');
		});
	}

	/** Starts a NAT between clients and the server at `serverPort`. */
	static async start(serverPort: number): Promise<Nat> {
		const nat = new Nat(serverPort);
		nat.#front.bind(0, '127.0.0.1');
		await once(nat.#front, 'listening');
		nat.port = nat.#front.address().port;
		await nat.rebind();
		return nat;
	}

	/** The socket from which the server receives the client's datagrams. */
	get socket(): Socket {
		return this.#current!;
	}

	/** The port from which the server receives the client's datagrams. */
	get outerPort(): number {
		return this.socket.address().port;
	}

	/** Opens another socket of this machine from which datagrams can be sent to the server. */
	async openSocket(address = '127.0.0.1'): Promise<Socket> {
		const socket = createSocket('udp4');
		socket.on('message', bytes => {
			if (socket !== this.#current) {
				this.lostCount++;
				return;
			}
			this.receivedCount++;
			this.#front.send(bytes, this.#clientPort, '127.0.0.1');
		});
		socket.bind(0, address);
		await once(socket, 'listening');
		this.#sockets.push(socket);
		return socket;
	}

	/** Uses another socket for all further datagrams, and forgets the former one. By default, it is a new one. */
	async rebind(socket?: Socket): Promise<void> {
		this.#current = socket ?? (await this.openSocket());
		this.receivedCount = 0;
	}

	/** Sends a datagram to the server from a socket. */
	send(socket: Socket, bytes: Uint8Array): Promise<void> {
		return new Promise(resolve => socket.send(bytes, this.#serverPort, '127.0.0.1', () => resolve()));
	}

	close(): void {
		this.#front.close();
		for (const socket of this.#sockets) socket.close();
	}
}
