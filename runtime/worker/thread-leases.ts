/**
 * A thread's leases: upstream pools, files and access logs. Each is opened once per key, and closed with the last site that uses
 * it.
 */

import type { AccessLogSettings } from '../../compiler/document/log-namespaces.ts';
import { lazily } from '../../compiler/exchange/lazily.ts';
import type { FileReader, HealthSource, LeaseKinds, MetricsSource } from '../../compiler/exchange/leases.ts';
import type { PageWork } from '../../compiler/exchange/page-work.ts';
import type { UpstreamPool } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { createThreadCompressor, type ThreadCompressor } from '../compression/thread-compressor.ts';
import { createFileReader } from '../files/file-reader.ts';
import type { AccessBatch } from '../logs/access-batch.ts';
import { overloadSlot } from '../metrics/refusals.ts';
import { ThreadPageWork } from '../page-work/thread-page-work.ts';
import { ThreadAccountFile } from '../passwords/thread-account-file.ts';
import { ThreadPasswords } from '../passwords/thread-passwords.ts';
import { LeaseRegistry, leaseKey } from '../threads/lease-registry.ts';
import type { MemoryRequest } from '../threads/shared-rows.ts';
import { ThreadTracer } from '../tracing/thread-tracer.ts';
import { poolLayout } from '../upstreams/pool-memory.ts';
import { ThreadMirrorGate } from '../upstreams/thread-mirror-gate.ts';
import { createUpstreamPool, type OwnedUpstreamPool } from '../upstreams/upstream-pool.ts';
import { type LeaseSource, NeedsSharedMemory, OutOfSharedMemory } from './generation-builder.ts';
import type { LeaseMemory, LeaseThreadDeps, OpenLease } from './lease-deps.ts';
import { openAccessLog } from './open-access-log.ts';
import { openCache } from './open-cache.ts';
import { openConcurrencyLimiter, openRateLimiter } from './open-limiters.ts';

