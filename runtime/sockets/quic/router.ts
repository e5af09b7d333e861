/**
 * Assigns datagrams to connections by their connection IDs, and decides what to do with datagrams that belong to no known
 * connection.
 */
import { MIN_INITIAL_BYTES, PacketHeader } from './packet-header.ts';

/** The target of a route: a connection, identified by its connection IDs. */
export interface RouteTarget {
	/** The connection IDs that the router has registered for this target. Only the router changes the set. */
	readonly registeredIds: Set<string>;
}

/** What to do with a datagram that belongs to no connection. */
export type UnroutedVerdict = 'new' | 'negotiate' | 'drop';

/** Maximum number of version negotiation packets sent per second. They are limited because they may go to forged addresses. */
const MAX_NEGOTIATIONS_PER_SECOND = 100;
/** Maximum number of IDs per connection. OpenSSL's server uses two, including the one that the client chose first. */
const MAX_CONNECTION_IDS = 8;

/** The routes of one socket. */
export class DatagramRouter<Target extends RouteTarget> {
	/** The header of the last datagram that was routed. */
	readonly header: PacketHeader = new PacketHeader();
	readonly #targetsById = new Map<string, Target>();
	#negotiationsLeft = MAX_NEGOTIATIONS_PER_SECOND;
	#refilledAt = 0;

	/** Number of registered connection IDs. */
	get size(): number {
		return this.#targetsById.size;
	}

	/** Returns the connection to which a datagram belongs, or what to do if it belongs to none. `now` is `performance.now()`. */
	route(bytes: Buffer, start: number, end: number, now: number): Target | UnroutedVerdict {
		const { header } = this;
		const kind = header.read(bytes, start, end);
		if (kind === 'noise') return 'drop';
		const target = this.#targetsById.get(header.destinationId);
		if (target !== undefined) return target;
		// A reply to a smaller datagram could be larger than the datagram itself, and serve an attacker for amplification (RFC 9000
		// §8.1, §14.1).
		if (end - start < MIN_INITIAL_BYTES) return 'drop';
		if (kind === 'unknown_version') return this.#mayNegotiate(now) ? 'negotiate' : 'drop';
		return kind === 'initial' ? 'new' : 'drop';
	}

	/** Registers an ID for a connection, unless the ID is registered already or the connection has too many. */
	register(id: string, target: Target): void {
		if (target.registeredIds.size >= MAX_CONNECTION_IDS || this.#targetsById.has(id)) return;
		target.registeredIds.add(id);
		this.#targetsById.set(id, target);
	}

	registeredIds(): Iterable<string> {
		return this.#targetsById.keys();
	}

	/**
	 * Registers the connection ID that we chose, taken from a packet with a long header that we send. Returns the ID
	 * if it is new.
	 */
	registerFromPacket(bytes: Buffer, start: number, end: number, target: Target): string | undefined {
		if ((bytes[start]! & 0x80) === 0 || end - start < 7) return undefined;
		const sourceStart = start + 6 + bytes[start + 5]!;
		if (sourceStart >= end) return undefined;
		const id = bytes.toString('latin1', sourceStart + 1, sourceStart + 1 + bytes[sourceStart]!);
		if (id === '' || target.registeredIds.has(id)) return undefined;
		this.register(id, target);
		return id;
	}

	/** Removes all IDs of a connection. */
	forgetTarget(target: Target): void {
		for (const id of target.registeredIds) this.#targetsById.delete(id);
		target.registeredIds.clear();
	}

	#mayNegotiate(now: number): boolean {
		if (now - this.#refilledAt >= 1000) {
			this.#refilledAt = now;
			this.#negotiationsLeft = MAX_NEGOTIATIONS_PER_SECOND;
		}
		if (this.#negotiationsLeft === 0) return false;
		this.#negotiationsLeft--;
		return true;
	}
}
