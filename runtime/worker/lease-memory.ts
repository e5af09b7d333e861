/** How a lease is opened, and the shared memory that it needs. */
import type { MemoryRequest } from '../threads/shared-rows.ts';

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
