/** A client that sends one request after another, on one connection for as long as the server keeps it open. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Answer, parseAnswer } from './live-answers.ts';

/** Milliseconds until a response must be complete. */
const RESPONSE_LIMIT_MS = 10_000;

export class PersistentClient {
	readonly #port: number;
	#socket: Socket | undefined;
	#text = '';
	#hasEnded = false;
	#progress: () => void = () => {};

	constructor(port: number) {
		this.#port = port;
	}

	/** Sends a request. Resolves to `dropped` if the server closes the connection without a response. */
	async exchange(wire: string, method: string): Promise<Answer | 'dropped'> {
		this.#text = '';
		if (this.#socket === undefined) await this.#connect();
		const socket = this.#socket!;
		socket.write(wire, 'latin1');
		let length: number | undefined;
		await new Promise<void>((resolve, reject) => {
			const timer = setTimeout(
				() => reject(new Error(`no end of the response within ${RESPONSE_LIMIT_MS} ms\n${wire}`)),
				RESPONSE_LIMIT_MS,
			);
			this.#progress = () => {
				length = lengthOf(this.#text, method);
				if (length === undefined && !this.#hasEnded) return;
				clearTimeout(timer);
				resolve();
			};
			if (this.#hasEnded) this.#progress();
		});
		const closes = /^connection:.*close/im.test(this.#text.split('\r\n\r\n', 1)[0]!);
		if (this.#hasEnded || closes) this.close();
		return parseAnswer(length === undefined ? this.#text : this.#text.slice(0, length));
	}

	close(): void {
		this.#socket?.destroy();
		this.#socket = undefined;
	}

	async #connect(): Promise<void> {
		const socket = connect(this.#port, '127.0.0.1');
		this.#socket = socket;
		this.#hasEnded = false;
		socket.setEncoding('latin1');
		socket.setNoDelay();
		socket.on('data', (text: string) => {
			this.#text += text;
			this.#progress();
		});
		socket.on('error', () => {});
		socket.on('close', () => {
			this.#hasEnded = true;
			this.#progress();
		});
		await once(socket, 'connect');
	}
}

/** Returns the length of a complete response; undefined if the response is incomplete, or ends only with the connection. */
function lengthOf(text: string, method: string): number | undefined {
	const head = text.indexOf('\r\n\r\n');
	if (head === -1) return undefined;
	const start = head + 4;
	const status = Number(text.slice(9, 12));
	if (method === 'HEAD' || status === 204 || status === 304) return start;
	const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, start));
	if (length) return text.length >= start + Number(length[1]) ? start + Number(length[1]) : undefined;
	if (!/\r\ntransfer-encoding: *chunked/i.test(text.slice(0, start))) return undefined;
	const last = text.indexOf('0\r\n\r\n', start);
	return last !== -1 && text.endsWith('0\r\n\r\n') ? text.length : undefined;
}
