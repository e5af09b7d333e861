/** A relay between clients and a redis-server that can lose commands and answers, refuse connections, or lead to another server. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** What the relay drops: the next command that contains a text, or the answer to it. In both cases it ends the connection. */
type Loss = 'command' | 'answer';

export class RedisRelay {
	readonly #server: Server;
	readonly #sockets = new Set<Socket>();
	#redisPort: number;
	#isReachable = true;
	#loss: { readonly kind: Loss; readonly text: string; readonly isUnreachableAfter: boolean } | undefined;
	/** Number of commands or answers that have been lost. */
	lossCount = 0;

	private constructor(redisPort: number) {
		this.#redisPort = redisPort;
		this.#server = createServer(client => {
			if (!this.#isReachable) {
				client.destroy();
				return;
			}
			const upstream = connect(this.#redisPort, '127.0.0.1');
			let received = '';
			let losesAnswer = false;
			for (const socket of [client, upstream]) {
				this.#sockets.add(socket);
				socket.on('error', () => {});
				socket.on('close', () => {
					this.#sockets.delete(socket);
					client.destroy();
					upstream.destroy();
				});
			}
			client.on('data', data => {
				received += data.toString('latin1');
				if (this.#loss && received.includes(this.#loss.text)) {
					if (this.#loss.kind === 'command') {
						this.#cut(client);
						return;
					}
					losesAnswer = true;
				}
				upstream.write(data);
			});
			upstream.on('data', data => {
				if (losesAnswer) this.#cut(client);
				else client.write(data);
			});
		});
	}

	static async start(redisPort: number): Promise<RedisRelay> {
		const relay = new RedisRelay(redisPort);
		relay.#server.listen(0, '127.0.0.1');
		await once(relay.#server, 'listening');
		return relay;
	}

	get address(): string {
		return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
	}

	/** Loses the next command that contains a text before it reaches Redis, or the answer of Redis to it. */
	loseNext(kind: Loss, text: string, { isUnreachableAfter = false } = {}): void {
		this.#loss = { kind, text, isUnreachableAfter };
	}

	/** Connects new clients to another server, as a host name with a new address does. Existing connections continue. */
	leadTo(redisPort: number): void {
		this.#redisPort = redisPort;
	}

	/** Ends all connections, and refuses others while `isReachable` is false. */
	setReachable(isReachable: boolean): void {
		this.#isReachable = isReachable;
		if (!isReachable) for (const socket of this.#sockets) socket.destroy();
	}

	close(): void {
		this.setReachable(false);
		this.#server.close();
	}

	#cut(client: Socket): void {
		const isUnreachableAfter = this.#loss?.isUnreachableAfter === true;
		this.#loss = undefined;
		this.lossCount++;
		client.destroy();
		if (isUnreachableAfter) this.setReachable(false);
	}
}
