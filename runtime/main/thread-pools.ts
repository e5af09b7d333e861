/**
 * The pools of worker threads: one pool serves; the others only finish their connections after the number of threads has changed.
 *
 * A change of the number of threads works like a handover within the process. A new pool takes over the listening sockets of the
 * old one, builds the generation that is being served, and accepts connections; then the old pool drains. No connection is lost,
 * whichever of the two pools has more threads. All pools share one memory, so counts, health, caches and rate limits are kept.
 */
import { closeSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Settings } from '../../compiler/document/document.ts';
import type { ListenerAddress } from '../listeners/listener-address.ts';
import { distinctSockets } from '../listeners/listener-sockets.ts';
import { NO_WAIT, type RequestWaits } from '../protocols/protocol.ts';
import { type BequeathedDatagrams, channelsOf } from '../sockets/bequeathed-sockets.ts';
import { MAX_THREADS } from '../threads/control-words.ts';
import { SharedRows } from '../threads/shared-rows.ts';
import { withTimeLimit } from '../threads/within.ts';
import type { MessageToWorker } from '../worker/worker-messages.ts';
import { WorkerPool, workerThreadCount } from './worker-pool.ts';
import type { GenerationBuildRequest, WorkerPoolHost } from './worker-pool-host.ts';

/** Minimum number of rows of the shared memory. A row costs a few bytes for each upstream. */
const MIN_MEMORY_ROWS = 8;

/**
 * Milliseconds that idle connections of an old pool may wait for another request. `firstRequestMs` is longer, because
 * a client whose connection is closed repeats its request only if it was not the first one on the connection.
 */
export const HANDOVER_WAITS: RequestWaits = { nextRequestMs: 5000, firstRequestMs: 60_000 };

/** All worker threads of the process. */
export class ThreadPools {
	readonly #controlMemory: SharedArrayBuffer;
	readonly #host: WorkerPoolHost;
	#sharedRows: SharedRows | undefined;
	#servingPool: WorkerPool | undefined;
	/** Pools that do not accept connections: those that drain, and possibly one that is being started. */
	readonly #otherPools = new Set<WorkerPool>();
	/** Numbers of restarts and of stalls in pools that have ended. */
	#endedPoolRestarts = 0;
	#endedPoolStalls = 0;
	readonly #fixedThreadCount: number | undefined;

	/** @param fixedThreadCount The number of threads of the serving pool, whatever the settings say. */
	constructor(control: SharedArrayBuffer, host: WorkerPoolHost, fixedThreadCount?: number) {
		this.#controlMemory = control;
		this.#host = host;
		this.#fixedThreadCount = fixedThreadCount;
	}

	/** The pool that accepts connections. */
	get servingPool(): WorkerPool | undefined {
		return this.#servingPool;
	}

	/** Number of threads in the serving pool. */
	get servingThreadCount(): number {
		return this.#servingPool?.size ?? 0;
	}

	/** Returns how many threads should serve with these settings. */
	threadCountFor({ threads }: Settings): number {
		return workerThreadCount(this.#fixedThreadCount ?? threads);
	}

	/** Number of threads that died or stopped responding, and were replaced. */
	get restartCount(): number {
		return this.#allPools.reduce((sum, pool) => sum + pool.restartCount, this.#endedPoolRestarts);
	}

	/** Number of times that a thread stopped responding. */
	get stallCount(): number {
		return this.#allPools.reduce((sum, pool) => sum + pool.stallCount, this.#endedPoolStalls);
	}

	get #allPools(): WorkerPool[] {
		return this.#servingPool ? [this.#servingPool, ...this.#otherPools] : [...this.#otherPools];
	}

	/** Starts the first pool. A second call replaces the first pool, whose threads must have ended by then. */
	start(settings: Settings): void {
		const threadCount = this.threadCountFor(settings);
		const rowCount = Math.min(MAX_THREADS, Math.max(MIN_MEMORY_ROWS, 2 * threadCount, 2 * availableParallelism()));
		const { pools, caches, limits, concurrency } = this.#host;
		this.#sharedRows = new SharedRows(rowCount, pools, caches, limits, concurrency);
		this.#servingPool = this.#createPool(threadCount);
	}

