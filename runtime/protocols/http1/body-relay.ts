/** Moves the rest of a large response from the upstream's socket to the client's inside the kernel. */
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';
import type { ClientBody } from './client-body.ts';

/** The upstream connection that receives the response. */
export interface RelayOwner {
	/** Number of bytes of the body that are still to be received; 0 if no bytes may be taken from the socket now. */
	readonly outstandingBytes: number;
	/**
	 * Called when `count` bytes have been taken from the socket. `hasRoom` is false if the body's queue is full.
	 * `hasExtraBytes` is true if the upstream sent data after the end of the body.
	 */
	bytesRelayed(count: number, hasRoom: boolean, hasExtraBytes: boolean): void;
	/** Called when bytes were lost, so that the response cannot be completed. */
	relayFailed(): void;
}

/** Minimum bytes of a body for which relaying pays off. */
export const MIN_RELAYED_BYTES = 131_072;

/** Returns a relay for a body if it is large and a relay is available. */
export function createBodyRelay(
	length: number,
	upstreamSocket: UpstreamSocket,
	body: ClientBody,
	openRelay: (() => SocketRelay | undefined) | undefined,
	owner: RelayOwner,
): BodyRelay | undefined {
	if (length < MIN_RELAYED_BYTES || upstreamSocket.descriptor < 0) return undefined;
	const relay = openRelay?.();
	return relay && new BodyRelay(upstreamSocket, body, relay, owner);
}

/** Relays one body. Between two pulls, the consumer of the body lets the kernel move data by calling `sendTo` of the body. */
export class BodyRelay {
	/** True once the kernel has moved some data. */
	#hasMovedData = false;
	/** True once the kernel has been given its first chance to move data. */
	#wasProbed = false;
	readonly #upstreamSocket: UpstreamSocket;
	readonly #body: ClientBody;
	readonly #relay: SocketRelay;
	readonly #owner: RelayOwner;

	constructor(upstreamSocket: UpstreamSocket, body: ClientBody, relay: SocketRelay, owner: RelayOwner) {
		this.#upstreamSocket = upstreamSocket;
		this.#body = body;
		this.#relay = relay;
		this.#owner = owner;
		body.relayTo = (descriptor, maxBytes) => this.#sendTo(descriptor, maxBytes);
	}

	/**
	 * True if the next read should only signal that there is more data, which the kernel then moves. True while the kernel moves
	 * data, and also once at the start, to find out whether it can. May be read while received bytes are being handled.
	 */
	get wantsShortRead(): boolean {
		// When an upstream pool closes, it closes the relay's pipe. Bodies that are in progress are then read normally.
		if (this.#relay.closed) return false;
		if (this.#hasMovedData) return this.#body.awaited;
		const isFirstRead = !this.#wasProbed;
		this.#wasProbed = true;
		return isFirstRead;
	}

	#sendTo(descriptor: number, maxBytes: number = Infinity): number {
		const { outstandingBytes } = this.#owner;
		const upstreamDescriptor = this.#upstreamSocket.descriptor;
		if (outstandingBytes === 0 || upstreamDescriptor < 0 || !this.#body.drained) return 0;
		const relay = this.#relay;
		const isIntact = relay.move(upstreamDescriptor, descriptor, Math.min(outstandingBytes, maxBytes));
		const { takenBytes, sentBytes, remainder } = relay;
		if (!isIntact) {
			this.#owner.relayFailed();
			return sentBytes;
		}
		if (takenBytes === 0) return 0;
		this.#hasMovedData = true;
		// Data after the response must not become the response to the next request.
		const hasExtraBytes = takenBytes === outstandingBytes && relay.hasMore(upstreamDescriptor);
		this.#owner.bytesRelayed(takenBytes, remainder === undefined || this.#body.push(remainder), hasExtraBytes);
		return sentBytes;
	}
}
