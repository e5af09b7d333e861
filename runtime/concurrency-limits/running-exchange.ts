/**
 * During a handover, two processes serve. Each tells the other how many requests of each key it runs, and counts the other's
 * requests like its own. The limits of `limit_concurrent` therefore apply to both together, with a delay of a few milliseconds.
 */
import type { ConcurrencyTables } from './concurrency-tables.ts';

/**
 * Numbers of running requests, by the table's memory key and by name of a request key: the halves of its hash, such as `-5,17`.
 */
export interface RunningCounts {
	readonly [table: string]: { readonly [keyName: string]: number };
}

/** Milliseconds between two readings of the counts. */
const INTERVAL_MS = 10;
/** Reading the counts takes at most 1 / MAX_SHARE of the main thread's time, however large the tables are. */
const MAX_SHARE = 20;

/** A message to the other process. The counts of keys that `counts` does not name are unchanged. */
export interface RunningMessage {
	readonly type: 'running';
	readonly counts: RunningCounts;
	/** True if the sender has no more requests and needs no further messages. */
	readonly isLast?: boolean | undefined;
}

/** The connection to a process that serves at the same time. */
export interface RunningChannel {
	/** Resolves when the system has accepted the message, or when sending has failed. */
	sendRunning(message: RunningMessage): Promise<void>;
	/** Called with each message of the other process, and with `ended` once there will be no further messages. */
	onRunning: ((message: RunningMessage | 'ended') => void) | undefined;
}

type CountsByTable = Map<string, Map<string, number>>;

class Peer {
	/** The numbers of requests that the process runs. */
	readonly counts: CountsByTable = new Map();
	/** The counts that were last sent to the process. */
	readonly sentCounts: CountsByTable = new Map();
	readonly channel: RunningChannel;
	/** True once the process has sent counts. A release that cannot handle counts never does. */
	isListening = false;
	#isSending = false;

	constructor(channel: RunningChannel) {
		this.channel = channel;
	}

	/** True while a message waits for the process to read earlier ones. It gets no further messages until then. */
	get isSending(): boolean {
		return this.#isSending;
	}

	send(counts: RunningCounts, isLast?: true): void {
		this.#isSending = true;
		void this.channel.sendRunning({ type: 'running', counts, ...(isLast && { isLast }) }).then(() => {
			this.#isSending = false;
		});
	}
}

/** Exchanges counts with the predecessor, the successor, or both. Forwards the counts of either one to the other. */
export class RunningExchange {
	readonly #tables: ConcurrencyTables;
	readonly #peers = new Set<Peer>();
	#timer: NodeJS.Timeout | undefined;

	constructor(tables: ConcurrencyTables) {
		this.#tables = tables;
	}

	/** Begins to exchange counts with the successor. Returns the counts that the successor has to know before it serves. */
	beginWithSuccessor(channel: RunningChannel): RunningCounts {
		return this.#takeChanges(this.#addPeer(channel), this.#tables.runningCounts());
	}

	/** Begins to exchange counts with the predecessor, which has already sent its own counts. */
	beginWithPredecessor(channel: RunningChannel, counts: RunningCounts): void {
		const peer = this.#addPeer(channel);
		this.#receive(peer, { type: 'running', counts });
		// The predecessor sends further counts only after it has received some, because not every release understands them.
		peer.send(this.#takeChanges(peer, this.#tables.runningCounts()));
	}

	/** Tells the other processes that all requests of this process have ended. */
	finish(): void {
		for (const peer of [...this.#peers]) {
			if (peer.isListening) peer.send(this.#takeChanges(peer, this.#tables.runningCounts()), true);
			this.#removePeer(peer);
		}
	}

	#addPeer(channel: RunningChannel): Peer {
		const peer = new Peer(channel);
		this.#peers.add(peer);
		channel.onRunning = message => {
			if (message !== 'ended') this.#receive(peer, message);
			if (message === 'ended' || message.isLast) this.#removePeer(peer);
		};
		this.#startTimer(INTERVAL_MS);
		return peer;
	}

	#removePeer(peer: Peer): void {
		if (!this.#peers.delete(peer)) return;
		peer.channel.onRunning = undefined;
		for (const [table, countsByKey] of peer.counts)
			for (const keyName of countsByKey.keys()) this.#applyCount(table, keyName);
		if (this.#peers.size > 0) return;
		clearTimeout(this.#timer);
		this.#timer = undefined;
	}

	#receive(peer: Peer, { counts }: RunningMessage): void {
		peer.isListening = true;
		for (const [table, countsByKey] of Object.entries(Object(counts) as object)) {
			for (const [keyName, count] of Object.entries(Object(countsByKey) as object)) {
				if (!/^-?\d{1,10},-?\d{1,10}$/.test(keyName) || !Number.isInteger(count) || count < 0) continue;
				setCount(peer.counts, table, keyName, count);
				this.#applyCount(table, keyName);
			}
		}
	}

	/** Sets the table's count of requests of a key that run in all other processes. */
	#applyCount(table: string, keyName: string): void {
		let total = 0;
		for (const { counts } of this.#peers) total += counts.get(table)?.get(keyName) ?? 0;
		this.#tables.setForeignCount(table, keyName, total);
	}

	#startTimer(delayMs: number): void {
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => {
			const start = performance.now();
			const ownCounts = this.#tables.runningCounts();
			for (const peer of this.#peers) {
				if (!peer.isListening || peer.isSending) continue;
				const changes = this.#takeChanges(peer, ownCounts);
				if (Object.keys(changes).length > 0) peer.send(changes);
			}
			this.#startTimer(Math.max(INTERVAL_MS, MAX_SHARE * (performance.now() - start)));
		}, delayMs);
		this.#timer.unref();
	}

	/** Returns the counts, this process's and all other peers' together, that have changed since the last call for this peer. */
	#takeChanges(peer: Peer, ownCounts: RunningCounts): RunningCounts {
		const current: CountsByTable = new Map();
		for (const [table, countsByKey] of Object.entries(ownCounts))
			current.set(table, new Map(Object.entries(countsByKey)));
		for (const other of this.#peers) {
			if (other === peer) continue;
			for (const [table, countsByKey] of other.counts)
				for (const [keyName, count] of countsByKey)
					setCount(current, table, keyName, count + (current.get(table)?.get(keyName) ?? 0));
		}
		const changes = new Map<string, { [keyName: string]: number }>();
		const addChange = (table: string, keyName: string, count: number): void => {
			const changesByKey = changes.get(table) ?? {};
			changes.set(table, changesByKey);
			changesByKey[keyName] = count;
			setCount(peer.sentCounts, table, keyName, count);
		};
		for (const [table, countsByKey] of current)
			for (const [keyName, count] of countsByKey)
				if (peer.sentCounts.get(table)?.get(keyName) !== count) addChange(table, keyName, count);
		for (const [table, countsByKey] of peer.sentCounts)
			for (const keyName of [...countsByKey.keys()])
				if (!current.get(table)?.has(keyName)) addChange(table, keyName, 0);
		return Object.fromEntries(changes);
	}
}

/** Sets the count of a key; 0 removes the key. */
function setCount(counts: CountsByTable, table: string, keyName: string, count: number): void {
	let countsByKey = counts.get(table);
	if (!countsByKey) {
		countsByKey = new Map();
		counts.set(table, countsByKey);
	}
	if (count === 0) countsByKey.delete(keyName);
	else countsByKey.set(keyName, count);
	if (countsByKey.size === 0) counts.delete(table);
}
