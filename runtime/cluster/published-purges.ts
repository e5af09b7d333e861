/**
 * The latest purges that this process has added to the stream in Redis. They are added again if a failover has lost them, or if the
 * machines read the stream of another server than the one that has accepted them.
 */

/** Maximum number of purges that are remembered. */
const MAX_PURGES = 1000;
/** Maximum age of a purge, in milliseconds, when the stream was last read before the failover. */
const MAX_AGE_MS = 600_000;
/** Maximum number of entries of this process that were read before Redis' answer with their IDs arrived. */
const MAX_EARLY_IDS = 1000;

/** A purge of this process. */
export interface PublishedPurge<Purge> {
	readonly id: string;
	readonly purge: Purge;
	/** When Redis accepted it, in milliseconds. */
	readonly at: number;
}

export class PublishedPurges<Purge> {
	/** Oldest first. */
	#purges: PublishedPurge<Purge>[] = [];
	/** IDs of purges that are not known to be in the stream that this process reads. */
	readonly #unreadIds = new Set<string>();
	/** IDs of entries that this process has read before {@link add} was called with them. */
	readonly #earlyIds = new Set<string>();
	/** When the latest purge was accepted that is no longer remembered because there were too many. */
	#forgottenAt = Number.NEGATIVE_INFINITY;

	/**
	 * Remembers a purge.
	 * @param isInStream True if it is known to be in the stream that this process reads.
	 */
	add(published: PublishedPurge<Purge>, isInStream: boolean): void {
		this.#purges.push(published);
		if (!this.#earlyIds.delete(published.id) && !isInStream) this.#unreadIds.add(published.id);
		if (this.#purges.length <= MAX_PURGES) return;
		const { id, at } = this.#purges.shift()!;
		this.#unreadIds.delete(id);
		this.#forgottenAt = at;
	}

	/** Records that this process has read an entry of its own. */
	onRead(id: string): void {
		if (this.#unreadIds.delete(id) || this.#purges.some(published => published.id === id)) return;
		this.#earlyIds.add(id);
		if (this.#earlyIds.size > MAX_EARLY_IDS) this.#earlyIds.delete(this.#earlyIds.values().next().value!);
	}

	/** Returns the IDs of purges that are not known to be in the stream. The next read must return them if they are in it. */
	get unreadIds(): readonly string[] {
		return [...this.#unreadIds];
	}

	/** Removes the purges of `ids` that are still unread, and returns them. */
	takeUnread(ids: readonly string[]): Purge[] {
		const lostIds = new Set(ids.filter(id => this.#unreadIds.has(id)));
		return lostIds.size === 0 ? [] : this.#take(({ id }) => lostIds.has(id));
	}

	/**
	 * Returns the ID from which the stream must be searched for the purges; undefined if there are none. Forgets those that are too
	 * old to have been lost.
	 * @param lastReadAt When this process last read the stream, in milliseconds.
	 */
	searchFrom(lastReadAt: number): string | undefined {
		this.#take(({ id, at }) => at < lastReadAt - MAX_AGE_MS && !this.#unreadIds.has(id));
		return this.#purges[0]?.id;
	}

	/** IDs of all purges. */
	get ids(): ReadonlySet<string> {
		return new Set(this.#purges.map(({ id }) => id));
	}

	/**
	 * Removes the purges of `ids` that are not among the entries `presentIds` of the stream, and returns them. Returns `everything` if
	 * some that are no longer remembered may be lost, too.
	 */
	takeLost(ids: ReadonlySet<string>, presentIds: ReadonlySet<string>): Purge[] | 'everything' {
		const [oldest] = this.#purges;
		const isMoreLost = oldest && !presentIds.has(oldest.id) && this.#forgottenAt >= oldest.at - MAX_AGE_MS;
		for (const id of presentIds) this.#unreadIds.delete(id);
		const lost = this.#take(({ id }) => ids.has(id) && !presentIds.has(id));
		return isMoreLost ? 'everything' : lost;
	}

	#take(isTaken: (published: PublishedPurge<Purge>) => boolean): Purge[] {
		const taken = this.#purges.filter(isTaken);
		this.#purges = this.#purges.filter(published => !isTaken(published));
		for (const { id } of taken) this.#unreadIds.delete(id);
		return taken.map(({ purge }) => purge);
	}
}
