/** Moves the rest of a large response from the upstream's socket to the client's inside the kernel. */
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';
import type { ClientBody } from './client-body.ts';

/** The connection of the response. */
export interface RelayOwner {
	/** Bytes of the body that have not been received; 0 if none may be taken from the socket now. */
	readonly outstanding: number;
	/** Called when bytes have been taken. `room` is false if the body is full; `more` is true if data follows it. */
	moved(count: number, room: boolean, more: boolean): void;
	/** Bytes were lost. */
	relayFailed(): void;
}

/** Minimum bytes of a body that is worth relaying. */
export const LARGE_BODY = 131_072;

/** Returns a relay for a body if it is large and a relay is available. */
export function relayFor(
	length: number,
	upstreamSocket: UpstreamSocket,
	body: ClientBody,
	open: (() => SocketRelay | undefined) | undefined,
	owner: RelayOwner,
): BodyRelay | undefined {
	if (length < LARGE_BODY || upstreamSocket.descriptor < 0) return undefined;
	const relay = open?.();
	return relay && new BodyRelay(upstreamSocket, body, relay, owner);
}

/** Relays one body. Used by the body's consumer between two pulls. */
export class BodyRelay {
	/** Whether the kernel has moved something; then, whether it has been given one chance. */
	#active = false;
	#probed = false;
	readonly #upstreamSocket: UpstreamSocket;
	readonly #body: ClientBody;
	readonly #relay: SocketRelay;
	readonly #owner: RelayOwner;

	constructor(upstreamSocket: UpstreamSocket, body: ClientBody, relay: SocketRelay, owner: RelayOwner) {
		this.#upstreamSocket = upstreamSocket;
		this.#body = body;
		this.#relay = relay;
		this.#owner = owner;
		body.mover = socket => this.#sendTo(socket);
	}

	/**
	 * Callable while bytes are received: whether the next read should only signal that there is more data. True while the kernel
	 * moves the data, and once to find out whether it does.
	 */
	get short(): boolean {
		// A closing pool closes its pipe; bodies in progress are then read normally.
		if (this.#relay.closed) return false;
		if (this.#active) return this.#body.awaited;
		const first = !this.#probed;
		this.#probed = true;
		return first;
	}

	#sendTo(socket: number): number {
		const { outstanding } = this.#owner;
		const from = this.#upstreamSocket.descriptor;
		if (outstanding === 0 || from < 0 || !this.#body.drained) return 0;
		const relay = this.#relay;
		const whole = relay.move(from, socket, outstanding);
		const { taken, given, rest } = relay;
		if (!whole) {
			this.#owner.relayFailed();
			return given;
		}
		if (taken === 0) return 0;
		this.#active = true;
		// Data after the response must not become the response to the next request.
		const more = taken === outstanding && relay.hasMore(from);
		this.#owner.moved(taken, rest === undefined || this.#body.push(rest), more);
		return given;
	}
}