/** Provides leases on one thread. */
export class ThreadLeases implements LeaseSource {
	readonly leaseRegistry = new LeaseRegistry();
	readonly pageWork: PageWork;
	readonly #thread: LeaseThreadDeps;
	readonly #fileReader: () => FileReader;
	readonly #compressor: () => ThreadCompressor;
	readonly #memory: LeaseMemory = {
		take: (key, request) => this.#sharedMemory(key, request),
		release: key => this.#releaseMemory(key),
	};
	readonly #passwords: ThreadPasswords;
	readonly #metrics: MetricsSource;
	readonly #health: HealthSource;
	readonly #memoryByKey = new Map<string, SharedArrayBuffer>();
	readonly #pendingMemoryKeys = new Set<string>();
	readonly #refusedMemoryKeys = new Set<string>();
	#arrivalCallbacks: (() => void)[] = [];

	constructor(thread: LeaseThreadDeps) {
		this.#thread = thread;
		this.#fileReader = lazily(() => createFileReader(true, true, thread.counters));
		this.#compressor = lazily(() => createThreadCompressor(thread.counters));
		this.#passwords = new ThreadPasswords({
			sendCheck: check => thread.askMainThread({ about: 'password', check }),
			withdraw: id => void thread.askMainThread({ about: 'password_withdrawn', id }),
			clientOf: x => thread.accessLogs.clientIp(x),
			countRefusal: () => {
				thread.counters[overloadSlot('passwords')]!++;
			},
		});
		this.pageWork = new ThreadPageWork(task => thread.askMainThread({ about: 'page_work', task }));
		const renderers = {
			prometheus: shareResult(() => thread.askMainThread({ about: 'metrics', format: 'prometheus' })),
			openmetrics: shareResult(() => thread.askMainThread({ about: 'metrics', format: 'openmetrics' })),
		};
		this.#metrics = { render: format => renderers[format]() };
		this.#health = { notReadyReason: shareResult(() => thread.askMainThread({ about: 'health' })) };
	}

	acquire<K extends keyof LeaseKinds>(
		kind: K,
		settings: LeaseKinds[K]['settings'],
		material?: string,
	): { readonly lease: LeaseKinds[K]['lease']; readonly handle: string } {
		const handle = leaseKey(kind, material ? [settings, material] : settings);
		const lease = this.leaseRegistry.acquire(handle, () => this.#openLease(kind, settings, handle));
		return { lease: lease as LeaseKinds[K]['lease'], handle };
	}

	release(handle: string): void {
		this.leaseRegistry.release(handle);
	}

	whenMemoryArrives(): Promise<void> {
		if (this.#pendingMemoryKeys.size === 0) return Promise.resolve();
		return new Promise(resolve => {
			this.#arrivalCallbacks.push(resolve);
		});
	}

	/** Handles the arrival of requested memory. `buffer` is undefined if it could not be allocated. */
	handleMemory(key: string, buffer: SharedArrayBuffer | undefined): void {
		if (buffer) this.#memoryByKey.set(key, buffer);
		else this.#refusedMemoryKeys.add(key);
		this.#pendingMemoryKeys.delete(key);
		if (this.#pendingMemoryKeys.size > 0) return;
		for (const resolve of this.#arrivalCallbacks.splice(0)) resolve();
	}

	/**
	 * Called after a switch of generations. Tells each pool whether a site still uses it. If none does, the pool's upgraded
	 * connections end.
	 */
	retirePools(inUse: (handle: string) => boolean): void {
		for (const [handle, pool] of this.leaseRegistry.entries<OwnedUpstreamPool>('upstreams ')) {
			pool.setInUse(inUse(handle));
		}
	}

	/**
	 * Returns a listener's memory, with `slotCount` Int32 values for each thread, and `commonCount` after those. It is shared by all
	 * threads and kept until the thread ends.
	 */
	async listenerMemory(key: string, slotCount: number, commonCount = 0): Promise<SharedArrayBuffer> {
		for (;;) {
			try {
				return this.#sharedMemory(`listener ${key}`, { slots: slotCount, common: commonCount });
			} catch (error) {
				if (!(error instanceof NeedsSharedMemory)) throw error;
				await this.whenMemoryArrives();
			}
		}
	}

	/** Posts the access log lines and spans collected so far. */
	flushLogs(): void {
		for (const batch of this.leaseRegistry.values<AccessBatch>('batch ')) batch.flush();
		for (const tracer of this.leaseRegistry.values<ThreadTracer>('tracer ')) tracer.flush();
	}

	#openLease(kind: keyof LeaseKinds, settings: unknown, handle: string): OpenLease<unknown> {
		switch (kind) {
			case 'files':
				return { value: this.#fileReader(), close: () => {} };
			case 'upstreams':
				return this.#openPool(settings as LeaseKinds['upstreams']['settings'], handle);
			case 'password_verifier':
				return { value: this.#passwords, close: () => {} };
			case 'account_file': {
				const { path } = settings as LeaseKinds['account_file']['settings'];
				const file = new ThreadAccountFile(path, question =>
					this.#thread.askMainThread({ about: 'account_file', question }),
				);
				// Reads the file before the first login. If it becomes invalid later, the valid version is kept.
				void Promise.resolve(file.accounts()).catch(() => undefined);
				return { value: file, close: () => {} };
			}
			case 'metrics':
				return { value: this.#metrics, close: () => {} };
			case 'health':
				return { value: this.#health, close: () => {} };
			case 'acme_authority': {
				const serverSettings = settings as LeaseKinds['acme_authority']['settings'];
				const answer: LeaseKinds['acme_authority']['lease']['answer'] = request =>
					this.#thread.askMainThread({ about: 'acme', request, settings: serverSettings });
				return { value: { answer }, close: () => {} };
			}
			case 'tracer':
				return this.#openTracer();
			case 'compressor':
				return { value: this.#compressor(), close: () => {} };
			case 'event_counter': {
				const { event } = settings as LeaseKinds['event_counter']['settings'];
				return { value: this.#thread.moduleCounters.eventCounter(event), close: () => {} };
			}
			case 'mirror_gate': {
				const gateSettings = settings as LeaseKinds['mirror_gate']['settings'];
				return {
					value: new ThreadMirrorGate(gateSettings, this.#thread.moduleCounters.mirrorCounters(gateSettings.upstream)),
					close: () => {},
				};
			}
			case 'rate_limiter':
				return openRateLimiter(settings as LeaseKinds['rate_limiter']['settings'], handle, this.#thread, this.#memory);
			case 'concurrency_limiter':
				return openConcurrencyLimiter(
					settings as LeaseKinds['concurrency_limiter']['settings'],
					handle,
					this.#thread,
					this.#memory,
				);
			case 'cache':
				return openCache(settings as LeaseKinds['cache']['settings'], handle, this.#thread, this.#memory);
			case 'access_log':
				return openAccessLog(settings as AccessLogSettings, handle, this.#thread, this.#memory, this.leaseRegistry);
		}
	}

	#openPool(settings: LeaseKinds['upstreams']['settings'], handle: string): OpenLease<UpstreamPool> {
		const { rowSize: slots, commonSize: common } = poolLayout(settings);
		const buffer = this.#sharedMemory(handle, { slots, common, pool: settings });
		const { rowCount: rows, threadCount: threads, index: row, pools } = this.#thread;
		const reportAddresses = (addresses: readonly string[]) =>
			this.#thread.sendMessage({ type: 'upstreams_found', key: handle, addresses });
		const pool = createUpstreamPool(settings, { buffer, rows, row, threads }, pools, reportAddresses);
		return {
			value: pool,
			close: () => {
				pool.close();
				this.#releaseMemory(handle);
			},
		};
	}

	/** Returns memory that all threads share under a key. Throws NeedsSharedMemory if the memory has not arrived yet. */
	#sharedMemory(key: string, request: MemoryRequest): SharedArrayBuffer {
		const memory = this.#memoryByKey.get(key);
		if (memory) return memory;
		if (this.#refusedMemoryKeys.delete(key)) {
			throw new OutOfSharedMemory(4 * (request.slots * this.#thread.rowCount + (request.common ?? 0)));
		}
		if (!this.#pendingMemoryKeys.has(key)) {
			this.#pendingMemoryKeys.add(key);
			this.#thread.sendMessage({ type: 'memory_wanted', key, request });
		}
		throw new NeedsSharedMemory();
	}

	#releaseMemory(key: string): void {
		this.#memoryByKey.delete(key);
		this.#thread.sendMessage({ type: 'memory_released', key });
	}

	#openTracer(): OpenLease<ThreadTracer> {
		const tracer = new ThreadTracer(this.#thread.sampler, this.#thread.spanPort);
		this.#thread.sendMessage({ type: 'tracing_opened' });
		return { value: tracer, close: () => tracer.flush() };
	}
}

/** Wraps an asynchronous call so that concurrent callers share one result. */
function shareResult<T>(call: () => Promise<T>): () => Promise<T> {
	let pendingResult: Promise<T> | undefined;
	return () => {
		pendingResult ??= call().finally(() => {
			pendingResult = undefined;
		});
		return pendingResult;
	};
}
