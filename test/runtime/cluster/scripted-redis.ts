/** A server that receives commands in the protocol of Redis and sends the replies that a test gives. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** Commands that a client sends after it has connected. They are answered with `OK`. */
const SETUP_COMMANDS: ReadonlySet<string> = new Set(['AUTH', 'CLIENT', 'SELECT']);

export class ScriptedRedis {
	readonly #server: Server;
	readonly #sockets = new Set<Socket>();
	/** The commands so far, without those that set up a connection. */
	readonly commands: (readonly string[])[] = [];

	/** @param answer Returns a reply, in which each character stands for one byte. */
	constructor(answer: (command: readonly string[]) => string) {
		this.#server = createServer(socket => {
			this.#sockets.add(socket);
			let received = '';
			socket.setEncoding('latin1');
			socket.on('error', () => {});
			socket.on('close', () => this.#sockets.delete(socket));
			socket.on('data', text => {
				received += text;
				for (let read = readCommand(received); read !== undefined; read = readCommand(received)) {
					const { command, end } = read;
					received = received.slice(end);
					const isSetup = SETUP_COMMANDS.has(command[0]!.toUpperCase());
					if (!isSetup) this.commands.push(command);
					socket.write(isSetup ? '+OK\r\n' : answer(command), 'latin1');
				}
			});
		});
	}

	/** Listens on a free port of 127.0.0.1. Returns `host:port`. */
	async start(): Promise<string> {
		this.#server.listen(0, '127.0.0.1');
		await once(this.#server, 'listening');
		return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
	}

	get connectionCount(): number {
		return this.#sockets.size;
	}

	close(): void {
		this.#server.close();
		for (const socket of this.#sockets) socket.destroy();
	}
}

/** Reads a command, which is an array of bulk strings. Returns undefined if it is not complete yet. */
function readCommand(text: string): { readonly command: readonly string[]; readonly end: number } | undefined {
	const count = Number(/^\*(\d+)\r\n/.exec(text)?.[1] ?? Number.NaN);
	if (Number.isNaN(count)) return undefined;
	let end = text.indexOf('\n') + 1;
	const command: string[] = [];
	for (let i = 0; i < count; i++) {
		const [line, length] = /^\$(\d+)\r\n/.exec(text.slice(end, end + 20)) ?? [];
		if (line === undefined) return undefined;
		const start = end + line.length;
		end = start + Number(length) + 2;
		if (text.length < end) return undefined;
		command.push(text.slice(start, end - 2));
	}
	return { command, end };
}
