/** An upstream that records every byte it receives, and answers with bytes that the test determines. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** A server over raw sockets that recognizes the end of a message by its length or last chunk. */
export class RecordingUpstream {
	/** Everything received since `expect`, as latin1, in the order of connections. */
	received = '';
	/** Number of requests answered since `expect`. */
	requests = 0;
	readonly #server: Server;
	readonly #sockets = new Set<Socket>();
	#answers: readonly string[] = [OK];
	#closes = false;
	#continues = false;

	constructor(server: Server) {
		this.#server = server;
		server.on('connection', socket => this.#serve(socket));
	}

	/** Starts an upstream on a free port of 127.0.0.1. */
	static async start(): Promise<RecordingUpstream> {
		const server = createServer({ noDelay: true });
		const upstream = new RecordingUpstream(server);
		server.listen(0, '127.0.0.1');
		await once(server, 'listening');
		return upstream;
	}

	get port(): number {
		return (this.#server.address() as AddressInfo).port;
	}

	/**
	 * Clears the recording, closes the connections, and sets the responses. Each request gets the next response; all requests
	 * after the last response get that response.
	 */
	expect(answers: string | readonly string[] | undefined, closes = false, continues = false): void {
		this.#continues = continues;
		for (const socket of this.#sockets) socket.destroy();
		this.received = '';
		this.requests = 0;
		this.#answers = answers === undefined ? [OK] : typeof answers === 'string' ? [answers] : answers;
		this.#closes = closes;
	}

	async stop(): Promise<void> {
		for (const socket of this.#sockets) socket.destroy();
		await new Promise(resolve => this.#server.close(resolve));
	}

	#serve(socket: Socket): void {
		let text = '';
		this.#sockets.add(socket);
		socket.on('error', () => {});
		socket.on('close', () => this.#sockets.delete(socket));
		socket.on('data', bytes => {
			const piece = bytes.toString('latin1');
			text += piece;
			this.received += piece;
			if (this.#continues && /\r\nexpect: 100-continue\r\n[\s\S]*\r\n\r\n$/i.test(text)) {
				socket.write('HTTP/1.1 100 Continue\r\n\r\n');
			}
			for (let end = messageEnd(text); end !== -1; end = messageEnd(text)) {
				text = text.slice(end);
				const answer = this.#answers[Math.min(this.requests, this.#answers.length - 1)]!;
				this.requests++;
				if (this.#closes) socket.end(answer, 'latin1');
				else socket.write(answer, 'latin1');
			}
		});
	}
}

/** Returns the index after the first message; −1 while the message is incomplete. */
function messageEnd(text: string): number {
	const head = text.indexOf('\r\n\r\n');
	if (head === -1) return -1;
	const fields = text.slice(0, head);
	if (/\r\ntransfer-encoding:/i.test(fields)) {
		const last = /(?:^|\r\n)0\r\n(?:[^\r\n]+\r\n)*\r\n/.exec(text.slice(head + 4));
		return last ? head + 4 + last.index + last[0].length : -1;
	}
	const length = Number(/\r\ncontent-length: *(\d+)/i.exec(fields)?.[1] ?? 0);
	return text.length >= head + 4 + length ? head + 4 + length : -1;
}
