/** Sends log lines to a collector. Unsent lines wait in a bounded queue, so that callers never wait for the network. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import type { CollectorAddress } from '../../compiler/modules/providers/log-writers/net-output.ts';
import {
	IGNORED_WRITER_EVENTS,
	type LineKind,
	LOSS_CLOSED,
	LOSS_TOO_SLOW,
	linesIn,
	type WriterEvents,
} from './log-losses.ts';
import type { LogWriter } from './log-writer.ts';

/** Maximum characters queued. */
const QUEUE_LIMIT = 8 * 1024 * 1024;
/** Milliseconds until the first reconnection attempt. The wait doubles each time. */
const FIRST_DELAY = 250;
/** Maximum milliseconds until a reconnection attempt. */
const MAX_DELAY = 30_000;
/** Milliseconds to deliver the remaining lines when the writer is closed. */
const CLOSE_LIMIT = 2000;
/** Maximum bytes of a datagram (RFC 768, minus headers). */
const LARGEST_DATAGRAM = 65_507;

/** Options of the connection. */
export interface NetWriterOptions {
	/** Connection timeout in milliseconds. */
	readonly timeout: number;
	/** Receives lines until the first connection; if undefined, opening waits for the connection. */
	readonly meanwhile: LogWriter | undefined;
	readonly events?: WriterEvents | undefined;
}

interface QueuedText {
	readonly text: string;
	readonly kind: LineKind;
}

/** Sends lines in order over a stream socket, and reconnects whenever the connection ends. */
export class StreamWriter implements LogWriter {
	readonly opened: Promise<void>;
	readonly #address: Exclude<CollectorAddress, { network: 'udp' }>;
	readonly #options: NetWriterOptions;
	#socket: Socket | undefined;
	#connected = false;
	/** Whether the collector has ever been reached. */
	#reached = false;
	readonly #queue: QueuedText[] = [];
	readonly #events: WriterEvents;
	#queued = 0;
	#delay = FIRST_DELAY;
	#timer: NodeJS.Timeout | undefined;
	#closed = false;
	#idleCallbacks: (() => void)[] = [];

	constructor(address: Exclude<CollectorAddress, { network: 'udp' }>, options: NetWriterOptions) {
		this.#address = address;
		this.#options = options;
		this.#events = options.events ?? IGNORED_WRITER_EVENTS;
		const first = new Promise<void>((resolve, reject) => this.#connect(resolve, reject));
		this.opened = options.meanwhile ? Promise.resolve() : first;
		first.catch(() => {});
	}

	write(text: string, kind: LineKind = 'process'): boolean {
		if (!this.#reached && this.#options.meanwhile) return this.#options.meanwhile.write(text, kind);
		if (this.#queued + text.length > QUEUE_LIMIT) {
			this.#lost({ text, kind }, LOSS_TOO_SLOW);
			return false;
		}
		this.#queue.push({ text, kind });
		this.#queued += text.length;
		this.#send();
		return true;
	}

	async flush(): Promise<void> {
		if (this.#queued === 0) return;
		let timer: NodeJS.Timeout | undefined;
		await new Promise<void>(resolve => {
			this.#idleCallbacks.push(resolve);
			timer = setTimeout(resolve, CLOSE_LIMIT);
		});
		clearTimeout(timer);
	}

	async close(): Promise<void> {
		await this.flush();
		this.#closed = true;
		clearTimeout(this.#timer);
		for (const queued of this.#queue.splice(0)) this.#lost(queued, LOSS_CLOSED);
		// Data that was passed to the socket may still be in transit, so the socket is closed only after sending it.
		const socket = this.#socket;
		if (!socket) return;
		if (!this.#connected || this.#queued > 0) {
			this.#queued = 0;
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
		// Discards whatever the collector sends.
		socket.resume();
		socket.on('drain', () => this.#send());
		socket.on('error', error => failed?.(error));
		socket.once('close', () => {
			this.#connected = false;
			this.#socket = undefined;
			if (this.#closed) return;
			this.#timer = setTimeout(() => this.#connect(), this.#delay).unref();
			this.#delay = Math.min(this.#delay * 2, MAX_DELAY);
		});
	}

	/** Passes lines to the socket until it is full. If the connection breaks, lines in the socket are lost, but not those in the queue. */
	#send(): void {
		const socket = this.#socket;
		while (this.#connected && socket && this.#queue.length > 0 && !socket.writableNeedDrain) {
			const queued = this.#queue.shift()!;
			this.#queued -= queued.text.length;
			socket.write(queued.text, error => {
				if (error) this.#lost(queued, (error as NodeJS.ErrnoException).code ?? 'EIO');
				else this.#events.written();
			});
		}
		if (this.#queued > 0) return;
		for (const resolve of this.#idleCallbacks.splice(0)) resolve();
	}

	#lost({ text, kind }: QueuedText, cause: string): void {
		this.#events.lost(linesIn(Buffer.from(text)), kind, cause);
	}
}

/** Sends each line as a datagram; lines that are too long are lost. */
export class DatagramWriter implements LogWriter {
	readonly #address: { readonly host: string; readonly port: number };
	readonly #socket: UdpSocket;
	readonly #events: WriterEvents;
	#pending = 0;

	constructor(address: { readonly host: string; readonly port: number }, events: WriterEvents = IGNORED_WRITER_EVENTS) {
		this.#address = address;
		this.#events = events;
		this.#socket = createSocket(address.host.includes(':') ? 'udp6' : 'udp4');
		this.#socket.on('error', () => {});
		this.#socket.unref();
	}

	write(text: string, kind: LineKind = 'process'): boolean {
		if (this.#pending + text.length > QUEUE_LIMIT) {
			this.#events.lost(linesIn(Buffer.from(text)), kind, LOSS_TOO_SLOW);
			return false;
		}
		const { host, port } = this.#address;
		for (const line of text.split('\n')) {
			if (line === '') continue;
			const bytes = Buffer.from(line);
			if (bytes.length > LARGEST_DATAGRAM) {
				this.#events.lost(1, kind, 'EMSGSIZE');
				continue;
			}
			this.#pending += bytes.length;
			this.#socket.send(bytes, port, host, error => {
				this.#pending -= bytes.length;
				if (error) this.#events.lost(1, kind, (error as NodeJS.ErrnoException).code ?? 'EIO');
				else this.#events.written();
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
