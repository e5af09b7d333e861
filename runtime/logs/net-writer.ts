/** Sends log lines to a collector. What cannot be sent waits in a bounded queue; nobody waits for the network. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import type { CollectorAddress } from '../../compiler/providers/log-writers/net-output.ts';
import type { LogWriter } from './log-writer.ts';

/** Characters that may wait. */
const QUEUE_LIMIT = 8 * 1024 * 1024;
/** Milliseconds before the first attempt to connect again; doubled each time. */
const FIRST_DELAY = 250;
const LONGEST_DELAY = 30_000;
/** Milliseconds that a line may take to be taken by the collector when the writer is closed. */
const CLOSE_LIMIT = 2000;
/** Bytes of a datagram at most (RFC 768, less the headers). */
const LARGEST_DATAGRAM = 65_507;

/** How a collector is reached. */
export interface NetWriterOptions {
	/** Milliseconds to connect. */
	readonly timeout: number;
	/** Where lines go until the first connection; undefined makes that connection a condition of opening. */
	readonly meanwhile: LogWriter | undefined;
}

/** Sends to a stream socket, connecting again whenever the connection ends; lines are sent in order. */
export class StreamWriter implements LogWriter {
	readonly opened: Promise<void>;
	readonly #address: Exclude<CollectorAddress, { network: 'udp' }>;
	readonly #options: NetWriterOptions;
	#socket: Socket | undefined;
	#connected = false;
	/** Whether the collector was ever reached. */
	#reached = false;
	#queue: string[] = [];
	#queued = 0;
	#delay = FIRST_DELAY;
	#timer: NodeJS.Timeout | undefined;
	#closed = false;
	#idle: (() => void)[] = [];

	constructor(address: Exclude<CollectorAddress, { network: 'udp' }>, options: NetWriterOptions) {
		this.#address = address;
		this.#options = options;
		const first = new Promise<void>((resolve, reject) => this.#connect(resolve, reject));
		this.opened = options.meanwhile ? Promise.resolve() : first;
		first.catch(() => {});
	}

	write(text: string): boolean {
		if (!this.#reached && this.#options.meanwhile) return this.#options.meanwhile.write(text);
		if (this.#queued + text.length > QUEUE_LIMIT) return false;
		this.#queue.push(text);
		this.#queued += text.length;
		this.#send();
		return true;
	}

	async flush(): Promise<void> {
		if (this.#queued === 0) return;
		let timer: NodeJS.Timeout | undefined;
		await new Promise<void>(resolve => {
			this.#idle.push(resolve);
			timer = setTimeout(resolve, CLOSE_LIMIT);
		});
		clearTimeout(timer);
	}

	async close(): Promise<void> {
		await this.flush();
		this.#closed = true;
		clearTimeout(this.#timer);
		// What was handed to the socket is still on its way.
		const socket = this.#socket;
		if (!socket) return;
		if (!this.#connected || this.#queued > 0) {
			socket.destroy();
			return;
		}
		const timer = setTimeout(() => socket.destroy(), CLOSE_LIMIT);
		await new Promise<void>(resolve => {
			socket.once('close', () => resolve());
			socket.end();
		});
		clearTimeout(timer);
	}

	#connect(done?: () => void, failed?: (error: Error) => void): void {
		const { host, port, path } = this.#address as { host?: string; port?: number; path?: string };
		const socket = connect(path === undefined ? { host: host!, port: port! } : { path });
		this.#socket = socket;
		socket.setTimeout(this.#options.timeout, () => {
			if (!this.#connected) socket.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' }));
		});
		socket.once('connect', () => {
			this.#connected = true;
			this.#reached = true;
			this.#delay = FIRST_DELAY;
			socket.setTimeout(0);
			socket.setKeepAlive(true, 30_000);
			socket.unref();
			done?.();
			this.#send();
		});
		// A collector has nothing to say.
		socket.resume();
		socket.on('drain', () => this.#send());
		socket.on('error', error => failed?.(error));
		socket.once('close', () => {
			this.#connected = false;
			this.#socket = undefined;
			if (this.#closed) return;
			this.#timer = setTimeout(() => this.#connect(), this.#delay).unref();
			this.#delay = Math.min(this.#delay * 2, LONGEST_DELAY);
		});
	}

	/** Hands lines to the socket while it takes them. What it holds is lost with it; what is queued here is not. */
	#send(): void {
		const socket = this.#socket;
		while (this.#connected && socket && this.#queue.length > 0 && !socket.writableNeedDrain) {
			const text = this.#queue.shift()!;
			this.#queued -= text.length;
			socket.write(text);
		}
		if (this.#queued > 0) return;
		for (const resolve of this.#idle.splice(0)) resolve();
	}
}

/** Sends each line in a datagram of its own; one that is too long is cut. */
export class DatagramWriter implements LogWriter {
	readonly #address: { readonly host: string; readonly port: number };
	readonly #socket: UdpSocket;
	#pending = 0;

	constructor(address: { readonly host: string; readonly port: number }) {
		this.#address = address;
		this.#socket = createSocket(address.host.includes(':') ? 'udp6' : 'udp4');
		this.#socket.on('error', () => {});
		this.#socket.unref();
	}

	write(text: string): boolean {
		if (this.#pending + text.length > QUEUE_LIMIT) return false;
		const { host, port } = this.#address;
		for (const line of text.split('\n')) {
			if (line === '') continue;
			const bytes = Buffer.from(line).subarray(0, LARGEST_DATAGRAM);
			this.#pending += bytes.length;
			this.#socket.send(bytes, port, host, () => {
				this.#pending -= bytes.length;
			});
		}
		return true;
	}

	async flush(): Promise<void> {
		const end = performance.now() + CLOSE_LIMIT;
		while (this.#pending > 0 && performance.now() < end) await new Promise(resolve => setTimeout(resolve, 5));
	}

	async close(): Promise<void> {
		await this.flush();
		this.#socket.close();
	}
}
