/** Sends log lines to a collector. Unsent lines wait in a bounded queue, so that callers never wait for the network. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import type { CollectorAddress } from '../../compiler/modules/providers/log-writers/net-output.ts';
import {
	countLines,
	IGNORED_WRITER_EVENTS,
	type LineKind,
	LOSS_CLOSED,
	LOSS_TOO_SLOW,
	type WriterEvents,
} from './log-losses.ts';
import type { LogWriter } from './log-writer.ts';

const MAX_QUEUED_CHARS = 8 * 1024 * 1024;
/** Milliseconds until the first attempt to reconnect. The wait doubles with each attempt. */
const FIRST_RECONNECT_MS = 250;
/** Maximum milliseconds until an attempt to reconnect. */
const MAX_RECONNECT_MS = 30_000;
/** Milliseconds to deliver the remaining lines when the writer is closed. */
const MAX_CLOSE_MS = 2000;
/** Maximum bytes of a datagram (RFC 768, minus headers). */
const MAX_DATAGRAM_BYTES = 65_507;

/** Options of a writer that sends lines to a collector. */
export interface NetWriterOptions {
	readonly connectTimeoutMs: number;
	/** Receives lines until the collector has been reached for the first time. If undefined, the writer is not open until then. */
	readonly fallbackWriter: LogWriter | undefined;
	readonly events?: WriterEvents | undefined;
}

interface QueuedText {
	readonly text: string;
	readonly kind: LineKind;
}

/** Sends lines in order over a stream socket, and reconnects whenever the connection ends. */
export class StreamWriter implements LogWriter {
	readonly whenOpened: Promise<void>;
	readonly #address: Exclude<CollectorAddress, { network: 'udp' }>;
	readonly #options: NetWriterOptions;
	#socket: Socket | undefined;
	#isConnected = false;
	/** Whether the collector has ever been reached. */
	#wasReached = false;
	readonly #queue: QueuedText[] = [];
	readonly #events: WriterEvents;
	#queuedChars = 0;
	#reconnectDelayMs = FIRST_RECONNECT_MS;
	#reconnectTimer: NodeJS.Timeout | undefined;
	#isClosed = false;
	#idleCallbacks: (() => void)[] = [];

