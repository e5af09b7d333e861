/** Tells to which connection a datagram belongs, by connection id, and what becomes of one that belongs to none. */
import { MIN_INITIAL_BYTES, PacketHeader } from './packet-header.ts';

/** Something that has connection ids. */
export interface Routed {
	/** Ids under which the router knows it. The router keeps the set. */
	readonly ids: Set<string>;
}

/** What to do with a datagram that belongs to no connection. */
export type Verdict = 'new' | 'negotiate' | 'drop';

/** Version negotiation packets that are sent in a second, at most: they answer whoever claims to be a client. */
const NEGOTIATIONS_A_SECOND = 100;
/** Ids of one connection: OpenSSL's server uses two, the one that the client chose first among them. */
const MOST_IDS = 8;

/** The routes of one socket. */
export class Router<Target extends Routed> {
	/** Of the datagram that was routed last. */
	readonly header: PacketHeader = new PacketHeader();
	readonly #routes = new Map<string, Target>();
	#negotiations = NEGOTIATIONS_A_SECOND;
	#refilledAt = 0;

	/** Ids that lead somewhere. */
	get size(): number {
		return this.#routes.size;
	}

	/** Returns the connection of a datagram, or what to do with it. `now` is `performance.now()`. */
	route(bytes: Buffer, start: number, end: number, now: number): Target | Verdict {
		const { header } = this;
		const kind = header.read(bytes, start, end);
		if (kind === 'noise') return 'drop';
		const known = this.#routes.get(header.destination);
		if (known !== undefined) return known;
		// Anything smaller could make us send more than was sent to us (RFC 9000 §8.1, §14.1).
		if (end - start < MIN_INITIAL_BYTES) return 'drop';
		if (kind === 'unknown_version') return this.#mayNegotiate(now) ? 'negotiate' : 'drop';
		return kind === 'initial' ? 'new' : 'drop';
	}

	/** An id leads to a connection from now on. An id that leads elsewhere already stays. */
	learn(id: string, target: Target): void {
		if (target.ids.size >= MOST_IDS || this.#routes.has(id)) return;
		target.ids.add(id);
		this.#routes.set(id, target);
	}

	/** Learns the id that we chose, from a long header that we send. */
	learnFrom(bytes: Buffer, start: number, end: number, target: Target): void {
		if ((bytes[start]! & 0x80) === 0 || end - start < 7) return;
		const sourceAt = start + 6 + bytes[start + 5]!;
		if (sourceAt >= end) return;
		const id = bytes.toString('latin1', sourceAt + 1, sourceAt + 1 + bytes[sourceAt]!);
		if (id !== '' && !target.ids.has(id)) this.learn(id, target);
	}

	/** No id leads to a connection any more. */
	forget(target: Target): void {
		for (const id of target.ids) this.#routes.delete(id);
		target.ids.clear();
	}

	#mayNegotiate(now: number): boolean {
		if (now - this.#refilledAt >= 1000) {
			this.#refilledAt = now;
			this.#negotiations = NEGOTIATIONS_A_SECOND;
		}
		if (this.#negotiations === 0) return false;
		this.#negotiations--;
		return true;
	}
}
