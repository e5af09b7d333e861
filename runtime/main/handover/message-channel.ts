/** The channel between a process and its successor: a stream with one JSON object per line. The other side is never trusted. */
import type { Duplex } from 'node:stream';

/** Maximum characters of a message. The offer contains a configuration, which may be large. */
const MAX_MESSAGE_CHARACTERS = 256 * 1024 * 1024;

/** A message as it arrives: an object with a type. Its other contents are not checked. */
export interface ChannelMessage {
	readonly type: string;
}

/** One side of the channel. */
export class MessageChannel<Sent extends ChannelMessage> {
	readonly #stream: Duplex;
	readonly #onMessage: (message: ChannelMessage) => void;
	readonly #onEnd: (reason: 'closed' | 'broken') => void;
	/** Pieces of the line that is not complete yet. */
	#linePieces: string[] = [];
	#lineLength = 0;
	#isOpen = true;

	/** @param onEnd Called once, when the other side has closed the stream or has sent something that is not a message. */
	constructor(
		stream: Duplex,
		onMessage: (message: ChannelMessage) => void,
		onEnd: (reason: 'closed' | 'broken') => void,
	) {
		this.#stream = stream;
		this.#onMessage = onMessage;
		this.#onEnd = onEnd;
		stream.setEncoding('utf8');
		stream.on('data', (text: string) => this.#readText(text));
		stream.on('error', () => this.#endChannel('closed'));
		stream.on('end', () => this.#endChannel('closed'));
		stream.on('close', () => this.#endChannel('closed'));
	}

	get isOpen(): boolean {
		return this.#isOpen;
	}

	/** Sends a message. Resolves when the system has accepted the message, or when sending has failed. */
	send(message: Sent): Promise<void> {
		if (!this.#isOpen) return Promise.resolve();
		return new Promise(resolve => {
			this.#stream.write(`${JSON.stringify(message)}\n`, () => resolve());
		});
	}

	/** Closes the channel. `onEnd` is not called. */
	close(): void {
		this.#isOpen = false;
		this.#stream.destroy();
	}

	#readText(text: string): void {
		let lineStart = 0;
		for (let lineEnd = text.indexOf('\n'); lineEnd !== -1 && this.#isOpen; lineEnd = text.indexOf('\n', lineStart)) {
			this.#linePieces.push(text.slice(lineStart, lineEnd));
			lineStart = lineEnd + 1;
			const message = parseMessage(this.#linePieces.join(''));
			this.#linePieces = [];
			this.#lineLength = 0;
			if (message) this.#onMessage(message);
			else this.#endChannel('broken');
		}
		this.#linePieces.push(text.slice(lineStart));
		this.#lineLength += text.length - lineStart;
		if (this.#lineLength > MAX_MESSAGE_CHARACTERS) this.#endChannel('broken');
	}

	#endChannel(reason: 'closed' | 'broken'): void {
		if (!this.#isOpen) return;
		this.close();
		this.#onEnd(reason);
	}
}

function parseMessage(line: string): ChannelMessage | undefined {
	try {
		const value: unknown = JSON.parse(line);
		const isMessage = typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
		return isMessage ? (value as ChannelMessage) : undefined;
	} catch {
		return undefined;
	}
}
