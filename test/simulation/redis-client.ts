/**
 * A Redis client that costs little, so that one process can act as the clients of 1,000 machines. It skips the contents of replies.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export function encodeCommand(args: readonly (string | Buffer)[]): Buffer {
	const parts: Buffer[] = [Buffer.from(`*${args.length}\r\n`)];
	for (const arg of args) {
		const bytes = Buffer.from(arg);
		parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
	}
	return Buffer.concat(parts);
}

/** A connection. It sends one command at a time. */
export class RedisClient {
	readonly #socket: Socket;
	#received: Buffer = Buffer.alloc(0);
	#settle: { resolve: () => void; reject: (error: Error) => void } | undefined;

	private constructor(socket: Socket) {
		this.#socket = socket;
		socket.setNoDelay(true);
		socket.on('data', (bytes: Buffer) => this.#onBytes(bytes));
		socket.on('error', error => this.#settle?.reject(error));
		socket.on('close', () => this.#settle?.reject(new Error('the connection has closed')));
	}

	static async connect(port: number): Promise<RedisClient> {
		const socket = connect(port, '127.0.0.1');
		await once(socket, 'connect');
		return new RedisClient(socket);
	}

	/** Sends a command. Resolves after its reply. Rejects if the reply is an error. */
	send(command: Buffer): Promise<void> {
		return new Promise((resolve, reject) => {
			this.#settle = { resolve, reject };
			this.#socket.write(command);
		});
	}

	close(): void {
		this.#socket.destroy();
	}

	#onBytes(bytes: Buffer): void {
		this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
		if (endOfReply(this.#received, 0) !== this.#received.length) return;
		const reply = this.#received;
		this.#received = Buffer.alloc(0);
		const settle = this.#settle;
		this.#settle = undefined;
		if (reply[0] === '-'.charCodeAt(0)) settle?.reject(new Error(reply.toString('latin1')));
		else settle?.resolve();
	}
}

/** Returns the index after the reply that begins at `start`; −1 if it is incomplete. */
function endOfReply(bytes: Buffer, start: number): number {
	const lineEnd = bytes.indexOf('\r\n', start);
	if (lineEnd === -1) return -1;
	const type = String.fromCharCode(bytes[start]!);
	const count = Number(bytes.toString('latin1', start + 1, lineEnd));
	let end = lineEnd + 2;
	if (type === '$' && count >= 0) end += count + 2;
	if (type === '*') for (let element = 0; element < count && end !== -1; element++) end = endOfReply(bytes, end);
	return end > bytes.length ? -1 : end;
}
