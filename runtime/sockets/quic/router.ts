/**
 * Assigns datagrams to connections by their connection IDs, and decides what to do with datagrams that belong to no known
 * connection.
 */
import { halfOfText, MIN_INITIAL_BYTES, PacketHeader, SERVER_ID_BYTES } from './packet-header.ts';

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

/** The connection of an ID that we chose. */
interface ShortRoute<Target> {
	readonly idHigh: number;
	readonly idLow: number;
	readonly target: Target;
}

/** The routes of one socket. */
export class DatagramRouter<Target extends RouteTarget> {
	/** The header of the last datagram that was routed. */
	readonly header: PacketHeader = new PacketHeader();
	readonly #targetsById = new Map<string, Target>();
	/**
	 * The routes of IDs that we chose, which nearly all datagrams contain, by a hash of the ID. A lookup here needs no string. IDs
	 * chosen by clients are not included, because a client could choose many with the same hash. An ID whose hash is taken is not
	 * included either.
	 */
	readonly #shortRoutes = new Map<number, ShortRoute<Target>>();
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
		if (kind === 'short') {
			const { shortIdHigh, shortIdLow } = header;
			const route = this.#shortRoutes.get(hashOf(shortIdHigh, shortIdLow));
			if (route !== undefined && route.idHigh === shortIdHigh && route.idLow === shortIdLow) return route.target;
		}
		const target = this.#targetsById.get(header.destinationId);
		if (target !== undefined) return target;
		// A reply to a smaller datagram could be larger than the datagram itself, and serve an attacker for amplification (RFC 9000
		// §8.1, §14.1).
		if (end - start < MIN_INITIAL_BYTES) return 'drop';
		if (kind === 'unknown_version') return this.#mayNegotiate(now) ? 'negotiate' : 'drop';
		return kind === 'initial' ? 'new' : 'drop';
	}

	/**
	 * Registers an ID for a connection, unless the ID is registered already or the connection has too many. Returns true if it has
	 * registered the ID.
	 */
	register(id: string, target: Target): boolean {
		if (target.registeredIds.size >= MAX_CONNECTION_IDS || this.#targetsById.has(id)) return false;
		target.registeredIds.add(id);
		this.#targetsById.set(id, target);
		return true;
	}

	#addShortRoute(id: string, target: Target): void {
		if (id.length !== SERVER_ID_BYTES) return;
		const idHigh = halfOfText(id, 0);
		const idLow = halfOfText(id, 4);
		const hash = hashOf(idHigh, idLow);
		if (!this.#shortRoutes.has(hash)) this.#shortRoutes.set(hash, { idHigh, idLow, target });
	}

	hasId(id: string): boolean {
		return this.#targetsById.has(id);
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
		if (this.register(id, target)) this.#addShortRoute(id, target);
		return id;
	}

	/** Removes all IDs of a connection. */
	forgetTarget(target: Target): void {
		for (const id of target.registeredIds) {
			this.#targetsById.delete(id);
			if (id.length !== SERVER_ID_BYTES) continue;
			const hash = hashOf(halfOfText(id, 0), halfOfText(id, 4));
			if (this.#shortRoutes.get(hash)?.target === target) this.#shortRoutes.delete(hash);
		}
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

/** Returns a hash of a connection ID, which OpenSSL chooses at random. V8 stores integers of 31 bits without allocating memory. */
function hashOf(idHigh: number, idLow: number): number {
	return (idHigh ^ idLow) & 0x3fff_ffff;
}