	constructor(address: Exclude<CollectorAddress, { network: 'udp' }>, options: NetWriterOptions) {
		this.#address = address;
		this.#options = options;
		this.#events = options.events ?? IGNORED_WRITER_EVENTS;
		const firstConnection = new Promise<void>((resolve, reject) => this.#connect(resolve, reject));
		this.whenOpened = options.fallbackWriter ? Promise.resolve() : firstConnection;
		firstConnection.catch(() => {});
	}

	write(text: string, kind: LineKind = 'process'): boolean {
		if (!this.#wasReached && this.#options.fallbackWriter) return this.#options.fallbackWriter.write(text, kind);
		if (this.#queuedChars + text.length > MAX_QUEUED_CHARS) {
			this.#reportLost({ text, kind }, LOSS_TOO_SLOW);
			return false;
		}
		this.#queue.push({ text, kind });
		this.#queuedChars += text.length;
		this.#sendQueued();
		return true;
	}

	async flush(): Promise<void> {
		if (this.#queuedChars === 0) return;
		let timer: NodeJS.Timeout | undefined;
		await new Promise<void>(resolve => {
			this.#idleCallbacks.push(resolve);
			timer = setTimeout(resolve, MAX_CLOSE_MS);
		});
		clearTimeout(timer);
	}

	async close(): Promise<void> {
		await this.flush();
		this.#isClosed = true;
		clearTimeout(this.#reconnectTimer);
		for (const queuedText of this.#queue.splice(0)) this.#reportLost(queuedText, LOSS_CLOSED);
		// Data that was passed to the socket may not have been sent yet, so the socket is closed only after sending it.
		const socket = this.#socket;
		if (!socket) return;
		if (!this.#isConnected || this.#queuedChars > 0) {
			this.#queuedChars = 0;
			socket.destroy();
			return;
		}
		const timer = setTimeout(() => socket.destroy(), MAX_CLOSE_MS);
		await new Promise<void>(resolve => {
			socket.once('close', () => resolve());
			socket.end();
		});
		clearTimeout(timer);
	}

	#connect(onConnected?: () => void, onFailed?: (error: Error) => void): void {
		const { host, port, path } = this.#address as { host?: string; port?: number; path?: string };
		const socket = connect(path === undefined ? { host: host!, port: port! } : { path });
		this.#socket = socket;
		socket.setTimeout(this.#options.connectTimeoutMs, () => {
			if (!this.#isConnected) socket.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' }));
		});
		socket.once('connect', () => {
			this.#isConnected = true;
			this.#wasReached = true;
			this.#reconnectDelayMs = FIRST_RECONNECT_MS;
			socket.setTimeout(0);
			socket.setKeepAlive(true, 30_000);
			socket.unref();
			onConnected?.();
			this.#sendQueued();
		});
		// Discards whatever the collector sends.
		socket.resume();
		socket.on('drain', () => this.#sendQueued());
		socket.on('error', error => onFailed?.(error));
		socket.once('close', () => {
			this.#isConnected = false;
			this.#socket = undefined;
			if (this.#isClosed) return;
			this.#reconnectTimer = setTimeout(() => this.#connect(), this.#reconnectDelayMs).unref();
			this.#reconnectDelayMs = Math.min(this.#reconnectDelayMs * 2, MAX_RECONNECT_MS);
		});
	}

	/**
	 * Passes lines to the socket until it is full. If the connection breaks, lines in the socket are lost, but not those in the
	 * queue.
	 */
	#sendQueued(): void {
		const socket = this.#socket;
		while (this.#isConnected && socket && this.#queue.length > 0 && !socket.writableNeedDrain) {
			const queuedText = this.#queue.shift()!;
			this.#queuedChars -= queuedText.text.length;
			socket.write(queuedText.text, error => {
				if (error) this.#reportLost(queuedText, (error as NodeJS.ErrnoException).code ?? 'EIO');
				else this.#events.onWritten();
			});
		}
		if (this.#queuedChars > 0) return;
		for (const resolve of this.#idleCallbacks.splice(0)) resolve();
	}

	#reportLost({ text, kind }: QueuedText, cause: string): void {
		this.#events.onLost(countLines(Buffer.from(text)), kind, cause);
	}
}

/** Sends each line as a datagram; lines that are too long are lost. */
export class DatagramWriter implements LogWriter {
	readonly #address: { readonly host: string; readonly port: number };
	readonly #socket: UdpSocket;
	readonly #events: WriterEvents;
	#pendingBytes = 0;

	constructor(address: { readonly host: string; readonly port: number }, events: WriterEvents = IGNORED_WRITER_EVENTS) {
		this.#address = address;
		this.#events = events;
		this.#socket = createSocket(address.host.includes(':') ? 'udp6' : 'udp4');
		this.#socket.on('error', () => {});
		this.#socket.unref();
	}

	write(text: string, kind: LineKind = 'process'): boolean {
		if (this.#pendingBytes + text.length > MAX_QUEUED_CHARS) {
			this.#events.onLost(countLines(Buffer.from(text)), kind, LOSS_TOO_SLOW);
			return false;
		}
		const { host, port } = this.#address;
		for (const line of text.split('\n')) {
			if (line === '') continue;
			const bytes = Buffer.from(line);
			if (bytes.length > MAX_DATAGRAM_BYTES) {
				this.#events.onLost(1, kind, 'EMSGSIZE');
				continue;
			}
			this.#pendingBytes += bytes.length;
			this.#socket.send(bytes, port, host, error => {
				this.#pendingBytes -= bytes.length;
				if (error) this.#events.onLost(1, kind, (error as NodeJS.ErrnoException).code ?? 'EIO');
				else this.#events.onWritten();
			});
		}
		return true;
	}

	async flush(): Promise<void> {
		const deadline = performance.now() + MAX_CLOSE_MS;
		while (this.#pendingBytes > 0 && performance.now() < deadline) await new Promise(resolve => setTimeout(resolve, 5));
	}

	async close(): Promise<void> {
		await this.flush();
		this.#socket.close();
	}
}
