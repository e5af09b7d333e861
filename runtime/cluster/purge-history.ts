/**
 * The purges of the cluster that Redis still lists. A response in Redis carries the ID of the last purge before its request was
 * sent: its position. If a later purge selects the response, the response is invalid, whenever and by whichever machine it was
 * stored.
 */
import type { CachedHead } from '../../compiler/exchange/response-cache.ts';
import { compileSelection, type EntryPredicate, type PurgeSelection } from '../cache/purging.ts';
import type { RedisAccess } from './redis-access.ts';
import { entriesOf, fieldOf, purgeSelectionOf, purgeStreamKey, type StreamEntry } from './shared-purges.ts';

/** Maximum number of entries in one read. */
const READ_ENTRIES = 1000;
/** Maximum number of entries that are remembered. Redis keeps about as many. */
const MAX_ENTRIES = 11_000;

interface Purge {
	readonly id: string;
	/** The responses that the purge selects; undefined for an entry of the stream that only marks a position. */
	readonly selection: PurgeSelection | undefined;
	/** The compiled {@link selection}; undefined until it is first needed. */
	selects: EntryPredicate | undefined;
}

export class PurgeHistory {
	readonly #redis: RedisAccess;
	/** The known purges, in the order of the stream in which Redis lists them. */
	#purges: Purge[] = [];
	#reading: Promise<void> = Promise.resolve();

	constructor(redis: RedisAccess) {
		this.#redis = redis;
	}

	/** Resolves once the history contains the entry `id` of the stream, if it still exists. Rejects with ClusterError. */
	async readUpTo(id: string): Promise<void> {
		if (this.#indexOf(id) !== -1) return;
		const previousRead = this.#reading;
		this.#reading = previousRead
			.catch(() => {})
			.then(() => (this.#indexOf(id) === -1 ? this.#readNewEntries() : undefined));
		await this.#reading;
	}

	/** Reports whether a response must not be used, because it was purged, or because its position is unknown. */
	isPurged(head: CachedHead, position: string): boolean {
		const index = this.#indexOf(position);
		if (index === -1) return true;
		for (let i = index + 1; i < this.#purges.length; i++) {
			const purge = this.#purges[i]!;
			if (purge.selection === undefined) continue;
			purge.selects ??= compileSelection(purge.selection);
			if (purge.selects(head)) return true;
		}
		return false;
	}

	#indexOf(id: string): number {
		return this.#purges.findLastIndex(purge => purge.id === id);
	}

	async #readNewEntries(): Promise<void> {
		for (;;) {
			const lastId = this.#purges.at(-1)?.id;
			const args = ['XRANGE', purgeStreamKey(this.#redis), lastId ?? '-', '+', 'COUNT', String(READ_ENTRIES)];
			const entries = entriesOf(await this.#redis.sendCommand(args));
			// If the last known entry is gone, entries after it may be gone as well, or belong to another stream.
			if (lastId !== undefined && entries[0]?.id !== lastId) {
				this.#purges = [];
				continue;
			}
			const newEntries = lastId === undefined ? entries : entries.slice(1);
			for (const entry of newEntries) this.#purges.push(this.#purgeOf(entry));
			if (this.#purges.length > MAX_ENTRIES) this.#purges.splice(0, this.#purges.length - MAX_ENTRIES);
			if (entries.length < READ_ENTRIES) return;
		}
	}

	#purgeOf(entry: StreamEntry): Purge {
		const selection = purgeSelectionOf(fieldOf(entry, 'selection'), this.#redis.sealedValues);
		return { id: entry.id, selection, selects: undefined };
	}
}
