/**
 * Passes datagrams from a process to its predecessor; see runtime/main/handover. Both processes have the same UDP
 * socket. The successor reads it and passes on datagrams of the predecessor's connections. The predecessor replies
 * through the socket itself.
 *
 *     successor                                  predecessor
 *     hello ───────────────────────────────────▶ stops reading the socket
 *           ◀──── IDs of its connections, then `listed`
 *     reads the socket
 *     datagram ────────────────────────────────▶ handles it as if it had read it
 *           ◀──── IDs of new connections (from handshakes that were in progress)
 *
 * The successor also inherits the predecessor's own channels to earlier processes whose connections are still open.
 * It uses these channels directly, so it does not matter in which order the processes end. A channel of the same kind
 * connects a thread that has no socket of its own to the thread that reads the socket; see socket-sharing.ts.
 *
 * The channel is a pair of SOCK_SEQPACKET sockets, which preserves message boundaries and reports the end of the
 * other process. If the successor ends, the predecessor reads the socket again. Because the processes share sockets
 * instead of binding new ones, the kernel's choice of a socket for each connection (SO_REUSEPORT) does not change,
 * even when the predecessor ends.
 */
import { type PolledSocket, type SocketPoller, threadPoller } from '../socket-poller.ts';
import { OwnedDescriptor } from './owned-descriptor.ts';
import type { QuicLibrary } from './quic-library.ts';

const AF_UNIX = 1;
const SOCK_SEQPACKET = 5;
const NONBLOCK = 0o4000;
const CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const DONTWAIT = 0x40;
const NO_SIGNAL = 0x4000;
/** Requested size in bytes of the kernel's queue for one direction of a channel. */
const KERNEL_QUEUE_BYTES = 4 * 1024 * 1024;
const MAX_MESSAGE_BYTES = 68_000;
/** Maximum bytes of connection IDs in one message. */
const MAX_ID_LIST_BYTES = 32_000;
/** Milliseconds after which messages that did not fit into the kernel's queue are sent again. */
const RESEND_DELAY_MS = 2;

const MESSAGE_TYPE = { hello: 1, ids: 2, listed: 3, datagram: 4, olderIds: 5 } as const;

/** A datagram as it was received: the bytes, the peer's `sockaddr`, and the control data of the message. */
export interface RelayedDatagram {
	readonly name: Buffer;
	readonly control: Buffer;
	readonly payload: Buffer;
}

/** Callbacks of a relay's owner. */
export interface RelayOwner {
	/** Called when the successor is about to read the socket. */
	onHello?(): void;
	/** Called with IDs of the predecessor's connections. */
	onIds?(ids: readonly string[]): void;
	/** Called with connection IDs of an older process, whose inherited channel has this index. */
	onOlderIds?(index: number, ids: readonly string[]): void;
	/** Called when the predecessor has sent all its IDs and no longer reads the socket. */
	onListed?(): void;
	/** Called with a datagram, whose bytes are valid only during the call. */
	onDatagram?(datagram: RelayedDatagram): void;
	/** Called when the other process has closed its end. By then, the relay is closed. */
	onEnded(): void;
}

/** Creates both ends of a channel. Returns undefined if no descriptors are free. */
export function createRelayPair(library: QuicLibrary): readonly [number, number] | undefined {
	const pair = Buffer.allocUnsafeSlow(8);
	const { functions } = library;
	if (
		(functions.socketpair(AF_UNIX, SOCK_SEQPACKET | NONBLOCK | CLOEXEC, 0, library.addressOf(pair)) as number) !== 0
	) {
		return undefined;
	}
	return [pair.readInt32LE(0), pair.readInt32LE(4)];
}

/** One end of a channel to another process or thread. */
export class DatagramRelay implements PolledSocket {
	registrationNumber = 0;
	readonly #library: QuicLibrary;
	readonly #owner: RelayOwner;
	readonly #poller: SocketPoller;
	readonly #descriptor: OwnedDescriptor;
	readonly #fd: number;
	readonly #receiveBuffer = Buffer.allocUnsafeSlow(MAX_MESSAGE_BYTES);
	readonly #receiveBufferPointer: bigint;
	readonly #sendBuffer = Buffer.allocUnsafeSlow(MAX_MESSAGE_BYTES);
	readonly #sendBufferPointer: bigint;
	/**
	 * Messages, other than datagrams, that did not fit into the channel's queue. A datagram that does not fit is dropped, just as
	 * the kernel drops a datagram if the UDP socket's queue is full.
	 */
	readonly #unsentMessages: Buffer[] = [];
	#timer: NodeJS.Timeout | undefined;
	#isClosed = false;
	#isPaused = false;

