/** The rest of a large response, moved by the system from the upstream's socket to the client's. */
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';
import type { ClientBody } from './client-body.ts';

/** The connection whose response it is. */
export interface RelayOwner {
	/** Bytes of the body that have not come; 0 when none may be taken from the socket now. */
	readonly outstanding: number;
	/** So many of them have been taken. `room`: false when the body has no room for more; `more`: something stands behind it. */
	moved(count: number, room: boolean, more: boolean): void;
	/** Bytes were lost. */
	relayFailed(): void;
}

/** Bytes of a body that is worth it. */
export const LARGE_BODY = 131_072;

/** A relay for a body, if it is large and something can be moved. */
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

/** The relay of one body. It is used by whoever pulls the body, between two pulls. */
export class BodyRelay {
	/** Whether the system has moved something, and whether it was waited for once. */
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
	 * While bytes are received: whether the next read should only tell that there are more. So it is where the system moves them,
	 * and once to find that out.
	 */
	get short(): boolean {
		// A pool that is given up takes its pipe along; what is under way is read as any body then.
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
		// What an upstream sends behind its response must not answer the next request.
		const more = taken === outstanding && relay.hasMore(from);
		this.#owner.moved(taken, rest === undefined || this.#body.push(rest), more);
		return given;
	}
}