	#createPool(threadCount: number): WorkerPool {
		return new WorkerPool(threadCount, this.#sharedRows!, this.#controlMemory, this.#host);
	}

	/** Number of threads that {@link resize} could start at the moment. */
	get freeThreads(): number {
		return this.#sharedRows?.freeCount ?? 0;
	}

	/**
	 * Changes the number of threads. Resolves once the new ones accept connections; the old ones drain for at most `graceMs`.
	 * Rejects if the new threads cannot serve. In that case, the old threads continue to serve.
	 * @param request Asks a new thread to build the generation that is being served.
	 */
	async resize(threadCount: number, request: GenerationBuildRequest, graceMs: number | undefined): Promise<void> {
		const oldPool = this.#servingPool!;
		const newPool = this.#createPool(threadCount);
		this.#otherPools.add(newPool);
		const datagrams = await oldPool.bequeathAll();
		try {
			const listeners = request.listeners.map(address => withOldSockets(address, oldPool, datagrams));
			await newPool.prepareAll({ ...request, listeners });
			newPool.activateAll();
			await newPool.checkAll();
			await newPool.acceptAll();
		} catch (error) {
			newPool.discardAll();
			await this.#endPool(newPool);
			throw error;
		} finally {
			closeChannels(datagrams);
		}
		this.#otherPools.delete(newPool);
		this.#otherPools.add(oldPool);
		this.#servingPool = newPool;
		void withTimeLimit(oldPool.drain(HANDOVER_WAITS), graceMs).then(() => this.#endPool(oldPool));
	}

	async #endPool(pool: WorkerPool): Promise<void> {
		await pool.terminate();
		if (!this.#otherPools.delete(pool)) return;
		this.#endedPoolRestarts += pool.restartCount;
		this.#endedPoolStalls += pool.stallCount;
	}

	/** Closes idle connections of old pools, because their next requests would be served with an old configuration. */
	closeIdleConnections(): void {
		for (const pool of this.#otherPools) void pool.drain(NO_WAIT);
	}

	/** Sends a message to every thread. Returns the indices of those that received it. */
	broadcast(message: MessageToWorker): number[] {
		return this.#allPools.flatMap(pool => pool.broadcast(message));
	}

	/**
	 * Makes every thread finish its exchanges. Resolves when all of them have finished.
	 * @param abandoned See {@link WorkerPool.drain}.
	 */
	async drain(requestWaits: RequestWaits, abandoned: readonly ListenerAddress[] = []): Promise<void> {
		await Promise.all(
			this.#allPools.map(pool => pool.drain(requestWaits, pool === this.#servingPool ? abandoned : [])),
		);
	}

	/** Terminates every thread. Resolves to false if one of them cannot be terminated. */
	async terminate(): Promise<boolean> {
		const terminationResults = await Promise.all(this.#allPools.map(pool => pool.terminate()));
		return !terminationResults.includes(false);
	}
}

/**
 * Returns an address with the sockets of the old pool's threads. The new threads must not use these sockets before they accept
 * connections.
 */
function withOldSockets(
	address: ListenerAddress,
	oldPool: WorkerPool,
	datagrams: ReadonlyMap<string, readonly BequeathedDatagrams[]>,
): ListenerAddress {
	if (address.descriptor !== undefined) return { ...address, deferred: true };
	const inherited = distinctSockets(oldPool.descriptorsOf(address.key));
	const datagramSockets = datagrams.get(address.key);
	return {
		...address,
		deferred: true,
		...(inherited.length > 0 && { inherited }),
		...(datagramSockets && { datagrams: datagramSockets }),
	};
}

/**
 * Closes this thread's copies of the channels to the threads or the process that take over, because a channel reports its end
 * only when no copy is left.
 */
export function closeChannels(datagrams: ReadonlyMap<string, readonly BequeathedDatagrams[]>): void {
	for (const socket of [...datagrams.values()].flat()) for (const channel of channelsOf(socket)) closeSync(channel);
}
