/** What the code that opens a thread's leases returns, and what it uses of the thread. */
import type { AccessPort, BatchPort } from '../logs/access-batch.ts';
import type { AccessLogDeps } from '../logs/access-log.ts';
import type { ModuleCounters } from '../metrics/module-counters.ts';
import type { MemoryRequest } from '../threads/shared-rows.ts';
import type { Sampler } from '../tracing/sampler.ts';
import type { PoolDeps } from '../upstreams/pool-deps.ts';
import type { MainThreadReplies, MainThreadRequest } from './main-thread-requests.ts';
import type { MessageFromWorker } from './worker-messages.ts';

/** A lease, and the function that closes it. */
export interface OpenLease<T> {
	readonly value: T;
	close(): void;
}

/** Provides a thread's leases with memory that all threads share. */
export interface LeaseMemory {
	/** Returns the memory of a key. Throws NeedsSharedMemory if the memory has not arrived yet. */
	take(key: string, request: MemoryRequest): SharedArrayBuffer;
	release(key: string): void;
}

/** Dependencies of a thread's leases. */
export interface LeaseThreadDeps {
	/** The thread's row in shared memory. */
	readonly index: number;
	/** Number of rows in shared memory: one for each thread, whether or not it is running. */
	readonly rowCount: number;
	/** Number of threads that serve requests. */
	readonly threadCount: number;
	readonly accessLogs: AccessLogDeps;
	readonly pools: PoolDeps;
	sendMessage(message: MessageFromWorker): void;
	/** Sends a request to the main thread and resolves to the reply. */
	askMainThread<Q extends MainThreadRequest>(question: Q): Promise<MainThreadReplies[Q['about']]>;
	/** Returns the destination of an access log's batches. */
	batchPort(sink: string): AccessPort;
	/** The thread's row of counters. */
	readonly counters: Float64Array;
	/** The thread's counters of modules' events. */
	readonly moduleCounters: ModuleCounters;
	/** Decides which requests are traced. Their spans go to `spanPort`. */
	readonly sampler: Sampler;
	readonly spanPort: BatchPort;
}
