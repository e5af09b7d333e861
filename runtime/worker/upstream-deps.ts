/** What the upstream pools of a worker thread use of it: trusted proxies, counters, memory for request bodies, and log entries. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { EventCounter } from '../../compiler/exchange/leases.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import { RecurringEvent } from '../logs/recurring-event.ts';
import type { ModuleCounters } from '../metrics/module-counters.ts';
import { overloadSlot } from '../metrics/refusals.ts';
import type { SeriesPages } from '../metrics/series-pages.ts';
import { bufferedBytesPerThread, RequestBodyMemory } from '../protocols/fastcgi/buffered-request-body.ts';
import { type AvailabilityChange, availabilityEntry } from '../upstreams/availability.ts';
import type { PoolDeps } from '../upstreams/pool-deps.ts';
import type { TlsProvider } from '../upstreams/transports/tls-provision.ts';
import { UpstreamObserver } from '../upstreams/upstream-observer.ts';

const FASTCGI_LOGGER = 'http.reverse_proxy.transport.fastcgi';

/** The members of a thread that its upstream pools use. */
export interface UpstreamDepsSource {
	/** Number of threads, among which the memory for request bodies is divided. */
	readonly threadCount: number;
	readonly environment: { readonly [name: string]: string | undefined };
	/** The thread's row of counters; see counter-row.ts. */
	readonly counters: Float64Array;
	readonly moduleCounters: ModuleCounters;
	readonly provideTls: TlsProvider;
	clientIp(x: Exchange): string;
	trustsPeer(x: Exchange): boolean;
	log(entry: LogEntry): void;
}

/** The dependencies that all upstream pools of a thread share. */
export class UpstreamDeps implements PoolDeps {
	upstreamObserver: UpstreamObserver | undefined = undefined;
	readonly environment: { readonly [name: string]: string | undefined };
	readonly provideTls: TlsProvider;
	readonly requestBodyMemory: RequestBodyMemory;
	readonly #source: UpstreamDepsSource;
	readonly #bodyMemoryRefusals = new RecurringEvent();

	constructor(source: UpstreamDepsSource) {
		this.#source = source;
		this.environment = source.environment;
		this.provideTls = source.provideTls;
		this.requestBodyMemory = new RequestBodyMemory(bufferedBytesPerThread(source.threadCount), () =>
			this.#onBodyMemoryExhausted(),
		);
	}

	/** Measures requests to upstreams from now on. */
	startMeasuring(seriesPages: SeriesPages): void {
		this.upstreamObserver ??= new UpstreamObserver(seriesPages);
	}

	// Pools pass some of these functions on without the object.

	readonly clientIp = (x: Exchange): string => this.#source.clientIp(x);

	readonly trustsPeer = (x: Exchange): boolean => this.#source.trustsPeer(x);

	readonly shedCounter = (pool: string): EventCounter => this.#source.moduleCounters.shedCounter(pool);

	readonly onCutShort = (upstream: string, cause: string): void => {
		this.#source.log({
			level: 'warn',
			logger: 'http.reverse_proxy',
			message: 'a response was cut short',
			fields: { upstream, cause },
		});
	};

	readonly onAvailabilityChange = (change: AvailabilityChange): void => this.#source.log(availabilityEntry(change));

	/** Logs what a FastCGI application wrote to standard error. */
	readonly onStderr = (text: string, status: number): void => {
		const level = status >= 400 ? 'error' : 'warn';
		for (const line of text.split(/\r?\n/)) {
			if (line.trim() === '') continue;
			this.#source.log({ level, logger: FASTCGI_LOGGER, message: line, fields: { status } });
		}
	};

	/** Counts a request that is refused because of other requests with buffered bodies, and logs it at most once per minute. */
	#onBodyMemoryExhausted(): void {
		const { counters, threadCount } = this.#source;
		counters[overloadSlot('buffered_bodies')]!++;
		const refused = this.#bodyMemoryRefusals.count(performance.now());
		if (refused === undefined) return;
		this.#source.log({
			level: 'warn',
			logger: FASTCGI_LOGGER,
			message: 'requests are refused: too many bodies without a Content-Length are in memory',
			fields: { bytes_per_thread: bufferedBytesPerThread(threadCount), refused },
		});
	}
}
