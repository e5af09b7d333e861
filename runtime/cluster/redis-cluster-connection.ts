/**
 * Connections to those nodes of a Redis Cluster that have keys of this cluster of machines. A command is sent to the node that
 * has its key. Each node has one connection, which is opened when it is first needed.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import type { ClusterError } from './cluster-error.ts';
import { firstKeyOf, keySlot } from './key-slot.ts';
import {
	connectRedisClient,
	joinAddress,
	plainCause,
	REPLIES_AS_BYTES,
	replyCause,
	splitAddress,
	unavailableError,
	withinLimit,
} from './redis-client.ts';
import { RedisConnection, type RedisConnectionDeps, type RedisReply } from './redis-connection.ts';

/** Maximum milliseconds for connecting to a node that is asked which node has which slots, and again for its answer. */
const QUESTION_TIMEOUT_MS = 2000;
/**
 * Milliseconds before the slots are read again: after a connection is lost, and while a node is not connected or a slot is not
 * served.
 */
const FIRST_REFRESH_DELAY_MS = 100;
const REFRESH_INTERVAL_MS = 1000;
/** Minimum milliseconds between the end of a refresh and the next one, even if every command is redirected or refused meanwhile. */
const MIN_REFRESH_INTERVAL_MS = 100;
/** Milliseconds before a command is sent again because its keys were being moved to another node. */
const MOVING_KEYS_RETRY_MS = 25;
/** A node that has not answered within this many milliseconds, or within twice the time of its last answer, does not answer. */
const MIN_ANSWER_MS = 50;
/** Maximum number of nodes to which a command is redirected. */
const MAX_REDIRECTS = 3;

/** A range of hash slots, and the master that has them. */
interface SlotRange {
	readonly first: number;
	readonly last: number;
	readonly address: string;
}

/** A node to which commands are sent. */
interface Node {
	readonly connection: RedisConnection;
	/** Number of commands that have been sent to it and have not ended. */
	pendingCommandCount: number;
}

/** A connection to a Redis Cluster. Connects immediately, and follows failovers and moved slots until it is closed. */
export class RedisClusterConnection {
	readonly #settings: ClusterSettings;
	readonly #deps: RedisConnectionDeps;
	/**
	 * The home slot, and a key in it. In {@link isConnected} and the callbacks, the state of the home slot's node is taken as the
	 * state of the whole Redis Cluster.
	 */
	readonly #homeSlot: number;
	readonly #homeKey: string;
	/** True if the home slot's node last refused a command because the Redis Cluster is down. */
	#isDown = false;
	#ranges: readonly SlotRange[] = [];
	readonly #nodes = new Map<string, Node>();
	#refreshInProgress: Promise<void> | undefined;
	#refreshTimer: NodeJS.Timeout | undefined;
	/** Times, by `performance.now()`, for which the next refresh is scheduled and at which the last one ended. */
	#nextRefreshAt = 0;
	#lastRefreshAt = 0;
	#failureCause = 'not connected yet';
	#isClosed = false;
	/** Number of connections to nodes that have been established. */
	connectionNumber = 0;

	/** @param homeKey A key that most commands need. */
	constructor(settings: ClusterSettings, deps: RedisConnectionDeps, homeKey: string) {
		this.#settings = settings;
		this.#deps = deps;
		this.#homeKey = homeKey;
		this.#homeSlot = keySlot(homeKey);
		void this.#refresh();
	}

	get isConnected(): boolean {
		return !this.#isDown && this.#nodes.get(this.#addressOf(this.#homeSlot) ?? '')?.connection.isConnected === true;
	}