	/**
	 * Takes over the descriptor. Throws an error with the system's code.
	 * @param isPaused Leaves messages to another process until {@link resume} is called.
	 */
	constructor(library: QuicLibrary, descriptor: number, owner: RelayOwner, isPaused = false) {
		this.#library = library;
		this.#owner = owner;
		this.#fd = descriptor;
		this.#receiveBufferPointer = library.addressOf(this.#receiveBuffer);
		this.#sendBufferPointer = library.addressOf(this.#sendBuffer);
		this.#descriptor = new OwnedDescriptor(descriptor, number => void library.functions.close(number));
		const poller = threadPoller();
		const queueSizeOption = Buffer.allocUnsafeSlow(4);
		queueSizeOption.writeInt32LE(KERNEL_QUEUE_BYTES);
		library.functions.setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, library.addressOf(queueSizeOption), 4);
		this.#isPaused = isPaused;
		if (poller === undefined || !(isPaused || poller.add(descriptor, this))) {
			this.#descriptor.close();
			throw Object.assign(new Error('The channel to another process cannot be polled.'), { code: 'EMFILE' });
		}
		this.#poller = poller;
	}

	/** True once one of the two ends has been closed. */
	get closed(): boolean {
		return this.#isClosed;
	}

	/** The descriptor of this end of the channel, for making duplicates. */
	get descriptor(): number {
		return this.#fd;
	}

	/**
	 * Stops receiving messages, because another process that has the same end of the channel receives them. Sending is still
	 * possible.
	 */
	pause(): void {
		if (this.#isClosed || this.#isPaused) return;
		this.#isPaused = true;
		this.#poller.remove(this.#fd);
	}

	/** Receives messages again, beginning with those that have arrived. */
	resume(): void {
		if (this.#isClosed || !this.#isPaused) return;
		this.#isPaused = false;
		this.#poller.add(this.#fd, this);
	}

	sendHello(): void {
		this.#send(Buffer.of(MESSAGE_TYPE.hello));
	}

	sendListed(): void {
		this.#send(Buffer.of(MESSAGE_TYPE.listed));
	}

	/** Sends connection IDs to the successor. Each is a string with one Latin-1 character per byte. */
	sendIds(ids: Iterable<string>): void {
		this.#sendIds([MESSAGE_TYPE.ids], ids);
	}

	/** Sends connection IDs of a process before the predecessor; see {@link RelayOwner.onOlderIds}. */
	sendOlderIds(index: number, ids: Iterable<string>): void {
		this.#sendIds([MESSAGE_TYPE.olderIds, index], ids);
	}

	#sendIds(messageHead: readonly number[], ids: Iterable<string>): void {
		let pieces: Buffer[] = [Buffer.from(messageHead)];
		let idBytes = 0;
		for (const id of ids) {
			pieces.push(Buffer.from(String.fromCharCode(id.length) + id, 'latin1'));
			idBytes += 1 + id.length;
			if (idBytes < MAX_ID_LIST_BYTES) continue;
			this.#send(Buffer.concat(pieces));
			pieces = [Buffer.from(messageHead)];
			idBytes = 0;
		}
		if (idBytes > 0) this.#send(Buffer.concat(pieces));
	}

	passDatagram({ name, control, payload }: RelayedDatagram): void {
		const outgoing = this.#sendBuffer;
		outgoing[0] = MESSAGE_TYPE.datagram;
		outgoing[1] = name.length;
		outgoing[2] = control.length;
		name.copy(outgoing, 3);
		control.copy(outgoing, 3 + name.length);
		const payloadStart = 3 + name.length + control.length;
		payload.copy(outgoing, payloadStart);
		if (!this.#isClosed) this.#write(payloadStart + payload.length);
	}

	/** Delivers the messages that have arrived. */
	onReadable(): void {
		if (this.#isPaused) return;
		const { functions } = this.#library;
		let hasFailed = false;
		while (!this.#isClosed && !this.#isPaused) {
			const messageBytes = Number(
				functions.recv(this.#fd, this.#receiveBufferPointer, BigInt(MAX_MESSAGE_BYTES), DONTWAIT),
			);
			if (messageBytes > 0) {
				this.#deliver(this.#receiveBuffer.subarray(0, messageBytes));
				continue;
			}
			if (messageBytes < 0) {
				// After one failed read, either the queue is empty or an error occurred, which the next read reports as the end. The
				// two cannot be told apart, because `errno` may have changed since the call.
				if (hasFailed) break;
				hasFailed = true;
				continue;
			}
			this.close();
			this.#owner.onEnded();
			return;
		}
	}

	close(): void {
		if (this.#isClosed) return;
		this.#isClosed = true;
		clearTimeout(this.#timer);
		if (!this.#isPaused) this.#poller.remove(this.#fd);
		this.#descriptor.close();
	}

	#deliver(message: Buffer): void {
		const owner = this.#owner;
		switch (message[0]) {
			case MESSAGE_TYPE.hello:
				owner.onHello?.();
				return;
			case MESSAGE_TYPE.listed:
				owner.onListed?.();
				return;
			case MESSAGE_TYPE.ids:
				owner.onIds?.(parseIds(message, 1));
				return;
			case MESSAGE_TYPE.olderIds:
				owner.onOlderIds?.(message[1]!, parseIds(message, 2));
				return;
			case MESSAGE_TYPE.datagram: {
				const controlStart = 3 + message[1]!;
				const payloadStart = controlStart + message[2]!;
				owner.onDatagram?.({
					name: message.subarray(3, controlStart),
					control: message.subarray(controlStart, payloadStart),
					payload: message.subarray(payloadStart),
				});
			}
		}
	}

	#send(message: Buffer): void {
		if (this.#isClosed) return;
		this.#unsentMessages.push(message);
		this.#flush();
	}

	#flush(): void {
		clearTimeout(this.#timer);
		for (let message = this.#unsentMessages[0]; message !== undefined; message = this.#unsentMessages[0]) {
			message.copy(this.#sendBuffer);
			if (!this.#write(message.length)) {
				this.#timer = setTimeout(() => this.#flush(), RESEND_DELAY_MS);
				return;
			}
			this.#unsentMessages.shift();
		}
	}

	/** Writes a message. Returns false if the queue is full, or if the other process has ended, which the next read reports. */
	#write(length: number): boolean {
		const { functions } = this.#library;
		return Number(functions.send(this.#fd, this.#sendBufferPointer, BigInt(length), DONTWAIT | NO_SIGNAL)) >= 0;
	}
}

function parseIds(message: Buffer, start: number): string[] {
	const ids: string[] = [];
	for (let at = start; at < message.length; at += 1 + message[at]!) {
		ids.push(message.toString('latin1', at + 1, at + 1 + message[at]!));
	}
	return ids;
}