	/**
	 * Sends a command to the node that has its first key, or to the home slot's node. Repeats it while Redis moves its keys to
	 * another node. Rejects like `RedisConnection.sendCommand`.
	 */
	async sendCommand(args: readonly (string | Buffer)[], limitMs: number): Promise<RedisReply> {
		const deadline = performance.now() + limitMs;
		const key = firstKeyOf(args);
		const slot = key === undefined ? this.#homeSlot : keySlot(key);
		if (this.#ranges.length === 0) await this.#waitForRefresh(limitMs);
		let movingKeysError: unknown;
		let lastAnswerMs = 0;
		for (;;) {
			const sentAt = performance.now();
			try {
				const reply = await this.#sendToSlot(slot, args, deadline);
				// A node answers commands without a key even if the Redis Cluster is down.
				if (slot === this.#homeSlot && key !== undefined) this.#setDown(false);
				return reply;
			} catch (error) {
				const { reply } = error as ClusterError;
				if (reply === 'CLUSTERDOWN' && slot === this.#homeSlot) this.#setDown(true);
				const now = performance.now();
				if (reply !== 'TRYAGAIN') {
					// If the last attempt had no time for an answer, the reason for the earlier ones is the cause. Timers have a
					// resolution of a millisecond.
					const isTimeout = reply === undefined && now + 1 >= deadline;
					const hadTime = now - sentAt > Math.max(MIN_ANSWER_MS, 2 * lastAnswerMs);
					throw isTimeout && !hadTime ? (movingKeysError ?? error) : error;
				}
				// Some keys of the command have been moved and some have not, so that no node can execute it.
				if (now + MOVING_KEYS_RETRY_MS >= deadline) throw error;
				movingKeysError = error;
				lastAnswerMs = now - sentAt;
				await pause(MOVING_KEYS_RETRY_MS);
			}
		}
	}

	/** Sends a command to the node of a slot, and to other nodes to which Redis redirects it. */
	async #sendToSlot(slot: number, args: readonly (string | Buffer)[], deadline: number): Promise<RedisReply> {
		const remainingMs = (): number => Math.max(1, Math.ceil(deadline - performance.now()));
		if (this.#isClosed) throw unavailableError('the connection is closed');
		let address = this.#addressOf(slot);
		if (address === undefined) {
			this.#scheduleRefresh(FIRST_REFRESH_DELAY_MS);
			throw unavailableError(this.#ranges.length === 0 ? this.#failureCause : replyCause('CLUSTERDOWN'));
		}
		let isAsking = false;
		for (let redirectCount = 0; ; redirectCount++) {
			// A command after `close` must not open a connection that nothing would close.
			if (this.#isClosed) throw unavailableError('the connection is closed');
			const node = this.#nodeAt(address);
			node.pendingCommandCount++;
			try {
				// Both commands are sent in one go, because `ASKING` applies to the next command only.
				if (isAsking) node.connection.sendCommand(['ASKING'], remainingMs()).catch(() => {});
				return await node.connection.sendCommand(args, remainingMs());
			} catch (error) {
				const { reply, redirectAddress } = error as ClusterError;
				if (reply === 'MOVED' || reply === 'CLUSTERDOWN') this.#scheduleRefresh(0);
				if (redirectAddress === undefined || redirectCount === MAX_REDIRECTS) throw error;
				isAsking = reply === 'ASK';
				address = this.#completeAddress(redirectAddress, address);
			} finally {
				node.pendingCommandCount--;
			}
		}
	}

	close(): void {
		this.#isClosed = true;
		clearTimeout(this.#refreshTimer);
		for (const { connection } of this.#nodes.values()) connection.close();
		this.#nodes.clear();
	}

	#addressOf(slot: number): string | undefined {
		return this.#ranges.find(({ first, last }) => slot >= first && slot <= last)?.address;
	}

	#nodeAt(address: string): Node {
		const existingNode = this.#nodes.get(address);
		if (existingNode) return existingNode;
		const isHome = (): boolean => this.#addressOf(this.#homeSlot) === address;
		const connection = new RedisConnection(
			{ ...this.#settings, address },
			{
				onConnected: () => {
					this.connectionNumber++;
					if (isHome() && !this.#isDown) this.#deps.onConnected();
				},
				onFailed: cause => {
					if (this.#nodes.get(address) !== node) return;
					if (isHome()) this.#reportFailure(cause);
					this.#scheduleRefresh(FIRST_REFRESH_DELAY_MS);
				},
			},
		);
		const node: Node = { connection, pendingCommandCount: 0 };
		this.#nodes.set(address, node);
		return node;
	}

	async #waitForRefresh(limitMs: number): Promise<void> {
		const { promise: timeout, resolve } = Promise.withResolvers<void>();
		const timer = setTimeout(resolve, limitMs);
		await Promise.race([this.#refreshInProgress, timeout]);
		clearTimeout(timer);
	}

	/** Schedules a refresh, unless an earlier one is scheduled or one is in progress. */
	#scheduleRefresh(delayMs: number): void {
		if (this.#isClosed || this.#refreshInProgress) return;
		const now = performance.now();
		const wantedAt = now + delayMs * (0.75 + Math.random() / 2);
		const refreshAt = Math.max(wantedAt, this.#lastRefreshAt + MIN_REFRESH_INTERVAL_MS);
		if (this.#refreshTimer && this.#nextRefreshAt <= refreshAt) return;
		clearTimeout(this.#refreshTimer);
		this.#nextRefreshAt = refreshAt;
		this.#refreshTimer = setTimeout(() => void this.#refresh(), refreshAt - now);
		this.#refreshTimer.unref();
	}

	/** Reads which node has which slots. Never rejects. */
	async #refresh(): Promise<void> {
		clearTimeout(this.#refreshTimer);
		this.#refreshTimer = undefined;
		this.#refreshInProgress ??= this.#readSlots();
		await this.#refreshInProgress;
	}

	async #readSlots(): Promise<void> {
		const { address, other_addresses: others = [] } = this.#settings;
		// Nodes that are known to have slots may be reachable when the configured ones are not.
		const askedAddresses = new Set([address, ...others, ...this.#ranges.map(range => range.address)]);
		let failure: unknown;
		for (const askedAddress of shuffled([...askedAddresses])) {
			if (this.#isClosed) return;
			try {
				this.#useRanges(await this.#askForSlots(askedAddress));
				failure = undefined;
				break;
			} catch (error) {
				failure = error;
			}
		}
		this.#refreshInProgress = undefined;
		this.#lastRefreshAt = performance.now();
		if (this.#isClosed) return;
		if (failure !== undefined) this.#reportFailure(plainCause(failure));
		if (this.#isDown) this.sendCommand(['EXISTS', this.#homeKey], QUESTION_TIMEOUT_MS).catch(() => {});
		const isComplete =
			this.#addressOf(this.#homeSlot) !== undefined &&
			[...this.#nodes.values()].every(node => node.connection.isConnected);
		if (failure !== undefined || this.#isDown || !isComplete) this.#scheduleRefresh(REFRESH_INTERVAL_MS);
	}

	async #askForSlots(address: string): Promise<SlotRange[]> {
		const client = await connectRedisClient(address, this.#settings, QUESTION_TIMEOUT_MS, () => {});
		try {
			const reply = client.sendCommand(['CLUSTER', 'SLOTS'], REPLIES_AS_BYTES);
			const ranges = (await withinLimit(reply, QUESTION_TIMEOUT_MS, 'no answer in time')) as readonly [
				number,
				number,
				readonly [Buffer | null, number],
			][];
			if (ranges.length === 0) throw unavailableError('the Redis Cluster has no slots yet');
			return ranges.map(([first, last, [host, port]]) => {
				const masterHost = host === null ? '' : String(host);
				return { first, last, address: this.#completeAddress(joinAddress(masterHost, port), address) };
			});
		} finally {
			if (client.isOpen) client.destroy();
		}
	}

	/**
	 * Completes a node's address that another node, `askedAddress`, gave: an empty host or `?` means the host of that other node.
	 */
	#completeAddress(givenAddress: string, askedAddress: string): string {
		const { host, port } = splitAddress(givenAddress);
		return joinAddress(host === '' || host === '?' ? splitAddress(askedAddress).host : host, port);
	}

	#useRanges(ranges: readonly SlotRange[]): void {
		if (this.#isClosed) return;
		this.#ranges = ranges;
		for (const [address, node] of this.#nodes) {
			// A node with pending commands is kept even if it has no slots in `ranges`: it may have just become a master, to which
			// commands are redirected already, while the node that was asked for the slots does not know this yet.
			if (node.pendingCommandCount > 0 || ranges.some(range => range.address === address)) continue;
			this.#nodes.delete(address);
			node.connection.close();
		}
		const homeAddress = this.#addressOf(this.#homeSlot);
		if (homeAddress === undefined) this.#reportFailure(replyCause('CLUSTERDOWN'));
		else if (this.#nodeAt(homeAddress).connection.isConnected && !this.#isDown) this.#deps.onConnected();
	}

	/** Records whether the Redis Cluster refuses the commands of the home slot, and reports changes. */
	#setDown(isDown: boolean): void {
		if (this.#isClosed || this.#isDown === isDown) return;
		this.#isDown = isDown;
		if (isDown) this.#reportFailure(replyCause('CLUSTERDOWN'));
		else if (this.isConnected) this.#deps.onConnected();
	}

	#reportFailure(cause: string): void {
		this.#failureCause = cause;
		if (!this.isConnected) this.#deps.onFailed(cause);
	}
}

/** Returns the items in a random order, so that not all machines ask the same node. */
function shuffled(items: readonly string[]): string[] {
	return items
		.map(item => ({ item, rank: Math.random() }))
		.sort((a, b) => a.rank - b.rank)
		.map(({ item }) => item);
}
